//! Rolls out the plan of one add-on: applies its steps, prunes what the plan no longer has, and records what
//! is installed.

use std::collections::{BTreeMap, BTreeSet};

use addons::approval::{plan_id, recorded};
use addons::{Inventory, LARGEST_RECORD, Standing, Succession, UndoneUpgrade, stored};
use contract::{AddOnPlan, Step, StepSpec, outputs};
use crds::cluster_plugin::Conflicts;
use crds::conditions::reason;

use super::Installation;
use super::plan::{Course, PlannedAddOn};
use crate::controller::addon::applied::AppliedObjects;
use crate::controller::addon::certificate::Authority;
use crate::controller::addon::check::{self, Findings};
use crate::controller::addon::drift::steps_done_once;
use crate::controller::addon::execute::{delete_own, execute};
use crate::controller::addon::memory::AddOnMemory;
use crate::controller::addon::options::{ApplyOptions, field_manager};
use crate::controller::addon::plugins::Answer;
use crate::controller::addon::progress::StepProgress;
use crate::controller::addon::webhooks::{check_webhooks, remove_unanswered};
use crate::system::now;
use crate::workload::WorkloadCluster;

/// What is to be done about an add-on, by its plan and by its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RolloutKind {
    /// Nothing is recorded that this program wrote: everything is applied.
    Install,
    /// Another plan or component is recorded, or the add-on was being uninstalled: everything is applied.
    Upgrade,
    /// This plan is recorded, and not carried out yet: it goes on.
    Resume,
    /// This plan was carried out: what can come undone by itself is checked, and drift is set back.
    Repair,
}

/// One add-on, and the plan that is rolled out.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub add_on: &'a PlannedAddOn,
    /// Which component's plan it is.
    pub answer: &'a Answer,
    pub plan: &'a AddOnPlan,
    pub installed: Option<&'a Inventory>,
    pub workload: &'a WorkloadCluster,
    pub findings: &'a Findings,
}

/// The rollout of one plan.
pub(super) struct Rollout<'a> {
    installation: &'a Installation<'a>,
    target: Target<'a>,
    memory: AddOnMemory<'a>,
    kind: RolloutKind,
    plan_hash: String,
    field_manager: String,
    authority: Option<Authority>,
}

impl Target<'_> {
    fn plan_id(&self) -> String {
        plan_id(&self.answer.component.digest, self.plan)
    }

    /// Whether it begins by an approval, which is used up by that.
    fn uses_approval(&self) -> bool {
        self.add_on.uses.contains(&self.plan_id())
    }
}

impl RolloutKind {
    pub(super) fn of(installed: Option<&Inventory>, digest: &str, plan_hash: &str) -> Self {
        match installed {
            Some(it) if it.standing != Standing::Proven => RolloutKind::Install,
            Some(it) if it.plan_hash != plan_hash || it.digest != digest => RolloutKind::Upgrade,
            Some(it) if !it.complete => RolloutKind::Resume,
            Some(_) => RolloutKind::Repair,
            None => RolloutKind::Install,
        }
    }

    /// Whether nothing that was done before counts: it was not recorded, or was undone since. A cluster of
    /// this name may be another one.
    fn is_new(self) -> bool {
        matches!(self, RolloutKind::Install | RolloutKind::Upgrade)
    }
}

