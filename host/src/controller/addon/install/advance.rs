//! Advances each add-on as far as it can come now, and reports how it fares.

use std::time::Duration;

use addons::order::Before;
use addons::upgrade::{self, Component};
use addons::{Api, Inventory, Progress, UpgradeProgress};
use contract::AddOnPlan;
use crds::cluster_plugin::PluginPhase;
use crds::conditions::reason;
use tokio::time::Instant;

use super::Installation;
use super::approve::waiting;
use super::kubernetes::unsupported;
use super::plan::{Course, PlannedAddOn};
use super::rollout::{Rollout, Target, told};
use crate::controller::addon::check::{self, Findings};
use crate::controller::addon::fleet::{ASK_AGAIN, FoundUpgrade, is_awaited};
use crate::controller::addon::plugins::{Answer, Verdict, hints};
use crate::controller::addon::progress::StepProgress;
use crate::controller::addon::timing::SOON;
use crate::system::now;
use crate::workload::WorkloadCluster;

/// What an add-on needs before its plan is rolled out.
pub(super) struct Prerequisites<'a> {
    pub plan: &'a AddOnPlan,
    pub warnings: &'a [String],
    pub installed: Option<&'a Inventory>,
    pub workload: &'a WorkloadCluster,
}

impl Installation<'_> {
    /// Rolls out each plan as far as it comes; `None`: the ClusterPlugin was paused in between.
    pub(super) async fn advance(&mut self, add_ons: &[PlannedAddOn]) -> Option<Vec<Progress>> {
        // An add-on is checked again when that is due for itself, not when another one is on its way.
        let is_another_on_its_way = !add_ons.iter().all(PlannedAddOn::is_complete);
        let mut res = Vec::new();
        for add_on in add_ons {
            if self.controller.is_paused(&self.plugin_name) {
                return None;
            }
            let findings = self.findings(add_on, &add_on.answer).await;
            let verified = self.verified_until(add_on, &findings).filter(|_| is_another_on_its_way);
            let progress = match waits_for_others(add_on, add_ons, &res) {
                Some(progress) => progress,
                None => self.advance_one(add_on, &findings, verified.is_some()).await,
            };
            self.tell_fleet(add_on, &progress);
            let drift = self.memory(&add_on.desired.module).drift(|memory| memory.next_check());
            let is_held =
                matches!(add_on.course, Course::Upgrade(_)) && progress.phase == PluginPhase::Running;
            let ask_again = is_held.then(|| Instant::now() + ASK_AGAIN);
            let upgrade = ask_again.or(self.upgrade_ends(add_on));
            // Then what is approved is recorded, and its annotation can go.
            let used = add_on.uses.first().map(|_| Instant::now() + SOON);
            let times = [self.next, check::next(&findings), verified, drift, upgrade, used];
            self.next = times.into_iter().flatten().min();
            if progress.reason == reason::UNREACHABLE && self.workload.is_some() {
                // The others would wait as long for its answer.
                (self.api, self.workload) = (Api::Unreachable(progress.message.clone()), None);
            }
            res.push(progress);
        }
        Some(res)
    }

    /// What an add-on that may be installed needs of AWS.
    pub(super) async fn findings(&self, add_on: &PlannedAddOn, answer: &Answer) -> Findings {
        match &answer.verdict {
            Verdict::Plan(plan, _) if addons::waits_for(add_on.desired.stage, &self.state).is_none() => {
                let installed = add_on.installed.as_ref().ok().and_then(Option::as_ref);
                let checks = &self.controller.checks;
                checks
                    .of_plan(&add_on.desired, installed, &plan.steps, &self.facts, self.region.as_ref())
                    .await
            }
            _ => Findings::new(),
        }
    }

    /// Until when nothing of an add-on has to be checked, because it was all found to be there a moment ago.
    fn verified_until(&self, add_on: &PlannedAddOn, findings: &Findings) -> Option<Instant> {
        let (Verdict::Plan(plan, _), Ok(Some(installed))) = (&add_on.answer.verdict, &add_on.installed)
        else {
            return None;
        };
        if installed.digest != add_on.answer.component.digest
            || plan.steps.iter().any(|step| check::refusal(findings, &step.id).is_some())
        {
            return None;
        }
        self.memory(&installed.module).verified_until(plan, installed)
    }

    async fn advance_one(&self, add_on: &PlannedAddOn, findings: &Findings, is_verified: bool) -> Progress {
        let memory = self.memory(&add_on.desired.module);
        let held = match &add_on.course {
            Course::Upgrade(new) => match self.begin_upgrade(add_on, new).await {
                Ok(progress) => return progress,
                Err(why) => Some(why),
            },
            _ => None,
        };
        let progress = match self.prerequisites(add_on, &add_on.answer) {
            Err(progress) => {
                // An upgrade that cannot go on is overdue like one that waits.
                self.remember_attempt(add_on, &StepProgress::waiting(&progress.message));
                *progress
            }
            Ok(Prerequisites { plan, warnings, installed, workload }) => {
                let target = Target { add_on, answer: &add_on.answer, plan, installed, workload, findings };
                let reached = if is_verified { StepProgress::Done } else { self.roll_out(target).await };
                self.remember_attempt(add_on, &reached);
                let drifted = memory.drift(|memory| memory.warnings());
                reported(&target, reached, warnings, drifted)
            }
        };
        let progress = Progress { repaired: memory.drift(|memory| memory.repaired), ..progress };
        let progress = waiting(progress, add_on);
        match held {
            Some(why) => held_back(progress, add_on, &why),
            None => progress,
        }
    }

    /// Remembers how far an upgrade under way came.
    fn remember_attempt(&self, add_on: &PlannedAddOn, reached: &StepProgress) {
        let memory = self.memory(&add_on.desired.module);
        match &add_on.installed {
            _ if self.workload.is_none() => memory.missed_upgrade(now()),
            // What is undone is given up.
            Ok(Some(installed))
                if !matches!(add_on.course, Course::Undo(_)) && installed.replaced().is_some() =>
            {
                memory.attempted_upgrade(&installed.digest, reached, now());
            }
            _ => (),
        }
    }

    /// Lets other clusters know how far an upgrade is in this one.
    fn tell_fleet(&self, add_on: &PlannedAddOn, progress: &Progress) {
        let fleet = &self.controller.fleet;
        let Some(upgrade) = progress.upgrade.clone().filter(|_| progress.reason != reason::UNREACHABLE)
        else {
            return fleet.stop_awaiting(&self.plugin_name);
        };
        let found = match (upgrade.failed, upgrade.from) {
            (Some(failed), _) => FoundUpgrade::Failed { digest: failed.digest, why: failed.message },
            (None, Some(_)) => FoundUpgrade::UnderWay { digest: progress.digest.clone() },
            (None, None) => FoundUpgrade::None,
        };
        fleet.looked_at(&self.plugin_name, &add_on.desired.module, found);
        let installed = add_on.installed.as_ref().ok().and_then(Option::as_ref);
        let under_way = installed.and_then(Inventory::replaced);
        if under_way.is_some_and(|it| !is_awaited(it.since, now())) {
            fleet.stop_awaiting(&self.plugin_name);
        }
    }

    /// When an upgrade under way has to be whole.
    fn upgrade_ends(&self, add_on: &PlannedAddOn) -> Option<Instant> {
        let installed = add_on.installed.as_ref().ok()?.as_ref()?;
        let timeout = self.objects.plugin.spec.upgrade_timeout();
        let left = installed.replaced()?.since + timeout.as_secs_f64() - now();
        (left > 0.0).then(|| Instant::now() + Duration::from_secs_f64(left))
    }

    pub(super) async fn roll_out(&self, target: Target<'_>) -> StepProgress {
        match Rollout::of(self, target).await {
            Ok(rollout) => rollout.run().await,
            Err(progress) => progress,
        }
    }

    /// What has to be there before an add-on can be rolled out; or what it waits for.
    pub(super) fn prerequisites<'a>(
        &'a self,
        add_on: &'a PlannedAddOn,
        answer: &'a Answer,
    ) -> Result<Prerequisites<'a>, Box<Progress>> {
        let pending = |reason, message| Err(Box::new(add_on.progress(PluginPhase::Pending, reason, message)));
        let (plan, warnings) = match &answer.verdict {
            Verdict::Refused(reason, message) => {
                return Err(Box::new(add_on.progress(PluginPhase::Failed, reason, message.clone())));
            }
            Verdict::Unsupported(message) => return Err(Box::new(unsupported(add_on, message))),
            Verdict::Pending(message) => return pending(reason::CREATING, message.clone()),
            Verdict::Left(reason, message) => {
                let progress = add_on.progress(PluginPhase::Running, reason, message.clone());
                return Err(Box::new(progress));
            }
            Verdict::Plan(plan, warnings) => (plan, warnings),
        };
        if let Some(what) = addons::waits_for(add_on.desired.stage, &self.state) {
            return pending(reason::WAITING_FOR_CONTROL_PLANE, format!("waits {what}"));
        }
        match (self.workload.as_deref(), &add_on.installed, &self.api) {
            (Some(workload), Ok(installed), _) => {
                Ok(Prerequisites { plan, warnings, installed: installed.as_ref(), workload })
            }
            (_, _, Api::Unreachable(why)) => {
                pending(reason::UNREACHABLE, format!("for the API server: {why}"))
            }
            (_, Err(why), _) => pending(reason::UNREACHABLE, why.clone()),
            (None, _, _) => {
                pending(reason::WAITING_FOR_CONTROL_PLANE, "waits for the kubeconfig Secret".into())
            }
        }
    }
}

