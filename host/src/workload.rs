//! The only module that talks to the API servers of workload clusters: clients made from kubeconfigs, server-side apply, reads, lists
//! and deletes of objects of any kind, and the records of installed add-ons. It decides nothing, knows nothing of AWS or of the management
//! API, and no kubeconfig reaches an error or a log.

mod list;
mod record;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Limited;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::client::{ClientBuilder, DynBody};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersion;
use kube::core::discovery::Scope;
use kube::discovery::ApiResource;
use kube::{Client, Config};
use plan::addon::ObjectRef;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tower_http::map_response_body::MapResponseBodyLayer;

use crate::metrics::WorkloadRequests;

pub use record::authority_object;

/// The field manager of what is this program's own rather than an add-on's.
const OWN_MANAGER: &str = "cluster-operator";
/// How long a whole answer may take, however steadily it comes.
const ANSWER: Duration = Duration::from_secs(30);
/// How large one answer may be: several times a page of large objects.
const ANSWER_BYTES: usize = 64 << 20;

/// What can go wrong with a workload cluster.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    #[error("the kubeconfig Secret does not hold a usable kubeconfig")]
    Kubeconfig(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Names the field, never what it holds.
    #[error("the kubeconfig Secret has {0}, which names a program, a file or a proxy; put tokens and certificates into it as data")]
    NotAllowed(String),
    /// No answer, or not from the API: nothing may be concluded.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(String),
    /// Another field manager owns a field that differs.
    #[error("{object}: {message}")]
    Conflict { object: ObjectRef, message: String },
    /// The API server serves no such kind (yet).
    #[error("{object}: the API server does not know {} {}", object.api_version, object.kind)]
    UnknownKind { object: ObjectRef },
    /// The API server's answer. `fields` are those that it names as wrong, such as `spec.selector`.
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
    clusters: Mutex<HashMap<(String, String), (Vec<u8>, Arc<WorkloadCluster>)>>,
}

impl Workload {
    /// Counts in `requests` what is sent to any of them.
    pub fn new(requests: WorkloadRequests) -> Self {
        Workload { requests, clusters: Mutex::default() }
    }

    /// The client of a cluster. Connects nowhere yet.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub async fn cluster(&self, namespace: &str, name: &str, kubeconfig: &[u8]) -> Result<Arc<WorkloadCluster>, WorkloadError> {
        let key = (namespace.to_owned(), name.to_owned());
        let hash = Sha256::digest(kubeconfig).to_vec();
        if let Some((known, cluster)) = self.clusters.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
            && *known == hash
        {
            return Ok(cluster.clone());
        }
        let cluster = Arc::new(WorkloadCluster::new(kubeconfig, self.requests.clone()).await?);
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (hash, cluster.clone()));
        Ok(cluster)
    }

    /// Drops the client of a cluster that is gone.
    pub fn forget(&self, namespace: &str, name: &str) {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner).remove(&(namespace.to_owned(), name.to_owned()));
    }
}

/// One workload cluster.
pub struct WorkloadCluster {
    client: Client,
    kinds: Mutex<HashMap<(String, String), (ApiResource, Scope)>>,
    requests: WorkloadRequests,
}

impl WorkloadCluster {
    async fn new(kubeconfig: &[u8], requests: WorkloadRequests) -> Result<Self, WorkloadError> {
        let text = std::str::from_utf8(kubeconfig).map_err(|it| WorkloadError::Kubeconfig(it.into()))?;
        let kubeconfig = Kubeconfig::from_yaml(text).map_err(|it| WorkloadError::Kubeconfig(it.into()))?;
        holds_all(&kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|it| WorkloadError::Kubeconfig(it.into()))?;
        config.connect_timeout = Some(Duration::from_secs(5));
        config.read_timeout = Some(Duration::from_secs(20));
        config.write_timeout = Some(Duration::from_secs(20));
        config.reset_reader_on_write = true;
        // Whoever asks tries again by itself, and is not held up by what the server says about when.
        config.default_retry = false;
        let builder = ClientBuilder::try_from(config).map_err(|it| WorkloadError::Kubeconfig(it.into()))?;
        let limited = MapResponseBodyLayer::new(|body: Box<DynBody>| Limited::new(body, ANSWER_BYTES));
        let client = builder.with_layer(&limited).build();
        Ok(WorkloadCluster { client, kinds: Mutex::default(), requests })
    }

