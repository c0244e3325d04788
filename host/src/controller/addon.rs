//! Reconciles the add-ons of one cluster: reads the ClusterPlugin and its Cluster, asks the plugins, carries
//! out the steps of their plans, and patches the status. Stages, order, pruning, teardown and status are
//! decided in `addons`, and what may be asked for in `addons::grant`.

mod applied;
mod apply;
mod certificate;
mod check;
mod connection;
mod detach;
mod diagnosis;
mod drift;
mod execute;
pub mod facts;
mod fair_queue;
mod fleet;
mod install;
mod memory;
mod options;
pub mod plugins;
mod progress;
pub mod queries;
mod records;
mod removal;
mod teardown;
mod timing;
mod ttl_cache;
mod uninstall;
mod usage;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use addons::kubernetes_upgrade::{Readiness, with_readiness};
use addons::{self, Progress};
use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::cluster_plugin::ClusterPlugin;
use crds::conditions::reason;
use crds::names;
use kube::ResourceExt;
use serde_json::json;

use super::reconcile::{Controller, ReconcileResult, is_watched};
use crate::context::Context;
use crate::management::{Cached, Error, Event};
use crate::object_name::ObjectName;
use crate::system::now;
use crate::workload::Workload;
use fleet::FleetUpgrades;
pub use install::ComparedAddOn;
use memory::Memories;
use timing::{BLOCKED, TIMEOUT};
use ttl_cache::TtlCache;

/// The add-on controller: the plugin host, clients of workload clusters, and what is cached and remembered
/// between reconciliations.
pub struct AddOns {
    context: Context,
    plugins: Arc<plugins::Plugins>,
    workload: Workload,
    checks: check::Checks,
    fact_cache: facts::FactCache,
    memories: Memories,
    fleet: FleetUpgrades,
    /// Labels of namespaces of the management cluster.
    namespaces: TtlCache<Result<BTreeMap<String, String>, String>>,
}

/// How long labels of a namespace are cached.
const LABELS_TTL: Duration = Duration::from_secs(30);

impl Controller for AddOns {
    const NAME: &'static str = "clusterplugin";
    const TIMEOUT: Duration = TIMEOUT;

