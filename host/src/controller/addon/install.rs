//! Installs and keeps the add-ons of a cluster that lives: asks each plugin, hands over the security-group
//! rules that all of them need, then carries out each plan when its stage has come.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use addons::built_in;
use addons::{self, Api, ClusterState, Inventory, Progress, Standing, Wanted};
use contract::{AddOnPlan, Step, StepSpec};
use crds::AWSCluster;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::{ClusterPlugin, Conflicts, PluginPhase};
use crds::conditions::reason;
use iam::instance_roles;
use model::AddOnRule;
use tokio::time::Instant;

use super::ask::{Answer, ClusterFacts, Told, Verdict, hints};
use super::certificate::Authority;
use super::check::{self, Findings};
use super::drift::{Ledger, carried_out_once};
use super::execute::{ApplyOptions, StepProgress, carried, delete_own, execute, uncertified};
use super::uninstall::Records;
use super::{AddOns, BLOCKED, ENOUGH, PATIENT, SETTLED, SOON, webhooks};
use crate::context::{ObjectName, RequestedRules};
use crate::controller::reconcile::ReconcileResult;
use crate::management::{Cached, Error};
use crate::workload::WorkloadCluster;

/// How long a version or digest in a status may be.
const VERSION_CHARACTERS: usize = 128;

/// The field manager of one plugin's objects.
pub fn field_manager(module: &str) -> String {
    format!("cluster-operator-{module}")
}

/// One add-on on its way.
struct AddOn {
    wanted: Wanted,
    installed: Result<Option<Inventory>, String>,
    answer: Answer,
}

/// Where and in what an add-on is installed.
#[derive(Clone, Copy)]
struct At<'a> {
    object: &'a Cached<ClusterPlugin>,
    cluster: &'a ObjectName,
    state: &'a ClusterState,
    api: &'a Api,
    workload: Option<&'a WorkloadCluster>,
    world: &'a ClusterFacts<'a>,
    region: Option<&'a aws::Region>,
    /// After this nothing more is begun.
    until: Instant,
}

impl AddOns {
    pub(super) async fn install(
        &self,
        object: Arc<Cached<ClusterPlugin>>,
        cluster: Arc<Cached<Cluster>>,
    ) -> Result<ReconcileResult, Error> {
        let (name, until) = (cluster.object_name(), Instant::now() + ENOUGH);
        let control_plane =
            self.context.management.of_cluster::<KubeadmControlPlane>(&name).into_iter().next();
        let aws_cluster = self.context.management.of_cluster::<AWSCluster>(&name).into_iter().next();
        let initialized = cluster_state(&cluster, control_plane.as_deref());
        let (api, workload) = match initialized.initialized {
            // Reading the records tells whether it answers.
            true => self.client(&name).await?,
            false => (Api::Unreachable("the control plane is not initialized".into()), None),
        };
        let state = ClusterState { kubeconfig: api != Api::NoKubeconfig, ..initialized };
        let region = aws_cluster.as_ref().map(|it| self.context.aws.region(&it.spec.region));
        let records = self.records(&object, workload.as_deref(), initialized.initialized).await?;
        let workload = workload.filter(|_| records.unknown().is_none());
        let all = records.installable(addons::wanted(&object.spec));
        let mut world = ClusterFacts {
            cluster: &cluster,
            control_plane: control_plane.as_deref().map(|it| &**it),
            aws_cluster: aws_cluster.as_deref().map(|it| &**it),
            told: Told::new(),
            profiles: Err("AWS was not read yet".to_owned()),
        };
        let (told, mut next) =
            self.tell(&all, &world, initialized.initialized, workload.as_deref(), region.as_ref()).await;
        world.told = told;
        world.profiles =
            self.instances(&world, region.as_ref(), |instances| instance_roles::profiles(instances));
        let mut add_ons = Vec::new();
        for wanted in all {
            let installed = match &records {
                // What somebody else wrote tells nothing of what is installed.
                Records::Known(all) => Ok(all
                    .iter()
                    .find(|it| it.module == wanted.module && it.standing != Standing::Foreign)
                    .cloned()),
                Records::Unknown(why) => Err(why.clone()),
            };
            let known = installed.as_ref().map(Option::as_ref).map_err(String::as_str);
            let answer = self.plugins.ask(&wanted, &world, known).await;
            add_ons.push(AddOn { wanted, installed, answer });
        }
        self.context
            .rules
            .set(&name, records.rules(requested(&add_ons, state.initialized), self.context.rules.get(&name)));
        let (mut api, mut workload) = (api, workload);
        // For its own sake each is looked at.
        let for_another =
            !add_ons.iter().all(|it| matches!(&it.installed, Ok(Some(installed)) if installed.complete));
        let mut progress = Vec::new();
        for add_on in &add_ons {
            if self.is_paused(&object.object_name()) {
                return Ok(ReconcileResult::Settled);
            }
            let at = At {
                object: &object,
                cluster: &name,
                state: &state,
                api: &api,
                workload: workload.as_deref(),
                world: &world,
                region: region.as_ref(),
                until,
            };
            let findings = self.findings(&at, add_on).await;
            let whole = self.is_whole(&at, add_on, &findings).filter(|_| for_another);
            let advanced = self.advance(&at, add_on, &findings, whole.is_some()).await;
            let drift = self.drifts.next(&object.object_name(), add_on.wanted.module);
            next = next.into_iter().chain(check::next(&findings)).chain(whole).chain(drift).min();
            if advanced.reason == reason::UNREACHABLE && workload.is_some() {
                (api, workload) = (Api::Unreachable(advanced.message.clone()), None);
            }
            progress.push(advanced);
        }
        progress.extend(
            self.uninstall(&object, workload.as_deref(), &records, Some(&addons::wanted(&object.spec))).await,
        );
        self.say(&object, &progress, None).await?;
        let unchanged = self.unchanged(&object.object_name(), progress.clone());
        Ok(sooner(again(&progress, &state, patience(unchanged)), next))
    }

