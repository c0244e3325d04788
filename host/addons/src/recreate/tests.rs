//! Which objects are made anew, and why others are not.

use serde_json::json;

use super::*;

const MANAGER: &str = "cluster-operator-aws-ebs-csi";

/// An object that the manager applied, and that has `content`.
fn made(api_version: &str, kind: &str, content: Value) -> Value {
    let mut res = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "managedFields": [
        {"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {}}},
        {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:spec": {"f:selector": {}}}}]}});
    for (key, value) in content.as_object().unwrap() {
        res[key] = value.clone();
    }
    res
}

fn said(api_version: &str, kind: &str, desired: Value, live: Value, refused: &[&str]) -> String {
    let refused: Vec<String> = refused.iter().map(|it| (*it).to_owned()).collect();
    match recreate(
        &made(api_version, kind, desired),
        &made(api_version, kind, live),
        MANAGER,
        &refused,
        false,
    ) {
        Recreate::No => "no".into(),
        Recreate::Safe => "safe".into(),
        Recreate::Refused(why) => why,
    }
}

#[test]
fn rules_are_recreated_and_what_stands_for_data_or_addresses_is_not() {
    let selector = |value: &str| json!({"spec": {"selector": {"matchLabels": {"app": value}}}});
    let class = |parameters: Value| json!({"provisioner": "ebs.csi.aws.com", "parameters": parameters});
    let role = |name: &str| json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
    let job = |image: &str, status: Value| json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}, "status": status});
    let ended = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    let apps = "apps/v1";
    let storage = "storage.k8s.io/v1";
    let rbac = "rbac.authorization.k8s.io/v1";
    let definitions = "apiextensions.k8s.io/v1";
    let cases = [
        said(apps, "Deployment", selector("a"), selector("b"), &["spec.selector"]),
        said(apps, "DaemonSet", selector("a"), selector("b"), &["spec.selector"]),
        said(
            apps,
            "DaemonSet",
            selector("a"),
            selector("b"),
            &["spec.selector", "spec.template.spec.containers[0].image"],
        ),
        said(apps, "DaemonSet", selector("a"), selector("a"), &["spec.template.spec.containers[0].image"]),
        said(apps, "StatefulSet", selector("a"), selector("b"), &["spec.selector"]),
        said(rbac, "ClusterRoleBinding", role("a"), role("b"), &["roleRef"]),
        said(rbac, "RoleBinding", role("a"), role("a"), &["subjects[0].name"]),
        said(
            storage,
            "StorageClass",
            class(json!({"type": "gp3"})),
            class(json!({"type": "gp2"})),
            &["parameters"],
        ),
        said(
            storage,
            "StorageClass",
            class(json!({})),
            json!({"provisioner": "ebs.csi.aws.com", "reclaimPolicy": "Delete"}),
            &["x"],
        ),
        said(
            storage,
            "StorageClass",
            json!({"provisioner": "a", "reclaimPolicy": "Retain"}),
            json!({"provisioner": "a"}),
            &["reclaimPolicy"],
        ),
        said(
            storage,
            "CSIDriver",
            json!({"spec": {"attachRequired": false}}),
            json!({"spec": {}}),
            &["spec.attachedRequired"],
        ),
        said(
            "v1",
            "Service",
            json!({"spec": {"clusterIP": "None"}}),
            json!({"spec": {"clusterIP": "10.0.0.9"}}),
            &["spec.clusterIPs[0]"],
        ),
        said(
            "v1",
            "Service",
            json!({"spec": {}}),
            json!({"spec": {"clusterIP": "10.0.0.9"}}),
            &["spec.ports"],
        ),
        said(
            "v1",
            "PersistentVolume",
            json!({"spec": {"csi": {"driver": "a"}}}),
            json!({"spec": {"csi": {"driver": "b"}}}),
            &[],
        ),
        said(
            definitions,
            "CustomResourceDefinition",
            json!({"spec": {"scope": "Cluster"}}),
            json!({"spec": {"scope": "Namespaced"}}),
            &[],
        ),
        said(definitions, "CustomResourceDefinition", json!({}), json!({}), &["status.storedVersions[0]"]),
        said("batch/v1", "Job", job("a", json!(null)), job("b", json!({})), &["spec.template"]),
        said("batch/v1", "Job", job("a", json!(null)), job("b", ended), &["spec.template"]),
        said("v1", "ConfigMap", json!({"data": {"a": "1"}}), json!({"data": {}}), &["data"]),
    ];
    expect_test::expect![[r#"
        safe
        safe
        DaemonSet it: spec.selector cannot be changed in place, and spec.template.spec.containers[0].image would be refused in a new object too
        no
        StatefulSet it: spec.selector cannot be changed: its pods hold data; delete it with --cascade=orphan, and it is made anew
        safe
        no
        safe
        no
        safe
        safe
        Service it: spec.clusterIP cannot be changed: clients know the address; delete the Service if they can do without, and it is made anew
        no
        PersistentVolume it: spec.csi cannot be changed: it stands for data; what uses it has to be moved first
        CustomResourceDefinition it: spec.scope cannot be changed: deleting it would delete all objects of its kind
        CustomResourceDefinition it: objects are stored in a version that the new definition does not have; deleting the definition would delete them: store them in the new version, then take the old one off its status.storedVersions
        Job it: spec.template cannot be changed: it is still running; it is made anew when it has ended
        safe
        no"#]].assert_eq(&cases.join("\n"));
}

#[test]
fn what_a_user_made_is_never_deleted() {
    let class =
        |provisioner: &str| made("storage.k8s.io/v1", "StorageClass", json!({"provisioner": provisioner}));
    let refused = ["provisioner".to_owned()];
    let by = |fields: Value| {
        let mut live = class("other");
        live["metadata"]["managedFields"] = fields;
        recreate(&class("ebs.csi.aws.com"), &live, MANAGER, &refused, false)
    };
    let ours = json!({"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:provisioner": {}}});
    let user = json!({"manager": "kubectl-create", "operation": "Update", "fieldsV1": {"f:provisioner": {}}});
    let labels = json!({"manager": "kubectl-label", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {}}}});
    assert_eq!(by(json!([ours.clone(), labels])), Recreate::Safe);
    let theirs = Recreate::Refused(
        "StorageClass it: provisioner cannot be changed in place, and kubectl-create wrote the object too: delete it, and it is made anew"
            .into(),
    );
    assert_eq!(by(json!([ours, user.clone()])), theirs);
    assert_eq!(by(json!([user])), theirs);
    assert!(matches!(by(json!(null)), Recreate::Refused(why) if why.contains("somebody wrote")));
}

