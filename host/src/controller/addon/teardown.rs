//! The teardown of a cluster's add-ons when it is deleted: what has load balancers goes first, then volumes
//! as far as they are to go, then the add-ons, and then the machines. What comes next is decided in `addons`.

use std::sync::Arc;

use addons::{
    self, Api, LoadBalancers, ObjectRef, ObservedTeardown, Teardown, VolumeWork, awaited, teardown,
};
use contract::Operation;
use crds::AWSCluster;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::{ClusterPlugin, PluginPhase};
use crds::{conditions::reason, names};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use tokio::time::Instant;

use super::facts::cluster_state;
use super::progress::{Awaited, StepProgress};
use super::timing::{BUDGET, patience};
use super::uninstall::uniform_progress;
use super::{AddOns, usage};
use crate::controller::gc::vpc_id;
use crate::controller::reconcile::ReconcileResult;
use crate::management::{Cached, Error, Event};
use crate::system::now;
use crate::workload::{WorkloadCluster, WorkloadError};

impl AddOns {
    /// One step of the teardown of a cluster that is being deleted.
    pub(super) async fn tear_down(
        &self,
        object: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Result<ReconcileResult, Error> {
        let name = cluster.object_name();
        if !object.has_finalizer(names::PLUGIN_FINALIZER) {
            self.context.management.remove_finalizer(&cluster, names::PLUGIN_FINALIZER).await?;
            self.evict_cluster(&object.object_name(), &name);
            return Ok(ReconcileResult::Settled);
        }
        let (api, workload) = if is_forced(&object, &cluster) {
            // Whatever it would answer, and however slowly.
            (Api::Unreachable("it is not asked".into()), None)
        } else {
            self.connect(&name).await?
        };
        let observed = self.observe_teardown(&object, &cluster, api, workload.as_deref()).await;
        let message = match (teardown(&observed), workload.as_deref()) {
            (Teardown::RemoveFinalizer(skipped), _) => {
                return self.finish_teardown(&object, &cluster, &observed, skipped).await;
            }
            (Teardown::Wait(message), _) => message,
            (_, None) => "for the API server".into(),
            (Teardown::Delete(objects), Some(workload)) => {
                with(awaited(&observed), delete(workload, &objects).await)
            }
            (Teardown::DeleteVolumes, Some(workload)) => {
                with(awaited(&observed), delete_volumes(workload, &observed.volumes).await)
            }
            (Teardown::Remove(module), Some(workload)) => {
                match self.uninstall(workload, &object, &module, Operation::DeleteCluster).await {
                    StepProgress::Done => format!("{module} is removed"),
                    StepProgress::Waiting(Awaited { what, .. })
                    | StepProgress::Unreachable(what)
                    | StepProgress::Refused(_, what) => {
                        format!("removing {module}: {what}")
                    }
                }
            }
        };
        let message = with(message, observed.stays());
        let progress = uniform_progress(&object, PluginPhase::Deleting, &message);
        self.patch_status(&object, &progress, Some((reason::DELETING, &message))).await?;
        Ok(ReconcileResult::RequeueAfter(patience(
            self.memories.unchanged_for(&object.object_name(), progress),
        )))
    }

    /// Takes off the finalizer that the machines wait for, and reports what was left and why: nobody can ask
    /// the cluster afterwards.
    async fn finish_teardown(
        &self,
        object: &Arc<Cached<ClusterPlugin>>,
        cluster: &Arc<Cached<Cluster>>,
        observed: &ObservedTeardown,
        skipped: Option<String>,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        let report = |warning, reason: &str, message: String| {
            let event = Event { warning, reason: reason.into(), action: "Teardown".into(), message };
            management.publish_event(object, event.clone());
            management.publish_event(cluster, event);
        };
        let reason = if observed.is_late() { reason::DELETION_TIMED_OUT } else { reason::DELETED };
        let message =
            with(skipped.clone().unwrap_or_else(|| "the add-ons are removed".into()), observed.stays());
        self.patch_status(
            object,
            &uniform_progress(object, PluginPhase::Deleted, &message),
            Some((reason, &message)),
        )
        .await?;
        // The ClusterPlugin's goes last: as long as it is there, somebody comes back here. What was just
        // written is a newer version of it.
        management.remove_finalizer(cluster, names::PLUGIN_FINALIZER).await?;
        let object_name = object.object_name();
        if let Some(newest) = management.get::<ClusterPlugin>(&object_name) {
            management.remove_finalizer(&newest, names::PLUGIN_FINALIZER).await?;
        }
        if let Some(message) = skipped {
            report(true, "TeardownSkipped", message);
        }
        if let Some(message) = observed.stays() {
            report(false, "VolumesRetained", message);
        }
        self.evict_cluster(&object_name, &cluster.object_name());
        Ok(ReconcileResult::Settled)
    }

    async fn observe_teardown(
        &self,
        object: &Cached<ClusterPlugin>,
        cluster: &Cached<Cluster>,
        api: Api,
        workload: Option<&WorkloadCluster>,
    ) -> ObservedTeardown {
        let mut observed = ObservedTeardown {
            began: cluster
                .metadata
                .deletion_timestamp
                .as_ref()
                .map_or_else(now, |it| it.0.as_second() as f64),
            now: now(),
            timeout: object.spec.deletion.timeout.into(),
            forced: is_forced(object, cluster),
            initialized: self.was_initialized(object, cluster),
            api,
            load_balanced: vec![],
            bindings: vec![],
            load_balancers: LoadBalancers::Left(vec![]),
            volumes: VolumeWork::default(),
            installed: vec![],
            unreadable: None,
        };
        let Some(workload) = workload.filter(|_| !observed.forced) else { return observed };
        match tokio::time::timeout(BUDGET, read_cluster(workload, object, &mut observed)).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => {
                observed.api = Api::Unreachable(error.to_string());
                return observed;
            }
            Err(_) => {
                observed.api = Api::Unreachable(format!(
                    "what is in the cluster could not be read in {} s",
                    BUDGET.as_secs()
                ));
                return observed;
            }
        }
        if observed.load_balanced.is_empty() && observed.bindings.is_empty() {
            observed.load_balancers = self.load_balancers_of(cluster).await;
        }
        observed
    }