    /// What an add-on that may be installed needs of AWS.
    async fn findings(&self, it: &At<'_>, add_on: &AddOn) -> Findings {
        match &add_on.answer.verdict {
            Verdict::Plan(plan, _) if addons::waits_for(add_on.wanted.stage, it.state).is_none() => {
                let installed = add_on.installed.as_ref().ok().and_then(Option::as_ref);
                self.checks.of_plan(&add_on.wanted, installed, &plan.steps, it.world, it.region).await
            }
            _ => Findings::new(),
        }
    }

    /// Until when nothing of an add-on has to be looked at, because it was all found to be there a moment
    /// ago.
    fn is_whole(&self, it: &At<'_>, add_on: &AddOn, findings: &Findings) -> Option<Instant> {
        let (Verdict::Plan(plan, _), Ok(Some(installed))) = (&add_on.answer.verdict, &add_on.installed)
        else {
            return None;
        };
        let refused = plan.steps.iter().any(|step| check::refusal(findings, &step.id).is_some());
        self.whole.until(&it.object.object_name(), plan, installed).filter(|_| !refused)
    }

    async fn advance(&self, it: &At<'_>, add_on: &AddOn, findings: &Findings, whole: bool) -> Progress {
        let At { state, api, workload, .. } = *it;
        let told = || self.drifts.told(&it.object.object_name(), add_on.wanted.module);
        let at = |phase, reason: &str, message: String| Progress {
            slot: add_on.wanted.slot,
            module: add_on.wanted.module.to_owned(),
            version: add_on.answer.version.clone(),
            digest: add_on.answer.digest.clone(),
            phase,
            reason: reason.to_owned(),
            message,
            repaired: told().1,
        };
        let (plan, warnings) = match &add_on.answer.verdict {
            Verdict::Refused(reason, message) => return at(PluginPhase::Failed, reason, message.clone()),
            Verdict::Pending(message) => return at(PluginPhase::Pending, reason::CREATING, message.clone()),
            Verdict::Plan(plan, warnings) => (plan, warnings),
        };
        if let Some(what) = addons::waits_for(add_on.wanted.stage, state) {
            return at(PluginPhase::Pending, reason::WAITING_FOR_CONTROL_PLANE, format!("waits {what}"));
        }
        let (workload, installed) = match (workload, &add_on.installed, api) {
            (Some(workload), Ok(installed), _) => (workload, installed.as_ref()),
            (_, _, Api::Unreachable(why)) => {
                return at(PluginPhase::Pending, reason::UNREACHABLE, format!("for the API server: {why}"));
            }
            (_, Err(why), _) => return at(PluginPhase::Pending, reason::UNREACHABLE, why.clone()),
            (None, _, _) => {
                return at(
                    PluginPhase::Pending,
                    reason::WAITING_FOR_CONTROL_PLANE,
                    "waits for the kubeconfig Secret".into(),
                );
            }
        };
        if let Some((kept, message)) =
            installed.and_then(|it| Some((it, it.outlasts(&add_on.answer.version)?)))
        {
            // Somebody else may have written to the record, and a status takes no more.
            let bounded = |text: &str| {
                text.chars().filter(|it| it.is_ascii_graphic()).take(VERSION_CHARACTERS).collect::<String>()
            };
            return Progress {
                version: bounded(&kept.version),
                digest: bounded(&kept.digest),
                ..at(PluginPhase::Running, reason::UPGRADE_AVAILABLE, message)
            };
        }
        let phase = if installed.is_some_and(|it| it.complete) {
            PluginPhase::Updating
        } else {
            PluginPhase::Provisioning
        };
        let carried = match whole {
            true => StepProgress::Out,
            false => self.execute(it, add_on, plan, installed, workload, findings).await,
        };
        match carried {
            StepProgress::Out => {
                let (drifted, _) = told();
                let reason = if drifted.is_empty() { reason::READY } else { reason::DRIFT };
                let warnings: Vec<String> = drifted
                    .into_iter()
                    .chain(warnings.iter().cloned())
                    .chain(check::warnings(findings))
                    .collect();
                at(PluginPhase::Running, reason, warnings.join("; "))
            }
            StepProgress::Waiting(it) if it.late => {
                let all: Vec<String> = std::iter::once(it.what).chain(hints(&add_on.wanted, plan)).collect();
                at(phase, reason::WAIT_TIMED_OUT, all.join("; "))
            }
            StepProgress::Waiting(it) => at(phase, reason::CREATING, it.what),
            StepProgress::Unreachable(what) => at(phase, reason::UNREACHABLE, what),
            StepProgress::Refused(reason, what) => at(PluginPhase::Failed, reason, what),
        }
    }

