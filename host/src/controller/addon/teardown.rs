//! How add-ons leave with their cluster: what has load balancers first, then volumes as far as they are to
//! go, then the add-ons, and then the machines are let go. What comes next is `addons`'s to say.

use std::sync::Arc;

use addons::{self, Api, LoadBalancers, ObjectRef, Teardown, TeardownSeen, VolumeWork, awaited, teardown};
use crds::AWSCluster;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::{ClusterPlugin, PluginPhase};
use crds::{conditions::reason, names};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use tokio::time::Instant;

use super::execute::{Awaited, StepProgress};
use super::install::{cluster_state, patience};
use super::leave::leaving;
use super::{AddOns, ENOUGH, now, seen};
use crate::controller::gc::vpc_id;
use crate::controller::reconcile::ReconcileResult;
use crate::management::{Cached, Error, Note};
use crate::workload::{WorkloadCluster, WorkloadError};

impl AddOns {
    /// One step of the teardown of a cluster that is being deleted.
    pub(super) async fn leave_with_cluster(
        &self,
        object: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Result<ReconcileResult, Error> {
        let name = cluster.object_name();
        if !object.has_finalizer(names::PLUGIN_FINALIZER) {
            self.context.management.remove_finalizer(&cluster, names::PLUGIN_FINALIZER).await?;
            self.forget_cluster(&object.object_name(), &name);
            return Ok(ReconcileResult::Settled);
        }
        let (api, workload) = match is_forced(&object, &cluster) {
            // Whatever it would answer, and however slowly.
            true => (Api::Unreachable("it is not asked".into()), None),
            false => self.reach(&name).await?,
        };
        let seen = self.teardown_seen(&object, &cluster, api, workload.as_deref()).await;
        let message = match (teardown(&seen), workload.as_deref()) {
            (Teardown::Release(skipped), _) => return self.release(&object, &cluster, &seen, skipped).await,
            (Teardown::Wait(message), _) => message,
            (_, None) => "for the API server".into(),
            (Teardown::Delete(objects), Some(workload)) => {
                with(awaited(&seen), delete(workload, &objects).await)
            }
            (Teardown::DeleteVolumes, Some(workload)) => {
                with(awaited(&seen), delete_volumes(workload, &seen.volumes).await)
            }
            (Teardown::Remove(module), Some(workload)) => match self.remove(workload, &object, &module).await
            {
                StepProgress::Out => format!("{module} is removed"),
                StepProgress::Waiting(Awaited { what, .. })
                | StepProgress::Unreachable(what)
                | StepProgress::Refused(_, what) => {
                    format!("removing {module}: {what}")
                }
            },
        };
        let message = with(message, seen.stays());
        let progress = leaving(&object, PluginPhase::Deleting, &message);
        self.say(&object, &progress, Some((reason::DELETING, &message))).await?;
        Ok(ReconcileResult::RequeueAfter(patience(self.unchanged(&object.object_name(), progress))))
    }

    /// Lets the machines go, and tells what was left and why: nobody can ask the cluster afterwards.
    async fn release(
        &self,
        object: &Arc<Cached<ClusterPlugin>>,
        cluster: &Arc<Cached<Cluster>>,
        seen: &TeardownSeen,
        skipped: Option<String>,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        let told = |warning, reason: &str, message: String| {
            let note = Note { warning, reason: reason.into(), action: "Teardown".into(), message };
            management.note(object, note.clone());
            management.note(cluster, note);
        };
        let reason = if seen.is_late() { reason::DELETION_TIMED_OUT } else { reason::DELETED };
        let message = with(skipped.clone().unwrap_or_else(|| "the add-ons are removed".into()), seen.stays());
        self.say(object, &leaving(object, PluginPhase::Deleted, &message), Some((reason, &message))).await?;
        // The ClusterPlugin's goes last: as long as it is there, somebody comes back here. What was just
        // written is a newer version of it.
        management.remove_finalizer(cluster, names::PLUGIN_FINALIZER).await?;
        let object_name = object.object_name();
        if let Some(newest) = management.get::<ClusterPlugin>(&object_name) {
            management.remove_finalizer(&newest, names::PLUGIN_FINALIZER).await?;
        }
        if let Some(message) = skipped {
            told(true, "TeardownSkipped", message);
        }
        if let Some(message) = seen.stays() {
            told(false, "VolumesRetained", message);
        }
        self.forget_cluster(&object_name, &cluster.object_name());
        Ok(ReconcileResult::Settled)
    }

    async fn teardown_seen(
        &self,
        object: &Cached<ClusterPlugin>,
        cluster: &Cached<Cluster>,
        api: Api,
        workload: Option<&WorkloadCluster>,
    ) -> TeardownSeen {
        let mut seen = TeardownSeen {
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
        let Some(workload) = workload.filter(|_| !seen.forced) else { return seen };
        match tokio::time::timeout(ENOUGH, look_around(workload, object, &mut seen)).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => {
                seen.api = Api::Unreachable(error.to_string());
                return seen;
            }
            Err(_) => {
                seen.api = Api::Unreachable(format!(
                    "what is in the cluster could not be read in {} s",
                    ENOUGH.as_secs()
                ));
                return seen;
            }
        }
        if seen.load_balanced.is_empty() && seen.bindings.is_empty() {
            seen.load_balancers = self.load_balancers_of(cluster).await;
        }
        seen
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
async fn look_around(
    workload: &WorkloadCluster,
    object: &Cached<ClusterPlugin>,
    seen: &mut TeardownSeen,
) -> Result<(), WorkloadError> {
    let mut lists = workload.lists();
    let exposure = seen::exposure(&mut lists).await?;
    seen.load_balanced = addons::load_balanced(&exposure);
    seen.bindings = addons::target_group_bindings(&exposure);
    let (installed, broken) = workload.inventories().await?;
    let installed: Vec<_> = installed.into_iter().map(|it| it.inventory).collect();
    seen.installed = addons::removed_with_cluster(&installed);
    seen.unreadable = broken.first().map(|it| format!("{it}; what it recorded was not removed"));
    if seen.is_late() || (seen.load_balanced.is_empty() && seen.bindings.is_empty()) {
        let policy = object.spec.deletion.volumes;
        seen.volumes = addons::volumes(policy, &seen::volumes(&mut lists, policy).await?);
    }
    Ok(())
}

/// Asks for deletions; what is refused now is asked for again at the next look. Says what was refused first.
async fn delete(workload: &WorkloadCluster, objects: &[ObjectRef]) -> Option<String> {
    let mut refused = None;
    let until = Instant::now() + ENOUGH;
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
/// is deleted: a new claim would be a new volume. Says what was refused first.
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
