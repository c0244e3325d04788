//! Settings that many add-ons share, and how they become parts of objects.

use crate::steps::{self, Object};
use crate::{Diagnostic, Request, Step, Stop, facts};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

mod extra;

pub use extra::{ArgumentType, Extra, extra_args, extra_problems};

/// What a container asks for, in Kubernetes' quantities such as `100m` and `128Mi`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    /// CPU that the scheduler reserves, such as `100m`; `None`: the add-on's own.
    pub cpu: Option<String>,
    /// Memory that the scheduler reserves, such as `128Mi`; `None`: the add-on's own.
    pub memory: Option<String>,
}

impl Resources {
    /// `resources` of a container: what the user set, and these for the rest.
    pub fn or(&self, cpu: &str, memory: &str) -> Value {
        json!({ "requests": { "cpu": self.cpu.as_deref().unwrap_or(cpu), "memory": self.memory.as_deref().unwrap_or(memory) } })
    }
}

/// What is wrong with `imageRegistry` of the configuration.
pub fn registry_problem(registry: Option<&str>) -> Option<Diagnostic> {
    registry.filter(|registry| !steps::is_registry(registry)).map(|_| {
        Diagnostic::error(
            "InvalidImageRegistry",
            "/imageRegistry",
            "must be a registry and a path without scheme and without a slash at its end, such as \
             registry.example.com/mirror",
        )
    })
}

/// Where the Pods of a controller run. Without a role of their own they act as the instance, and that of
/// control-plane machines has the rights; with one they run anywhere. Either way a cluster without workers
/// can run them, unless the user's labels of nodes are none of theirs.
pub fn place(
    pod: &mut Value,
    has_role: bool,
    tolerations: &[Value],
    labels: &Map<String, Value>,
    name: &str,
) {
    let mut selector = Map::from_iter([("kubernetes.io/os".to_owned(), Value::from("linux"))]);
    if !has_role {
        selector.insert("node-role.kubernetes.io/control-plane".to_owned(), "".into());
    }
    pod["nodeSelector"] = selector.into();
    let mut all = vec![
        json!({ "key": "CriticalAddonsOnly", "operator": "Exists" }),
        json!({ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule" }),
    ];
    all.extend_from_slice(tolerations);
    pod["tolerations"] = all.into();
    pod["affinity"] = json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "podAffinityTerm": { "labelSelector": { "matchLabels": { "app": name } }, "topologyKey": "kubernetes.io/hostname" },
    }] } });
    select_nodes(pod, labels);
}

/// Lets whatever Pods are made from these objects pull their images with Secrets of their namespace, which
/// are as in a Pod.
pub fn pull_with(objects: &mut [Value], secrets: &[Value]) {
    if secrets.is_empty() {
        return;
    }
    for pod in objects.iter_mut().filter_map(|it| it.pointer_mut("/spec/template/spec")) {
        pod["imagePullSecrets"] = secrets.into();
    }
}

/// Has the Pods of this template run only on nodes with these labels, beside those that it asks for itself.
pub fn select_nodes(pod: &mut Value, labels: &Map<String, Value>) {
    if labels.is_empty() {
        return;
    }
    let mut selector = labels.clone();
    if let Some(own) = pod["nodeSelector"].as_object() {
        selector.extend(own.clone());
    }
    pod["nodeSelector"] = selector.into();
}

/// How much a program says in its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum LogLevel {
    /// What matters to those who run it.
    #[default]
    Info,
    /// Also what helps to find out why something does not work.
    Debug,
}

impl LogLevel {
    /// The word Calico has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Info => "Info",
            LogLevel::Debug => "Debug",
        }
    }

    /// The number that Kubernetes' programs have for it, in their argument `v`.
    pub fn verbosity(self) -> &'static str {
        match self {
            LogLevel::Info => "2",
            LogLevel::Debug => "5",
        }
    }
}

/// Whether this is an IPv4 range, such as `10.0.0.0/16`.
pub fn is_ipv4_range(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let is_length = length.len() <= 2
        && length.bytes().all(|it| it.is_ascii_digit())
        && length.parse().is_ok_and(|it: u8| it <= 32);
    is_length && address.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Whether claims that name no class get the class of an add-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DefaultClass {
    /// When no other class is the default.
    #[default]
    IfNone,
    /// Also beside another default class.
    Always,
    /// Only claims that name it get it.
    Never,
}

impl DefaultClass {
    /// The decision for the class of this name. A host that does not tell which classes there are has none to
    /// tell of.
    ///
    /// # Errors
    /// Pending when the classes of the cluster could not be read: an outage must not look like a cluster
    /// without any.
    pub fn decide<C>(self, name: &str, request: &Request<C>) -> Result<bool, Stop> {
        match self {
            DefaultClass::Always => Ok(true),
            DefaultClass::Never => Ok(false),
            DefaultClass::IfNone => {
                let classes: Vec<facts::StorageClass> =
                    request.optional_fact(facts::STORAGE_CLASSES)?.unwrap_or_default();
                Ok(!classes.iter().any(|class| class.is_default && class.name != name))
            }
        }
    }
}

/// What becomes of a volume whose claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ReclaimPolicy {
    /// The volume is deleted too.
    #[default]
    Delete,
    /// The volume stays, and somebody has to delete it.
    Retain,
}

