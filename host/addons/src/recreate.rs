//! What to do when the API server refuses to change an object in place: whether the object may be deleted
//! and made anew, or why not.

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
            "{object}: {first} cannot be changed in place, and {owner} wrote the object too: delete it, and \
             it is made anew"
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
            "{object}: objects are stored in a version that the new definition does not have; deleting the \
             definition would delete them: \
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
mod tests;
