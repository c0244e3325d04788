//! Trust policies that are wrong in one way each: the ClusterPlugin says which, and AWS refuses the very
//! token that the driver would bring. Roles that are missing or may not be read, too. Nothing here looks into
//! the operator.

use anyhow::{Result, ensure};
use end_to_end::add_ons::{ACCOUNT, issuer, plugin, trust};
use end_to_end::{Cluster, MOMENT, condition, condition_text};
use sandbox::Bed;
use sandbox::emulator::Fault;
use serde_json::{Value, json};

use super::passed;

/// The service account whose role is tried.
const SERVICE_ACCOUNT: &str = "ebs-csi-controller-sa";
const AUDIENCE: &str = "sts.amazonaws.com";

/// What is wrong, the policy, and what the condition says of it.
fn wrong_ways() -> Vec<(&'static str, Value, String)> {
    let right: Value = serde_json::from_str(&trust(SERVICE_ACCOUNT)).unwrap_or_default();
    let statement = &right["Statement"][0];
    let issuer = issuer();
    let policy = |change: &dyn Fn(&mut Value)| {
        let mut changed = right.clone();
        change(&mut changed["Statement"][0]);
        changed
    };
    let only = |key: &str, value: &str| {
        let mut condition = statement["Condition"].clone();
        condition["StringEquals"][format!("{issuer}:{key}")] = value.into();
        condition
    };
    let other_provider =
        format!("arn:aws:iam::{ACCOUNT}:oidc-provider/issuers.s3.us-east-1.amazonaws.com/default/other");
    let account = json!({"AWS": format!("arn:aws:iam::{ACCOUNT}:root")});
    let mut denied = statement.clone();
    denied["Effect"] = "Deny".into();
    denied["Sid"] = "No".into();
    vec![
        (
            "another-subject",
            policy(&|it| it["Condition"] = only("sub", "system:serviceaccount:default:default")),
            "system:serviceaccount:default:default".to_owned(),
        ),
        ("another-audience", policy(&|it| it["Condition"] = only("aud", "vault")), "vault".to_owned()),
        (
            "another-issuer",
            policy(&|it| it["Principal"] = json!({"Federated": other_provider})),
            "default/other".to_owned(),
        ),
        (
            "a-wildcard-taken-literally",
            policy(&|it| it["Condition"] = only("sub", "system:serviceaccount:kube-system:*")),
            "StringLike".to_owned(),
        ),
        (
            "a-denial-beside",
            json!({"Version": "2012-10-17", "Statement": [statement, denied]}),
            "No".to_owned(),
        ),
        (
            "an-account-instead",
            policy(&|it| it["Principal"] = account.clone()),
            "Principal is AWS".to_owned(),
        ),
    ]
}

/// Gives EBS one wrong role after the other, and the right one again.
pub async fn wrong_policies_are_told_apart(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let arguments =
        ["create", "token", SERVICE_ACCOUNT, "--namespace", "kube-system", "--audience", AUDIENCE];
    let token = workload.kubectl(&arguments).await?.trim().to_owned();
    assume(bed, "full-ebs", &token).await?;
    for (way, policy, told) in wrong_ways() {
        let role = format!("full-{way}");
        bed.aws(&[
            "iam",
            "create-role",
            "--role-name",
            &role,
            "--assume-role-policy-document",
            &policy.to_string(),
        ])
        .await?;
        let refused = assume(bed, &role, &token).await.err().map(|it| it.to_string()).unwrap_or_default();
        ensure!(refused.contains("AccessDenied"), "AWS does not refuse a role with {way}");
        use_role(bed, cluster, &role).await?;
        bed.wait_for(&format!("storage to be held because of {way}"), MOMENT, async || {
            let object = plugin(bed, cluster).await?;
            let text = condition_text(&object, "StorageReady");
            let names_it =
                text.starts_with("TrustPolicyDenies: ") && text.contains(&role) && text.contains(&told);
            ensure!(names_it, "StorageReady says {text:?}, without {told:?}");
            let others =
                ["CloudProviderReady", "NetworkingReady", "IngressReady"].map(|it| condition(&object, it));
            ensure!(others == ["True"; 3], "the others are {others:?}");
            Ok(())
        })
        .await?;
        bed.aws(&["iam", "delete-role", "--role-name", &role]).await?;
    }
    use_role(bed, cluster, "full-ebs").await?;
    bed.wait_for("storage to be ready with the right role", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        ensure!(
            condition(&object, "StorageReady") == "True",
            "StorageReady says {:?}",
            condition_text(&object, "StorageReady")
        );
        Ok(())
    })
    .await?;
    passed(
        "trust policies that are wrong in six ways are told apart, and AWS refuses the driver's token for each",
    );
    Ok(())
}

/// Gives EBS a role that does not exist, and one that the operator may not read.
pub async fn a_role_that_is_missing_or_cannot_be_read_is_told_apart(
    bed: &Bed,
    cluster: &Cluster,
) -> Result<()> {
    let role = |name: &str| {
        json!({"spec": {"storage": {"ebs": {"roleARN": format!("arn:aws:iam::{ACCOUNT}:role/{name}")}}}})
            .to_string()
    };
    cluster.patch(bed, "clusterplugin", &cluster.name, &role("nobody")).await?;
    bed.wait_for("storage to be held for want of its role", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "StorageReady");
        ensure!(text.starts_with("RoleNotFound: spec.storage.ebs.roleARN"), "StorageReady says {text:?}");
        let others =
            ["CloudProviderReady", "NetworkingReady", "IngressReady"].map(|it| condition(&object, it));
        ensure!(others == ["True"; 3], "the others are {others:?}");
        Ok(())
    })
    .await?;
    let denied = Fault {
        kind: "access-denied".into(),
        service: Some("iam".into()),
        action: Some("GetRole".into()),
        ..Fault::default()
    };
    bed.emulator().set_faults(&[denied]).await?;
    let trust = trust("ebs-csi-controller-sa");
    bed.aws(&["iam", "create-role", "--role-name", "full-other", "--assume-role-policy-document", &trust])
        .await?;
    let all =
        json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
            .to_string();
    bed.aws(&[
        "iam",
        "put-role-policy",
        "--role-name",
        "full-other",
        "--policy-name",
        "all",
        "--policy-document",
        &all,
    ])
    .await?;
    cluster.patch(bed, "clusterplugin", &cluster.name, &role("full-other")).await?;
    bed.wait_for("storage to run with a role that may not be read", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "StorageReady");
        let ready = condition(&object, "StorageReady") == "True";
        ensure!(ready && text.contains("iam:GetRole"), "StorageReady says {text:?}");
        Ok(())
    })
    .await?;
    bed.emulator().set_faults(&[]).await?;
    passed(
        "a role that is missing holds storage, and one that may not be read is used and the missing permission named",
    );
    Ok(())
}

async fn use_role(bed: &Bed, cluster: &Cluster, role: &str) -> Result<()> {
    let patch =
        json!({"spec": {"storage": {"ebs": {"roleARN": format!("arn:aws:iam::{ACCOUNT}:role/{role}")}}}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch.to_string()).await
}

async fn assume(bed: &Bed, role: &str, token: &str) -> Result<Value> {
    let arn = format!("arn:aws:iam::{ACCOUNT}:role/{role}");
    let call = [
        "sts",
        "assume-role-with-web-identity",
        "--role-session-name",
        "try",
        "--role-arn",
        &arn,
        "--web-identity-token",
        token,
    ];
    bed.aws(&call).await
}
