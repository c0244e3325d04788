//! How add-ons leave a cluster that lives on when their ClusterPlugin is deleted, and what every way of
//! leaving has in common: reaching the cluster, and carrying out a removal. What may leave is `addons`'s to
//! say.

use std::collections::BTreeSet;
use std::sync::Arc;

use addons::{
    self, Api, Inventory, KEPT_RULES_ANNOTATION, Progress, Slot, can_leave, kept_rules_text, slot_of, wanted,
};
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::{ClusterPlugin, OnPluginDelete, PluginPhase};
use crds::{AWSCluster, conditions::reason, names};
use kube::ResourceExt;
use serde_json::json;
use tokio::time::Instant;

use super::check::Findings;
use super::drift::Ledger;
use super::execute::{ApplyOptions, StepProgress, execute};
use super::install::{cluster_state, field_manager, patience};
use super::late::LatePlan;
use super::uninstall::add_on_rules;
use super::{AddOns, BLOCKED, ENOUGH};
use crate::context::{ObjectName, RequestedRules};
use crate::controller::reconcile::ReconcileResult;
use crate::controller::reconcile::is_ours;
use crate::management::{Cached, Error, Note};
use crate::workload::WorkloadCluster;
use crate::workload::address::Endpoint;

impl AddOns {
    /// The ClusterPlugin is deleted and the cluster lives on: storage and ingress leave when nothing uses
    /// them, and what the cluster cannot be without stays, as it is, without this object.
    pub(super) async fn leave_alone(
        &self,
        object: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Result<ReconcileResult, Error> {
        let name = cluster.object_name();
        let (api, workload) = self.reach(&name).await?;
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
                .let_go(&object, &cluster, rules, Some(format!("add-ons stay installed as they are ({why})")))
                .await;
        }
        if let Some(unknown) = records.unknown() {
            let why = match &api {
                Api::Unreachable(why) => why,
                Api::NoKubeconfig => "there is no kubeconfig Secret",
                Api::Answers => unknown,
            };
            let message = format!(
                "to know what is installed: {why}; set spec.deletion.onPluginDelete to Keep to leave everything as it is"
            );
            self.say(
                &object,
                &leaving(&object, PluginPhase::Deleting, &message),
                Some((reason::UNREACHABLE, &message)),
            )
            .await?;
            return Ok(ReconcileResult::RequeueAfter(BLOCKED));
        }
        let left = self.uninstall(&object, workload.as_deref(), &records, None).await;
        if left.iter().any(|it| can_leave(it.slot)) {
            self.say(&object, &left, None).await?;
            let works = left.iter().any(|it| it.phase == PluginPhase::Deleting);
            let unchanged = self.unchanged(&object.object_name(), left);
            return Ok(ReconcileResult::RequeueAfter(if works { patience(unchanged) } else { BLOCKED }));
        }
        let kept: Vec<&str> = left.iter().map(|it| it.message.as_str()).collect();
        let kept = (!kept.is_empty()).then(|| kept.join("; "));
        // Records of what just left were read before it did: their rules go when the rest of them is asked
        // for.
        let stays = |it: &&addons::Inventory| slot_of(&it.module).is_none_or(|slot| !can_leave(slot));
        let rules = records.all().map(|all| add_on_rules(all.iter().filter(stays)));
        self.let_go(&object, &cluster, rules, kept).await
    }

    /// Ends looking after a cluster's add-ons. Rules of what stays are kept by the AWSCluster, which asks
    /// nobody else from then on.
    async fn let_go(
        &self,
        object: &Arc<Cached<ClusterPlugin>>,
        cluster: &Arc<Cached<Cluster>>,
        rules: Option<RequestedRules>,
        kept: Option<String>,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        if !self.keep_rules(&cluster.object_name(), rules).await? {
            let message = "the AWSCluster is paused: security-group rules of add-ons that stay cannot be written down there";
            self.say(
                object,
                &leaving(object, PluginPhase::Deleting, message),
                Some((reason::PAUSED, message)),
            )
            .await?;
            return Ok(ReconcileResult::RequeueAfter(BLOCKED));
        }
        management.remove_finalizer(cluster, names::PLUGIN_FINALIZER).await?;
        management.remove_finalizer(object, names::PLUGIN_FINALIZER).await?;
        if let Some(message) = kept {
            let note =
                Note { warning: false, reason: "AddOnsKept".into(), action: "Uninstall".into(), message };
            management.note(object, note.clone());
            management.note(cluster, note);
        }
        self.forget_cluster(&object.object_name(), &cluster.object_name());
        Ok(ReconcileResult::Settled)
    }

    /// Writes down on the AWSCluster which rules its groups keep; `rules` is `None` when that is not known,
    /// and then none is revoked. `false`: nothing may be written there now.
    async fn keep_rules(&self, cluster: &ObjectName, rules: Option<RequestedRules>) -> Result<bool, Error> {
        let management = &self.context.management;
        let aws_cluster = management.of_cluster::<AWSCluster>(cluster).into_iter().next();
        if let Some(aws_cluster) = aws_cluster.filter(|it| is_ours(&self.context, it)) {
            let list = rules.as_ref().map(crate::context::add_on_rules);
            let text = kept_rules_text(list.as_deref());
            if aws_cluster.annotations().get(KEPT_RULES_ANNOTATION) != text.as_ref() {
                if management.is_paused(&aws_cluster) {
                    return Ok(false);
                }
                management
                    .patch(&aws_cluster, json!({"metadata": {"annotations": {KEPT_RULES_ANNOTATION: text}}}))
                    .await?;
            }
        }
        self.context.rules.set(cluster, rules);
        Ok(true)
    }

