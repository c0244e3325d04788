//! What to do when the API server refuses to change an object in place: whether the object may be deleted and
//! made anew, or why not. Nothing here deletes anything.

use std::collections::BTreeSet;

use serde_json::Value;

use super::ObjectRef;

/// What may be done about an object that cannot be changed in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recreate {
    /// It was not refused for a field that cannot change: making it anew would not help.
    No,
    /// Delete it and apply it again: nothing is lost but the time in between.
    Safe,
    /// Making it anew would help and would do harm; the text says which field, why, and what the user can do.
    Refused(String),
}

/// A field that cannot change, and what its absence means.
struct Field {
    path: &'static str,
    default: Value,
}

/// Decides about an object that the API server refused to change into `desired`.
///
/// `live` is the object as it is, with its managed fields: only what `manager` made, and nobody else wrote
/// to, is ever made anew; but for what somebody put in the place of a known object of ours (`is_repair`), if
/// nothing runs in it and nothing is kept in it. `refused` are the fields that the API server named; one that
/// stays wrong in a new object is a reason to leave the old one.
pub fn recreate(
    desired: &Value,
    live: &Value,
    manager: &str,
    refused: &[String],
    is_repair: bool,
) -> Recreate {
    let Some(object) = ObjectRef::of(desired) else { return Recreate::No };
    let group = object.api_version.split_once('/').map_or("", |it| it.0);
    let changed: Vec<&'static str> = match (group, object.kind.as_str()) {
        ("batch", "Job") => job(desired, live),
        (group, kind) => {
            fields(group, kind).into_iter().filter(|it| it.differs(desired, live)).map(|it| it.path).collect()
        }
    };
    let Some(first) = changed.first() else {
        return standing(&object, refused);
    };
    if let Some(harm) = harm(&object.kind, live) {
        return Recreate::Refused(format!("{object}: {first} cannot be changed: {harm}"));
    }
    // "spec.attachedRequired" is how Kubernetes itself spells a CSIDriver's spec.attachRequired: only the
    // first part is compared.
    let roots: BTreeSet<&str> = changed.iter().map(|it| it.split('.').next().unwrap_or_default()).collect();
    let is_other = |it: &&String| match group {
        "storage.k8s.io" | "rbac.authorization.k8s.io" => {
            !roots.contains(it.split(['.', '[']).next().unwrap_or_default())
        }
        _ => !changed.iter().any(|path| it.starts_with(path)),
    };
    if let Some(other) = refused.iter().find(is_other) {
        return Recreate::Refused(format!(
            "{object}: {first} cannot be changed in place, and {other} would be refused in a new object too"
        ));
    }
    let is_rule = ["storage.k8s.io", "rbac.authorization.k8s.io"].contains(&group);
    match stranger(live, manager, &changed) {
        None => Recreate::Safe,
        Some(_) if is_repair && is_rule => Recreate::Safe,
        Some(owner) => Recreate::Refused(format!(
            "{object}: {first} cannot be changed in place, and {owner} wrote the object too: delete it, and it is made anew"
        )),
    }
}

impl Field {
    fn differs(&self, desired: &Value, live: &Value) -> bool {
        let pointer = format!("/{}", self.path.replace('.', "/"));
        let at = |object: &Value| {
            object
                .pointer(&pointer)
                .filter(|it| !it.is_null())
                .cloned()
                .unwrap_or_else(|| self.default.clone())
        };
        // An address that nobody asks for is the API server's choice.
        let is_open = self.path == "spec.clusterIP" && desired.pointer(&pointer).is_none();
        !is_open && at(desired) != at(live)
    }
}

/// Fields that cannot change, by what the API server checks on updates.
fn fields(group: &str, kind: &str) -> Vec<Field> {
    let field = |path, default| Field { path, default };
    let text = |path, default: &str| Field { path, default: default.into() };
    let object = || Value::Object(serde_json::Map::new());
    match (group, kind) {
        ("apps", "Deployment" | "DaemonSet" | "StatefulSet") => vec![field("spec.selector", Value::Null)],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            vec![field("roleRef.kind", Value::Null), field("roleRef.name", Value::Null)]
        }
        ("storage.k8s.io", "StorageClass") => vec![
            text("provisioner", ""),
            field("parameters", object()),
            text("reclaimPolicy", "Delete"),
            text("volumeBindingMode", "Immediate"),
        ],
        // The last two can be changed since Kubernetes 1.29.
        ("storage.k8s.io", "CSIDriver") => vec![
            field("spec.attachRequired", true.into()),
            field("spec.volumeLifecycleModes", Value::Array(vec!["Persistent".into()])),
            text("spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
            field("spec.podInfoOnMount", false.into()),
        ],
        ("", "Service") => vec![text("spec.clusterIP", "")],
        ("", "PersistentVolume") => vec![field("spec.csi", Value::Null)],
        ("", "PersistentVolumeClaim") => vec![text("spec.storageClassName", ""), text("spec.volumeName", "")],
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            vec![text("spec.scope", ""), field("spec.names.kind", Value::Null)]
        }
        _ => Vec::new(),
    }
}

