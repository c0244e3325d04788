//! A stand-in for the Tigera operator: what somebody who installs Calico through it sees of it.
//!
//! It runs with the pod's own token, so the rights it is given are put to the test. It makes its CRDs when told to
//! manage them, and for an Installation the calico-node DaemonSet and the TigeraStatus objects; it takes them down
//! before it lets the Installation go. No packet is ever routed.

mod objects;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Container, Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::watch;

use super::Host;
use super::service_account::Credentials;
use crate::cloud::kubelet::process::State;

const MANAGER: &str = "tigera-operator";
/// The finalizer that the real one keeps on an Installation.
const FINALIZER: &str = "tigera.io/operator-cleanup";
const NAMESPACE: &str = "calico-system";
/// TigeraStatus objects of an Installation.
const STATUSES: [&str; 2] = ["calico", "ippools"];

struct Operator {
    client: Client,
}

/// Runs it until it is cancelled.
pub async fn run(host: Arc<Host>, pod: Pod, container: Container, state: watch::Sender<State>) {
    let credentials = Credentials::obtain(&host, &pod).await;
    let manage = container.args.iter().flatten().any(|argument| argument == "-manage-crds=true" || argument == "--manage-crds=true");
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
                let definition: CustomResourceDefinition = serde_json::from_value(definition).context("making a CRD")?;
                self.define(definition).await?;
            }
        }
        self.established().await?;
        state.send_modify(|state| state.ready = true);
        let daemon_sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut changes = futures::stream::select_all([
            changes(self.kind("Installation")),
            changes(self.kind("APIServer")),
            watcher(daemon_sets, watcher::Config::default()).default_backoff().map(|event| event.map(drop)).boxed(),
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
            if self.kind("Installation").list(&Default::default()).await.is_ok()
                && self.kind("TigeraStatus").list(&Default::default()).await.is_ok()
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        anyhow::bail!("the CRDs of operator.tigera.io are not served, or may not be read")
    }

    async fn reconcile(&self) -> Result<()> {
        let installations = self.kind("Installation");
        if let Some(installation) = installations.get_opt("default").await.context("reading the Installation")? {
            if installation.metadata.deletion_timestamp.is_some() {
                return self.remove(&installation).await;
            }
            self.install(&installation).await?;
        }
        if let Some(server) = self.kind("APIServer").get_opt("default").await.context("reading the APIServer")? {
            self.report("apiserver", server.metadata.generation, true).await?;
        }
        Ok(())
    }

    async fn install(&self, installation: &DynamicObject) -> Result<()> {
        if !installation.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            self.finalizers(installation, &[FINALIZER]).await?;
        }
        let owner = objects::owner(installation);
        let registry = installation.data["spec"]["registry"].as_str().unwrap_or("quay.io/");
        let namespace = serde_json::from_value(objects::namespace(&owner)).context("making the namespace")?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        if namespaces.get_opt(NAMESPACE).await.context("reading the namespace")?.is_none() {
            namespaces.create(&PostParams::default(), &namespace).await.context("creating the namespace")?;
        }
        let daemon_set = serde_json::from_value(objects::daemon_set(&owner, registry)).context("making calico-node")?;
        let daemon_sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        let found = self.apply(&daemon_sets, &daemon_set).await?;
        let ready = found.status.is_some_and(|status| {
            let current = status.observed_generation == found.metadata.generation;
            current && status.desired_number_scheduled > 0 && status.number_ready == status.desired_number_scheduled
        });
        for name in STATUSES {
            self.report(name, installation.metadata.generation, ready).await?;
        }
        let conditions = objects::conditions(&["Ready"], ready, installation.metadata.generation);
        if objects::says(installation, &conditions) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let installations = self.kind("Installation");
        installations.patch_status("default", &PatchParams::default(), &patch).await.context("patching the Installation")?;
        Ok(())
    }

    /// Takes everything down; lets the Installation go once no calico-node is left.
    async fn remove(&self, installation: &DynamicObject) -> Result<()> {
        let daemon_sets: Api<DaemonSet> = Api::namespaced(self.client.clone(), NAMESPACE);
        match daemon_sets.delete(objects::NODE, &DeleteParams::foreground()).await {
            // The watch says when it is gone.
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error).context("deleting calico-node"),
        }
        for name in STATUSES {
            match self.kind("TigeraStatus").delete(name, &DeleteParams::default()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                result => drop(result.context("deleting a TigeraStatus")?),
            }
        }
        self.finalizers(installation, &[]).await
    }

    async fn finalizers(&self, installation: &DynamicObject, finalizers: &[&str]) -> Result<()> {
        let mut kept: Vec<String> = installation.finalizers().iter().filter(|&finalizer| finalizer != FINALIZER).cloned().collect();
        kept.extend(finalizers.iter().map(ToString::to_string));
        let patch = Patch::Merge(json!({"metadata": {"finalizers": kept}}));
        let installations = self.kind("Installation");
        match installations.patch(&installation.name_any(), &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            result => result.map(drop).context("setting the Installation's finalizers"),
        }
    }

    async fn report(&self, name: &str, generation: Option<i64>, ready: bool) -> Result<()> {
        let statuses = self.kind("TigeraStatus");
        let object = json!({"apiVersion": "operator.tigera.io/v1", "kind": "TigeraStatus", "metadata": {"name": name}, "spec": {}});
        let object: DynamicObject = serde_json::from_value(object).context("making a TigeraStatus")?;
        let found = self.apply(&statuses, &object).await?;
        let conditions = objects::conditions(&["Available", "Progressing", "Degraded"], ready, generation);
        if objects::says(&found, &conditions) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
        statuses.patch_status(name, &PatchParams::default(), &patch).await.map(drop).context("patching a TigeraStatus")
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

    /// The cluster-scoped objects of one of the operator's kinds.
    fn kind(&self, kind: &str) -> Api<DynamicObject> {
        let plural = if kind == "TigeraStatus" { "tigerastatuses".to_owned() } else { format!("{}s", kind.to_lowercase()) };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("operator.tigera.io", "v1", kind), &plural);
        Api::all_with(self.client.clone(), &resource)
    }
}

fn changes(api: Api<DynamicObject>) -> BoxStream<'static, watcher::Result<()>> {
    watcher(api, watcher::Config::default()).default_backoff().map(|event| event.map(drop)).boxed()
}