    /// Whether the workload API answers, and its client if it does.
    pub(super) async fn reach(
        &self,
        cluster: &ObjectName,
    ) -> Result<(Api, Option<Arc<WorkloadCluster>>), Error> {
        let (api, workload) = self.client(cluster).await?;
        let Some(client) = &workload else { return Ok((api, None)) };
        match client.answers().await {
            Ok(()) => Ok((api, workload)),
            Err(error) => Ok((Api::Unreachable(error.to_string()), None)),
        }
    }

    /// The client of a workload cluster, without asking whether that answers.
    pub(super) async fn client(
        &self,
        cluster: &ObjectName,
    ) -> Result<(Api, Option<Arc<WorkloadCluster>>), Error> {
        let secret = cluster.sibling(format!("{}{}", cluster.name, names::KUBECONFIG_SECRET_SUFFIX));
        let secret = self.context.management.secret(&secret).await?;
        let Some(kubeconfig) = secret.and_then(|it| it.data).and_then(|mut it| it.remove("value")) else {
            return Ok((Api::NoKubeconfig, None));
        };
        match self
            .workload
            .cluster(&cluster.namespace, &cluster.name, &kubeconfig.0, self.endpoints(cluster))
            .await
        {
            Ok(workload) => Ok((Api::Answers, Some(workload))),
            Err(error) => Ok((Api::Unreachable(error.to_string()), None)),
        }
    }

    /// Where the control plane of a cluster is, as the management cluster has it.
    fn endpoints(&self, cluster: &ObjectName) -> Vec<Endpoint> {
        let management = &self.context.management;
        let of_cluster = management.get::<Cluster>(cluster).map(|it| it.spec.control_plane_endpoint.clone());
        let of_aws = management
            .of_cluster::<AWSCluster>(cluster)
            .into_iter()
            .map(|it| it.spec.control_plane_endpoint.clone());
        let all = of_cluster.into_iter().chain(of_aws).filter(|it| !it.host.is_empty());
        all.filter_map(|it| Some((it.host, u16::try_from(it.port).ok()?))).collect()
    }

    /// Carries out what was written down at install as the removal of an add-on, then removes its record.
    pub(super) async fn remove(
        &self,
        workload: &WorkloadCluster,
        object: &Cached<ClusterPlugin>,
        module: &str,
    ) -> StepProgress {
        let name = object.object_name();
        let record = match self.record(&name, workload, module).await {
            Ok(Some(record)) => record,
            Ok(None) => return StepProgress::Out,
            Err(carried) => return carried,
        };
        match remove(workload, &record, self.late.of(&name, module)).await {
            StepProgress::Out => match self.remove_record(&name, workload, module).await {
                Ok(()) => StepProgress::Out,
                Err(carried) => carried,
            },
            other => other,
        }
    }
}

/// Carries out the removal of an add-on as its record has it, as far as that may be believed.
pub(super) async fn remove(
    workload: &WorkloadCluster,
    record: &Inventory,
    late: LatePlan<'_>,
) -> StepProgress {
    let module = record.module.as_str();
    let removal = match addons::removal(record) {
        Ok(removal) => removal,
        Err(denial) => {
            let message = format!(
                "the record of {module} in the cluster, step {:?} of its removal: {}",
                denial.step, denial.message
            );
            return StepProgress::Refused(crds::conditions::reason::RECORD_DENIED, message);
        }
    };
    let manner = ApplyOptions {
        field_manager: &field_manager(module),
        // Nothing is applied.
        force: false,
        rules_are_there: true,
        findings: &Findings::new(),
        authority: None,
        late,
        until: Instant::now() + ENOUGH,
        taken_over: &[],
        own_only: removal.own_only,
        ledger: &Ledger::default(),
        is_repair: false,
        was_complete: false,
    };
    execute(workload, &removal.steps, &mut BTreeSet::new(), &manner).await
}

/// The same of every add-on that is asked for or was there when last looked at.
pub(super) fn leaving(object: &Cached<ClusterPlugin>, phase: PluginPhase, message: &str) -> Vec<Progress> {
    let known = object.status.clone().unwrap_or_default().plugins;
    let asked: Vec<(Slot, String)> =
        wanted(&object.spec).into_iter().map(|it| (it.slot, it.module.to_owned())).collect();
    let others = known.iter().filter(|it| !asked.iter().any(|(_, module)| *module == it.name));
    let others: Vec<_> = others.filter_map(|it| Some((slot_of(&it.name)?, it.name.clone()))).collect();
    let of = |(slot, module): (Slot, String)| {
        let before = known.iter().find(|known| known.name == module);
        Progress {
            slot,
            version: before.map(|it| it.version.clone()).unwrap_or_default(),
            digest: before.map(|it| it.digest.clone()).unwrap_or_default(),
            module,
            phase,
            reason: reason::DELETING.to_owned(),
            message: message.to_owned(),
            repaired: None,
        }
    };
    asked.into_iter().chain(others).map(of).collect()
}