    async fn execute(
        &self,
        it: &At<'_>,
        add_on: &AddOn,
        plan: &AddOnPlan,
        installed: Option<&Inventory>,
        workload: &WorkloadCluster,
        findings: &Findings,
    ) -> StepProgress {
        let (object, module) = (it.object, add_on.wanted.module);
        let (object_name, field_manager) = (object.object_name(), field_manager(module));
        let force = object.spec.conflicts == Conflicts::Force;
        let is_certificate = |it: &Step| matches!(it.typed(), Ok(StepSpec::Certificate(_)));
        let authority = match plan.steps.iter().any(is_certificate) {
            false => None,
            true => match Authority::of(workload, module, &field_manager, force).await {
                Ok(authority) => Some(authority),
                Err(error) => return uncertified(error),
            },
        };
        // Whoever is given another bundle is told so.
        let bundle = authority.as_ref().map(Authority::bundle).unwrap_or_default();
        let hash = addons::plan_hash(plan, &bundle);
        let is_new = installed.is_none_or(|it| it.plan_hash != hash || it.standing != Standing::Proven);
        let was_complete = !is_new && installed.is_some_and(|it| it.complete);
        let mut done = match (is_new, was_complete) {
            // Whatever was done before was not written down, or was undone since: a cluster of this name may
            // be another one.
            (true, _) => BTreeSet::new(),
            // Carried out before, perhaps by an earlier process: only what can come undone by itself is
            // looked at again.
            (false, true) => carried_out_once(plan),
            (false, false) => self.done(&object.object_name(), module, &hash),
        };
        let inventory = Inventory {
            module: module.to_owned(),
            version: add_on.answer.version.clone(),
            digest: add_on.answer.digest.clone(),
            config: add_on.wanted.config.clone(),
            plan_hash: hash.clone(),
            complete: false,
            objects: merged(installed, plan),
            marks: Vec::new(),
            rules: addons::merged_rules(installed, plan),
            removal: plan.removal.clone(),
            allowed: installed.and_then(|it| it.allowed_before(&add_on.wanted.config)),
            standing: Standing::Proven,
        };
        let ledger = Ledger::of(installed, object.spec.drift);
        let inventory = inventory.with_marks(ledger.before());
        if is_new && let Err(carried) = self.write_record(&object_name, workload, &inventory).await {
            return carried;
        }
        let grants = built_in::grants(module, &add_on.wanted.config);
        let manner = ApplyOptions {
            field_manager: &field_manager,
            force,
            rules_are_there: self.context.rules.is_done(it.cluster),
            findings,
            authority: authority.as_ref(),
            late: self.late.of(&object_name, module),
            until: it.until,
            taken_over: &grants.taken_over,
            own_only: false,
            ledger: &ledger,
            is_repair: false,
            was_complete,
        };
        let mut executed = execute(workload, &plan.steps, &mut done, &manner).await;
        match installed.filter(|_| was_complete) {
            Some(installed) => {
                executed = self.keep((object, it.cluster), plan, installed, workload, &manner, executed).await
            }
            None => self.drifts.applied(&object_name, module, is_new, ledger.marks()),
        }
        if executed == StepProgress::Out {
            executed = webhooks::answered(workload, plan, &manner).await;
        }
        self.set_done(&object.object_name(), module, &hash, done);
        if executed == StepProgress::Out {
            self.whole.found(&object.object_name(), module, plan, &hash);
        }
        if executed == StepProgress::Out && !was_complete {
            let inventory = Inventory { allowed: check::allowed(findings), ..inventory };
            return match self.finish(object, workload, inventory, plan).await {
                Ok(()) => StepProgress::Out,
                Err(carried) => carried,
            };
        }
        executed
    }