impl<'a> Rollout<'a> {
    /// Finds out what is to be done.
    pub(super) async fn of(
        installation: &'a Installation<'a>,
        target: Target<'a>,
    ) -> Result<Rollout<'a>, StepProgress> {
        let Target { plan, installed, workload, .. } = target;
        let module = target.add_on.desired.module.as_str();
        let field_manager = field_manager(module);
        let is_certificate = |step: &Step| matches!(step.typed(), Ok(StepSpec::Certificate(_)));
        let authority = if plan.steps.iter().any(is_certificate) {
            Some(Authority::of(workload, module, &field_manager, installation.force()).await?)
        } else {
            None
        };
        // With another bundle it is another plan: whoever uses it is given the new one.
        let bundle = authority.as_ref().map(Authority::bundle).unwrap_or_default();
        let plan_hash = addons::plan_hash(plan, &bundle);
        let kind = match RolloutKind::of(installed, &target.answer.component.digest, &plan_hash) {
            // What is approved anew has to be recorded, though the steps are the same.
            RolloutKind::Resume | RolloutKind::Repair if target.uses_approval() => RolloutKind::Upgrade,
            kind => kind,
        };
        let memory = installation.memory(module);
        let rollout = Rollout { installation, target, memory, kind, plan_hash, field_manager, authority };
        let (record, bytes) = rollout.record_at_most();
        if kind.is_new() && bytes > LARGEST_RECORD {
            let message = addons::too_large(&record, bytes);
            return Err(StepProgress::Refused(reason::RECORD_TOO_LARGE, message));
        }
        Ok(rollout)
    }

    /// Records that it begins; the next reconciliation goes on with it.
    pub(super) async fn begin(&self) -> StepProgress {
        match self.write_record(&self.record()).await {
            Ok(()) => StepProgress::waiting("the upgrade begins"),
            Err(progress) => progress,
        }
    }

    /// Carries out what can be carried out now.
    pub(super) async fn run(&self) -> StepProgress {
        let Target { plan, installed, .. } = self.target;
        let objects = AppliedObjects::of(installed, self.installation.objects.plugin.spec.drift);
        let record = self.record();
        if self.kind.is_new()
            && let Err(progress) = self.write_record(&record).await
        {
            return progress;
        }
        let progress = self.apply(&objects).await;
        if progress != StepProgress::Done {
            return progress;
        }
        self.memory.set_verified(plan, &self.plan_hash);
        match (self.kind, installed) {
            (RolloutKind::Repair, Some(installed)) => self.tell_anew(installed).await.into(),
            (RolloutKind::Repair, None) => StepProgress::Done,
            _ => self.finish(record).await.into(),
        }
    }

    /// Records outputs that changed though the steps did not.
    async fn tell_anew(&self, installed: &Inventory) -> Result<(), StepProgress> {
        let outputs = told(self.target.plan);
        if installed.outputs == outputs {
            return Ok(());
        }
        // Marks that were recorded since stay.
        let Target { add_on, workload, .. } = self.target;
        let Installation { controller, plugin_name, .. } = self.installation;
        match controller.record(plugin_name, workload, &add_on.desired.module).await? {
            Some(record) if record.standing == Standing::Proven => {
                self.write_record(&Inventory { outputs, ..record }).await
            }
            _ => Ok(()),
        }
    }

    /// The record, and how many bytes it may get to have with what an earlier plan left.
    fn record_at_most(&self) -> (Inventory, usize) {
        let record = self.record();
        let bytes = record.bytes_at_most();
        (record, bytes)
    }

    /// The record while the plan is being carried out: what may be there by then.
    fn record(&self) -> Inventory {
        let Target { add_on, answer, plan, installed, .. } = self.target;
        let component = &answer.component;
        let awaited = match &add_on.course {
            Course::Undo(awaited) => Some(awaited.as_str()),
            _ => None,
        };
        let Succession { stored_plan, previous, undone } =
            installed.map(|it| it.succession(&component.digest, awaited, now())).unwrap_or_default();
        let marks = installed.filter(|it| it.standing == Standing::Proven).map(Inventory::marked);
        let record = Inventory {
            module: add_on.desired.module.clone(),
            registered: add_on.desired.registered(),
            version: component.version.clone(),
            digest: component.digest.clone(),
            config: add_on.desired.config.clone(),
            plan_hash: self.plan_hash.clone(),
            complete: false,
            objects: merged_objects(installed, plan),
            marks: Vec::new(),
            rules: addons::merged_rules(installed, plan),
            removal: plan.removal.clone(),
            allowed: installed.and_then(|it| it.allowed_before(&add_on.desired.config)),
            stored_plan,
            previous,
            undone,
            outputs: told(plan),
            approved: Some(recorded(installed, self.target.plan_id(), self.target.uses_approval())),
            standing: Standing::Proven,
        };
        // What somebody takes of an object meanwhile is known by them.
        record.with_marks(&marks.unwrap_or_default())
    }

    async fn apply(&self, objects: &AppliedObjects) -> StepProgress {
        let Installation { controller, objects: of, cluster_name, .. } = self.installation;
        let Target { add_on, answer, plan, installed, workload, findings } = self.target;
        let grants = controller.plugins.grants(&add_on.desired);
        let options = ApplyOptions {
            field_manager: &self.field_manager,
            force: self.installation.force(),
            rules_are_there: controller.context.rules.is_done(cluster_name),
            findings,
            authority: self.authority.as_ref(),
            memory: self.memory,
            until: self.installation.until,
            taken_over: &grants.taken_over,
            own_only: false,
            objects,
            is_repair: false,
            was_complete: self.kind == RolloutKind::Repair,
            keeps_definitions: installed.is_some_and(|it| it.keeps_definitions(&answer.component.digest)),
        };
        let mut done = match self.kind {
            RolloutKind::Install | RolloutKind::Upgrade => BTreeSet::new(),
            RolloutKind::Resume => self.memory.completed_steps(&self.plan_hash),
            RolloutKind::Repair => steps_done_once(plan),
        };
        let is_begun = !done.is_empty() || self.kind == RolloutKind::Repair;
        if let Some(installed) = installed.filter(|_| !is_begun) {
            // What the add-on applies itself may be refused for the want of who serves them.
            if let Err(error) = remove_unanswered(workload, &installed.objects, &self.field_manager).await {
                return error.into();
            }
        }
        let mut progress = execute(workload, &plan.steps, &mut done, &options).await;
        match installed.filter(|_| self.kind == RolloutKind::Repair) {
            Some(installed) => {
                let names = (&*of.plugin, cluster_name);
                progress =
                    controller.correct_drift(names, plan, installed, workload, &options, progress).await;
            }
            None => self.memory.drift(|memory| memory.applied(self.kind.is_new(), objects.marks())),
        }
        if progress == StepProgress::Done {
            progress = check_webhooks(workload, plan, &options).await;
        }
        self.memory.set_completed_steps(&self.plan_hash, done);
        progress
    }

    /// Prunes what the plan no longer has and the add-on applied, and records that the rest is there.
    async fn finish(&self, record: Inventory) -> Result<(), StepProgress> {
        let Target { plan, workload, findings, .. } = self.target;
        for object in addons::prune(&record, plan) {
            delete_own(workload, &object, &self.field_manager).await?;
        }
        let is_upgraded = record.previous.is_some();
        let record = Inventory {
            complete: true,
            objects: addons::objects(&plan.steps),
            rules: addons::rules(&plan.steps),
            allowed: check::allowed(findings),
            stored_plan: self.store(&record).await?,
            previous: None,
            undone: record.undone.clone().map(|undone| UndoneUpgrade { is_complete: true, ..undone }),
            ..record
        };
        let plugin = &self.installation.objects.plugin;
        let marks = self.memory.drift(|memory| memory.finished(plugin, &record));
        let record = record.with_marks(&marks);
        self.write_record(&record).await?;
        if is_upgraded {
            // An upgrade that was interrupted here left more than one.
            workload.delete_stored(&record.module, Some(&record.digest)).await?;
        }
        Ok(())
    }

    /// Stores the component and the plan beside the record, and returns the digest of the plan; `None` when
    /// they do not fit.
    async fn store(&self, record: &Inventory) -> Result<Option<String>, StepProgress> {
        let Target { plan, workload, .. } = self.target;
        let Inventory { module, digest, .. } = record;
        let plan_digest = stored::plan_digest(plan);
        if record.stored_plan.as_ref() == Some(&plan_digest) {
            return Ok(Some(plan_digest));
        }
        let Some(component) = self.installation.controller.plugins.bytes(module, digest) else {
            // What is stored stays as it is.
            return Ok(record.stored_plan.clone());
        };
        let Some(packed) = stored::pack(&component, plan) else {
            tracing::warn!(module, digest, "the component of an add-on does not fit into the cluster");
            return Ok(None);
        };
        workload.store(module, digest, &packed).await?;
        Ok(Some(plan_digest))
    }

    async fn write_record(&self, record: &Inventory) -> Result<(), StepProgress> {
        let Installation { controller, plugin_name, .. } = self.installation;
        controller.write_record(plugin_name, self.target.workload, record).await
    }
}

