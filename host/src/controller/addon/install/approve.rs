//! Holds back what nobody approved of, where somebody has to: a plan that waits is replaced by the one that was
//! approved before, so that nothing of it is published, written or checked. What may be carried out is decided
//! in `addons::approval`.

use addons::approval::{APPROVE_ANNOTATION, Approvals, Decision, Meanwhile, Subject, plan_id};
use addons::upgrade::{Component, UPGRADE_ANNOTATION};
use addons::{
    DesiredAddOn, Inventory, Progress, Standing, changes, changes_of_installation, changes_of_record, consent,
};
use contract::AddOnPlan;
use crds::cluster_plugin::{Approval, PluginApproval, PluginPhase};
use crds::conditions::reason;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::Installation;
use super::bounded::{bounded, bounded_lines};
use super::plan::{Course, PlannedAddOn, Waiting};
use crate::controller::addon::plugins::{Answer, Verdict};
use crate::management::Error;

impl Installation<'_> {
    /// The add-on with what may be carried out of it.
    pub(super) async fn approve(&self, mut add_on: PlannedAddOn) -> PlannedAddOn {
        // What was carried out before was approved then.
        let is_undone = matches!(add_on.course, Course::Undo(_));
        if self.objects.plugin.spec.approval == Approval::Automatic || is_undone {
            return add_on;
        }
        let installed = match add_on.installed.clone() {
            Ok(installed) => installed,
            Err(why) => {
                if matches!(add_on.answer.verdict, Verdict::Plan(..)) {
                    add_on.answer.verdict = Verdict::Pending(why);
                }
                return add_on;
            }
        };
        let module = add_on.desired.module.clone();
        let approvals = self.approvals(&module, installed.as_ref());
        if let Course::Upgrade(new) = &add_on.course
            && let Verdict::Plan(plan, _) = &new.verdict
        {
            match approvals.decide(&new.component.digest, plan) {
                Decision::Approved => (),
                Decision::ApprovedNow => add_on.uses.push(plan_id(&new.component.digest, plan)),
                Decision::Waits(digest) => {
                    let changes = add_on.available.as_ref().map(|it| it.changes.clone()).unwrap_or_default();
                    let message = approvals.subject.waiting(&digest, Meanwhile::Kept);
                    add_on.waiting = Some(Waiting { plan: PluginApproval { digest, changes }, message });
                    add_on.course = Course::Serve;
                }
            }
        }
        self.approve_served(add_on, approvals).await
    }

    /// The same of the plan of what serves the add-on.
    async fn approve_served(&self, mut add_on: PlannedAddOn, approvals: Approvals<'_>) -> PlannedAddOn {
        let component = add_on.answer.component.digest.clone();
        let Verdict::Plan(plan, _) = &add_on.answer.verdict else { return add_on };
        let (mut decision, mut kept) = (approvals.decide(&component, plan), None);
        if let (Decision::Waits(_), Some(record)) = (&decision, approvals.installed) {
            match self.recorded_plan(&add_on.desired, record).await {
                Ok(stored) => {
                    let approvals = Approvals { stored: stored.as_ref(), ..approvals };
                    decision = approvals.decide(&component, plan);
                    kept = stored.clone().filter(|_| approvals.is_stored_approved());
                }
                Err(pending) => {
                    add_on.answer.verdict = pending;
                    return add_on;
                }
            }
        }
        match decision {
            Decision::Approved => (),
            Decision::ApprovedNow => add_on.uses.push(plan_id(&component, plan)),
            Decision::Waits(digest) => {
                hold(&mut add_on, approvals.installed, kept, (&approvals.subject, digest))
            }
        }
        add_on
    }

    /// The plan that is stored for what the record names; `None` where there is none that may be carried out.
    async fn recorded_plan(
        &self,
        desired: &DesiredAddOn,
        record: &Inventory,
    ) -> Result<Option<AddOnPlan>, Verdict> {
        if record.standing != Standing::Proven || record.stored_plan.is_none() {
            return Ok(None);
        }
        let desired = DesiredAddOn { config: record.config.clone(), ..desired.clone() };
        match self.stored_plan(&desired, record, &record.digest).await {
            Ok(plan) => Ok(Some(plan)),
            Err(pending @ Verdict::Pending(_)) => Err(pending),
            Err(_) => Ok(None),
        }
    }

    fn approvals<'b>(&'b self, module: &'b str, installed: Option<&'b Inventory>) -> Approvals<'b> {
        let annotation = self.objects.plugin.annotations().get(APPROVE_ANNOTATION);
        Approvals {
            subject: self.subject(module),
            installed,
            stored: None,
            annotation: annotation.map(String::as_str),
        }
    }

    fn subject<'b>(&'b self, module: &'b str) -> Subject<'b> {
        let uid = self.objects.plugin.metadata.uid.as_deref().unwrap_or_default();
        Subject { namespace: &self.plugin_name.namespace, name: &self.plugin_name.name, uid, module }
    }

    /// Removes from the annotations of the ClusterPlugin what add-ons were upgraded or changed by, before
    /// anything else is begun: so at most one entry of an add-on was used and is still there.
    pub(super) async fn remove_used_consent(&self) -> Result<(), Error> {
        let plugin = &self.objects.plugin;
        let records = self.records.all().unwrap_or_default();
        let upgraded = records.iter().filter(|it| it.standing != Standing::Foreign);
        let upgraded = upgraded.map(|it| (it.module.as_str(), it.digest.clone()));
        let approved = records.iter().filter_map(|it| {
            let subject = self.subject(&it.module);
            Some((it.module.as_str(), subject.used(it)?))
        });
        let used =
            [(UPGRADE_ANNOTATION, upgraded.collect::<Vec<_>>()), (APPROVE_ANNOTATION, approved.collect())];
        let mut unused = Map::new();
        for (annotation, used) in used {
            let Some(given) = plugin.annotations().get(annotation) else { continue };
            let is_used =
                |(module, digest): (&str, &str)| used.iter().any(|it| it.0 == module && it.1 == digest);
            if consent::entries(Some(given)).any(is_used) {
                let without =
                    |left: String, (module, digest): &(&str, String)| consent::without(&left, module, digest);
                let left = used.iter().fold(given.clone(), without);
                let left = if left.is_empty() { Value::Null } else { Value::String(left) };
                unused.insert(annotation.to_owned(), left);
            }
        }
        if unused.is_empty() {
            return Ok(());
        }
        let patch = json!({"metadata": {"annotations": unused}});
        self.controller.context.management.patch_unchanged(plugin, patch).await.map(drop)
    }
}