    fn was_initialized(&self, object: &Cached<ClusterPlugin>, cluster: &Cached<Cluster>) -> bool {
        let control_plane = self
            .context
            .management
            .of_cluster::<KubeadmControlPlane>(&cluster.object_name())
            .into_iter()
            .next();
        let has_begun = object
            .status
            .iter()
            .flat_map(|it| &it.plugins)
            .any(|it| !matches!(it.phase, PluginPhase::Pending | PluginPhase::Failed));
        has_begun || cluster_state(cluster, control_plane.as_deref()).initialized
    }

    /// Load balancers that the cluster's own controllers made, by tag; ours carries another one.
    async fn load_balancers_of(&self, cluster: &Cached<Cluster>) -> LoadBalancers {
        let aws_cluster = self.context.management.of_cluster::<AWSCluster>(&cluster.object_name());
        let place =
            aws_cluster.first().and_then(|it| Some((self.context.aws.region(&it.spec.region), vpc_id(it)?)));
        let Some((region, vpc_id)) = place else { return LoadBalancers::Left(vec![]) };
        match region.load_balancers_of(&cluster.name_any(), &vpc_id).await {
            Ok(left) => LoadBalancers::Left(left),
            Err(it) if it.is_forbidden() => LoadBalancers::Denied(format!("{}: {}", it.code, it.message)),
            Err(it) => LoadBalancers::Unknown(format!("{}: {}", it.code, it.message)),
        }
    }
}

/// Reads what is left in the cluster; volumes only when nothing before them is, or when the time is over and
/// they are only reported.
async fn read_cluster(
    workload: &WorkloadCluster,
    object: &Cached<ClusterPlugin>,
    observed: &mut ObservedTeardown,
) -> Result<(), WorkloadError> {
    let mut lists = workload.lists();
    let exposure = usage::load_balancer_users(&mut lists).await?;
    observed.load_balanced = addons::load_balanced(&exposure);
    observed.bindings = addons::target_group_bindings(&exposure);
    let (installed, broken) = workload.inventories().await?;
    let installed: Vec<_> = installed.into_iter().map(|it| it.inventory).collect();
    observed.installed = addons::removed_with_cluster(&installed);
    observed.unreadable = broken.first().map(|it| format!("{it}; what it recorded was not removed"));
    if observed.is_late() || (observed.load_balanced.is_empty() && observed.bindings.is_empty()) {
        let policy = object.spec.deletion.volumes;
        observed.volumes = addons::volumes(policy, &usage::volumes(&mut lists, policy).await?);
    }
    Ok(())
}

/// Asks for deletions; what is refused now is asked for again next time. Returns what was refused first.
async fn delete(workload: &WorkloadCluster, objects: &[ObjectRef]) -> Option<String> {
    let mut refused = None;
    let until = Instant::now() + BUDGET;
    for object in objects.iter().take_while(|_| Instant::now() < until) {
        let Err(error) = workload.delete(object).await else { continue };
        tracing::info!(%error, "could not be deleted yet");
        refused.get_or_insert_with(|| error.to_string());
        // Each further request would take as long to be given up.
        if matches!(error, WorkloadError::Unreachable(_)) {
            break;
        }
    }
    refused
}

/// First what would make Pods again, then the Pods, then their claims. When the first cannot be done, nothing
/// is deleted: a new claim would be a new volume. Returns what was refused first.
async fn delete_volumes(workload: &WorkloadCluster, work: &VolumeWork) -> Option<String> {
    for (object, patch) in &work.stop {
        if let Err(error) = workload.merge(object, patch).await {
            tracing::info!(%error, "could not be stopped yet");
            return Some(error.to_string());
        }
    }
    delete(workload, &work.delete).await
}

fn is_forced(object: &Cached<ClusterPlugin>, cluster: &Cached<Cluster>) -> bool {
    let annotated = |it: &ObjectMeta| {
        it.annotations.as_ref().is_some_and(|it| it.contains_key(names::FORCE_DELETE_ANNOTATION))
    };
    annotated(&object.metadata) || annotated(&cluster.metadata)
}

fn with(message: String, more: Option<String>) -> String {
    match more {
        Some(more) => format!("{message}; {more}"),
        None => message,
    }
}