/// What is said of an add-on that cannot begin because of others. What was whole once goes on, whatever becomes of
/// those that it needed to begin.
fn waits_for_others(add_on: &PlannedAddOn, all: &[PlannedAddOn], advanced: &[Progress]) -> Option<Progress> {
    let was_whole = |it: &PlannedAddOn| matches!(&it.installed, Ok(Some(installed)) if installed.was_whole());
    if was_whole(add_on) {
        return None;
    }
    let failed = |reason, message| Some(add_on.progress(PluginPhase::Failed, reason, message));
    let awaited = match &add_on.before {
        Before::Circle(names) => {
            return failed(
                reason::CIRCULAR_REQUIREMENTS,
                format!("it waits for itself: {}", names.join(" after ")),
            );
        }
        Before::Missing(what) => return failed(reason::REQUIREMENT_MISSING, what.clone()),
        Before::AddOns(names) => names,
    };
    let runs = |name: &str| {
        let known = advanced.iter().find(|it| it.module == name);
        // One that comes later in this reconciliation runs if it did before.
        let before = || all.iter().find(|it| it.desired.module == name).is_some_and(was_whole);
        known.map_or_else(before, |it| it.phase == PluginPhase::Running)
    };
    let left: Vec<&str> = awaited.iter().map(String::as_str).filter(|name| !runs(name)).collect();
    let message = || format!("waits for {} to run", left.join(", "));
    (!left.is_empty()).then(|| add_on.progress(PluginPhase::Pending, reason::WAITING_FOR_ADD_ON, message()))
}

