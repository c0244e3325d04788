//! Writes to the management API: merge patches, counted. A status is written only if it differs from what is
//! stored.

use std::sync::Arc;

use crds::names;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::{Value, json};

use super::merge::merge_patch;
use super::{Cached, Error, Management, Watched, answer};

impl Management {
    /// Merges `patch` into the object, whatever its version is by now.
    ///
    /// # Errors
    /// The API refused or did not answer.
    pub async fn patch<K: Watched>(&self, object: &Cached<K>, patch: Value) -> Result<Arc<Cached<K>>, Error> {
        self.send(object, None, patch).await
    }

    /// Merges `patch` into the object if nobody changed it since it was read: [`Error::is_conflict`]
    /// otherwise.
    ///
    /// # Errors
    /// Somebody else was first, or the API refused or did not answer.
    pub async fn patch_unchanged<K: Watched>(
        &self,
        object: &Cached<K>,
        mut patch: Value,
    ) -> Result<Arc<Cached<K>>, Error> {
        patch["metadata"]["resourceVersion"] = json!(object.resource_version());
        self.send(object, None, patch).await
    }

    /// Makes the object's status be `status`. Nothing is sent if it is already.
    ///
    /// # Errors
    /// The API refused or did not answer.
    pub async fn patch_status<K: Watched>(
        &self,
        object: &Arc<Cached<K>>,
        status: &impl Serialize,
    ) -> Result<Arc<Cached<K>>, Error> {
        let status = serde_json::to_value(status).map_err(|source| Error::Unreadable {
            kind: K::KIND.as_str(),
            name: object.object_name().to_string(),
            source,
        })?;
        match merge_patch(&object.stored_status, &status) {
            Some(patch) => self.send(object, Some("status"), json!({"status": patch})).await,
            None => Ok(object.clone()),
        }
    }

    /// Makes a part of the object's status be `status`, in the name of a field manager: what others said stays.
    ///
    /// # Errors
    /// The API refused or did not answer.
    pub async fn apply_status<K: Watched>(
        &self,
        object: &Cached<K>,
        manager: &str,
        status: Value,
    ) -> Result<Arc<Cached<K>>, Error> {
        let (name, kind) = (object.object_name(), K::KIND.as_str());
        let resource = ApiResource::erase::<K>(&());
        let patch = json!({"apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": name.name}, "status": status});
        let parameters = PatchParams::apply(manager).force();
        let api = self.raw::<K>(&name.namespace);
        let reply = answer(api.patch_status(&name.name, &parameters, &Patch::Apply(&patch))).await;
        self.0.metrics.wrote(kind, "apply-status", super::events::result_word(&reply));
        match reply {
            Ok(reply) => Ok(K::cache(&self.0.caches).apply_reply(Cached::read(reply)?)),
            Err(source) => Err(Error::Write { kind, name: name.to_string(), source: Box::new(source) }),
        }
    }

    /// Puts a finalizer on the object, unless it is there.
    ///
    /// # Errors
    /// Somebody else changed the object in between, or the API refused or did not answer.
    pub async fn add_finalizer<K: Watched>(
        &self,
        object: &Arc<Cached<K>>,
        finalizer: &str,
    ) -> Result<Arc<Cached<K>>, Error> {
        if object.has_finalizer(finalizer) {
            return Ok(object.clone());
        }
        let finalizers: Vec<&str> =
            object.finalizers().iter().map(String::as_str).chain([finalizer]).collect();
        self.patch_unchanged(object, json!({"metadata": {"finalizers": finalizers}})).await
    }

    /// Takes a finalizer off the object, if it is there.
    ///
    /// # Errors
    /// Somebody else changed the object in between, or the API refused or did not answer.
    pub async fn remove_finalizer<K: Watched>(
        &self,
        object: &Arc<Cached<K>>,
        finalizer: &str,
    ) -> Result<Arc<Cached<K>>, Error> {
        if !object.has_finalizer(finalizer) {
            return Ok(object.clone());
        }
        let finalizers: Vec<&String> = object.finalizers().iter().filter(|it| *it != finalizer).collect();
        self.patch_unchanged(object, json!({"metadata": {"finalizers": finalizers}})).await
    }

    /// Whether the object, or the Cluster that it belongs to, is paused.
    pub fn is_paused<K: Watched>(&self, object: &Cached<K>) -> bool {
        let cluster = object.cluster().and_then(|it| self.get::<crds::cluster_api::Cluster>(&it));
        object.annotations().contains_key(names::PAUSED_ANNOTATION)
            || cluster.is_some_and(|it| it.spec.paused == Some(true))
    }

    async fn send<K: Watched>(
        &self,
        object: &Cached<K>,
        subresource: Option<&str>,
        patch: Value,
    ) -> Result<Arc<Cached<K>>, Error> {
        let name = object.object_name();
        let kind = K::KIND.as_str();
        let api = self.raw::<K>(&name.namespace);
        let parameters =
            PatchParams { field_manager: Some("cluster-operator".into()), ..PatchParams::default() };
        let reply = match subresource {
            Some(_) => answer(api.patch_status(&name.name, &parameters, &Patch::Merge(&patch))).await,
            None => answer(api.patch(&name.name, &parameters, &Patch::Merge(&patch))).await,
        };
        let verb = if subresource.is_some() { "patch-status" } else { "patch" };
        self.0.metrics.wrote(kind, verb, super::events::result_word(&reply));
        match reply {
            Ok(reply) => Ok(K::cache(&self.0.caches).apply_reply(Cached::read(reply)?)),
            Err(source) => Err(Error::Write { kind, name: name.to_string(), source: Box::new(source) }),
        }
    }
}
