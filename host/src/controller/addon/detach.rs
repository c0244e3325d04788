//! The deletion of a ClusterPlugin whose cluster lives on: what the cluster can be without is uninstalled,
//! and the rest is managed no longer.

use std::sync::Arc;

use addons::{Api, STORED_RULES_ANNOTATION, can_be_uninstalled, stored_rules_text};
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::{ClusterPlugin, OnPluginDelete, PluginPhase};
use crds::{AWSCluster, conditions::reason, names};
use kube::ResourceExt;
use serde_json::json;

use super::AddOns;
use super::facts::cluster_state;
use super::records::rules_of;
use super::timing::{BLOCKED, patience};
use super::uninstall::uniform_progress;
use crate::controller::reconcile::{ReconcileResult, is_ours};
use crate::management::{Cached, Error, Event};
use crate::object_name::ObjectName;
use crate::rules::{RequestedRules, add_on_rules};

impl AddOns {
    /// The ClusterPlugin is deleted and the cluster lives on: storage and ingress are uninstalled when
    /// nothing uses them, and what the cluster cannot be without stays, as it is, without this object.
    pub(super) async fn detach_from_living_cluster(
        &self,
        object: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Result<ReconcileResult, Error> {
        let name = cluster.object_name();
        let (api, workload) = self.connect(&name).await?;
        let control_plane =
            self.context.management.of_cluster::<KubeadmControlPlane>(&name).into_iter().next();
        let initialized =
            api == Api::Answers || cluster_state(&cluster, control_plane.as_deref()).initialized;
        let records = self.records(&object, workload.as_deref(), initialized).await?;
        let forced = object.annotations().contains_key(names::FORCE_DELETE_ANNOTATION);
        if forced || object.spec.deletion.on_plugin_delete == OnPluginDelete::Keep {
            let rules = records.rules_of_all().or_else(|| self.context.rules.get(&name));
            let why =
                if forced { names::FORCE_DELETE_ANNOTATION } else { "spec.deletion.onPluginDelete: Keep" };
            return self
                .detach(&object, &cluster, rules, Some(format!("add-ons stay installed as they are ({why})")))
                .await;
        }
        if let Some(unknown) = records.unknown() {
            let why = match &api {
                Api::Unreachable(why) => why,
                Api::NoKubeconfig => "there is no kubeconfig Secret",
                Api::Answers => unknown,
            };
            let message = format!(
                "to know what is installed: {why}; set spec.deletion.onPluginDelete to Keep to leave \
                 everything as it is"
            );
            self.patch_status(
                &object,
                &uniform_progress(&object, PluginPhase::Deleting, &message),
                Some((reason::UNREACHABLE, &message)),
            )
            .await?;
            return Ok(ReconcileResult::RequeueAfter(BLOCKED));
        }
        let left = self.uninstall_unwanted(&object, workload.as_deref(), &records, None).await;
        if left.iter().any(|it| can_be_uninstalled(it.slot)) {
            self.patch_status(&object, &left, None).await?;
            let is_moving = left.iter().any(|it| it.phase == PluginPhase::Deleting);
            let unchanged = self.memories.unchanged_for(&object.object_name(), left);
            return Ok(ReconcileResult::RequeueAfter(if is_moving { patience(unchanged) } else { BLOCKED }));
        }
        let kept: Vec<&str> = left.iter().map(|it| it.message.as_str()).collect();
        let kept = (!kept.is_empty()).then(|| kept.join("; "));
        // The records were read before add-ons were uninstalled: only rules of what stays count.
        let stays = |it: &&addons::Inventory| it.slot().is_none_or(|slot| !can_be_uninstalled(slot));
        let rules = records.all().map(|all| rules_of(all.iter().filter(stays)));
        self.detach(&object, &cluster, rules, kept).await
    }

    /// Manages a cluster's add-ons no longer. Rules of what stays are kept by the AWSCluster, which asks
    /// nobody else from then on.
    async fn detach(
        &self,
        object: &Arc<Cached<ClusterPlugin>>,
        cluster: &Arc<Cached<Cluster>>,
        rules: Option<RequestedRules>,
        kept: Option<String>,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        if !self.store_rules(&cluster.object_name(), rules).await? {
            let message = "the AWSCluster is paused: security-group rules of add-ons that stay cannot be \
                           written down there";
            self.patch_status(
                object,
                &uniform_progress(object, PluginPhase::Deleting, message),
                Some((reason::PAUSED, message)),
            )
            .await?;
            return Ok(ReconcileResult::RequeueAfter(BLOCKED));
        }
        self.set_hold(cluster, false).await?;
        management.remove_finalizer(cluster, names::PLUGIN_FINALIZER).await?;
        management.remove_finalizer(object, names::PLUGIN_FINALIZER).await?;
        if let Some(message) = kept {
            let event =
                Event { warning: false, reason: "AddOnsKept".into(), action: "Uninstall".into(), message };
            management.publish_event(object, event.clone());
            management.publish_event(cluster, event);
        }
        self.evict_cluster(&object.object_name(), &cluster.object_name());
        Ok(ReconcileResult::Settled)
    }

    /// Writes down on the AWSCluster which rules its groups keep; `rules` is `None` when that is not known,
    /// and then none is revoked. `false`: nothing may be written there now.
    async fn store_rules(&self, cluster: &ObjectName, rules: Option<RequestedRules>) -> Result<bool, Error> {
        let management = &self.context.management;
        let aws_cluster = management.of_cluster::<AWSCluster>(cluster).into_iter().next();
        if let Some(aws_cluster) = aws_cluster.filter(|it| is_ours(&self.context, it)) {
            let list = rules.as_ref().map(add_on_rules);
            let text = stored_rules_text(list.as_deref());
            if aws_cluster.annotations().get(STORED_RULES_ANNOTATION) != text.as_ref() {
                if management.is_paused(&aws_cluster) {
                    return Ok(false);
                }
                management
                    .patch(
                        &aws_cluster,
                        json!({"metadata": {"annotations": {STORED_RULES_ANNOTATION: text}}}),
                    )
                    .await?;
            }
        }
        self.context.rules.set(cluster, rules);
        Ok(true)
    }
}