/// How an add-on fares, by how far its plan has come.
fn reported(
    target: &Target<'_>,
    reached: StepProgress,
    warnings: &[String],
    drifted: Vec<String>,
) -> Progress {
    let Target { add_on, plan, installed, findings, .. } = *target;
    let was_complete = installed.is_some_and(|it| it.complete);
    let is_changing = was_complete || installed.is_some_and(Inventory::was_whole);
    let phase = if is_changing { PluginPhase::Updating } else { PluginPhase::Provisioning };
    let course = said_of_course(add_on);
    let together = |what: String| match &course {
        Some(course) => format!("{course}; it waits: {what}"),
        None => what,
    };
    match reached {
        StepProgress::Done => {
            let undone = add_on.undone().map(|undone| upgrade::undone(&add_on.desired.module, &undone));
            let available = upgrade_available(add_on, installed).filter(|_| undone.is_none());
            let reason = if !drifted.is_empty() {
                reason::DRIFT
            } else if undone.is_some() {
                reason::UPGRADE_UNDONE
            } else if available.is_some() {
                reason::UPGRADE_AVAILABLE
            } else {
                reason::READY
            };
            let warnings: Vec<String> = undone
                .into_iter()
                .chain(available)
                .chain(drifted)
                .chain(warnings.iter().cloned())
                .chain(check::warnings(findings))
                .collect();
            let progress = add_on.progress(PluginPhase::Running, reason, warnings.join("; "));
            // It is whole, whatever its record said before.
            let upgrade = progress.upgrade.map(|upgrade| match add_on.course {
                Course::Undo(_) => UpgradeProgress { from: None, ..upgrade },
                _ => UpgradeProgress {
                    from: None,
                    failed: upgrade.failed.filter(|_| installed.is_some_and(|it| it.undone.is_some())),
                },
            });
            let outputs = Some(told(plan));
            Progress { upgrade, outputs, ..progress }
        }
        StepProgress::Waiting(awaited) if awaited.is_overdue => {
            let all: Vec<String> =
                std::iter::once(awaited.what).chain(hints(&add_on.desired, plan)).collect();
            add_on.progress(phase, reason::WAIT_TIMED_OUT, together(all.join("; ")))
        }
        StepProgress::Waiting(awaited) => add_on.progress(phase, reason::CREATING, together(awaited.what)),
        StepProgress::Unreachable(what) => add_on.progress(phase, reason::UNREACHABLE, what),
        StepProgress::Refused(reason, what) => add_on.progress(PluginPhase::Failed, reason, together(what)),
    }
}

