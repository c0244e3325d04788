//! Functions that make questions to the host, one per kind in `wit/queries/`. A plan that cannot do without their
//! answers ends with [`Stop::Needs`](crate::Stop::Needs); the next call finds each as a fact of the key that the
//! question has, by [`Request::fact`](crate::Request::fact).

use crate::Need;
use serde_json::{Map, Value, json};

/// Objects of one kind.
#[derive(Clone, Debug)]
pub struct Objects<'a> {
    /// Group and version, such as `apps/v1`.
    pub api_version: &'a str,
    /// Such as `Deployment`.
    pub kind: &'a str,
    /// Only those of this namespace.
    pub namespace: Option<&'a str>,
    /// Only the one of this name.
    pub name: Option<&'a str>,
    /// Only those with these labels.
    pub labels: &'a [(&'a str, &'a str)],
    /// JSON pointers to what is told of each, beside its namespace and name.
    pub fields: &'a [&'a str],
    /// More than these are no answer.
    pub limit: u32,
}

/// Asks for objects of the cluster; the answer is a list of them.
pub fn objects(key: &str, objects: &Objects<'_>) -> Need {
    let mut spec = Map::from_iter([
        ("apiVersion".to_owned(), objects.api_version.into()),
        ("kind".to_owned(), objects.kind.into()),
        ("fields".to_owned(), objects.fields.into()),
        ("limit".to_owned(), objects.limit.into()),
    ]);
    for (field, text) in [("namespace", objects.namespace), ("name", objects.name)] {
        if let Some(text) = text {
            spec.insert(field.to_owned(), text.into());
        }
    }
    if !objects.labels.is_empty() {
        let labels = objects.labels.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value)));
        spec.insert("labelSelector".to_owned(), Value::Object(labels.collect()));
    }
    need(key, "k8s.objects/v1", Value::Object(spec))
}

/// Asks how many Nodes there are, and of what sort.
pub fn nodes(key: &str) -> Need {
    need(key, "k8s.nodes/v1", json!({}))
}

/// Asks which versions of APIs are served, and which kinds of these groups.
pub fn apis(key: &str, groups: &[&str]) -> Need {
    need(key, "k8s.apis/v1", json!({"groups": groups}))
}

/// Asks for the objects of these kinds that the plugin itself applied, all where none is named.
pub fn own_objects(key: &str, kinds: &[&str], fields: &[&str]) -> Need {
    need(key, "own-objects/v1", json!({"kinds": kinds, "fields": fields}))
}

/// Asks what another plugin of the cluster tells of what it installed.
pub fn outputs(key: &str, plugin: &str) -> Need {
    need(key, "outputs/v1", json!({"plugin": plugin}))
}

fn need(key: &str, kind: &str, spec: Value) -> Need {
    Need { key: key.to_owned(), query: json!({"kind": kind, "spec": spec}) }
}