impl ReclaimPolicy {
    /// The word Kubernetes has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ReclaimPolicy::Delete => "Delete",
            ReclaimPolicy::Retain => "Retain",
        }
    }
}

/// `metadata` of a StorageClass.
pub fn class_metadata(name: &str, is_default: bool) -> Value {
    let value = if is_default { "true" } else { "false" };
    json!({ "name": name, "annotations": { "storageclass.kubernetes.io/is-default-class": value } })
}

/// Steps of a removal that delete these objects as soon as step `before` is done, each with an id made of
/// kind and name.
pub fn delete_after(objects: &[Object<'_>], before: &str) -> Vec<Step> {
    let id = |object: &Object<'_>| [&object.kind.to_lowercase(), "-", object.name].concat();
    objects.iter().map(|object| steps::delete(&id(object), *object).after([before])).collect()
}

/// The tags that a flag can hold, between whose parts these characters stand. Others are left out, and so are
/// those that AWS or Kubernetes keep for themselves, because a program would refuse to start with one.
pub fn flag_tags(
    tags: &BTreeMap<String, String>,
    between: char,
    separator: char,
) -> impl Iterator<Item = (&String, &String)> {
    let holds = move |text: &str| !text.contains(between) && !text.contains(separator);
    tags.iter().filter(move |(key, value)| holds(key) && holds(value) && is_free_tag(key))
}

/// Those tags as text, for programs that read them from a flag.
pub fn tags(tags: &BTreeMap<String, String>, between: char, separator: char) -> Option<String> {
    let mut text = String::new();
    for (key, value) in flag_tags(tags, between, separator) {
        if !text.is_empty() {
            text.push(separator);
        }
        text.extend([key.as_str(), between.encode_utf8(&mut [0; 4]), value.as_str()]);
    }
    (!text.is_empty()).then_some(text)
}

/// Whether a tag with this key is the user's to set: not one that AWS, Kubernetes or an add-on keeps for
/// itself.
pub fn is_free_tag(key: &str) -> bool {
    !key.starts_with("aws:")
        && ["kubernetes.io/", "k8s.aws/", "k8s.amazonaws.com/"].iter().all(|part| !key.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_a_flag_cannot_hold_are_left_out() {
        let all = [
            ("team", "a"),
            ("a=b", "c"),
            ("x", "1,2"),
            ("aws:x", "y"),
            ("kubernetes.io/cluster/prod", "owned"),
            ("env", ""),
        ];
        let all = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(tags(&all, '=', ',').as_deref(), Some("env=,team=a"));
        assert_eq!(tags(&BTreeMap::new(), '=', ','), None);
    }

    #[test]
    fn a_user_selects_among_the_nodes_that_a_controller_can_run_on() {
        let mut pod = json!({});
        let labels = [("pool", "system"), ("kubernetes.io/os", "windows")]
            .map(|(key, value)| (key.to_owned(), value.into()));
        place(&mut pod, true, &[], &Map::from_iter(labels), "it");
        assert_eq!(pod["nodeSelector"], json!({ "kubernetes.io/os": "linux", "pool": "system" }));
    }

    #[test]
    fn only_what_makes_pods_pulls_images() {
        let mut objects = [
            json!({ "spec": { "template": { "spec": { "containers": [] } } } }),
            json!({ "spec": { "selector": {} } }),
        ];
        pull_with(&mut objects, &[]);
        assert_eq!(objects[0].pointer("/spec/template/spec/imagePullSecrets"), None);
        pull_with(&mut objects, &[json!({ "name": "mirror" })]);
        assert_eq!(objects[0]["spec"]["template"]["spec"]["imagePullSecrets"], json!([{ "name": "mirror" }]));
        assert_eq!(objects[1], json!({ "spec": { "selector": {} } }));
    }

    #[test]
    fn an_ipv4_range_has_an_address_and_a_length() {
        assert!(["10.0.0.0/16", "0.0.0.0/0", "192.0.2.1/32"].into_iter().all(is_ipv4_range));
        assert!(
            !["", "10.0.0.0", "10.0.0.0/33", "10.0.0/16", "10.0.0.0/+8", "fd00::/8", "10.0.0.0/8,x"]
                .into_iter()
                .any(is_ipv4_range)
        );
    }

    #[test]
    fn without_a_role_a_controller_runs_on_the_control_plane() {
        let selector = |has_role| {
            let mut pod = json!({});
            place(&mut pod, has_role, &[], &Map::new(), "it");
            pod["nodeSelector"].as_object().map(Map::len)
        };
        assert_eq!(selector(false), Some(2));
        assert_eq!(selector(true), Some(1));
    }
}
