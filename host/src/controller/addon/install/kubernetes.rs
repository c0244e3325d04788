//! Upgrades of Kubernetes: asks each add-on whether it supports the version that is wanted, and holds the upgrade of
//! a Cluster of a ClusterClass until all do. What follows is decided in `addons::kubernetes_upgrade`.

use std::sync::Arc;

use addons::kubernetes_upgrade::{Readiness, Support, has_hold};
use addons::{DesiredAddOn, Inventory, upgrade};
use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::names::UPGRADE_HOOK_ANNOTATION;
use serde_json::json;

use super::Installation;
use super::plan::PlannedAddOn;
use super::service::Service;
use crate::controller::addon::AddOns;
use crate::controller::addon::plugins::{LoadedPlugin, Verdict};
use crate::controller::reconcile::is_ours;
use crate::management::{Cached, Error};

impl Installation<'_> {
    /// Whether an add-on supports the version of Kubernetes that the cluster is to have. `now` is what its plugin
    /// answered for the one that runs.
    pub(super) async fn support(
        &self,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        service: &Service,
        now: &Verdict,
    ) -> Support {
        let answer = match (service.serving(), self.upgrade.wanted()) {
            (_, None) => support(now),
            (Some(serving), Some(version)) => {
                support(&self.ask_for(serving, desired, installed, Some(&version)).await)
            }
            (None, Some(version)) => match now {
                Verdict::Left(_) => Support::Unsupported {
                    why: format!(
                        "it is left as it is, so that nobody can tell whether it supports Kubernetes {version}"
                    ),
                    upgrade: None,
                },
                _ => support(now),
            },
        };
        match answer {
            Support::Unsupported { why, .. } => {
                Support::Unsupported { why, upgrade: self.upgrade_for(desired, installed, service).await }
            }
            answer => answer,
        }
    }

    /// How an add-on is upgraded to what this operator brings, if that is another component and supports the version
    /// that is wanted.
    async fn upgrade_for(
        &self,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        service: &Service,
    ) -> Option<String> {
        let (installed, brought) = (installed?, service.brought());
        if installed.digest == brought.component.digest {
            return None;
        }
        let wanted = self.upgrade.wanted();
        let verdict = self.ask_for(brought, desired, Some(installed), wanted.as_deref()).await;
        let is_pinned = desired.version.is_some();
        (support(&verdict) == Support::Supported)
            .then(|| upgrade::how_to(desired.module, installed, &brought.component, is_pinned))
    }

    /// What a plugin answers for a version of Kubernetes; without one, for what runs.
    async fn ask_for(
        &self,
        plugin: &LoadedPlugin,
        desired: &DesiredAddOn,
        installed: Option<&Inventory>,
        version: Option<&str>,
    ) -> Verdict {
        self.controller.plugins.ask_for(plugin, desired, &self.facts, Ok(installed), version).await
    }

    /// What is said of the version that the cluster is to have.
    pub(super) fn readiness(&self, add_ons: &[PlannedAddOn]) -> Readiness {
        let said: Vec<_> = add_ons.iter().map(|it| (it.desired.module, &it.support)).collect();
        self.upgrade.readiness(&said)
    }

    /// Holds upgrades of a Cluster of a ClusterClass, or lets the one begin that its add-ons are ready for.
    pub(super) async fn hold(&self, readiness: &Readiness, has_add_ons: bool) -> Result<(), Error> {
        let is_held = self.upgrade.is_held(readiness, has_add_ons);
        self.controller.set_hold(&self.objects.cluster, is_held).await
    }
}

impl AddOns {
    /// Keeps Cluster API from beginning upgrades of a Cluster, or does so no longer.
    pub(in crate::controller::addon) async fn set_hold(
        &self,
        cluster: &Arc<Cached<Cluster>>,
        is_held: bool,
    ) -> Result<(), Error> {
        let management = &self.context.management;
        let infrastructure = management.of_cluster::<AWSCluster>(&cluster.object_name());
        if has_hold(cluster) == is_held
            || management.is_paused(cluster)
            || !infrastructure.iter().any(|it| is_ours(&self.context, it))
        {
            return Ok(());
        }
        let value = if is_held { json!("KubernetesUpgradeReady") } else { json!(null) };
        let patch = json!({"metadata": {"annotations": {UPGRADE_HOOK_ANNOTATION: value}}});
        management.patch(cluster, patch).await.map(drop)
    }
}

/// What an answer says of the version that it was given for.
fn support(verdict: &Verdict) -> Support {
    match verdict {
        Verdict::Plan(..) => Support::Supported,
        Verdict::Unsupported(why) => Support::Unsupported { why: why.clone(), upgrade: None },
        Verdict::Pending(why) | Verdict::Left(why) => Support::Unknown(why.clone()),
        Verdict::Refused(reason, why) => Support::Unknown(format!("{reason}: {why}")),
    }
}
