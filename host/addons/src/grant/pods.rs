//! What the Pods of an add-on use, wherever an object has a template of them: images, an identity,
//! Secrets, and the machine itself.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// What Pods use.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Used {
    pub images: BTreeSet<String>,
    /// Names of service accounts; a Pod that names none has the one of its namespace, `default`.
    pub service_accounts: BTreeSet<String>,
    pub secrets: BTreeSet<String>,
    /// Names of Secrets with which images are pulled: the kubelet reads them, no container does.
    pub pull_secrets: BTreeSet<String>,
    /// Fields by which they use what belongs to the machine.
    pub host: BTreeSet<&'static str>,
}

/// What the Pods use that are made from this object. Objects that only change Pods of others (`makes_pods` is
/// false) need not name an identity.
pub(super) fn used(object: &Value, makes_pods: bool) -> Used {
    let mut res = Used::default();
    // Containers may be left out where somebody else put them.
    if let Some(Value::Object(pod)) = object.pointer("/spec/template/spec").filter(|_| makes_pods) {
        inspect(pod, makes_pods, &mut res);
    }
    find(object, makes_pods, &mut res);
    res
}

fn find(value: &Value, makes_pods: bool, res: &mut Used) {
    match value {
        Value::Object(fields) => {
            if ["containers", "initContainers", "ephemeralContainers"]
                .iter()
                .any(|it| matches!(fields.get(*it), Some(Value::Array(_))))
            {
                inspect(fields, makes_pods, res);
            } else {
                fields.values().for_each(|it| find(it, makes_pods, res));
            }
        }
        Value::Array(items) => items.iter().for_each(|it| find(it, makes_pods, res)),
        _ => (),
    }
}

fn inspect(pod: &Map<String, Value>, makes_pods: bool, res: &mut Used) {
    // The second name is the older one, which still counts.
    let accounts =
        ["serviceAccountName", "serviceAccount"].iter().filter_map(|it| pod.get(*it).and_then(Value::as_str));
    let accounts: BTreeSet<String> = accounts.filter(|it| !it.is_empty()).map(str::to_owned).collect();
    if makes_pods && accounts.is_empty() {
        res.service_accounts.insert("default".to_owned());
    }
    res.service_accounts.extend(accounts);
    look_at_fields(pod, res);
}

/// By name, wherever they are: kinds of containers and of volumes are many, and these fields mean the same in
/// all.
fn look_at_fields(fields: &Map<String, Value>, res: &mut Used) {
    const HOST: [&str; 5] = ["hostNetwork", "hostPID", "hostIPC", "privileged", "hostProcess"];
    for (field, value) in fields {
        let text = |path: &str| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
        match field.as_str() {
            // Of a container, or of a volume.
            "image" => res.images.extend(text("").or_else(|| text("/reference"))),
            "secretName" => res.secrets.extend(text("")),
            "secret" | "secretRef" | "secretKeyRef" | "nodePublishSecretRef" => {
                res.secrets.extend(text("/name"))
            }
            "imagePullSecrets" => {
                let names = value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(|it| it.get("name").and_then(Value::as_str));
                res.pull_secrets.extend(names.map(str::to_owned));
            }
            "hostPath" if !value.is_null() => drop(res.host.insert("hostPath")),
            "hostPort" if value.as_i64() != Some(0) && !value.is_null() => drop(res.host.insert("hostPort")),
            "capabilities"
                if value.pointer("/add").and_then(Value::as_array).is_some_and(|it| !it.is_empty()) =>
            {
                res.host.insert("capabilities");
            }
            field => res.host.extend(HOST.into_iter().find(|it| *it == field && value == &Value::Bool(true))),
        }
        look_into(value, res);
    }
}

fn look_into(value: &Value, res: &mut Used) {
    match value {
        Value::Object(fields) => look_at_fields(fields, res),
        Value::Array(items) => items.iter().for_each(|it| look_into(it, res)),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_is_found_with_all_that_it_uses() {
        let pod = json!({
            "hostNetwork": true, "hostPID": false, "serviceAccountName": "own", "imagePullSecrets": [{"name": "pull"}],
            "initContainers": [{"name": "a", "image": "init", "securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}],
            "containers": [
                {"name": "b", "image": "main", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "variable", "key": "a"}}}]},
                {"name": "c", "envFrom": [{"secretRef": {"name": "variables"}}], "ports": [{"containerPort": 1, "hostPort": 1}]},
            ],
            "ephemeralContainers": [{"name": "d", "image": "late", "securityContext": {"privileged": true}}],
            "volumes": [
                {"name": "e", "secret": {"secretName": "volume"}},
                {"name": "f", "projected": {"sources": [{"secret": {"name": "projected"}}, {"serviceAccountToken": {"path": "t"}}]}},
                {"name": "g", "hostPath": {"path": "/"}},
                {"name": "h", "image": {"reference": "volume-image"}},
            ],
        });
        let used = used(
            &json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}}),
            true,
        );
        assert_eq!(used.images.into_iter().collect::<Vec<_>>(), ["init", "late", "main", "volume-image"]);
        assert_eq!(used.service_accounts.into_iter().collect::<Vec<_>>(), ["own"]);
        assert_eq!(
            used.secrets.into_iter().collect::<Vec<_>>(),
            ["projected", "variable", "variables", "volume"]
        );
        assert_eq!(used.pull_secrets.into_iter().collect::<Vec<_>>(), ["pull"]);
        assert_eq!(
            used.host.into_iter().collect::<Vec<_>>(),
            ["capabilities", "hostNetwork", "hostPath", "hostPort", "privileged"]
        );
    }

    #[test]
    fn a_pod_whose_containers_somebody_else_put_there_is_found_too() {
        let template =
            json!({"spec": {"template": {"spec": {"serviceAccountName": "own", "hostPID": true}}}});
        assert_eq!(used(&template, true).host.into_iter().collect::<Vec<_>>(), ["hostPID"]);
    }

    #[test]
    fn a_pod_without_a_service_account_has_the_one_of_its_namespace() {
        let template = json!({"spec": {"template": {"spec": {"containers": []}}}});
        assert_eq!(used(&template, true).service_accounts.into_iter().collect::<Vec<_>>(), ["default"]);
        assert_eq!(used(&template, false), Used::default(), "an overlay changes nothing of that");
    }
}