    /// Deletes what the plan no longer has and the add-on applied, and writes down that the rest is there.
    async fn finish(
        &self,
        object: &Cached<ClusterPlugin>,
        workload: &WorkloadCluster,
        inventory: Inventory,
        plan: &AddOnPlan,
    ) -> Result<(), StepProgress> {
        let manager = field_manager(&inventory.module);
        for object in addons::prune(&inventory, plan) {
            delete_own(workload, &object, &manager).await.map_err(carried)?;
        }
        let (objects, rules) = (addons::objects(&plan.steps), addons::rules(&plan.steps));
        let record = Inventory { complete: true, objects, rules, ..inventory };
        let record = record.clone().with_marks(&self.drifts.finished(object, &record));
        self.write_record(&object.object_name(), workload, &record).await
    }
}

/// What was applied by an earlier plan and not pruned yet, and what this one applies.
fn merged(installed: Option<&Inventory>, plan: &AddOnPlan) -> Vec<addons::ObjectRef> {
    let mut objects = installed.map(|it| it.objects.clone()).unwrap_or_default();
    for object in addons::objects(&plan.steps) {
        if !objects.iter().any(|it| it.same_object(&object)) {
            objects.push(object);
        }
    }
    objects
}

/// The rules of all add-ons together; `None` while one that may be installed could not be planned, so that
/// nothing of it is revoked.
fn requested(add_ons: &[AddOn], initialized: bool) -> Option<RequestedRules> {
    let mut rules = RequestedRules::new();
    for add_on in add_ons {
        let Verdict::Plan(plan, _) = &add_on.answer.verdict else {
            match add_on.installed {
                _ if !initialized => continue,
                Ok(None) => continue,
                _ => return None,
            }
        };
        for step in &plan.steps {
            if let Ok(StepSpec::SecurityGroupRule(spec)) = step.typed() {
                let AddOnRule { group, rule } = addons::rule(&spec);
                rules.entry(group).or_default().insert(rule);
            }
        }
    }
    Some(rules)
}

