//! The only module that talks to the API servers of workload clusters: clients made from kubeconfigs,
//! server-side apply, reads, lists and deletes of objects of any kind, and the records of installed add-ons.
//! No kubeconfig reaches an error or a log.

pub mod address;
mod budget;
mod component;
mod connect;
mod discover;
#[cfg(test)]
pub mod fake;
mod list;
mod parts;
mod record;
mod response;
pub mod sanitize;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use addons::{Cause, ObjectRef, WRITERS, Writers};
use ipnet::IpNet;
use kube::Client;
use kube::api::{DeleteParams, GetParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::Request;
use kube::core::discovery::Scope;
use kube::discovery::ApiResource;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::metrics::WorkloadRequests;
use address::{AllowedAddresses, Endpoint};
use budget::{Budget, Share};
use parts::Parts;
use response::Failure;

pub use list::Lists;
pub use record::{StoredRecord, authority_object};

/// The field manager of what is this program's own rather than an add-on's.
const OWN_MANAGER: &str = "cluster-operator";

/// What can go wrong with a workload cluster.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("the kubeconfig Secret does not hold a usable kubeconfig")]
    Kubeconfig(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Names the field, never what it holds.
    #[error(
        "the kubeconfig Secret has {0}, which names a program, a file or a proxy; put tokens and \
         certificates into it as data"
    )]
    NotAllowed(String),
    /// It names a server that is not asked.
    #[error("the kubeconfig Secret: {0}")]
    NotAsked(String),
    /// No answer, or not from the API: nothing may be concluded.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    /// Another field manager owns a field that differs, or it is another object by now. `causes` say which
    /// managers, where they are few.
    #[error("{object}: {message}")]
    Conflict { object: Box<ObjectRef>, message: String, causes: Vec<Cause> },
    /// The API server serves no such kind (yet).
    #[error("{object}: the API server does not know {} {}", object.api_version, object.kind)]
    UnknownKind { object: ObjectRef },
    /// The API server's answer, in quotes. `fields` are those that it names as wrong, such as
    /// `spec.selector`.
    #[error("{object}: {message}")]
    Refused { object: Box<ObjectRef>, code: u16, message: String, fields: Vec<String> },
}

/// How dependents of a deleted object are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// They are deleted after it, without being waited for.
    Later,
    /// It is gone only when they are.
    First,
}

/// Clients of workload clusters, one for each, made again when the kubeconfig changes.
pub struct Workload {
    requests: WorkloadRequests,
    budget: Budget,
    /// Where API servers may be that are no control plane endpoint.
    ranges: Arc<[IpNet]>,
    is_read_only: bool,
    clusters: Mutex<HashMap<(String, String), (Vec<u8>, AllowedAddresses, Arc<WorkloadCluster>)>>,
}

impl Workload {
    /// Counts in `requests` what is sent to any of them. API servers that are not the control plane endpoint
    /// of their cluster are asked only where `ranges` have their address.
    pub fn new(requests: WorkloadRequests, ranges: Arc<[IpNet]>) -> Self {
        let (budget, clusters) = (Budget::default(), Mutex::default());
        Workload { requests, budget, ranges, is_read_only: false, clusters }
    }

    /// The same with clients that send nothing but reads.
    #[must_use]
    pub fn read_only(self) -> Self {
        Workload { is_read_only: true, ..self }
    }

    /// The client of a cluster that has these control plane endpoints. Connects nowhere yet.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub async fn cluster(
        &self,
        namespace: &str,
        name: &str,
        kubeconfig: &[u8],
        endpoints: Vec<Endpoint>,
    ) -> Result<Arc<WorkloadCluster>, WorkloadError> {
        let key = (namespace.to_owned(), name.to_owned());
        let hash = Sha256::digest(kubeconfig).to_vec();
        let allowed = AllowedAddresses { endpoints, ranges: self.ranges.clone() };
        if let Some((known, of, cluster)) =
            self.clusters.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
            && *known == hash
            && *of == allowed
        {
            return Ok(cluster.clone());
        }
        let client = connect::client(kubeconfig, allowed.clone(), self.is_read_only).await?;
        let cluster = Arc::new(WorkloadCluster::new(client, self.budget.share(), self.requests.clone()));
        self.clusters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key, (hash, allowed, cluster.clone()));
        Ok(cluster)
    }

    /// Drops the client of a cluster that is gone.
    pub fn evict(&self, namespace: &str, name: &str) {
        self.clusters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&(namespace.to_owned(), name.to_owned()));
    }
}