    /// The server's version, such as `v1.36.3`: also the cheapest way to learn whether it answers.
    pub async fn version(&self) -> Result<String, WorkloadError> {
        self.requests.count("get");
        let version = answer(self.client.apiserver_version()).await.map_err(unreachable)?;
        Ok(version.git_version)
    }

    /// Reads an object; `None` when it, or its kind, is not there.
    pub async fn get(&self, object: &ObjectRef) -> Result<Option<Value>, WorkloadError> {
        let api = match self.api(object).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(None),
            other => other?,
        };
        self.requests.count("get");
        let found = answer(api.get_opt(&object.name)).await.map_err(|it| refusal(object, it))?;
        found.map(|it| serde_json::to_value(it).map_err(|it| WorkloadError::Unreachable(it.to_string()))).transpose()
    }

    /// Whether this field manager applied something of the object.
    pub async fn is_managed_by(&self, object: &ObjectRef, manager: &str) -> Result<bool, WorkloadError> {
        let live = self.get(object).await?;
        let managers = live.as_ref().and_then(|it| it.pointer("/metadata/managedFields")).and_then(Value::as_array);
        Ok(managers.into_iter().flatten().any(|it| it["manager"] == manager && it["operation"] == "Apply"))
    }

    /// Server-side apply by one field manager.
    ///
    /// # Errors
    /// A conflict names manager and field, in the API server's words.
    pub async fn apply(&self, object: &Value, manager: &str, force: bool) -> Result<(), WorkloadError> {
        let Some(reference) = ObjectRef::of(object) else {
            return Err(WorkloadError::Unreachable("an object without apiVersion, kind or name cannot be applied".into()));
        };
        let api = self.api(&reference).await?;
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), force, ..PatchParams::default() };
        self.requests.count("patch");
        answer(api.patch(&reference.name, &parameters, &Patch::Apply(object))).await.map_err(|it| refusal(&reference, it))?;
        Ok(())
    }

    /// Asks for an object's deletion; `true` when it, or its kind, is not there any more.
    pub async fn delete(&self, object: &ObjectRef) -> Result<bool, WorkloadError> {
        self.delete_exactly(object, None, Dependents::Later).await
    }

    /// The same, of the object with this uid and no later one of its name.
    ///
    /// # Errors
    /// [`WorkloadError::Conflict`]: it is another one by now.
    pub async fn delete_exactly(&self, object: &ObjectRef, uid: Option<&str>, dependents: Dependents) -> Result<bool, WorkloadError> {
        let api = match self.api(object).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(true),
            other => other?,
        };
        let policy = match dependents {
            Dependents::Later => PropagationPolicy::Background,
            Dependents::First => PropagationPolicy::Foreground,
        };
        let preconditions = uid.map(|it| Preconditions { uid: Some(it.to_owned()), resource_version: None });
        let parameters = DeleteParams { propagation_policy: Some(policy), preconditions, ..DeleteParams::default() };
        self.requests.count("delete");
        match answer(api.delete(&object.name, &parameters)).await {
            Ok(answer) => Ok(answer.is_right()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(true),
            Err(error) => Err(refusal(object, error)),
        }
    }

    /// Merges `patch` into an object that is there; nothing when it, or its kind, is not.
    pub async fn merge(&self, object: &ObjectRef, patch: &Value) -> Result<(), WorkloadError> {
        let api = match self.api(object).await {
            Err(WorkloadError::UnknownKind { .. }) => return Ok(()),
            other => other?,
        };
        let parameters = PatchParams { field_manager: Some(OWN_MANAGER.to_owned()), ..PatchParams::default() };
        self.requests.count("patch");
        match answer(api.patch(&object.name, &parameters, &Patch::Merge(patch))).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(refusal(object, error)),
        }
    }

    async fn api(&self, object: &ObjectRef) -> Result<Api<DynamicObject>, WorkloadError> {
        let (resource, scope) = self.resource(object).await?;
        Ok(match (scope, &object.namespace) {
            (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            (Scope::Namespaced, None) => Api::default_namespaced_with(self.client.clone(), &resource),
            (Scope::Cluster, _) => Api::all_with(self.client.clone(), &resource),
        })
    }

    async fn resource(&self, object: &ObjectRef) -> Result<(ApiResource, Scope), WorkloadError> {
        let key = (object.api_version.clone(), object.kind.clone());
        let known = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        self.discover(object).await
    }

    /// Asks for all kinds of an API version at once, since more of them are needed soon.
    async fn discover(&self, object: &ObjectRef) -> Result<(ApiResource, Scope), WorkloadError> {
        let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
        let unknown = || WorkloadError::UnknownKind { object: object.clone() };
        self.requests.count("get");
        let found = match answer(kube::discovery::pinned_group(&self.client, &GroupVersion::gv(group, version))).await {
            Ok(found) => found.versioned_resources(version),
            Err(kube::Error::Discovery(_)) => return Err(unknown()),
            Err(kube::Error::Api(status)) if status.code == 404 => return Err(unknown()),
            Err(error) => return Err(refusal(object, error)),
        };
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        for (resource, capabilities) in found {
            kinds.insert((object.api_version.clone(), resource.kind.clone()), (resource, capabilities.scope));
        }
        kinds.get(&(object.api_version.clone(), object.kind.clone())).cloned().ok_or_else(unknown)
    }
}

