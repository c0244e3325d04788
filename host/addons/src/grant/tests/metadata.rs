//! Metadata of every object: labels, annotations, owners, finalizers.

use super::*;

fn of(kind: &str, metadata: Value) -> Vec<String> {
    let mut whole = json!({"name": "a", "namespace": "own"});
    whole.as_object_mut().expect("an object").extend(metadata.as_object().cloned().expect("an object"));
    let (api_version, group) =
        if kind == "ConfigMap" { ("v1", "") } else { ("example.com/v1", "example.com") };
    let own = json!([{"group": group, "kinds": [kind], "namespaces": ["own"], "unread": true}]);
    denied_of(json!({"apiVersion": api_version, "kind": kind, "metadata": whole}), json!({"objects": own}))
}

#[test]
fn metadata_reaches_nobody_else_in_any_kind() {
    for kind in ["ConfigMap", "Widget"] {
        assert_eq!(
            of(
                kind,
                json!({"labels": {"app": "a", "app.kubernetes.io/name": "b"}, "annotations": {"example.com/a": "b"}})
            ),
            [""; 0]
        );
        assert_eq!(of(kind, json!({"creationTimestamp": null, "finalizers": []})), [""; 0]);
        assert_eq!(
            of(kind, json!({"finalizers": ["example.com/never"]})),
            [
                "metadata.finalizers: ObjectMeta.finalizers is not granted <- grants.fields: [ObjectMeta.finalizers]"
            ]
        );
        for field in ["generateName", "deletionTimestamp", "uid", "resourceVersion", "managedFields"] {
            assert_eq!(
                of(kind, json!({field: "a"})),
                [format!("metadata.{field} is not granted <- nothing")]
            );
        }
        assert_eq!(of(kind, json!({"surprise": true})), ["metadata.surprise is not known <- nothing"]);
        let owner = |name: &str| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "u"}]);
        let denied = of(kind, json!({"ownerReferences": owner("other")}));
        assert_eq!(denied.len(), usize::from(kind == "Widget"), "{denied:?}");
    }
}

#[test]
fn keys_of_the_operator_are_nobodys_others_are_granted() {
    for key in ["cluster.kurator.dev/id", "kurator.dev/a", "plugin.cluster.kurator.dev/b"] {
        assert_eq!(
            of("ConfigMap", json!({"labels": {key: "a"}})),
            [format!("metadata.labels: label {key} is not granted: it is the operator's own <- nothing")]
        );
        assert_eq!(
            of("ConfigMap", json!({"annotations": {key: "a"}})),
            [format!(
                "metadata.annotations: annotation {key} is not granted: it is the operator's own <- nothing"
            )]
        );
    }
    let keys = [
        "pod-security.kubernetes.io/enforce",
        "storageclass.kubernetes.io/is-default-class",
        "kubernetes.io/metadata.name",
        "node.k8s.io/a",
        "container.apparmor.security.beta.kubernetes.io/main",
        "cluster.x-k8s.io/cluster-name",
    ];
    for key in keys {
        assert_eq!(
            of("ConfigMap", json!({"labels": {key: "a"}})),
            [format!("metadata.labels: label {key} is not granted <- grants.labels: [{key}]")]
        );
        assert_eq!(
            of("ConfigMap", json!({"annotations": {key: "a"}})),
            [format!("metadata.annotations: annotation {key} is not granted <- grants.annotations: [{key}]")]
        );
    }
    assert_eq!(of("ConfigMap", json!({"labels": {"evilkubernetes.io/a": "b", "k8s.aws/c": "d"}})), [""; 0]);
    assert_eq!(
        of("ConfigMap", json!({"labels": {"k8s-app": "kube-dns"}})),
        [
            "metadata.labels: label k8s-app is not granted: by it Pods get the requests of the cluster's DNS <- nothing"
        ]
    );
}

#[test]
fn a_grant_of_keys_can_end_in_a_star() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own", "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
    let with = |labels: &str| {
        denied_of(
            namespace.clone(),
            json!({"objects": [{"kinds": ["Namespace"], "names": ["own"]}], "labels": [labels]}),
        )
        .len()
    };
    assert_eq!(
        [with("pod-security.kubernetes.io/*"), with("pod-security.kubernetes.io/audit"), with("*")],
        [0, 1, 0]
    );
}
