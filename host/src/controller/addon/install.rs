//! Installs and maintains the add-ons of a cluster that lives, in three steps: their plugins are asked for
//! plans, each plan is rolled out as far as it comes, and what is not asked for any more is uninstalled.

mod advance;
mod approve;
mod begin;
mod bounded;
mod compare;
mod kubernetes;
mod plan;
mod registered;
mod rollout;
mod service;

use std::sync::Arc;

use addons::kubernetes_upgrade::KubernetesUpgrade;
use addons::{Api, ClusterState};
use crds::AWSCluster;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::ClusterPlugin;
use tokio::time::Instant;

use super::AddOns;
use super::facts::{ClusterFacts, RequestedFacts, cluster_state};
use super::memory::AddOnMemory;
use super::queries::Queries;
use super::records::Records;
use super::timing::{BUDGET, requeue};
use crate::controller::reconcile::ReconcileResult;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;
use crate::workload::WorkloadCluster;

pub use compare::ComparedAddOn;

/// The objects of the management cluster that decide about a cluster's add-ons.
struct Objects {
    plugin: Arc<Cached<ClusterPlugin>>,
    cluster: Arc<Cached<Cluster>>,
    control_plane: Option<Arc<Cached<KubeadmControlPlane>>>,
    aws_cluster: Option<Arc<Cached<AWSCluster>>>,
}

/// One reconciliation of a cluster's add-ons: where and in what they are installed.
struct Installation<'a> {
    controller: &'a AddOns,
    objects: &'a Objects,
    plugin_name: ObjectName,
    cluster_name: ObjectName,
    state: ClusterState,
    api: Api,
    /// `None` when it does not answer, or its records could not be read.
    workload: Option<Arc<WorkloadCluster>>,
    records: Records,
    facts: ClusterFacts<'a>,
    /// The version of Kubernetes that the cluster is to have.
    upgrade: KubernetesUpgrade,
    region: Option<aws::Region>,
    /// After this nothing more is begun.
    until: Instant,
    /// When something is checked again at the latest.
    next: Option<Instant>,
}

impl AddOns {
    /// Installs what is asked for, maintains what is installed, and uninstalls the rest.
    pub(super) async fn install(
        &self,
        object: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Result<ReconcileResult, Error> {
        let objects = Objects::read(self, object, cluster);
        let mut installation = Installation::read(self, &objects).await?;
        let add_ons = installation.plan().await;
        installation.remove_used_consent().await?;
        let readiness = installation.readiness(&add_ons);
        installation.hold(&readiness, !add_ons.is_empty()).await?;
        let Some(mut progress) = installation.advance(&add_ons).await else {
            return Ok(ReconcileResult::Settled);
        };
        let Installation { workload, records, plugin_name, state, next, .. } = installation;
        let desired = addons::desired(&objects.plugin.spec);
        progress.extend(
            self.uninstall_unwanted(&objects.plugin, workload.as_deref(), &records, Some(&desired)).await,
        );
        self.patch_status_with(&objects.plugin, &progress, None, Some(&readiness)).await?;
        let unchanged = self.memories.unchanged_for(&plugin_name, progress.clone());
        Ok(requeue(&progress, &state, unchanged, next))
    }
}

impl Objects {
    fn read(
        controller: &AddOns,
        plugin: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Objects {
        let (management, name) = (&controller.context.management, cluster.object_name());
        let control_plane = management.of_cluster::<KubeadmControlPlane>(&name).into_iter().next();
        let aws_cluster = management.of_cluster::<AWSCluster>(&name).into_iter().next();
        Objects { plugin, cluster, control_plane, aws_cluster }
    }
}

impl<'a> Installation<'a> {
    /// Reads how far the cluster is, and what is installed in it.
    async fn read(controller: &'a AddOns, objects: &'a Objects) -> Result<Installation<'a>, Error> {
        let (until, cluster_name) = (Instant::now() + BUDGET, objects.cluster.object_name());
        let state = cluster_state(&objects.cluster, objects.control_plane.as_deref());
        let (api, workload) = if state.initialized {
            // Reading the records tells whether it answers.
            controller.client(&cluster_name).await?
        } else {
            (Api::Unreachable("the control plane is not initialized".into()), None)
        };
        let records = controller.records(&objects.plugin, workload.as_deref(), state.initialized).await?;
        let aws_cluster = objects.aws_cluster.as_ref();
        let control_plane = objects.control_plane.as_deref().map(|it| &**it);
        let running = controller.running_versions(&cluster_name, control_plane);
        let upgrade = KubernetesUpgrade::of(&objects.cluster, control_plane, running.api_server.as_ref());
        let workload = workload.filter(|_| records.unknown().is_none());
        let installed = records.all().ok_or_else(|| records.unknown().unwrap_or_default());
        let queries = Queries::of(workload.clone(), installed, until);
        Ok(Installation {
            controller,
            objects,
            plugin_name: objects.plugin.object_name(),
            cluster_name,
            state: ClusterState { kubeconfig: api != Api::NoKubeconfig, ..state },
            api,
            workload,
            records,
            facts: ClusterFacts {
                cluster: &objects.cluster,
                control_plane,
                aws_cluster: aws_cluster.map(|it| &***it),
                requested: RequestedFacts::new(),
                profiles: Err("AWS was not read yet".to_owned()),
                queries,
            },
            upgrade,
            region: aws_cluster.map(|it| controller.context.aws.region(&it.spec.region)),
            until,
            next: None,
        })
    }

    /// What is remembered of one add-on.
    fn memory<'b>(&'b self, module: &'b str) -> AddOnMemory<'b> {
        self.controller.memories.of(&self.plugin_name, module)
    }
}
