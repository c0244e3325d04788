//! What is known of the objects of one kind. The newest version wins, whether it came from the watch or from
//! the reply to a write. A version in which nothing changed that anybody here reads is stored and triggers
//! nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use kube::ResourceExt;
use kube::api::ObjectMeta;
use serde_json::Value;

use super::raw::Raw;
use super::{Error, Watched, name_of};
use crate::object_name::ObjectName;

/// An object as it was read. Of kinds that are ours, its status as it is stored too: that may hold what its
/// type cannot show.
#[derive(Clone, Debug)]
pub struct Cached<K> {
    object: K,
    pub(super) stored_status: Value,
}

impl<K> Deref for Cached<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: Watched> Cached<K> {
    /// Reads an object; what its status holds in another shape is left out rather than refused.
    pub(super) fn read(raw: Raw) -> Result<Self, Error> {
        let stored_status = match K::SAME_FOR_US {
            None => raw.value.get("status").cloned().unwrap_or(Value::Null),
            Some(_) => Value::Null,
        };
        let object = match deserialized(&raw.value) {
            Ok(object) => object,
            Err(_) => {
                let name = name_of(&raw).to_string();
                let unreadable = |source| Error::Unreadable { kind: K::KIND.as_str(), name, source };
                deserialized(&without_status(raw.value)).map_err(unreadable)?
            }
        };
        Ok(Self { object, stored_status })
    }

    pub fn object_name(&self) -> ObjectName {
        name_of(&self.object)
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }

    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers().iter().any(|it| it == finalizer)
    }

    fn is_older_than(&self, other: &Self) -> bool {
        is_older(self.meta(), other.meta())
    }

    /// Whether nothing that is read here differs from another version.
    fn is_same_for_us(&self, other: &Self) -> bool {
        K::SAME_FOR_US.is_some_and(|same| same(&self.object, &other.object))
    }

    fn is_gone(&self) -> bool {
        self.is_deleting() && self.finalizers().is_empty()
    }
}

fn is_older(one: &ObjectMeta, other: &ObjectMeta) -> bool {
    one.uid == other.uid && matches!((version(one), version(other)), (Some(one), Some(two)) if one < two)
}

/// Version of an object as a number, which grows with every write; `None` when the API server numbers in
/// another way.
fn version(metadata: &ObjectMeta) -> Option<u64> {
    metadata.resource_version.as_ref()?.parse().ok()
}

/// One object that a parser stumbles over must not end the watch of all others.
fn deserialized<K: Watched>(value: &Value) -> Result<K, serde_json::Error> {
    let parse = AssertUnwindSafe(|| K::deserialize(value));
    std::panic::catch_unwind(parse)
        .unwrap_or_else(|_| Err(serde::de::Error::custom("a value in it is beyond what can be read")))
}

fn without_status(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    value
}

/// The objects of one kind.
pub(super) struct Cache<K> {
    objects: RwLock<Objects<K>>,
    ready: AtomicBool,
}

struct Objects<K> {
    known: BTreeMap<ObjectName, Arc<Cached<K>>>,
    unreadable: BTreeMap<ObjectName, String>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let objects = Objects { known: BTreeMap::new(), unreadable: BTreeMap::new() };
        Self { objects: RwLock::new(objects), ready: AtomicBool::new(false) }
    }
}

