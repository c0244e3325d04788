//! The only module that talks to the management API. It keeps what it watches in memory, reads Secrets live,
//! writes merge patches, and counts every write. What is in a Secret is neither stored nor logged.
//!
//! It shows at once what it wrote: the reply to a write goes into the same cache that the watch fills, and
//! an older event never replaces it. So a controller that runs again before the watch has caught up does not
//! act on yesterday's annotation.

mod cache;
mod events;
mod merge;
mod raw;
mod read;
mod watch;
mod watched;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::error::DiscoveryError;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;

pub use cache::Cached;
pub use events::Event;
pub use read::Amend;
pub use watched::{Kind, Watched};

use crate::metrics::Metrics;
use crate::object_name::ObjectName;
use raw::Raw;
use watched::Caches;

/// How long a watch may be silent before its connection is given up: longer than the server lets one last.
pub const WATCH_SILENCE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 15);
/// How long the server is asked to let one watch last.
const WATCH_SECONDS: u32 = 240;
/// How long any other answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// The answer to a request, unless it takes longer than any should.
async fn answer<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    tokio::time::timeout(ANSWER, request).await.map_err(|elapsed| kube::Error::Service(elapsed.into()))?
}

/// The management API; cheap to clone.
#[derive(Clone)]
pub struct Management(Arc<Inner>);

struct Inner {
    client: Client,
    /// The only namespace that is watched; `None`: all.
    namespace: Option<String>,
    /// Nothing can be written by it.
    is_read_only: bool,
    caches: Caches,
    subscribers: Mutex<Vec<mpsc::UnboundedSender<Change>>>,
    events: mpsc::Sender<events::Publish>,
    metrics: Metrics,
}

/// An object was added, changed by somebody else, or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    pub name: ObjectName,
    /// The Cluster that it belongs to, as far as the object says.
    pub cluster: Option<ObjectName>,
}

/// Why the management API did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {kind} {name}")]
    Read { kind: &'static str, name: String, source: Box<kube::Error> },
    #[error("cannot write {kind} {name}")]
    Write { kind: &'static str, name: String, source: Box<kube::Error> },
    #[error("{kind} {name} is not what it should be")]
    Unreadable { kind: &'static str, name: String, source: serde_json::Error },
}

impl Error {
    /// Somebody else changed the object in between: read it again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Error::Write { source, .. }
            if matches!(&**source, kube::Error::Api(status) if status.is_conflict()))
    }

    /// This operator may not do it.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Error::Read { source, .. } | Error::Write { source, .. }
            if matches!(&**source, kube::Error::Api(status) if status.is_forbidden()))
    }

    /// What went wrong, in the words of the API server where it has any.
    pub fn told(self) -> anyhow::Error {
        match &self {
            Error::Read { source, .. } | Error::Write { source, .. } => match &**source {
                kube::Error::Api(status) => anyhow::anyhow!("{self}: {}", status.message),
                _ => self.into(),
            },
            Error::Unreadable { .. } => self.into(),
        }
    }

    /// The object is not there (any more).
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::Read { source, .. } | Error::Write { source, .. }
            if matches!(&**source, kube::Error::Api(status) if status.is_not_found()))
    }
}

impl Management {
    /// Begins to watch. `namespace`: look at this one only.
    pub fn start(client: Client, namespace: Option<String>, metrics: Metrics) -> Self {
        let management = Self::new(client, namespace, metrics, false);
        watched::watch_all(&management);
        management
    }

    /// Reads the objects of one namespace once, amended, in place of watching them. Nothing can be written by what
    /// comes of it: `client` sends nothing but reads.
    ///
    /// # Errors
    /// The API did not answer, does not know a kind, or does not let this user list it.
    pub async fn read(
        client: Client,
        namespace: &str,
        metrics: Metrics,
        amend: Amend<'_>,
    ) -> Result<Self, Error> {
        let management = Self::new(client, Some(namespace.to_owned()), metrics, true);
        watched::read_all(&management, namespace, amend).await?;
        Ok(management)
    }

    fn new(client: Client, namespace: Option<String>, metrics: Metrics, is_read_only: bool) -> Self {
        let events = events::start(client.clone(), metrics.clone());
        Self(Arc::new(Inner {
            client,
            namespace,
            is_read_only,
            caches: Caches::default(),
            subscribers: Mutex::default(),
            events,
            metrics,
        }))
    }

    /// Whether it only reads.
    pub fn is_read_only(&self) -> bool {
        self.0.is_read_only
    }

    /// Whether every kind that is watched was read whole at least once.
    pub fn is_ready(&self) -> bool {
        self.0.caches.are_ready()
    }

    /// Every change from now on, of every kind. What this process writes itself is no change.
    pub fn changes(&self) -> mpsc::UnboundedReceiver<Change> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    /// The object as it was last seen or written.
    pub fn get<K: Watched>(&self, name: &ObjectName) -> Option<Arc<Cached<K>>> {
        K::cache(&self.0.caches).get(name)
    }

    /// All objects of a kind as they were last seen or written, by name.
    pub fn list<K: Watched>(&self) -> Vec<Arc<Cached<K>>> {
        K::cache(&self.0.caches).list()
    }