/// One workload cluster.
pub struct WorkloadCluster {
    client: Client,
    share: Share,
    kinds: Mutex<HashMap<(String, String), (ApiResource, Scope)>>,
    requests: WorkloadRequests,
}

impl WorkloadCluster {
    fn new(client: Client, share: Share, requests: WorkloadRequests) -> Self {
        WorkloadCluster { client, share, kinds: Mutex::default(), requests }
    }

    /// Asks for the server's version: the cheapest way to learn whether it answers.
    pub async fn answers(&self) -> Result<(), WorkloadError> {
        self.requests.count("get");
        let request = http::Request::get("/version").body(Vec::new()).map_err(unsendable)?;
        let version =
            response::value(&self.client, request, &Parts::at(&["/gitVersion"]), &mut self.share.hold())
                .await;
        if version.map_err(unreachable)?["gitVersion"].is_string() {
            Ok(())
        } else {
            Err(WorkloadError::Unreachable("it does not say its version".into()))
        }
    }

    /// Reads an object; `None` when it, or its kind, is not there.
    pub async fn get(&self, object: &ObjectRef) -> Result<Option<Value>, WorkloadError> {
        self.get_only(object, &[]).await
    }

    /// The same with nothing of the object but these parts, as JSON pointers. No part: all.
    pub async fn get_only(&self, object: &ObjectRef, parts: &[&str]) -> Result<Option<Value>, WorkloadError> {
        let path = match self.path(object).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(None),
            other => other?,
        };
        self.requests.count("get");
        let request = path.get(&object.name, &GetParams::default()).map_err(unsendable)?;
        match response::value(&self.client, request, &Parts::at(parts), &mut self.share.hold()).await {
            Ok(found) => Ok(Some(found)),
            Err(Failure::Refused { code: 404, .. }) => Ok(None),
            Err(failure) => Err(refusal(object, failure)),
        }
    }

    /// Whether this field manager applied something of the object as it is now, and which one that is.
    ///
    /// # Errors
    /// The API did not answer.
    pub async fn managed_by(
        &self,
        object: &ObjectRef,
        manager: &str,
    ) -> Result<Option<String>, WorkloadError> {
        let live =
            self.get_only(object, &["/metadata/uid", "/metadata/managedFields"]).await?.unwrap_or_default();
        let managers = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let is_ours =
            managers.into_iter().flatten().any(|it| it["manager"] == manager && it["operation"] == "Apply");
        Ok(live.pointer("/metadata/uid").and_then(Value::as_str).filter(|_| is_ours).map(str::to_owned))
    }

    /// Who wrote an object; `None` when it, or its kind, is not there. Nothing else of it is asked for.
    pub async fn writers(&self, object: &ObjectRef) -> Result<Option<Writers>, WorkloadError> {
        let path = match self.path(object).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(None),
            other => other?,
        };
        self.requests.count("get");
        let request = path.get_metadata(&object.name, &GetParams::default()).map_err(unsendable)?;
        match response::value(&self.client, request, &Parts::at(&WRITERS), &mut self.share.hold()).await {
            Ok(found) => Ok(Some(Writers::of(&found))),
            Err(Failure::Refused { code: 404, .. }) => Ok(None),
            Err(failure) => Err(refusal(object, failure)),
        }
    }

    /// Server-side apply by one field manager, and who wrote the object then.
    ///
    /// # Errors
    /// A conflict names manager and field, in the API server's words.
    pub async fn apply(&self, object: &Value, manager: &str, force: bool) -> Result<Writers, WorkloadError> {
        self.patch(
            object,
            PatchParams { field_manager: Some(manager.to_owned()), force, ..PatchParams::default() },
        )
        .await
    }

    /// Who would have what of an object if this manager applied it with force. Nothing is changed.
    pub async fn would_apply(&self, object: &Value, manager: &str) -> Result<Writers, WorkloadError> {
        let field_manager = Some(manager.to_owned());
        self.patch(
            object,
            PatchParams { field_manager, force: true, dry_run: true, ..PatchParams::default() },
        )
        .await
    }

    async fn patch(&self, object: &Value, parameters: PatchParams) -> Result<Writers, WorkloadError> {
        let Some(reference) = ObjectRef::of(object) else {
            return Err(WorkloadError::Unreachable(
                "an object without apiVersion, kind or name cannot be applied".into(),
            ));
        };
        let path = self.path(&reference).await?;
        self.requests.count("patch");
        let request =
            path.patch_metadata(&reference.name, &parameters, &Patch::Apply(object)).map_err(unsendable)?;
        match response::value(&self.client, request, &Parts::at(&WRITERS), &mut self.share.hold()).await {
            Ok(applied) => Ok(Writers::of(&applied)),
            // It was done all the same.
            Err(Failure::TooLarge) => Ok(Writers::default()),
            Err(failure) => Err(refusal(&reference, failure)),
        }
    }

    /// Asks for an object's deletion; `true` when it, or its kind, is not there any more.
    pub async fn delete(&self, object: &ObjectRef) -> Result<bool, WorkloadError> {
        self.delete_exactly(object, None, Dependents::Later).await
    }

    /// The same, of the object with this uid and no later one of its name.
    ///
    /// # Errors
    /// [`WorkloadError::Conflict`]: it is another one by now.
    pub async fn delete_exactly(
        &self,
        object: &ObjectRef,
        uid: Option<&str>,
        dependents: Dependents,
    ) -> Result<bool, WorkloadError> {
        let path = match self.path(object).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(true),
            other => other?,
        };
        let policy = match dependents {
            Dependents::Later => PropagationPolicy::Background,
            Dependents::First => PropagationPolicy::Foreground,
        };
        let preconditions = uid.map(|it| Preconditions { uid: Some(it.to_owned()), resource_version: None });
        let parameters =
            DeleteParams { propagation_policy: Some(policy), preconditions, ..DeleteParams::default() };
        self.requests.count("delete");
        let request = path.delete(&object.name, &parameters).map_err(unsendable)?;
        match response::value(&self.client, request, &Parts::at(&["/kind"]), &mut self.share.hold()).await {
            // Otherwise it is the object, which goes later.
            Ok(answer) => Ok(answer["kind"] == "Status"),
            Err(Failure::Refused { code: 404, .. }) => Ok(true),
            Err(failure) => Err(refusal(object, failure)),
        }
    }

    /// Merges `patch` into an object that is there; nothing when it, or its kind, is not.
    pub async fn merge(&self, object: &ObjectRef, patch: &Value) -> Result<(), WorkloadError> {
        let path = match self.path(object).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(()),
            other => other?,
        };
        let parameters =
            PatchParams { field_manager: Some(OWN_MANAGER.to_owned()), ..PatchParams::default() };
        self.requests.count("patch");
        let request = path.patch(&object.name, &parameters, &Patch::Merge(patch)).map_err(unsendable)?;
        match response::done(&self.client, request, &mut self.share.hold()).await {
            Ok(()) | Err(Failure::Refused { code: 404, .. }) => Ok(()),
            Err(failure) => Err(refusal(object, failure)),
        }
    }

    /// Where objects of this one's kind and namespace are.
    async fn path(&self, object: &ObjectRef) -> Result<Request, WorkloadError> {
        let (resource, scope) = self.resource(object).await?;
        let namespace = match scope {
            Scope::Namespaced => {
                Some(object.namespace.as_deref().unwrap_or_else(|| self.client.default_namespace()))
            }
            Scope::Cluster => None,
        };
        Ok(discover::path(&resource, namespace))
    }
}

/// What an error says of one object. An internal error is about that object: most often a webhook that was to
/// be asked does not answer.
fn refusal(object: &ObjectRef, failure: Failure) -> WorkloadError {
    match failure {
        Failure::Refused { code: 409, message, causes, .. } => {
            WorkloadError::Conflict { object: Box::new(object.clone()), message, causes }
        }
        Failure::Refused { code, message, fields, .. } if code <= 500 && code != 429 => {
            WorkloadError::Refused { object: Box::new(object.clone()), code, message, fields }
        }
        other => unreachable(other),
    }
}

fn unreachable(failure: Failure) -> WorkloadError {
    WorkloadError::Unreachable(match failure {
        Failure::Refused { message, .. } => message,
        Failure::TooLarge => "its answer is larger than any should be".to_owned(),
        Failure::None(why) => why,
    })
}

/// What is to be sent is not even a request.
fn unsendable(error: impl std::fmt::Display) -> WorkloadError {
    WorkloadError::Unreachable(error.to_string())
}