/// Whether the kubeconfig says everything itself. One that names programs or files would have them run and read here, with this process's
/// rights.
fn holds_all(kubeconfig: &Kubeconfig) -> Result<(), WorkloadError> {
    let users = kubeconfig.auth_infos.iter().filter_map(|it| it.auth_info.as_ref());
    let mut asked = users.flat_map(|it| {
        [
            ("exec", it.exec.is_some()),
            ("auth-provider", it.auth_provider.is_some()),
            ("tokenFile", it.token_file.is_some()),
            ("client-certificate", it.client_certificate.is_some()),
            ("client-key", it.client_key.is_some()),
        ]
    });
    let user = asked.find(|(_, is_there)| *is_there).map(|(field, _)| format!("users[].user.{field}"));
    let clusters = kubeconfig.clusters.iter().filter_map(|it| it.cluster.as_ref());
    // Through a proxy, the operator would send its requests wherever whoever writes the Secret likes.
    let mut of_clusters =
        clusters.flat_map(|it| [("certificate-authority", it.certificate_authority.is_some()), ("proxy-url", it.proxy_url.is_some())]);
    let cluster = of_clusters.find(|(_, is_there)| *is_there).map(|(field, _)| format!("clusters[].cluster.{field}"));
    match user.or(cluster) {
        Some(field) => Err(WorkloadError::NotAllowed(field)),
        None => Ok(()),
    }
}

/// The answer to a request, unless it takes longer than any should: an answer that trickles is none.
async fn answer<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    tokio::time::timeout(ANSWER, request).await.map_err(|elapsed| kube::Error::Service(elapsed.into()))?
}

/// What an error says of one object. An internal error is about that object: most often a webhook that was to be asked does not answer.
fn refusal(object: &ObjectRef, error: kube::Error) -> WorkloadError {
    match error {
        kube::Error::Api(status) if status.code == 409 => WorkloadError::Conflict { object: object.clone(), message: status.message },
        kube::Error::Api(status) if status.code <= 500 && status.code != 429 => {
            let fields = status.details.into_iter().flat_map(|it| it.causes).map(|it| it.field).collect();
            WorkloadError::Refused { object: Box::new(object.clone()), code: status.code, message: status.message, fields }
        }
        other => unreachable(other),
    }
}

fn unreachable(error: kube::Error) -> WorkloadError {
    // The innermost cause says why: `connection refused`, `certificate has expired`.
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    WorkloadError::Unreachable(cause.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kubeconfig(user: &str, cluster: &str) -> Kubeconfig {
        let text = format!(
            "{{apiVersion: v1, kind: Config, current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}],
              clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:6443', {cluster}}}}}], users: [{{name: a, user: {{{user}}}}}]}}"
        );
        Kubeconfig::from_yaml(&text).expect("a kubeconfig")
    }

    #[test]
    fn a_kubeconfig_may_hold_data_and_name_no_programs_files_or_proxies() {
        let refused = |user: &str, cluster: &str| holds_all(&kubeconfig(user, cluster)).err().map(|it| it.to_string());
        assert_eq!(refused("token: abc", "certificate-authority-data: YQ=="), None);
        for (user, cluster, field) in [
            ("exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "", "user.exec,"),
            ("auth-provider: {name: gcp, config: {cmd-path: sh}}", "", "user.auth-provider,"),
            ("tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token", "", "user.tokenFile,"),
            ("client-certificate: /a", "", "user.client-certificate,"),
            ("client-key: /a", "", "user.client-key,"),
            ("token: abc", "certificate-authority: /a", "cluster.certificate-authority,"),
            ("token: abc", "proxy-url: 'http://10.0.0.1:3128'", "cluster.proxy-url,"),
        ] {
            assert!(refused(user, cluster).is_some_and(|it| it.contains(field)), "{field}");
        }
    }
}