impl Installation<'_> {
    /// Whether fields that others hold are taken.
    pub(super) fn force(&self) -> bool {
        self.objects.plugin.spec.conflicts == Conflicts::Force
    }
}

/// What a plan tells of what it installs. That it can be told was checked when the plan was read.
pub(super) fn told(plan: &AddOnPlan) -> BTreeMap<String, String> {
    outputs(&plan.extra).unwrap_or_default()
}

/// What was applied by an earlier plan and not pruned yet, and what this one applies.
fn merged_objects(installed: Option<&Inventory>, plan: &AddOnPlan) -> Vec<addons::ObjectRef> {
    let mut objects = installed.map(|it| it.objects.clone()).unwrap_or_default();
    for object in addons::objects(&plan.steps) {
        if !objects.iter().any(|it| it.same_object(&object)) {
            objects.push(object);
        }
    }
    objects
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_done_follows_from_the_plan_and_its_record() {
        let record = |standing, plan_hash: &str, complete: bool| {
            let value = json!({"module": "calico", "version": "1", "digest": "sha256:1", "config": {},
                "planHash": plan_hash,
                "complete": complete, "objects": [], "removal": []});
            Inventory { standing, ..serde_json::from_value(value).expect("a record") }
        };
        let kind = |record: &Inventory| RolloutKind::of(Some(record), "sha256:1", "a");
        assert_eq!(RolloutKind::of(None, "sha256:1", "a"), RolloutKind::Install);
        assert_eq!(kind(&record(Standing::Foreign, "a", true)), RolloutKind::Install);
        assert_eq!(kind(&record(Standing::Proven, "b", true)), RolloutKind::Upgrade);
        assert_eq!(kind(&record(Standing::Proven, "", false)), RolloutKind::Upgrade);
        assert_eq!(kind(&record(Standing::Proven, "a", false)), RolloutKind::Resume);
        assert_eq!(kind(&record(Standing::Proven, "a", true)), RolloutKind::Repair);
        let by_another = record(Standing::Proven, "a", true);
        let kind = RolloutKind::of(Some(&by_another), "sha256:2", "a");
        assert_eq!(kind, RolloutKind::Upgrade, "another component, whose plan is the same");
    }
}
