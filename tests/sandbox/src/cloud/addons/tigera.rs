//! A stand-in for the Tigera operator: what somebody who installs Calico through it sees of it.
//!
//! It runs with the pod's own token, so the rights it is given are put to the test. It makes its CRDs when
//! told to manage them. Into an Installation it writes the defaults of what that leaves open, and for it it
//! makes the calico-node DaemonSet and the pools, which it changes only once an APIServer is Ready.
//! TigeraStatus objects say how each part stands, and of which generation. It takes everything down before it
//! lets the Installation go, and lets none go that still has an APIServer. No packet is ever routed.

pub mod defaults;
pub mod objects;
mod pools;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Container, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Host;
use super::service_account::Credentials;
use crate::cloud::process::State;
use objects::Standing;

const MANAGER: &str = "tigera-operator";
/// The finalizers that the real one keeps on an Installation, the last as long as there is an APIServer.
const FINALIZERS: [&str; 2] = ["tigera.io/operator-cleanup", "operator.tigera.io/installation-controller"];
const API_SERVER_FINALIZER: &str = "operator.tigera.io/apiserver-controller";
const NAMESPACE: &str = "calico-system";

struct Operator {
    client: Client,
}

/// Runs it until it is cancelled.
pub async fn run(host: Arc<Host>, pod: Pod, container: Container, state: watch::Sender<State>) {
    let credentials = Credentials::obtain(&host, &pod).await;
    let manage = container
        .args
        .iter()
        .flatten()
        .any(|argument| argument == "-manage-crds=true" || argument == "--manage-crds=true");
    let renew = Credentials::renew(&host, &pod);
    let work = async {
        loop {
            match Operator::new(&host, &credentials) {
                Ok(operator) => {
                    state.send_modify(|state| state.since = Some(Timestamp::now()));
                    if let Err(error) = operator.serve(manage, &state).await {
                        tracing::warn!("the Tigera operator failed: {error:#}");
                    }
                }
                Err(error) => tracing::error!("starting the Tigera operator: {error:#}"),
            }
            state.send_modify(|state| state.end(None));
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    tokio::join!(renew, work);
}

impl Operator {
    fn new(host: &Host, credentials: &Credentials) -> Result<Self> {
        Ok(Self { client: credentials.client(host)? })
    }

    /// Reconciles on every change of what it looks at.
    async fn serve(&self, manage: bool, state: &watch::Sender<State>) -> Result<()> {
        if manage {
            for definition in objects::definitions() {
                let definition: CustomResourceDefinition =
                    serde_json::from_value(definition).context("making a CRD")?;
                self.define(definition).await?;
            }
        }
        self.established().await?;
        state.send_modify(|state| state.ready = true);
        let mut changes = futures::stream::select_all([
            changes(self.kind("Installation")),
            changes(self.kind("APIServer")),
            changes(self.kind("IPPool")),
            changes(Api::<DaemonSet>::namespaced(self.client.clone(), NAMESPACE)),
            changes(Api::<Deployment>::namespaced(self.client.clone(), NAMESPACE)),
        ]);
        while let Some(change) = changes.next().await {
            change.context("watching")?;
            self.reconcile().await?;
        }
        Ok(())
    }

    /// Waits until the API serves the kinds.
    async fn established(&self) -> Result<()> {
        for _ in 0..60 {
            let lists = ["Installation", "APIServer", "TigeraStatus", "IPPool"]
                .map(|kind| async move { self.kind(kind).list(&Default::default()).await.is_ok() });
            if futures::future::join_all(lists).await.into_iter().all(|is_served| is_served) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        anyhow::bail!("the CRDs of operator.tigera.io are not served, or may not be read")
    }

    async fn reconcile(&self) -> Result<()> {
        let server = self.kind("APIServer").get_opt("default").await.context("reading the APIServer")?;
        let Some(installation) =
            self.kind("Installation").get_opt("default").await.context("reading the Installation")?
        else {
            return Ok(());
        };
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        let has_server = server.is_some()
            || deployments.get_opt(objects::API_SERVER).await.context("reading calico-apiserver")?.is_some();
        if installation.metadata.deletion_timestamp.is_some() {
            return self.remove(&installation, has_server).await;
        }
        let installation = self.install(installation, has_server).await?;
        let serves = self.serve_api(&deployments, server.as_ref(), &installation).await?;
        self.pools(&installation, serves).await?;
        let tiers = if serves {
            Standing::Available
        } else {
            Standing::Degraded("Waiting for Tigera API server to be ready")
        };
        self.report("tiers", None, tiers).await
    }

    /// What the controller of the Installation does; the Installation as it is then.
    async fn install(&self, installation: DynamicObject, has_server: bool) -> Result<DynamicObject> {
        let mut finalizers = FINALIZERS.to_vec();
        finalizers.extend(has_server.then_some(API_SERVER_FINALIZER));
        self.finalizers(&installation, &finalizers).await?;
        let installation = self.fill(installation, defaults::defaulted).await?;
        let owner = objects::owner("Installation", &installation);
        let namespace = serde_json::from_value(objects::namespace(&owner)).context("making the namespace")?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_opt(NAMESPACE).await.context("reading the namespace")?.is_none() {
            namespaces.create(&PostParams::default(), &namespace).await.context("creating the namespace")?;
        }
        let daemon_set = serde_json::from_value(objects::daemon_set(&owner, &installation.data["spec"]))
            .context("making calico-node")?;
        let daemon_sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let found = self.apply(&daemon_sets, &daemon_set).await?;
        let is_ready = found.status.is_some_and(|status| {
            let current = status.observed_generation == found.metadata.generation;
            let wanted = status.desired_number_scheduled;
            current
                && wanted > 0
                && status.number_ready == wanted
                && status.updated_number_scheduled == Some(wanted)
        });
        let standing = if is_ready { Standing::Available } else { Standing::Progressing };
        self.report("calico", installation.metadata.generation, standing).await?;
        let conditions = objects::conditions(&["Ready"], standing, installation.metadata.generation);
        if !objects::says(&installation, &conditions) {
            let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
            let installations = self.kind("Installation");
            installations
                .patch_status("default", &PatchParams::default(), &patch)
                .await
                .context("patching the Installation")?;
        }
        Ok(installation)
    }

    /// Writes what is open into the Installation, in its own name and without applying it.
    async fn fill(
        &self,
        installation: DynamicObject,
        filled: impl FnOnce(&Value) -> Value,
    ) -> Result<DynamicObject> {
        let spec = &installation.data["spec"];
        let Some(patch) = defaults::merge_patch(spec, &filled(spec)) else { return Ok(installation) };
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"spec": patch}));
        self.kind("Installation")
            .patch("default", &parameters, &patch)
            .await
            .context("writing defaults into the Installation")
    }

    /// What the controller of the APIServer does; whether `projectcalico.org/v3` is served.
    async fn serve_api(
        &self,
        deployments: &Api<Deployment>,
        server: Option<&DynamicObject>,
        installation: &DynamicObject,
    ) -> Result<bool> {
        let Some(server) = server.filter(|it| it.metadata.deletion_timestamp.is_none()) else {
            self.forget("apiserver").await?;
            return Ok(false);
        };
        let deployment =
            objects::api_server(&objects::owner("APIServer", server), &installation.data["spec"]);
        let found = self
            .apply(deployments, &serde_json::from_value(deployment).context("making calico-apiserver")?)
            .await?;
        let serves = found.status.is_some_and(|it| it.available_replicas.unwrap_or(0) > 0);
        self.report(
            "apiserver",
            server.metadata.generation,
            if serves { Standing::Available } else { Standing::Progressing },
        )
        .await?;
        if serves && server.data["status"]["state"] != "Ready" {
            let patch = Patch::Merge(json!({"status": {"state": "Ready"}}));
            self.kind("APIServer")
                .patch_status("default", &PatchParams::default(), &patch)
                .await
                .context("patching the APIServer")?;
        }
        Ok(serves)
    }

    /// What the controller of the pools does.
    async fn pools(&self, installation: &DynamicObject, serves: bool) -> Result<()> {
        let api = self.kind("IPPool");
        let list = api.list(&ListParams::default()).await.context("listing IPPools")?;
        let there: Vec<Value> = list
            .items
            .iter()
            .map(serde_json::to_value)
            .collect::<Result<_, _>>()
            .context("reading IPPools")?;
        let installation = self.fill(installation.clone(), |spec| defaults::with_pools(spec, &there)).await?;
        let wanted = installation
            .data
            .pointer("/spec/calicoNetwork/ipPools")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let outcome = pools::compare(&wanted, &there, serves);
        for change in outcome.changes {
            match change {
                pools::Change::Create(pool) => {
                    let pool = serde_json::from_value(pool).context("making an IPPool")?;
                    api.create(&PostParams::default(), &pool)
                        .await
                        .map(drop)
                        .context("creating an IPPool")?;
                }
                pools::Change::Patch(name, patch) => {
                    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                        .await
                        .map(drop)
                        .context("changing an IPPool")?;
                }
            }
        }
        let standing = outcome.degraded.as_deref().map_or(Standing::Available, Standing::Degraded);
        self.report("ippools", installation.metadata.generation, standing).await
    }

    /// Takes everything down; lets the Installation go once no calico-node is left.
    async fn remove(&self, installation: &DynamicObject, has_server: bool) -> Result<()> {
        if has_server {
            return self
                .finalizers(installation, &[FINALIZERS[0], FINALIZERS[1], API_SERVER_FINALIZER])
                .await;
        }
        let daemon_sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        match daemon_sets.delete(objects::NODE, &DeleteParams::foreground()).await {
            // The watch says when it is gone.
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error).context("deleting calico-node"),
        }
        for name in ["calico", "ippools", "apiserver"] {
            self.forget(name).await?;
        }
        self.finalizers(installation, &[]).await
    }

    /// Makes these the Installation's finalizers, as far as they are the operator's own.
    async fn finalizers(&self, installation: &DynamicObject, wanted: &[&str]) -> Result<()> {
        let is_own = |it: &&String| FINALIZERS.contains(&it.as_str()) || it.as_str() == API_SERVER_FINALIZER;
        let mut kept: Vec<String> =
            installation.finalizers().iter().filter(|it| !is_own(it)).cloned().collect();
        kept.extend(wanted.iter().map(ToString::to_string));
        let has = installation.finalizers();
        if kept.len() == has.len() && kept.iter().all(|it| has.contains(it)) {
            return Ok(());
        }
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"metadata": {"finalizers": kept}}));
        let installations = self.kind("Installation");
        match installations.patch(&installation.name_any(), &parameters, &patch).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            result => result.map(drop).context("setting the Installation's finalizers"),
        }
    }

    async fn forget(&self, name: &str) -> Result<()> {
        match self.kind("TigeraStatus").delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            result => result.map(drop).context("deleting a TigeraStatus"),
        }
    }

    async fn report(&self, name: &str, generation: Option<i64>, standing: Standing<'_>) -> Result<()> {
        let statuses = self.kind("TigeraStatus");
        let object = json!({"apiVersion": "operator.tigera.io/v1", "kind": "TigeraStatus", "metadata": {"name": name}, "spec": {}});
        let object: DynamicObject = serde_json::from_value(object).context("making a TigeraStatus")?;
        let found = self.apply(&statuses, &object).await?;
        let conditions = objects::conditions(&["Available", "Progressing", "Degraded"], standing, generation);
        if objects::says(&found, &conditions) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        statuses
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .map(drop)
            .context("patching a TigeraStatus")
    }

    /// Creates or updates a CRD, which is what its rights allow: no patch.
    async fn define(&self, mut definition: CustomResourceDefinition) -> Result<()> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = definition.name_any();
        let result = match api.get_opt(&name).await.with_context(|| format!("reading {name}"))? {
            None => api.create(&PostParams::default(), &definition).await,
            Some(found) => {
                definition.metadata.resource_version = found.metadata.resource_version;
                api.replace(&name, &PostParams::default(), &definition).await
            }
        };
        result.map(drop).with_context(|| format!("writing {name}"))
    }

    async fn apply<K>(&self, api: &Api<K>, object: &K) -> Result<K>
    where
        K: Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let name = object.meta().name.clone().unwrap_or_default();
        let parameters = PatchParams::apply(MANAGER).force();
        api.patch(&name, &parameters, &Patch::Apply(object)).await.with_context(|| format!("applying {name}"))
    }

    /// The objects of one of the kinds that it makes.
    fn kind(&self, kind: &str) -> Api<DynamicObject> {
        let resource = objects::resource(kind).expect("it makes the kind");
        Api::all_with(self.client.clone(), &resource)
    }
}

fn changes<K>(api: Api<K>) -> BoxStream<'static, watcher::Result<()>>
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    watcher(api, watcher::Config::default()).default_backoff().map(|event| event.map(drop)).boxed()
}
