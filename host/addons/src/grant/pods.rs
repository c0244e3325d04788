//! The rules for Pods: whose images, identities and Secrets they use, what of the machine, and on which
//! machines they run.

use crds::plugin_module::{Grants, HostPathGrant};
use serde_json::{Map, Value};

use super::cover;
use super::denial::{named, shown};
use super::judge::{Judge, Place};
use super::tables;

/// Lists of containers.
const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];
/// Labels of machines by which any Pod may choose: they are of many machines.
pub(super) const HARMLESS_NODE_LABELS: [&str; 5] = [
    "kubernetes.io/arch",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Whether something in an object that nobody reads is a Pod, or is merged into one.
pub(super) fn is_lookalike(fields: &Map<String, Value>, judge: &Judge<'_>) -> bool {
    let is_template = match judge.field() {
        "podSpec" => true,
        "spec" => ["template", "podTemplate", "podTemplateSpec"].contains(&judge.field_above()),
        _ => false,
    };
    CONTAINERS.iter().any(|it| fields.get(*it).is_some_and(Value::is_array))
        || is_template && fields.keys().any(|it| tables::is_field("PodSpec", it))
}

/// A Pod has the service account that it names, or the one called `default`.
pub(super) fn check_identity(judge: &mut Judge<'_>, pod: &Map<String, Value>, place: Place<'_>) {
    // The second name is the older one, which still counts.
    let named = ["serviceAccountName", "serviceAccount"].map(|it| pod.get(it).and_then(Value::as_str));
    let mut accounts: Vec<&str> = named.into_iter().flatten().filter(|it| !it.is_empty()).collect();
    if accounts.is_empty() && place.makes_pods {
        accounts.push("default");
    }
    accounts.dedup();
    for account in accounts {
        judge.needs_object(("v1", "ServiceAccount", place.namespace, account));
    }
}

pub(super) fn check_image(judge: &mut Judge<'_>, value: &Value) {
    let Some(image) = value.as_str().filter(|it| !it.is_empty()) else { return };
    if cover::has_image(&judge.grants.registries, image) {
        return;
    }
    let registry = image.rsplit_once('/').map(|(registry, _)| registry.to_owned());
    let grant = registry.map(|it| Grants { registries: vec![it], ..Grants::default() });
    judge.deny("images", format!("image {} comes from a registry that is not granted", named(image)), grant);
}

pub(super) fn check_pull_secrets(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    for name in names_in(value) {
        let at = ("v1", "Secret", place.namespace, name);
        let is_granted = judge.grants.pull_secrets.iter().any(|it| it == name)
            || cover::covers(&judge.grants.objects, at)
            || cover::covers(&judge.grants.reads, at);
        let grant = |_| Grants { pull_secrets: vec![name.to_owned()], ..Grants::default() };
        judge.deny_object(is_granted && cover::nobodys(at).is_none(), at, grant);
    }
}

/// Names of objects in a list of references.
pub(super) fn names_in(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(|it| it.get("name").and_then(Value::as_str))
}

pub(super) fn check_secret(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    if let Some(name) = value.get("name").and_then(Value::as_str) {
        judge.needs_read(("v1", "Secret", place.namespace, name));
    }
}

pub(super) fn check_token_audience(judge: &mut Judge<'_>, value: &Value) {
    let Some(audience) = value.as_str().filter(|it| !it.is_empty()) else { return };
    judge.needs_of_pods(
        "token audiences",
        |pods| pods.token_audiences.iter().any(|it| it == audience),
        &format!("a token for {}", shown(audience)),
        |pods| pods.token_audiences.push(audience.to_owned()),
    );
}

pub(super) fn check_priority_class(judge: &mut Judge<'_>, value: &Value) {
    let Some(class) = value.as_str().filter(|it| !it.is_empty()) else { return };
    judge.needs_of_pods(
        "priority classes",
        |pods| pods.priority_classes.iter().any(|it| it == class),
        &format!("PriorityClass {}", named(class)),
        |pods| pods.priority_classes.push(class.to_owned()),
    );
}

pub(super) fn check_capabilities(judge: &mut Judge<'_>, value: &Value) {
    let added = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in added.map(cover::capability) {
        judge.needs_of_pods(
            "capabilities",
            |pods| pods.capabilities.iter().any(|it| cover::capability(it) == name),
            &format!("capability {}", named(&name)),
            |pods| pods.capabilities.push(name.clone()),
        );
    }
}

/// A field whose name has to be granted where it is not as usual.
pub(super) fn check_usual(judge: &mut Judge<'_>, value: &Value, usual: &str) {
    if value.as_str().is_none_or(|it| !it.is_empty() && it != usual) {
        judge.needs_pod_field(judge.field());
    }
}

/// A profile of seccomp or AppArmor: that of the container runtime, or one that is granted.
pub(super) fn check_profile(judge: &mut Judge<'_>, value: &Value) {
    if value.get("type").and_then(Value::as_str) != Some("RuntimeDefault") {
        judge.needs_pod_field(judge.field());
    }
}

/// What is mounted in the container is mounted on the machine too.
pub(super) fn check_mount_propagation(judge: &mut Judge<'_>, value: &Value) {
    if !matches!(value.as_str(), Some("None" | "HostToContainer" | "")) {
        judge.needs_pod_field("mountPropagation");
    }
}

pub(super) fn check_host_path(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    let Some(path) = value.get("path").and_then(Value::as_str) else {
        return judge.deny(
            "host paths",
            format!("{}: hostPath without a path is not granted", judge.path()),
            None,
        );
    };
    if !cover::is_below_path("/", path) {
        return judge.deny(
            "host paths",
            format!("{}: path {} is not granted", judge.path(), shown(path)),
            None,
        );
    }
    // Whoever merges it into Pods of its own mounts it as he likes.
    let read_only = place.makes_pods && is_mounted_read_only(place);
    let what = format!("path {} of the machine{}", shown(path), if read_only { ", read-only," } else { "" });
    judge.needs_of_pods(
        "host paths",
        |pods| cover::covers_host_path(&pods.host_paths, path, read_only),
        &what,
        |pods| pods.host_paths.push(HostPathGrant { path: path.to_owned(), read_only }),
    );
}

/// Whether every container that mounts the volume can only read it.
fn is_mounted_read_only(place: Place<'_>) -> bool {
    let volume = place.parent.get("name");
    let list = |of: &Value, name: &str| of.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let containers = place
        .pod
        .into_iter()
        .flat_map(|pod| CONTAINERS.iter().filter_map(|it| pod.get(*it).and_then(Value::as_array)).flatten());
    let mounts = containers.flat_map(|it| list(it, "volumeMounts"));
    mounts.filter(|it| it.get("name") == volume).all(|it| it.get("readOnly") == Some(&Value::Bool(true)))
}

pub(super) fn check_node_labels(judge: &mut Judge<'_>, value: &Value) {
    for label in value.as_object().into_iter().flatten().map(|(label, _)| label) {
        check_node_label(judge, label);
    }
}

/// What a machine must not be sends a Pod nowhere.
pub(super) fn check_node_requirements(judge: &mut Judge<'_>, value: &Value) {
    for requirement in value.as_array().into_iter().flatten() {
        let text = |name: &str| requirement.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_away = matches!(text("operator"), "NotIn" | "DoesNotExist");
        if !(is_away && cover::CONTROL_PLANE.contains(&text("key"))) {
            check_node_label(judge, text("key"));
        }
    }
}

fn check_node_label(judge: &mut Judge<'_>, label: &str) {
    if cover::CONTROL_PLANE.contains(&label) {
        return needs_control_plane(judge);
    }
    if HARMLESS_NODE_LABELS.contains(&label) {
        return;
    }
    judge.needs_of_pods(
        "node labels",
        |pods| cover::has_name(&pods.node_labels, label),
        &format!("choosing machines by label {}", named(label)),
        |pods| pods.node_labels.push(label.to_owned()),
    );
}

pub(super) fn check_tolerations(judge: &mut Judge<'_>, value: &Value) {
    for toleration in value.as_array().into_iter().flatten() {
        let key = toleration.get("key").and_then(Value::as_str).filter(|it| !it.is_empty());
        if key.is_none_or(|it| cover::CONTROL_PLANE.contains(&it)) {
            needs_control_plane(judge);
        }
        if key.is_some_and(is_harmless_taint) {
            continue;
        }
        let what =
            key.map_or("tolerating every taint".to_owned(), |it| format!("tolerating taint {}", named(it)));
        judge.needs_of_pods(
            "tolerations",
            |pods| cover::has_name(&pods.tolerations, key.unwrap_or("*")),
            &what,
            |pods| pods.tolerations.push(key.unwrap_or("*").to_owned()),
        );
    }
}

/// Of machines that are not well, which Pods of DaemonSets tolerate anyway, and one that keeps nobody away.
fn is_harmless_taint(key: &str) -> bool {
    key.starts_with("node.kubernetes.io/") || key == "CriticalAddonsOnly"
}

fn needs_control_plane(judge: &mut Judge<'_>) {
    judge.needs_of_pods(
        "control plane",
        |pods| pods.control_plane,
        "running on machines of the control plane",
        |pods| pods.control_plane = true,
    );
}