/// Refusals that are told from the API server's answer alone.
fn standing(object: &ObjectRef, refused: &[String]) -> Recreate {
    let stored = refused
        .iter()
        .find(|it| object.kind == "CustomResourceDefinition" && it.starts_with("status.storedVersions"));
    match stored {
        None => Recreate::No,
        Some(_) => Recreate::Refused(format!(
            "{object}: objects are stored in a version that the new definition does not have; deleting the definition would delete them: \
             store them in the new version, then take the old one off its status.storedVersions"
        )),
    }
}

/// The template of a Job: the API server fills in much of it, so only what is asked for is compared.
fn job(desired: &Value, live: &Value) -> Vec<&'static str> {
    let at = |object: &Value| object.pointer("/spec/template").cloned().unwrap_or_default();
    if holds(&at(live), &at(desired)) { Vec::new() } else { vec!["spec.template"] }
}

/// Whether `live` says everything that `desired` says.
fn holds(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => {
            desired.iter().all(|(key, value)| live.get(key).map_or(value.is_null(), |it| holds(it, value)))
        }
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len()
                && live.iter().zip(desired).all(|(live, desired)| holds(live, desired))
        }
        (live, desired) => live == desired,
    }
}

/// What would be lost with an object of this kind.
fn harm(kind: &str, live: &Value) -> Option<&'static str> {
    let ended = || {
        let all = live.pointer("/status/conditions").and_then(Value::as_array);
        all.into_iter()
            .flatten()
            .any(|it| (it["type"] == "Complete" || it["type"] == "Failed") && it["status"] == "True")
    };
    match kind {
        "Job" if !ended() => Some("it is still running; it is made anew when it has ended"),
        "Service" => {
            Some("clients know the address; delete the Service if they can do without, and it is made anew")
        }
        "StatefulSet" => Some("its pods hold data; delete it with --cascade=orphan, and it is made anew"),
        "PersistentVolume" | "PersistentVolumeClaim" => {
            Some("it stands for data; what uses it has to be moved first")
        }
        "CustomResourceDefinition" => Some("deleting it would delete all objects of its kind"),
        _ => None,
    }
}

/// Who, besides `manager` and Kubernetes' own status, wrote one of the fields. An object that `manager` never
/// applied is somebody else's altogether.
fn stranger(live: &Value, manager: &str, changed: &[&str]) -> Option<String> {
    let entries: Vec<&Value> =
        live.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten().collect();
    let name = |it: &Value| it["manager"].as_str().unwrap_or("somebody").to_owned();
    let is_ours = |it: &Value| it["manager"] == manager && it["operation"] == "Apply";
    let others = || {
        entries.iter().filter(|it| !is_ours(it) && it["subresource"].as_str().unwrap_or_default().is_empty())
    };
    if !entries.iter().any(|it| is_ours(it)) {
        return Some(others().map(|it| name(it)).next().unwrap_or_else(|| "somebody".to_owned()));
    }
    others().find(|it| changed.iter().any(|path| owns(&it["fieldsV1"], path))).map(|it| name(it))
}

/// Whether managed fields name the path, or something above it as a whole, as they do for a selector or a
/// roleRef.
fn owns(fields: &Value, path: &str) -> bool {
    let mut at = fields;
    for (depth, part) in path.split('.').enumerate() {
        match at.get(format!("f:{part}")) {
            Some(inner) => at = inner,
            None => return depth > 0 && at.as_object().is_some_and(serde_json::Map::is_empty),
        }
    }
    true
}

#[cfg(test)]
mod tests {
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
    fn what_is_made_of_rules_alone_is_made_anew_and_what_stands_for_data_or_an_address_is_not() {
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
            said(
                apps,
                "DaemonSet",
                selector("a"),
                selector("a"),
                &["spec.template.spec.containers[0].image"],
            ),
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
            said(
                definitions,
                "CustomResourceDefinition",
                json!({}),
                json!({}),
                &["status.storedVersions[0]"],
            ),
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
        let class = |provisioner: &str| {
            made("storage.k8s.io/v1", "StorageClass", json!({"provisioner": provisioner}))
        };
        let refused = ["provisioner".to_owned()];
        let by = |fields: Value| {
            let mut live = class("other");
            live["metadata"]["managedFields"] = fields;
            recreate(&class("ebs.csi.aws.com"), &live, MANAGER, &refused, false)
        };
        let ours = json!({"manager": MANAGER, "operation": "Apply", "fieldsV1": {"f:provisioner": {}}});
        let user =
            json!({"manager": "kubectl-create", "operation": "Update", "fieldsV1": {"f:provisioner": {}}});
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
    fn what_took_the_place_of_a_known_object_is_made_anew_where_nothing_runs_in_it() {
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
        assert_eq!(
            replaced(storage, "StorageClass", class("gp3"), class("gp2"), "parameters"),
            Recreate::Safe
        );
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
}