/// What is said of an upgrade that did not come to its end, while it is undone or cannot be.
fn said_of_course(add_on: &PlannedAddOn) -> Option<String> {
    match &add_on.course {
        Course::Serve | Course::Upgrade(_) => None,
        Course::Undo(awaited) => {
            Some(format!("the upgrade was not whole in time and is undone; it awaited: {awaited}"))
        }
        Course::Stuck(why) => Some(format!("the upgrade is not whole in time and cannot be undone: {why}")),
    }
}

/// How an add-on fares that is to be upgraded and cannot be yet.
fn held_back(progress: Progress, add_on: &PlannedAddOn, why: &str) -> Progress {
    let Some(available) = add_on.available.as_ref().filter(|_| progress.phase == PluginPhase::Running) else {
        return progress;
    };
    let message = format!("the upgrade to {} waits: {why}", available.version);
    Progress { reason: reason::UPGRADE_AVAILABLE.to_owned(), message, ..progress }
}

/// What is said of an add-on that is whole and served by what installed it, when this operator brings another
/// component.
fn upgrade_available(add_on: &PlannedAddOn, installed: Option<&Inventory>) -> Option<String> {
    let (available, installed) = (add_on.available.as_ref()?, installed?);
    let brought = Component { version: available.version.clone(), digest: available.digest.clone() };
    let is_pinned = add_on.desired.version.is_some();
    Some(upgrade::available(&add_on.desired.module, installed, &brought, is_pinned))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::plan::Course;
    use super::*;

    /// An add-on of this place in a list of two, which comes after these and was whole before or not.
    fn add_on(place: usize, before: Before, was_whole: bool) -> PlannedAddOn {
        let spec = json!({"clusterName": "one", "networking": {"calico": {}}});
        let desired = addons::desired(&serde_json::from_value(spec).expect("a spec")).remove(place);
        let record = json!({"module": desired.module, "version": "1", "digest": "", "config": {}, "planHash": "a",
            "complete": true, "objects": [], "removal": []});
        let installed = was_whole.then(|| serde_json::from_value(record).expect("a record"));
        let answer = Answer { component: Component::default(), verdict: Verdict::Pending("it".into()) };
        PlannedAddOn { before, ..PlannedAddOn::of(desired, Ok(installed), answer, Course::Serve) }
    }

    fn said(
        was_whole: bool,
        before: Before,
        other_was_whole: bool,
        other: Option<PluginPhase>,
    ) -> Option<String> {
        let all = [add_on(0, Before::AddOns(vec![]), other_was_whole), add_on(1, before, was_whole)];
        let other = other.map(|phase| all[0].progress(phase, reason::CREATING, String::new()));
        let advanced: Vec<Progress> = other.into_iter().collect();
        waits_for_others(&all[1], &all, &advanced)
            .map(|it| format!("{:?} {}: {}", it.phase, it.reason, it.message))
    }

    #[test]
    fn an_add_on_begins_when_what_it_needs_runs() {
        let needs = || Before::AddOns(vec!["aws-cloud-controller-manager".into()]);
        let waits = "Pending WaitingForAddOn: waits for aws-cloud-controller-manager to run";
        let waiting = Some(waits.to_owned());
        assert_eq!(said(false, needs(), false, Some(PluginPhase::Provisioning)), waiting);
        assert_eq!(said(false, needs(), true, Some(PluginPhase::Failed)), waiting);
        assert_eq!(said(false, needs(), true, Some(PluginPhase::Running)), None);
        assert_eq!(said(false, needs(), false, None), waiting, "it comes later");
        assert_eq!(said(false, needs(), true, None), None, "it comes later, and ran before");
        assert_eq!(said(true, needs(), false, Some(PluginPhase::Failed)), None, "it was whole itself");
    }

    #[test]
    fn what_can_never_begin_says_why() {
        let circle = Before::Circle(vec!["a".into(), "b".into(), "a".into()]);
        let expected = "Failed CircularRequirements: it waits for itself: a after b after a";
        assert_eq!(said(false, circle, true, None), Some(expected.to_owned()));
        let missing = Before::Missing("its plugin needs add-on \"x\"".into());
        let expected = "Failed RequirementMissing: its plugin needs add-on \"x\"";
        assert_eq!(said(false, missing, true, None), Some(expected.to_owned()));
    }
}
