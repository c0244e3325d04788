//! Settings that many add-ons share, and how they become parts of objects.

use crate::steps::{self, Object};
use crate::{Diagnostic, Request, Step, Stop, facts};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What a container asks for, in Kubernetes' quantities such as `100m` and `128Mi`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resources {
    pub cpu: Option<String>,
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
            "must be a registry and a path without scheme and without a slash at its end, such as registry.example.com/mirror",
        )
    })
}

/// Where the Pods of a controller run. Without a role of their own they act as the instance, and that of control-plane machines has the
/// rights; with one they run anywhere. Either way a cluster without workers can run them.
pub fn place(pod: &mut Value, has_role: bool, tolerations: &[Value], name: &str) {
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
}

/// Whether claims that name no class get the class of an add-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DefaultClass {
    /// When no other class is the default.
    #[default]
    IfNone,
    Always,
    Never,
}

impl DefaultClass {
    /// The decision for the class of this name. A host that does not tell which classes there are has none to tell of.
    ///
    /// # Errors
    /// Pending when the classes of the cluster could not be read: an outage must not look like a cluster without any.
    pub fn decide<C>(self, name: &str, request: &Request<C>) -> Result<bool, Stop> {
        match self {
            DefaultClass::Always => Ok(true),
            DefaultClass::Never => Ok(false),
            DefaultClass::IfNone => {
                let classes: Vec<facts::StorageClass> = request.optional_fact(facts::STORAGE_CLASSES)?.unwrap_or_default();
                Ok(!classes.iter().any(|class| class.is_default && class.name != name))
            }
        }
    }
}

/// What becomes of a volume whose claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum ReclaimPolicy {
    #[default]
    Delete,
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

/// Steps of a removal that delete these objects as soon as step `before` is done, each with an id made of kind and name.
pub fn delete_after(objects: &[Object<'_>], before: &str) -> Vec<Step> {
    let id = |object: &Object<'_>| [&object.kind.to_lowercase(), "-", object.name].concat();
    objects.iter().map(|object| steps::delete(&id(object), *object).after([before])).collect()
}

/// The tags that a flag can hold, between whose parts these characters stand. Others are left out, and so are those that AWS or Kubernetes
/// keep for themselves, because a program would refuse to start with one.
pub fn flag_tags(tags: &BTreeMap<String, String>, between: char, separator: char) -> impl Iterator<Item = (&String, &String)> {
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

/// Whether a tag with this key is the user's to set: not one that AWS, Kubernetes or an add-on keeps for itself.
pub fn is_free_tag(key: &str) -> bool {
    !key.starts_with("aws:") && ["kubernetes.io/", "k8s.aws/", "k8s.amazonaws.com/"].iter().all(|part| !key.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_a_flag_cannot_hold_are_left_out() {
        let all = [("team", "a"), ("a=b", "c"), ("x", "1,2"), ("aws:x", "y"), ("kubernetes.io/cluster/prod", "owned"), ("env", "")];
        let all = all.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(tags(&all, '=', ',').as_deref(), Some("env=,team=a"));
        assert_eq!(tags(&BTreeMap::new(), '=', ','), None);
    }

    #[test]
    fn without_a_role_a_controller_runs_on_the_control_plane() {
        let selector = |has_role| {
            let mut pod = json!({});
            place(&mut pod, has_role, &[], "it");
            pod["nodeSelector"].as_object().map(Map::len)
        };
        assert_eq!(selector(false), Some(2));
        assert_eq!(selector(true), Some(1));
    }
}