    fn context(&self) -> &Context {
        &self.context
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<ReconcileResult, Error> {
        self.remove_orphaned_finalizer(name).await?;
        let Some(object) = self.context.management.get::<ClusterPlugin>(name) else {
            self.memories.evict(name);
            self.fleet.evict(name);
            return Ok(ReconcileResult::Settled);
        };
        let cluster_name = name.sibling(&object.spec.cluster_name);
        let cluster = self.context.management.get::<Cluster>(&cluster_name);
        if !is_watched(&self.context, &object) && !self.is_cluster_watched(&cluster_name) {
            return Ok(ReconcileResult::Settled);
        }
        if object.annotations().contains_key(names::DELETE_FOR_MOVE_ANNOTATION) {
            return Ok(ReconcileResult::Settled);
        }
        if self.context.management.is_paused(&object) {
            if let Some(cluster) = cluster.filter(|it| !self.context.management.is_paused(it)) {
                if cluster.is_deleting() {
                    self.context.management.publish_event(&cluster, held_by_pause(name));
                } else if self.first_other(&object).is_none() {
                    // While it is paused, nobody says whether the add-ons are ready for an upgrade.
                    self.set_hold(&cluster, false).await?;
                }
            }
            return Ok(ReconcileResult::Settled);
        }
        if object.is_deleting() && !object.has_finalizer(names::PLUGIN_FINALIZER) {
            return Ok(ReconcileResult::Settled);
        }
        if let Some(first) = self.first_other(&object) {
            if object.has_finalizer(names::PLUGIN_FINALIZER)
                && (object.is_deleting() || cluster.is_none_or(|it| it.is_deleting()))
            {
                // The other one manages the add-ons.
                self.context.management.remove_finalizer(&object, names::PLUGIN_FINALIZER).await?;
                return Ok(ReconcileResult::Settled);
            }
            let message = format!(
                "ClusterPlugin {first} already names this Cluster; there can be only one: delete one of them"
            );
            self.patch_status(&object, &[], Some((reason::DUPLICATE, &message))).await?;
            return Ok(ReconcileResult::RequeueAfter(BLOCKED));
        }
        match cluster {
            None if object.is_deleting() => {
                self.context.management.remove_finalizer(&object, names::PLUGIN_FINALIZER).await?;
                self.evict_cluster(name, &cluster_name);
                Ok(ReconcileResult::Settled)
            }
            None => {
                let message = format!("for Cluster {} to exist", object.spec.cluster_name);
                self.patch_status(&object, &[], Some((reason::WAITING_FOR_CLUSTER, &message))).await?;
                Ok(ReconcileResult::Settled)
            }
            Some(cluster) if cluster.is_deleting() => self.tear_down(object, cluster).await,
            Some(cluster) if object.is_deleting() => self.detach_from_living_cluster(object, cluster).await,
            Some(cluster) => {
                let object = self.adopt(object, &cluster).await?;
                self.install(object, cluster).await
            }
        }
    }
}

impl AddOns {
    pub fn new(context: Context, plugins: Arc<plugins::Plugins>) -> Self {
        let workload = Workload::new(context.metrics.workload_requests(), context.api_server_ranges.clone());
        let workload = if context.management.is_read_only() { workload.read_only() } else { workload };
        let (checks, fact_cache) = (check::Checks::default(), facts::FactCache::default());
        let fleet = FleetUpgrades::new(context.max_concurrent_upgrades);
        let (memories, namespaces) = (Memories::default(), TtlCache::with_ttl(LABELS_TTL));
        Self { context, plugins, workload, checks, fact_cache, memories, fleet, namespaces }
    }