/// Puts what was approved in place of a plan that waits.
fn hold(
    add_on: &mut PlannedAddOn,
    installed: Option<&Inventory>,
    kept: Option<AddOnPlan>,
    (subject, digest): (&Subject<'_>, String),
) {
    let Verdict::Plan(plan, _) = &add_on.answer.verdict else { return };
    let mut lines = match (installed, &kept) {
        (Some(record), Some(before)) => changes(record, before, plan),
        (Some(record), None) => changes_of_record(record, plan),
        (None, _) => changes_of_installation(plan),
    };
    if lines.is_empty() {
        lines.push("~ what is awaited, or removed when it is uninstalled; no object changes".to_owned());
    }
    let proven = installed.filter(|it| it.standing == Standing::Proven);
    let meanwhile = match (proven, &kept) {
        (None, _) => Meanwhile::Absent,
        (Some(_), Some(_)) => Meanwhile::Kept,
        (Some(_), None) => Meanwhile::Left,
    };
    let message = subject.waiting(&digest, meanwhile);
    // The settings of an upgrade that begins are those of now.
    if let Some(record) = proven.filter(|_| !matches!(add_on.course, Course::Upgrade(_))) {
        add_on.desired.config = record.config.clone();
    }
    if let Some(record) = proven {
        let (version, digest) = (bounded(&record.version), bounded(&record.digest));
        add_on.answer.component = Component { version, digest };
    }
    let verdict = match kept {
        Some(plan) => Verdict::Plan(plan, Vec::new()),
        None => Verdict::Left(reason::APPROVAL_REQUIRED, message.clone()),
    };
    add_on.answer = Answer { verdict, component: add_on.answer.component.clone() };
    let plan = PluginApproval { digest, changes: bounded_lines(lines) };
    // An upgrade that waits is what is shown.
    add_on.waiting.get_or_insert(Waiting { plan, message });
}

/// How an add-on fares a plan of which waits for approval.
pub(super) fn waiting(progress: Progress, add_on: &PlannedAddOn) -> Progress {
    let Some(Waiting { plan, message }) = &add_on.waiting else { return progress };
    let progress = Progress { approval: Some(plan.clone()), ..progress };
    if let Verdict::Left(..) = add_on.answer.verdict {
        let installed = add_on.installed.as_ref().ok().and_then(Option::as_ref);
        let phase = match installed.filter(|it| it.standing == Standing::Proven) {
            Some(record) if record.complete => PluginPhase::Running,
            Some(record) if record.was_whole() => PluginPhase::Updating,
            Some(record) if !record.plan_hash.is_empty() => PluginPhase::Provisioning,
            _ => PluginPhase::Pending,
        };
        let reason = reason::APPROVAL_REQUIRED.to_owned();
        return Progress { phase, reason, message: message.clone(), ..progress };
    }
    let said = [message.as_str(), progress.message.as_str()];
    let said: Vec<&str> = said.into_iter().filter(|it| !it.is_empty()).collect();
    let message = said.join("; ");
    match progress.phase {
        PluginPhase::Running => {
            Progress { reason: reason::APPROVAL_REQUIRED.to_owned(), message, ..progress }
        }
        _ => Progress { message, ..progress },
    }
}
