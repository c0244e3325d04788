//! What is known of the objects of one kind. The newest version wins, whether it came from the watch or from the reply to a write.
//! It never talks to the API.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::{Error, Kept, name_of};
use crate::context::ObjectName;

/// An object as it was read, and its status as it is stored: a status may hold what its type cannot show.
#[derive(Clone, Debug)]
pub struct Known<K> {
    object: K,
    pub(super) stored_status: Value,
}

impl<K> Deref for Known<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: Kept> Known<K> {
    /// Reads an object; what its status holds in another shape is left out rather than refused.
    pub(super) fn read(mut object: DynamicObject) -> Result<Self, Error> {
        object.metadata.managed_fields = None;
        let stored_status = object.data.get("status").cloned().unwrap_or(Value::Null);
        let name = name_of(&object).to_string();
        let unreadable = |source| Error::Unreadable { kind: K::KIND.as_str(), name, source };
        let value =
            serde_json::to_value(object).map_err(|source| Error::Unreadable { kind: K::KIND.as_str(), name: String::new(), source })?;
        let object = match K::deserialize(&value) {
            Ok(object) => object,
            Err(_) => K::deserialize(without_status(value)).map_err(unreadable)?,
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

    /// Version of an object as a number, which grows with every write; `None` when the API server numbers in another way.
    fn version(&self) -> Option<u64> {
        self.resource_version()?.parse().ok()
    }

    fn is_older_than(&self, other: &Self) -> bool {
        self.uid() == other.uid() && matches!((self.version(), other.version()), (Some(one), Some(two)) if one < two)
    }

    fn is_gone(&self) -> bool {
        self.is_deleting() && self.finalizers().is_empty()
    }
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
    known: BTreeMap<ObjectName, Arc<Known<K>>>,
    unreadable: BTreeMap<ObjectName, String>,
}

impl<K> Default for Cache<K> {
    fn default() -> Self {
        let objects = Objects { known: BTreeMap::new(), unreadable: BTreeMap::new() };
        Self { objects: RwLock::new(objects), ready: AtomicBool::new(false) }
    }
}

impl<K: Kept> Cache<K> {
    pub(super) fn get(&self, name: &ObjectName) -> Option<Arc<Known<K>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).known.get(name).cloned()
    }

    pub(super) fn list(&self) -> Vec<Arc<Known<K>>> {
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

    /// Takes what the watch showed. False: nothing new.
    pub(super) fn see(&self, object: Known<K>) -> bool {
        let name = object.object_name();
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.unreadable.remove(&name);
        if let Some(known) = objects.known.get(&name)
            && (object.is_older_than(known) || object.resource_version() == known.resource_version())
        {
            return false;
        }
        objects.known.insert(name, Arc::new(object));
        true
    }

    /// Takes the reply to a write of ours. An object that is gone by now does not come back by it.
    pub(super) fn wrote(&self, object: Known<K>) -> Arc<Known<K>> {
        let name = object.object_name();
        let object = Arc::new(object);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let newer = objects.known.get(&name).is_some_and(|known| !object.is_older_than(known) && known.uid() == object.uid());
        if newer && !object.is_gone() {
            objects.known.insert(name, object.clone());
        }
        object
    }

    pub(super) fn forget(&self, name: &ObjectName) -> Option<Arc<Known<K>>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.unreadable.remove(name);
        objects.known.remove(name)
    }

    /// The object is there and cannot be read. What was known of it before is no longer true.
    pub(super) fn cannot_read(&self, name: ObjectName, reason: String) -> bool {
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
    use serde_json::json;

    fn cluster(version: &str, status: Value) -> Known<AWSCluster> {
        let object = serde_json::from_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": "prod", "namespace": "default", "uid": "u", "resourceVersion": version},
            "spec": {"region": "us-east-1"}, "status": status,
        }))
        .expect("an object");
        Known::read(object).expect("a cluster")
    }

    #[test]
    fn an_older_event_does_not_replace_the_reply_to_a_write() {
        let cache = Cache::default();
        assert!(cache.see(cluster("9", Value::Null)));
        cache.wrote(cluster("11", Value::Null));
        assert!(!cache.see(cluster("10", Value::Null)));
        assert!(!cache.see(cluster("11", Value::Null)), "the echo of our own write is no news");
        assert!(cache.see(cluster("12", Value::Null)));
    }

    #[test]
    fn the_reply_to_a_write_does_not_bring_back_what_is_gone() {
        let cache = Cache::default();
        cache.see(cluster("9", Value::Null));
        cache.forget(&ObjectName::new("default", "prod"));
        cache.wrote(cluster("11", Value::Null));
        assert!(cache.list().is_empty());
    }

    #[test]
    fn a_status_of_another_shape_is_kept_as_stored_and_hinders_nothing() {
        let known = cluster("1", json!("nonsense"));
        assert_eq!(known.spec.region, "us-east-1");
        assert_eq!(known.stored_status, json!("nonsense"));
        assert!(known.status.is_none());
    }
}
