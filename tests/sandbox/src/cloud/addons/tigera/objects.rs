//! The objects that the Tigera operator's stand-in makes.
//!
//! Pure. The CRDs keep unknown fields: their real schemas are larger than all of the rest.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// The DaemonSet that brings the pod network.
pub const NODE: &str = "calico-node";
/// The version that the operator of this version installs.
const VERSION: &str = "v3.32.1";

/// The operator's own CRDs.
pub fn definitions() -> Vec<Value> {
    let kinds = [
        ("Installation", "installations", "installation"),
        ("APIServer", "apiservers", "apiserver"),
        ("TigeraStatus", "tigerastatuses", "tigerastatus"),
    ];
    kinds.into_iter().map(|(kind, plural, singular)| definition(kind, plural, singular)).collect()
}

fn definition(kind: &str, plural: &str, singular: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.operator.tigera.io")},
        "spec": {
            "group": "operator.tigera.io", "scope": "Cluster",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}

/// Reference by which what is made goes with the Installation.
pub fn owner(installation: &DynamicObject) -> Value {
    json!([{
        "apiVersion": "operator.tigera.io/v1", "kind": "Installation", "name": installation.name_any(),
        "uid": installation.uid(), "controller": true, "blockOwnerDeletion": true,
    }])
}

/// The namespace of everything that runs.
pub fn namespace(owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": super::NAMESPACE, "ownerReferences": owner,
            "labels": {"name": super::NAMESPACE, "pod-security.kubernetes.io/enforce": "privileged"},
        },
    })
}

/// calico-node, on every node there is; `registry` ends in a slash.
pub fn daemon_set(owner: &Value, registry: &str) -> Value {
    let labels = json!({"k8s-app": NODE, "app.kubernetes.io/name": NODE});
    let registry = registry.trim_end_matches('/');
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": NODE, "namespace": super::NAMESPACE, "ownerReferences": owner, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": NODE}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostNetwork": true, "priorityClassName": "system-node-critical",
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [
                        {"operator": "Exists", "key": "CriticalAddonsOnly"},
                        {"operator": "Exists", "effect": "NoSchedule"}, {"operator": "Exists", "effect": "NoExecute"}],
                    "containers": [{"name": NODE, "image": format!("{registry}/calico/node:{VERSION}")}],
                },
            },
        },
    })
}

/// Conditions of the given types: `Progressing` is true until ready, `Degraded` never.
pub fn conditions(types: &[&str], ready: bool, generation: Option<i64>) -> Value {
    let condition = |kind: &&str| {
        let status = match *kind {
            "Degraded" => false,
            "Progressing" => !ready,
            _ => ready,
        };
        json!({
            "type": kind, "status": if status { "True" } else { "False" },
            "reason": if ready { "AllObjectsAvailable" } else { "ResourceNotReady" },
            "message": if ready { "All objects available" } else { "DaemonSet \"calico-system/calico-node\" is not available" },
            "observedGeneration": generation,
            "lastTransitionTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        })
    };
    types.iter().map(condition).collect()
}

/// Whether the object's conditions say that already, times aside.
pub fn says(object: &DynamicObject, conditions: &Value) -> bool {
    let found = &object.data["status"]["conditions"];
    let said = |wanted: &Value| {
        found
            .as_array()
            .into_iter()
            .flatten()
            .any(|found| ["type", "status", "observedGeneration"].iter().all(|field| found[field] == wanted[field]))
    };
    conditions.as_array().is_some_and(|conditions| conditions.iter().all(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_were_taken_over_need_no_second_patch() {
        let wanted = conditions(&["Available", "Progressing", "Degraded"], true, Some(2));
        let mut object: DynamicObject =
            serde_json::from_value(json!({"metadata": {"name": "calico"}, "status": {"conditions": wanted}})).expect("an object");
        assert!(says(&object, &wanted));
        object.data["status"]["conditions"][0]["observedGeneration"] = json!(1);
        assert!(!says(&object, &wanted));
        assert!(!says(&object, &conditions(&["Available"], false, Some(2))));
    }

    #[test]
    fn a_missing_daemon_set_is_progress_and_no_degradation() {
        let conditions = conditions(&["Available", "Progressing", "Degraded"], false, None);
        let statuses: Vec<&str> = conditions.as_array().expect("a list").iter().filter_map(|c| c["status"].as_str()).collect();
        assert_eq!(statuses, ["False", "True", "False"]);
    }
}
