//! The rules for values of other kinds: types of Secrets and Services, parameters of StorageClasses, and
//! Calico's Installation.

use crds::plugin_module::Grants;
use serde_json::{Map, Value};

use super::cover;
use super::denial::{named, shown};
use super::judge::{Judge, Place};
use super::metadata::TOKEN_OF;
use super::pods::names_in;

/// Types of Secrets that are what is in them and nothing else.
const SECRET_TYPES: [&str; 7] = [
    "",
    "Opaque",
    "kubernetes.io/basic-auth",
    "kubernetes.io/dockercfg",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/ssh-auth",
    "kubernetes.io/tls",
];
/// Into a Secret of this type Kubernetes puts a token that never ends.
const TOKEN: &str = "kubernetes.io/service-account-token";

pub(super) fn check_secret(judge: &mut Judge<'_>, secret: &Map<String, Value>, place: Place<'_>) {
    let kind = match secret.get("type") {
        None | Some(Value::Null) => "",
        Some(other) => other.as_str().unwrap_or("no text"),
    };
    let account = secret.get("metadata").and_then(|it| it.get("annotations")).and_then(|it| it.get(TOKEN_OF));
    if kind == TOKEN || account.is_some() {
        judge.needs_field("Secret.serviceAccountToken");
        let account = account.and_then(Value::as_str).unwrap_or_default();
        judge.needs_object(("v1", "ServiceAccount", place.namespace, account));
    } else if !SECRET_TYPES.contains(&kind) && kind.contains("kubernetes.io/") {
        judge.deny("secret types", format!("a Secret of type {} is not granted", shown(kind)), None);
    }
}

pub(super) fn check_service_type(judge: &mut Judge<'_>, value: &Value) {
    match value.as_str() {
        Some("" | "ClusterIP") => (),
        Some("NodePort") => judge.needs_field("Service.type.NodePort"),
        Some("LoadBalancer") => judge.needs_field("Service.type.LoadBalancer"),
        // It leads out of the cluster: webhooks would be asked anywhere.
        _ => judge.deny("service types", format!("a Service of type {value} is not granted"), None),
    }
}

pub(super) fn check_cluster_ip(judge: &mut Judge<'_>, value: &Value) {
    let is_usual = |it: &Value| matches!(it.as_str(), Some("" | "None"));
    if !is_usual(value) && !value.as_array().is_some_and(|it| it.iter().all(is_usual)) {
        judge.needs_field("Service.clusterIP");
    }
}

/// Parameters that name Secrets, of any namespace, which the driver then reads.
pub(super) fn check_storage_parameters(judge: &mut Judge<'_>, value: &Value) {
    if value.as_object().is_some_and(|it| it.keys().any(|key| key.to_ascii_lowercase().contains("secret"))) {
        judge.needs_field("StorageClass.secretParameters");
    }
}

/// Calico's operator takes images from where its Installation says.
pub(super) fn check_installation(judge: &mut Judge<'_>, object: &Value) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).filter(|it| !it.is_empty());
    match (text("/spec/registry"), text("/spec/imagePath")) {
        (Some(registry), _)
            if !cover::has_registry(&judge.grants.registries, registry.trim_end_matches('/')) =>
        {
            let grant = registry.trim_end_matches('/').to_owned();
            let grant = Grants { registries: vec![grant], ..Grants::default() };
            let message = format!("images from {} (spec.registry) are not granted", named(registry));
            judge.deny("images", message, grant);
        }
        (None, Some(path)) => {
            let message = format!("images from {} (spec.imagePath) are not granted", named(path));
            judge.deny("images", message, None);
        }
        _ => (),
    }
    for secret in object.pointer("/spec/imagePullSecrets").into_iter().flat_map(names_in) {
        if !judge.grants.pull_secrets.iter().any(|it| it == secret) {
            let grant = Grants { pull_secrets: vec![secret.to_owned()], ..Grants::default() };
            let message = format!("Secret {} (spec.imagePullSecrets) is not granted", named(secret));
            judge.deny("pull secrets", message, grant);
        }
    }
}
