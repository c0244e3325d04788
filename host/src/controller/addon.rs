//! Drives the add-ons of one cluster: read the ClusterPlugin and its Cluster -> ask the plugins -> judge ->
//! carry out steps -> say. It decides nothing itself: stages, order, pruning, teardown and status are
//! `addons`'s, what may be asked for is `addons::grant`'s.

mod apply;
pub mod ask;
#[cfg(test)]
mod attacks;
mod certificate;
mod check;
mod drift;
mod execute;
mod install;
mod late;
mod leave;
mod proof;
mod remember;
mod seen;
mod teardown;
mod told;
mod trouble;
mod turns;
mod uninstall;
mod webhooks;
mod whole;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use addons::{self, Progress};
use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::cluster_plugin::ClusterPlugin;
use crds::conditions::reason;
use crds::names;
use kube::ResourceExt;
use serde_json::json;
use tokio::time::Instant;

use super::reconcile::{Controller, Memory, ReconcileResult, is_watched};
use crate::context::{Context, ObjectName};
use crate::management::{Cached, Error, Note};
use crate::workload::Workload;

pub use uninstall::requested;

/// How soon to look again while a workload cluster is awaited: its API is not watched.
const SOON: Duration = Duration::from_secs(2);
/// How soon when nothing has changed for a while.
const PATIENT: Duration = Duration::from_secs(10);
/// How often to look whether what is installed still works.
const SETTLED: Duration = Duration::from_secs(600);
/// How soon to look again when somebody has to act.
const BLOCKED: Duration = Duration::from_secs(60);
/// How long one look may take. Steps may be repeated, so that what was cut off is done again.
const LOOK: Duration = Duration::from_secs(300);
/// After how long no further request of a look begins: what was done by then is remembered and said.
const ENOUGH: Duration = Duration::from_secs(120);

/// What the add-on controller keeps between looks: the plugin host, clients of workload clusters, and steps
/// carried out so far.
pub struct AddOns {
    context: Context,
    plugins: ask::Plugins,
    workload: Workload,
    checks: check::Checks,
    readings: told::Readings,
    /// By ClusterPlugin and module: the plan's hash and the steps of it that are done. Lost at a restart,
    /// after which steps are carried out once more: they may be repeated.
    done: Mutex<HashMap<(ObjectName, String), (String, BTreeSet<String>)>>,
    /// What looks at a ClusterPlugin have found since.
    found: Memory<Option<(Vec<Progress>, Instant)>>,
    whole: whole::Whole,
    late: late::Late,
    drifts: drift::Drifts,
}

impl Controller for AddOns {
    const NAME: &'static str = "clusterplugin";
    const TIMEOUT: Duration = LOOK;

    fn context(&self) -> &Context {
        &self.context
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<ReconcileResult, Error> {
        self.let_orphan_go(name).await?;
        let Some(object) = self.context.management.get::<ClusterPlugin>(name) else {
            // What comes back under this name is another one.
            self.forget(name);
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
            if let Some(cluster) =
                cluster.filter(|it| it.is_deleting() && !self.context.management.is_paused(it))
            {
                self.context.management.note(&cluster, held_by_pause(name));
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
                // The other one sees to the add-ons.
                self.context.management.remove_finalizer(&object, names::PLUGIN_FINALIZER).await?;
                return Ok(ReconcileResult::Settled);
            }
            let message = format!(
                "ClusterPlugin {first} already names this Cluster; there can be only one: delete one of them"
            );
            self.say(&object, &[], Some((reason::DUPLICATE, &message))).await?;
            return Ok(ReconcileResult::RequeueAfter(BLOCKED));
        }
        match cluster {
            None if object.is_deleting() => {
                self.context.management.remove_finalizer(&object, names::PLUGIN_FINALIZER).await?;
                self.forget_cluster(name, &cluster_name);
                Ok(ReconcileResult::Settled)
            }
            None => {
                let message = format!("for Cluster {} to exist", object.spec.cluster_name);
                self.say(&object, &[], Some((reason::WAITING_FOR_CLUSTER, &message))).await?;
                Ok(ReconcileResult::Settled)
            }
            Some(cluster) if cluster.is_deleting() => self.leave_with_cluster(object, cluster).await,
            Some(cluster) if object.is_deleting() => self.leave_alone(object, cluster).await,
            Some(cluster) => {
                let object = self.adopt(object, &cluster).await?;
                self.install(object, cluster).await
            }
        }
    }
}

impl AddOns {
    /// # Errors
    /// The plugins that come with this program cannot be loaded.
    pub fn new(context: Context) -> anyhow::Result<Self> {
        let workload = Workload::new(context.metrics.workload_requests(), context.api_server_ranges.clone());
        let plugins = ask::Plugins::load(context.metrics.plugin_calls(), context.plugin_cache.as_deref())?;
        let (checks, readings) = (check::Checks::default(), told::Readings::default());
        let (done, found, whole, late) =
            (Mutex::default(), Memory::default(), whole::Whole::default(), late::Late::default());
        let drifts = drift::Drifts::default();
        Ok(Self { context, plugins, workload, checks, readings, done, found, whole, late, drifts })
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
        let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": cluster.name_any(), "uid": uid});
        let mut owners: Vec<_> =
            object.owner_references().iter().filter(|it| it.kind != "Cluster").map(|it| json!(it)).collect();
        owners.push(owner);
        self.context
            .management
            .patch_unchanged(&object, json!({"metadata": {"ownerReferences": owners}}))
            .await
    }