impl<K: Watched> Cache<K> {
    pub(super) fn get(&self, name: &ObjectName) -> Option<Arc<Cached<K>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).known.get(name).cloned()
    }

    pub(super) fn list(&self) -> Vec<Arc<Cached<K>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).known.values().cloned().collect()
    }

    pub(super) fn unreadable(&self) -> Vec<(ObjectName, String)> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.unreadable.iter().map(|(name, reason)| (name.clone(), reason.clone())).collect()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    pub(super) fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Whether this version of an object, or a newer one, is known already.
    pub(super) fn is_current(&self, name: &ObjectName, metadata: &ObjectMeta) -> bool {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let known = objects.known.get(name).map(|it| it.meta());
        known.is_some_and(|it| is_older(metadata, it) || metadata.resource_version == it.resource_version)
    }

    /// Takes what the watch showed. False: nothing new.
    pub(super) fn apply_event(&self, object: Cached<K>) -> bool {
        let name = object.object_name();
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.unreadable.remove(&name);
        if let Some(known) = objects.known.get(&name)
            && (object.is_older_than(known) || object.resource_version() == known.resource_version())
        {
            return false;
        }
        let diff = !objects.known.get(&name).is_some_and(|known| object.is_same_for_us(known));
        objects.known.insert(name, Arc::new(object));
        diff
    }

    /// Takes the reply to a write of ours. An object that is gone by now does not come back by it.
    pub(super) fn apply_reply(&self, object: Cached<K>) -> Arc<Cached<K>> {
        let name = object.object_name();
        let object = Arc::new(object);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let newer = objects
            .known
            .get(&name)
            .is_some_and(|known| !object.is_older_than(known) && known.uid() == object.uid());
        if newer && !object.is_gone() {
            objects.known.insert(name, object.clone());
        }
        object
    }

    pub(super) fn remove(&self, name: &ObjectName) -> Option<Arc<Cached<K>>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.unreadable.remove(name);
        objects.known.remove(name)
    }

    /// The object is there and cannot be read. What was known of it before is no longer true.
    pub(super) fn insert_unreadable(&self, name: ObjectName, reason: String) -> bool {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.known.remove(&name);
        objects.unreadable.insert(name, reason.clone()) != Some(reason)
    }

    pub(super) fn names(&self) -> BTreeSet<ObjectName> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.known.keys().chain(objects.unreadable.keys()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crds::AWSCluster;
    use crds::cluster_api::{Cluster, Machine};
    use serde_json::json;

    fn cluster(version: &str, status: Value) -> Cached<AWSCluster> {
        let object = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": "prod", "namespace": "default", "uid": "u", "resourceVersion": version},
            "spec": {"region": "us-east-1"}, "status": status,
        }))
        .expect("an object");
        Cached::read(object).expect("a cluster")
    }

    #[test]
    fn an_older_event_does_not_replace_the_reply_to_a_write() {
        let cache = Cache::default();
        assert!(cache.apply_event(cluster("9", Value::Null)));
        cache.apply_reply(cluster("11", Value::Null));
        assert!(!cache.apply_event(cluster("10", Value::Null)));
        assert!(!cache.apply_event(cluster("11", Value::Null)), "the echo of our own write is no news");
        assert!(cache.apply_event(cluster("12", Value::Null)));
    }

    fn other<K: Watched>(kind: &str, version: &str, annotations: Value, status: Value) -> Cached<K> {
        let object = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
            "metadata": {"name": "prod", "namespace": "default", "uid": "u", "resourceVersion": version,
                "annotations": annotations},
            "spec": {"clusterName": "prod"}, "status": status,
        }))
        .expect("an object");
        Cached::read(object).expect("an object of the kind")
    }

    #[test]
    fn what_nobody_reads_of_a_cluster_is_no_change_but_is_stored() {
        let cache = Cache::<Cluster>::default();
        let provisioned = |counted: i32| {
            json!({"initialization": {"infrastructureProvisioned": true},
            "workers": {"replicas": counted}})
        };
        assert!(cache.apply_event(other("Cluster", "1", Value::Null, Value::Null)));
        assert!(cache.apply_event(other("Cluster", "2", Value::Null, provisioned(1))));
        assert!(!cache.apply_event(other("Cluster", "3", Value::Null, provisioned(2))));
        let known = cache.get(&ObjectName::new("default", "prod")).expect("it is known");
        assert_eq!(known.resource_version().as_deref(), Some("3"));
        assert!(cache.apply_event(other("Cluster", "4", json!({"a": "b"}), provisioned(2))));
    }

    #[test]
    fn of_a_machine_only_its_node_and_the_health_of_that_matter() {
        let cache = Cache::<Machine>::default();
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "R",
            "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z"})
        };
        let status =
            |all: &[Value]| json!({"phase": "Provisioned", "nodeRef": {"name": "n"}, "conditions": all});
        assert!(cache.apply_event(other("Machine", "1", Value::Null, status(&[]))));
        assert!(!cache.apply_event(other(
            "Machine",
            "2",
            Value::Null,
            status(&[condition("Ready", "False")])
        )));
        assert!(cache.apply_event(other(
            "Machine",
            "3",
            Value::Null,
            status(&[condition("Ready", "False"), condition("NodeHealthy", "Unknown")])
        )));
        assert!(!cache.apply_event(other(
            "Machine",
            "4",
            Value::Null,
            status(&[condition("Ready", "True"), condition("NodeHealthy", "Unknown")])
        )));
        assert!(cache.apply_event(other(
            "Machine",
            "5",
            Value::Null,
            json!({"conditions": [condition("NodeHealthy", "Unknown")]})
        )));
    }

    #[test]
    fn the_reply_to_a_write_does_not_bring_back_what_is_gone() {
        let cache = Cache::default();
        cache.apply_event(cluster("9", Value::Null));
        cache.remove(&ObjectName::new("default", "prod"));
        cache.apply_reply(cluster("11", Value::Null));
        assert!(cache.list().is_empty());
    }

    #[test]
    fn an_object_that_no_parser_can_read_is_refused_and_ends_nothing() {
        let object = serde_json::from_value(json!({
            "apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin",
            "metadata": {"name": "prod", "namespace": "default"},
            "spec": {"clusterName": "prod", "deletion": {"timeout": "9999999999999999999h"}},
        }))
        .expect("an object");
        let error = Cached::<crds::ClusterPlugin>::read(object).expect_err("no such time");
        assert_eq!(error.to_string(), "ClusterPlugin default/prod is not what it should be");
    }

    #[test]
    fn a_status_of_another_shape_is_kept_as_stored_and_hinders_nothing() {
        let known = cluster("1", json!("nonsense"));
        assert_eq!(known.spec.region, "us-east-1");
        assert_eq!(known.stored_status, json!("nonsense"));
        assert!(known.status.is_none());
    }
}