#[test]
fn what_replaced_an_object_is_recreated_where_nothing_runs_in_it() {
    let replaced = |api_version: &str, kind: &str, desired: Value, live: Value, field: &str| {
        let mut live = made(api_version, kind, live);
        live["metadata"]["managedFields"] =
            json!([{"manager": "kubectl-create", "operation": "Update", "fieldsV1": {"f:spec": {}}}]);
        recreate(&made(api_version, kind, desired), &live, MANAGER, &[field.to_owned()], true)
    };
    let selector = |app: &str| json!({"spec": {"selector": {"matchLabels": {"app": app}}}});
    let role = |name: &str| json!({"roleRef": {"kind": "ClusterRole", "name": name}});
    let storage = "storage.k8s.io/v1";
    let class = |kind: &str| json!({"provisioner": "a", "parameters": {"type": kind}});
    assert_eq!(replaced(storage, "StorageClass", class("gp3"), class("gp2"), "parameters"), Recreate::Safe);
    let driver = |attach: bool| json!({"spec": {"attachRequired": attach}});
    assert_eq!(
        replaced(storage, "CSIDriver", driver(true), driver(false), "spec.attachedRequired"),
        Recreate::Safe
    );
    assert_eq!(
        replaced("rbac.authorization.k8s.io/v1", "RoleBinding", role("a"), role("b"), "roleRef"),
        Recreate::Safe
    );
    let deployment = replaced("apps/v1", "Deployment", selector("a"), selector("b"), "spec.selector");
    expect_test::expect![[
        r#"Refused("Deployment it: spec.selector cannot be changed in place, and kubectl-create wrote the object too: delete it, and it is made anew")"#
    ]]
    .assert_eq(&format!("{deployment:?}"));
}
