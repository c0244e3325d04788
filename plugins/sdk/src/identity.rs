//! How a Pod becomes an IAM role without the help of a webhook: a projected token of its service account, and
//! what AWS SDKs read to use it. Nothing here knows a secret: the token is made by the kubelet.

use crate::Diagnostic;
use serde_json::{Value, json};

/// Whom the tokens are for, which the role's trust policy and the OIDC provider must name.
pub const AUDIENCE: &str = "sts.amazonaws.com";

const VOLUME: &str = "aws-iam-token";
const DIRECTORY: &str = "/var/run/secrets/sts.amazonaws.com/serviceaccount";
/// Seconds. The kubelet renews the token after 80 percent of it.
const LIFETIME: u32 = 86_400;

/// Lets the Pod of this template act as `role_arn`, in all of its containers named `containers`. Pods that do
/// not run as root must have an `fsGroup`, or they could not read the token.
pub fn assume(pod: &mut Value, containers: &[&str], role_arn: &str, region: &str) {
    let volume = json!({
        "name": VOLUME,
        "projected": { "sources": [
            { "serviceAccountToken": { "audience": AUDIENCE, "expirationSeconds": LIFETIME, "path": "token" } },
        ] },
    });
    push(&mut pod["volumes"], [volume]);
    let token = [DIRECTORY, "/token"].concat();
    let Some(all) = pod["containers"].as_array_mut() else { return };
    for container in
        all.iter_mut().filter(|container| containers.iter().any(|name| container["name"] == **name))
    {
        push(
            &mut container["env"],
            [
                json!({ "name": "AWS_ROLE_ARN", "value": role_arn }),
                json!({ "name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": token }),
                json!({ "name": "AWS_STS_REGIONAL_ENDPOINTS", "value": "regional" }),
            ],
        );
        if container["env"].as_array().is_none_or(|env| env.iter().all(|one| one["name"] != "AWS_REGION")) {
            push(&mut container["env"], [json!({ "name": "AWS_REGION", "value": region })]);
        }
        push(
            &mut container["volumeMounts"],
            [json!({ "name": VOLUME, "mountPath": DIRECTORY, "readOnly": true })],
        );
    }
}

fn push(list: &mut Value, more: impl IntoIterator<Item = Value>) {
    match list {
        Value::Array(list) => list.extend(more),
        none => *none = more.into_iter().collect(),
    }
}

/// What is wrong with the ARN of a role, at `/roleARN` of the configuration, for a cluster in this partition.
pub fn problem(role_arn: &str, partition: &str) -> Option<Diagnostic> {
    let mut parts = role_arn.splitn(6, ':');
    let mut next = || parts.next().unwrap_or_default();
    let (arn, found, iam, region, account, resource) = (next(), next(), next(), next(), next(), next());
    let is_role = arn == "arn"
        && iam == "iam"
        && region.is_empty()
        && account.len() == 12
        && account.bytes().all(|digit| digit.is_ascii_digit())
        && resource.strip_prefix("role/").is_some_and(|name| !name.is_empty() && !name.ends_with('/'));
    if !is_role {
        let message = "must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/name";
        return Some(Diagnostic::error("InvalidRoleARN", "/roleARN", message));
    }
    (found != partition).then(|| {
        let message = ["is of partition ", found, ", but the cluster runs in partition ", partition];
        Diagnostic::error("OtherPartition", "/roleARN", message.concat())
    })
}

/// What the user should know when no role was given: the Pods then act as the instances they run on.
pub fn instance_role_warning(role_arn: Option<&str>, what: &str) -> Option<Diagnostic> {
    if role_arn.is_some() {
        return None;
    }
    let message = [
        "without roleARN, ",
        what,
        " acts as the IAM role of the instance it runs on, which must allow what it does; Pods reach it only \
         with httpPutResponseHopLimit of at least 2",
    ];
    Some(Diagnostic::warning("InstanceRole", "/roleARN", message.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_containers_get_the_role_and_every_list_is_kept() {
        let mut pod = json!({
            "containers": [
                { "name": "a", "env": [{ "name": "AWS_REGION", "value": "here" }] },
                { "name": "b" },
            ],
            "volumes": [{ "name": "other" }],
        });
        assume(&mut pod, &["a"], "arn:aws:iam::123456789012:role/r", "us-east-1");
        let names = |list: &Value| -> Vec<String> {
            list.as_array()
                .into_iter()
                .flatten()
                .filter_map(|one| one["name"].as_str())
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(names(&pod["volumes"]), ["other", "aws-iam-token"]);
        let env = names(&pod["containers"][0]["env"]);
        assert_eq!(
            env,
            ["AWS_REGION", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_STS_REGIONAL_ENDPOINTS"]
        );
        assert_eq!(pod["containers"][1], json!({ "name": "b" }));
    }

    #[test]
    fn only_roles_of_the_clusters_partition_will_do() {
        let code = |arn: &str| problem(arn, "aws").map(|problem| problem.code);
        assert_eq!(code("arn:aws:iam::123456789012:role/path/name"), None);
        assert_eq!(code("arn:aws-cn:iam::123456789012:role/name").as_deref(), Some("OtherPartition"));
        for arn in [
            "",
            "name",
            "arn:aws:iam::1:role/name",
            "arn:aws:iam::123456789012:user/name",
            "arn:aws:iam::123456789012:role/",
        ] {
            assert_eq!(code(arn).as_deref(), Some("InvalidRoleARN"), "{arn}");
        }
    }
}