pub(super) fn cluster_state(
    cluster: &Cached<Cluster>,
    control_plane: Option<&Cached<KubeadmControlPlane>>,
) -> ClusterState {
    let of_cluster = cluster.status.as_ref().and_then(|it| it.initialization.control_plane_initialized);
    let status = control_plane.and_then(|it| it.status.as_ref());
    let of_control_plane = status.and_then(|it| it.initialization.control_plane_initialized);
    ClusterState {
        exists: true,
        initialized: of_cluster == Some(true) || of_control_plane == Some(true),
        ready: status.and_then(|it| it.ready_replicas).unwrap_or(0) >= 1,
        kubeconfig: true,
    }
}

/// No later than when something in AWS is looked at again.
fn sooner(result: ReconcileResult, next: Option<Instant>) -> ReconcileResult {
    let Some(next) = next.map(|next| next.saturating_duration_since(Instant::now()).max(SOON)) else {
        return result;
    };
    match result {
        ReconcileResult::RequeueAfter(delay) => ReconcileResult::RequeueAfter(delay.min(next)),
        ReconcileResult::SettledFor(delay) => ReconcileResult::SettledFor(delay.min(next)),
        other => other,
    }
}

/// How soon to look again at what is awaited when nothing has changed for so long.
pub(super) fn patience(unchanged: Duration) -> Duration {
    (unchanged / 4).clamp(SOON, PATIENT)
}

fn again(progress: &[Progress], state: &ClusterState, patience: Duration) -> ReconcileResult {
    if progress.iter().all(|it| it.phase == PluginPhase::Running) {
        return ReconcileResult::SettledFor(SETTLED);
    }
    let works = |it: &Progress| !matches!(it.phase, PluginPhase::Running | PluginPhase::Failed);
    match (state.initialized, progress.iter().any(works)) {
        (true, true) => ReconcileResult::RequeueAfter(patience),
        (_, false) => ReconcileResult::RequeueAfter(BLOCKED),
        (false, true) => ReconcileResult::Settled,
    }
}

#[cfg(test)]
mod tests {
    use contract::Step;
    use serde_json::{Value, json};

    use super::*;

    fn add_on(verdict: Verdict, installed: Result<Option<Inventory>, String>) -> AddOn {
        let spec = json!({"clusterName": "one", "networking": {"calico": {}}});
        let wanted = addons::wanted(&serde_json::from_value(spec).expect("a spec")).remove(0);
        AddOn { wanted, installed, answer: Answer { version: String::new(), digest: String::new(), verdict } }
    }

    fn planned() -> AddOn {
        let spec = json!({"group": "node", "protocol": "udp", "fromPort": 4789, "toPort": 4789, "peer": "node", "description": "VXLAN"});
        let step = Step { id: "sg".into(), kind: "aws.sg-rule/v1".into(), spec, after: vec![] };
        let plan = AddOnPlan { steps: vec![step], removal: vec![], diagnostics: vec![], extra: Value::Null };
        add_on(Verdict::Plan(plan, vec![]), Ok(None))
    }

    fn refused(installed: Result<Option<Inventory>, String>) -> AddOn {
        add_on(Verdict::Refused("Unsupported".into(), "no".into()), installed)
    }

    #[test]
    fn an_add_on_that_was_never_installed_and_cannot_be_holds_up_no_other() {
        let rules = requested(&[planned(), refused(Ok(None))], true).expect("the rules are known");
        assert_eq!(rules.values().flatten().count(), 1);
        assert_eq!(requested(&[planned(), refused(Err("not asked".into()))], false), Some(rules));
    }

    #[test]
    fn rules_of_an_add_on_that_may_be_installed_are_not_taken_from_it() {
        assert_eq!(requested(&[planned(), refused(Err("no answer".into()))], true), None);
    }
}
