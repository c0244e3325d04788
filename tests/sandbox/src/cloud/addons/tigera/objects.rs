//! The objects that the Tigera operator's stand-in makes.
//!
//! Pure. The CRDs keep unknown fields: their real schemas are larger than all of the rest.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

/// The DaemonSet that brings the pod network.
pub const NODE: &str = "calico-node";
/// The Deployment that serves `projectcalico.org/v3`.
pub const API_SERVER: &str = "calico-apiserver";
/// The version that the operator of this version installs.
const VERSION: &str = "v3.32.1";

/// Kinds that it makes: group, version, kind and plural.
const KINDS: [(&str, &str, &str, &str); 5] = [
    ("operator.tigera.io", "v1", "Installation", "installations"),
    ("operator.tigera.io", "v1", "APIServer", "apiservers"),
    ("operator.tigera.io", "v1", "TigeraStatus", "tigerastatuses"),
    ("crd.projectcalico.org", "v1", "IPPool", "ippools"),
    ("crd.projectcalico.org", "v1", "FelixConfiguration", "felixconfigurations"),
];

/// One of the kinds, by its name.
pub fn resource(kind: &str) -> Option<ApiResource> {
    let (group, version, kind, plural) = KINDS.into_iter().find(|it| it.2 == kind)?;
    Some(ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural))
}

/// The operator's own CRDs, and those of Calico that the bed has a use for.
pub fn definitions() -> Vec<Value> {
    KINDS.into_iter().map(definition).collect()
}

fn definition((group, version, kind, plural): (&str, &str, &str, &str)) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": anything, "status": anything},
                }},
            }],
        },
    })
}

/// Reference by which what is made goes with the object of this kind that asks for it.
pub fn owner(kind: &str, object: &DynamicObject) -> Value {
    json!([{
        "apiVersion": "operator.tigera.io/v1", "kind": kind, "name": object.name_any(),
        "uid": object.uid(), "controller": true, "blockOwnerDeletion": true,
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

/// Where an Installation has images from, without a slash at its end.
fn registry(spec: &Value) -> &str {
    spec["registry"].as_str().unwrap_or("quay.io/").trim_end_matches('/')
}

/// calico-node, on every node there is, by an Installation's spec.
pub fn daemon_set(owner: &Value, spec: &Value) -> Value {
    let labels = json!({"k8s-app": NODE, "app.kubernetes.io/name": NODE});
    let registry = registry(spec);
    let backend = if spec["calicoNetwork"]["bgp"] == "Enabled" { "bird" } else { "vxlan" };
    let containers =
        spec.pointer("/calicoNodeDaemonSet/spec/template/spec/containers").and_then(Value::as_array);
    let resources = containers
        .and_then(|all| all.iter().find(|it| it["name"] == NODE))
        .map_or(json!({}), |it| it["resources"].clone());
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
                    "containers": [{
                        "name": NODE, "image": format!("{registry}/calico/node:{VERSION}"), "resources": resources,
                        "env": [{"name": "CALICO_NETWORKING_BACKEND", "value": backend}],
                    }],
                },
            },
        },
    })
}

/// The API server of `projectcalico.org/v3`. It is not registered with Kubernetes': nothing would answer
/// there.
pub fn api_server(owner: &Value, spec: &Value) -> Value {
    let labels = json!({"k8s-app": API_SERVER, "apiserver": "true"});
    let registry = registry(spec);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": API_SERVER, "namespace": super::NAMESPACE, "ownerReferences": owner, "labels": labels},
        "spec": {
            "replicas": 2,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"k8s-app": API_SERVER}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [
                        {"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"},
                        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
                    "containers": [{"name": API_SERVER, "image": format!("{registry}/calico/apiserver:{VERSION}")}],
                },
            },
        },
    })
}

/// How a part of Calico stands.
#[derive(Clone, Copy)]
pub enum Standing<'a> {
    Available,
    Progressing,
    Degraded(&'a str),
}

/// Conditions of the given types: `Degraded` and `Progressing` are true in that standing, every other one
/// when it is available. `generation` is that of the object which asks for the part; not all parts have one.
pub fn conditions(types: &[&str], standing: Standing<'_>, generation: Option<i64>) -> Value {
    let (reason, message) = match standing {
        Standing::Available => ("AllObjectsAvailable", "All objects available"),
        Standing::Progressing => ("ResourceNotReady", "not all objects are available"),
        Standing::Degraded(why) => ("ResourceNotReady", why),
    };
    let condition = |kind: &&str| {
        let status = match *kind {
            "Degraded" => matches!(standing, Standing::Degraded(_)),
            "Progressing" => matches!(standing, Standing::Progressing),
            _ => matches!(standing, Standing::Available),
        };
        let mut condition = json!({
            "type": kind, "status": if status { "True" } else { "False" }, "reason": reason, "message": message,
            "lastTransitionTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        });
        if let Some(generation) = generation {
            condition["observedGeneration"] = generation.into();
        }
        condition
    };
    types.iter().map(condition).collect()
}

/// Whether the object's conditions say that already, times aside.
pub fn says(object: &DynamicObject, conditions: &Value) -> bool {
    let found = &object.data["status"]["conditions"];
    let said = |wanted: &Value| {
        found.as_array().into_iter().flatten().any(|found| {
            ["type", "status", "message", "observedGeneration"]
                .iter()
                .all(|field| found[field] == wanted[field])
        })
    };
    conditions.as_array().is_some_and(|conditions| conditions.iter().all(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_were_taken_over_need_no_second_patch() {
        let wanted = conditions(&["Available", "Progressing", "Degraded"], Standing::Available, Some(2));
        let mut object: DynamicObject =
            serde_json::from_value(json!({"metadata": {"name": "calico"}, "status": {"conditions": wanted}}))
                .expect("an object");
        assert!(says(&object, &wanted));
        object.data["status"]["conditions"][0]["observedGeneration"] = json!(1);
        assert!(!says(&object, &wanted));
        assert!(!says(&object, &conditions(&["Available"], Standing::Progressing, Some(2))));
    }

    #[test]
    fn what_is_missing_is_progress_and_what_is_refused_is_degraded() {
        let statuses = |standing| -> Vec<String> {
            let conditions = conditions(&["Available", "Progressing", "Degraded"], standing, None);
            conditions
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|it| it["status"].as_str().map(str::to_owned))
                .collect()
        };
        assert_eq!(statuses(Standing::Progressing), ["False", "True", "False"]);
        assert_eq!(statuses(Standing::Degraded("no")), ["False", "False", "True"]);
    }
}