    /// All objects of a kind that say they belong to a Cluster.
    pub fn of_cluster<K: Watched>(&self, cluster: &ObjectName) -> Vec<Arc<Cached<K>>> {
        self.list::<K>().into_iter().filter(|it| it.cluster().as_ref() == Some(cluster)).collect()
    }

    /// Objects of a kind that are there and cannot be read, with the reason.
    pub fn unreadable<K: Watched>(&self) -> Vec<(ObjectName, String)> {
        K::cache(&self.0.caches).unreadable()
    }

    /// The object as it is now.
    ///
    /// # Errors
    /// The API did not answer, or the object cannot be read. Absence is `None`.
    pub async fn live<K: Watched>(&self, name: &ObjectName) -> Result<Option<Cached<K>>, Error> {
        match answer(self.raw::<K>(&name.namespace).get_opt(&name.name)).await {
            Ok(Some(object)) => Cached::read(object).map(Some),
            Ok(None) => Ok(None),
            Err(source) => {
                Err(Error::Read { kind: K::KIND.as_str(), name: name.to_string(), source: Box::new(source) })
            }
        }
    }

    /// All objects of a kind in a namespace as they are now.
    ///
    /// # Errors
    /// The API did not answer, or one of them cannot be read.
    pub async fn live_list<K: Watched>(&self, namespace: &str) -> Result<Vec<Cached<K>>, Error> {
        let read = |source| Error::Read {
            kind: K::KIND.as_str(),
            name: namespace.to_owned(),
            source: Box::new(source),
        };
        let objects = answer(self.raw::<K>(namespace).list(&ListParams::default())).await.map_err(read)?;
        objects.items.into_iter().map(Cached::read).collect()
    }

    /// An object of any kind as it is now, such as a control plane of a kind that is not known here, in a
    /// version that the API serves.
    ///
    /// # Errors
    /// The API did not answer, or this operator may not read the kind. Absence is `None`, and so is a kind
    /// that there is not.
    pub async fn live_dynamic(
        &self,
        group: &str,
        kind: &str,
        name: &ObjectName,
    ) -> Result<Option<DynamicObject>, Error> {
        let read =
            |source| Error::Read { kind: "control plane", name: name.to_string(), source: Box::new(source) };
        let served = match answer(kube::discovery::group(&self.0.client, group)).await {
            Ok(served) => served.recommended_kind(kind),
            Err(kube::Error::Discovery(DiscoveryError::MissingApiGroup(_))) => None,
            Err(source) => return Err(read(source)),
        };
        let Some((resource, _)) = served else { return Ok(None) };
        let api: Api<DynamicObject> = Api::namespaced_with(self.0.client.clone(), &name.namespace, &resource);
        answer(api.get_opt(&name.name)).await.map_err(read)
    }

    /// The labels of a namespace as they are now; `None` when there is no such namespace.
    ///
    /// # Errors
    /// The API did not answer, or this operator may not read namespaces.
    pub async fn namespace_labels(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, Error> {
        let api: Api<Namespace> = Api::all(self.0.client.clone());
        let found = answer(api.get_opt(name)).await.map_err(|source| Error::Read {
            kind: "Namespace",
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        Ok(found.map(|it| it.metadata.labels.unwrap_or_default()))
    }

    /// A value among the `binaryData` of a ConfigMap as it is now; `None` when it is not there.
    ///
    /// # Errors
    /// The API did not answer, or this operator may not read the ConfigMap.
    pub async fn binary_data(&self, name: &ObjectName, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let api: Api<ConfigMap> = Api::namespaced(self.0.client.clone(), &name.namespace);
        let found = answer(api.get_opt(&name.name)).await.map_err(|source| Error::Read {
            kind: "ConfigMap",
            name: name.to_string(),
            source: Box::new(source),
        })?;
        Ok(found.and_then(|it| it.binary_data?.remove(key)).map(|it| it.0))
    }

    /// A Secret as it is now. It is not cached.
    ///
    /// # Errors
    /// The API did not answer. Absence is `None`.
    pub async fn secret(&self, name: &ObjectName) -> Result<Option<Secret>, Error> {
        let api: Api<Secret> = Api::namespaced(self.0.client.clone(), &name.namespace);
        answer(api.get_opt(&name.name)).await.map_err(|source| Error::Read {
            kind: "Secret",
            name: name.to_string(),
            source: Box::new(source),
        })
    }

    fn raw<K: Watched>(&self, namespace: &str) -> Api<Raw> {
        let (client, resource) = (self.0.client.clone(), ApiResource::erase::<K>(&()));
        if K::IS_CLUSTER_SCOPED {
            Api::all_with(client, &resource)
        } else {
            Api::namespaced_with(client, namespace, &resource)
        }
    }

    fn announce(&self, change: &Change) {
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|it| it.send(change.clone()).is_ok());
    }
}

/// Namespace and name of an object that came from the API.
fn name_of(object: &impl ResourceExt) -> ObjectName {
    ObjectName::new(object.namespace().unwrap_or_default(), object.name_any())
}
