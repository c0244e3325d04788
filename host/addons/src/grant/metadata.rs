//! The rules for metadata: labels and annotations by which Kubernetes and this operator do something, and
//! owners with which an object goes.

use crds::plugin_module::Grants;
use serde_json::Value;

use super::cover;
use super::denial::named;
use super::judge::{Judge, Place};

/// The domain of this operator's own labels and annotations.
const OWN_DOMAIN: &str = "kurator.dev";
/// Labels and annotations of Kubernetes' domains that need no grant; `*` at the end of one stands for
/// whatever follows.
pub(super) const HARMLESS_KEYS: [&str; 5] = [
    "api-approved.kubernetes.io",
    "app.kubernetes.io/*",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "kubectl.kubernetes.io/*",
    "kubernetes.io/description",
];
/// Labels by which DNS of the cluster finds its Pods.
const DNS: (&str, &str) = ("k8s-app", "kube-dns");
/// Whom a token in a Secret is for.
pub(super) const TOKEN_OF: &str = "kubernetes.io/service-account.name";

/// What a label or an annotation of this key needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Harmless,
    Guarded,
    Nobodys,
}

fn key(key: &str) -> Key {
    let domain = key.split_once('/').map_or(key, |(domain, _)| domain);
    let is_of =
        |parent: &str| domain.strip_suffix(parent).is_some_and(|it| it.is_empty() || it.ends_with('.'));
    let harmless = HARMLESS_KEYS.map(str::to_owned);
    if is_of(OWN_DOMAIN) {
        Key::Nobodys
    } else if cover::has_name(&harmless, key) {
        Key::Harmless
    } else if ["kubernetes.io", "k8s.io", "x-k8s.io"].into_iter().any(is_of) {
        Key::Guarded
    } else {
        Key::Harmless
    }
}

pub(super) fn check_labels(judge: &mut Judge<'_>, value: &Value, _: Place<'_>) {
    for (label, value) in value.as_object().into_iter().flatten() {
        let is_dns = (label.as_str(), value.as_str()) == (DNS.0, Some(DNS.1));
        match key(label) {
            Key::Nobodys => nobodys(judge, "label", label),
            _ if is_dns => nobodys(judge, "label", label),
            Key::Guarded if !cover::has_name(&judge.grants.labels, label) => {
                let grant = Grants { labels: vec![label.clone()], ..Grants::default() };
                judge.deny(
                    "labels",
                    format!("{}: label {} is not granted", judge.path(), named(label)),
                    grant,
                );
            }
            Key::Guarded | Key::Harmless => (),
        }
    }
}

pub(super) fn check_annotations(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    for (annotation, _) in value.as_object().into_iter().flatten() {
        // It is judged with the type of the Secret.
        let is_judged = place.kind == "Secret" && annotation == TOKEN_OF;
        match key(annotation) {
            Key::Nobodys => nobodys(judge, "annotation", annotation),
            Key::Guarded if !is_judged && !cover::has_name(&judge.grants.annotations, annotation) => {
                let grant = Grants { annotations: vec![annotation.clone()], ..Grants::default() };
                let message = format!("{}: annotation {} is not granted", judge.path(), named(annotation));
                judge.deny("annotations", message, grant);
            }
            Key::Guarded | Key::Harmless => (),
        }
    }
}

fn nobodys(judge: &mut Judge<'_>, what: &str, key: &str) {
    let (path, key) = (judge.path(), named(key));
    let why = if key == DNS.0 {
        "by it Pods get the requests of the cluster's DNS"
    } else {
        "it is the operator's own"
    };
    judge.deny("metadata", format!("{path}: {what} {key} is not granted: {why}"), None);
}

/// An object goes with its owner: that has to be the plugin's own.
pub(super) fn check_owners(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    for owner in value.as_array().into_iter().flatten() {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        let at = |namespace| (text("apiVersion"), text("kind"), namespace, text("name"));
        if !cover::covers(&judge.grants.objects, at(None)) {
            judge.needs_object(at(place.namespace));
        }
    }
}