    /// Takes our finalizer off a deleted Cluster of this name whose ClusterPlugin went without doing so: when
    /// it was deleted before it had a finalizer itself, for example.
    async fn let_orphan_go(&self, name: &ObjectName) -> Result<(), Error> {
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
        let seen_to =
            |it: &Cached<ClusterPlugin>| !it.is_deleting() || it.has_finalizer(names::PLUGIN_FINALIZER);
        let unreadable = management
            .unreadable::<ClusterPlugin>()
            .into_iter()
            .any(|(it, _)| it.namespace == name.namespace);
        if unreadable || management.of_cluster::<ClusterPlugin>(name).iter().any(|it| seen_to(it)) {
            return Ok(());
        }
        management.remove_finalizer(&cluster, names::PLUGIN_FINALIZER).await.map(drop)
    }

    /// Whether the infrastructure of a Cluster is looked after here, and so its add-ons are.
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

    /// The ClusterPlugin of the same Cluster that comes first: one that was taken up already, or else the
    /// oldest.
    fn first_other(&self, object: &Cached<ClusterPlugin>) -> Option<String> {
        let age = |it: &Cached<ClusterPlugin>| {
            (
                !it.has_finalizer(names::PLUGIN_FINALIZER),
                it.creation_timestamp().map(|it| it.0),
                it.name_any(),
            )
        };
        let all = self.context.management.list::<ClusterPlugin>();
        let same = all.iter().filter(|it| {
            it.namespace() == object.namespace() && it.spec.cluster_name == object.spec.cluster_name
        });
        same.filter(|it| age(it) < age(object)).min_by_key(|it| age(it)).map(|it| it.name_any())
    }

    async fn say(
        &self,
        object: &Arc<Cached<ClusterPlugin>>,
        progress: &[Progress],
        all: Option<(&str, &str)>,
    ) -> Result<(), Error> {
        let previous = object.status.clone().unwrap_or_default();
        let status = addons::status(&previous, object.metadata.generation, now(), progress, all);
        self.context.management.say(object, &status).await?;
        Ok(())
    }

    fn forget_cluster(&self, name: &ObjectName, cluster: &ObjectName) {
        self.workload.forget(&cluster.namespace, &cluster.name);
        self.forget(name);
    }

    fn forget(&self, name: &ObjectName) {
        drop(self.found.take(name));
        self.late.forget(name);
        self.whole.forget(name);
        self.drifts.forget(name);
        self.done.lock().unwrap_or_else(PoisonError::into_inner).retain(|(object, _), _| object != name);
    }

    /// How long looks at it have found the same.
    fn unchanged(&self, name: &ObjectName, progress: Vec<Progress>) -> Duration {
        let since = self
            .found
            .take(name)
            .filter(|(before, _)| *before == progress)
            .map_or_else(Instant::now, |(_, since)| since);
        self.found.put(name, Some((progress, since)));
        since.elapsed()
    }

    /// The steps of this plan that were carried out since this process began.
    fn done(&self, name: &ObjectName, module: &str, plan_hash: &str) -> BTreeSet<String> {
        let all = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&(name.clone(), module.to_owned()))
            .filter(|(hash, _)| hash == plan_hash)
            .map(|(_, done)| done.clone())
            .unwrap_or_default()
    }

    fn set_done(&self, name: &ObjectName, module: &str, plan_hash: &str, done: BTreeSet<String>) {
        let mut all = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert((name.clone(), module.to_owned()), (plan_hash.to_owned(), done));
    }
}

fn held_by_pause(name: &ObjectName) -> Note {
    let message = format!(
        "ClusterPlugin {} is paused, and the machines wait until it has removed the add-ons: end its pause",
        name.name
    );
    Note { warning: true, reason: "TeardownPaused".into(), action: "Teardown".into(), message }
}

/// Seconds since 1970.
fn now() -> model::Timestamp {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map(|it| it.as_secs_f64())
        .unwrap_or_default()
}