    /// The finalizers that hold back the machines of a deleted cluster until its load balancers are gone, and
    /// the owner that makes the ClusterPlugin move and go with its Cluster.
    async fn adopt(
        &self,
        object: Arc<Cached<ClusterPlugin>>,
        cluster: &Arc<Cached<Cluster>>,
    ) -> Result<Arc<Cached<ClusterPlugin>>, Error> {
        self.context.management.add_finalizer(cluster, names::PLUGIN_FINALIZER).await?;
        let object = self.context.management.add_finalizer(&object, names::PLUGIN_FINALIZER).await?;
        let uid = cluster.uid().unwrap_or_default();
        if object.owner_references().iter().any(|it| it.uid == uid) {
            return Ok(object);
        }
        let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "name": cluster.name_any(), "uid": uid});
        let mut owners: Vec<_> = object
            .owner_references()
            .iter()
            .filter(|it| it.kind != "Cluster")
            .map(|owner| json!(owner))
            .collect();
        owners.push(owner);
        self.context
            .management
            .patch_unchanged(&object, json!({"metadata": {"ownerReferences": owners}}))
            .await
    }

    /// Takes our finalizer off a deleted Cluster of this name whose ClusterPlugin went without doing so: when
    /// it was deleted before it had a finalizer itself, for example.
    async fn remove_orphaned_finalizer(&self, name: &ObjectName) -> Result<(), Error> {
        let management = &self.context.management;
        let Some(cluster) = management.get::<Cluster>(name) else { return Ok(()) };
        if !cluster.is_deleting()
            || !cluster.has_finalizer(names::PLUGIN_FINALIZER)
            || management.is_paused(&cluster)
        {
            return Ok(());
        }
        if !is_watched(&self.context, &cluster) && !self.is_cluster_watched(name) {
            return Ok(());
        }
        let is_managed = |plugin: &Cached<ClusterPlugin>| {
            !plugin.is_deleting() || plugin.has_finalizer(names::PLUGIN_FINALIZER)
        };
        let unreadable = management
            .unreadable::<ClusterPlugin>()
            .into_iter()
            .any(|(it, _)| it.namespace == name.namespace);
        if unreadable || management.of_cluster::<ClusterPlugin>(name).iter().any(|it| is_managed(it)) {
            return Ok(());
        }
        management.remove_finalizer(&cluster, names::PLUGIN_FINALIZER).await.map(drop)
    }

    /// Whether the infrastructure of a Cluster is managed here, and so its add-ons are.
    fn is_cluster_watched(&self, cluster: &ObjectName) -> bool {
        self.context
            .management
            .of_cluster::<AWSCluster>(cluster)
            .iter()
            .any(|it| is_watched(&self.context, it))
    }

    /// Whether it is paused by now.
    fn is_paused(&self, name: &ObjectName) -> bool {
        let management = &self.context.management;
        management.get::<ClusterPlugin>(name).is_some_and(|it| management.is_paused(&it))
    }

    /// The ClusterPlugin that counts for a Cluster.
    pub fn plugin_of(&self, cluster: &ObjectName) -> Option<Arc<Cached<ClusterPlugin>>> {
        let all = self.context.management.of_cluster::<ClusterPlugin>(cluster);
        all.into_iter().find(|it| self.first_other(it).is_none())
    }

    /// The ClusterPlugin of the same Cluster that comes first: one that was taken up already, or else the
    /// oldest.
    fn first_other(&self, object: &Cached<ClusterPlugin>) -> Option<String> {
        let age = |plugin: &Cached<ClusterPlugin>| {
            let created = plugin.creation_timestamp().map(|it| it.0);
            (!plugin.has_finalizer(names::PLUGIN_FINALIZER), created, plugin.name_any())
        };
        let all = self.context.management.list::<ClusterPlugin>();
        let same = all.iter().filter(|it| {
            it.namespace() == object.namespace() && it.spec.cluster_name == object.spec.cluster_name
        });
        same.filter(|it| age(it) < age(object)).min_by_key(|it| age(it)).map(|it| it.name_any())
    }

    async fn patch_status(
        &self,
        object: &Arc<Cached<ClusterPlugin>>,
        progress: &[Progress],
        all: Option<(&str, &str)>,
    ) -> Result<(), Error> {
        self.patch_status_with(object, progress, all, None).await
    }

    /// With what is said of upgrades of Kubernetes.
    async fn patch_status_with(
        &self,
        object: &Arc<Cached<ClusterPlugin>>,
        progress: &[Progress],
        all: Option<(&str, &str)>,
        readiness: Option<&Readiness>,
    ) -> Result<(), Error> {
        let previous = object.status.clone().unwrap_or_default();
        let (generation, now) = (object.metadata.generation, now());
        let status = addons::status(&previous, generation, now, progress, all);
        let status = with_readiness(status, readiness, generation, now);
        self.context.management.patch_status(object, &status).await?;
        Ok(())
    }

    /// The labels of a namespace of the management cluster; or why they are not known.
    async fn namespace_labels(&self, namespace: &str) -> Result<BTreeMap<String, String>, String> {
        let read = async {
            let labels = self.context.management.namespace_labels(namespace).await;
            labels.map(Option::unwrap_or_default).map_err(|error| error.told().to_string())
        };
        self.namespaces.get_or_read(namespace.to_owned(), Result::is_ok, read).await.0
    }

    /// Neither the ClusterPlugin nor the client of its cluster is needed any more.
    fn evict_cluster(&self, name: &ObjectName, cluster: &ObjectName) {
        self.workload.evict(&cluster.namespace, &cluster.name);
        self.memories.evict(name);
        self.fleet.evict(name);
    }
}

fn held_by_pause(name: &ObjectName) -> Event {
    let message = format!(
        "ClusterPlugin {} is paused, and the machines wait until it has removed the add-ons: end its pause",
        name.name
    );
    Event { warning: true, reason: "TeardownPaused".into(), action: "Teardown".into(), message }
}
