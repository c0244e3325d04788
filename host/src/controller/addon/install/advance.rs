//! Advances each add-on as far as it can come now, and reports how it fares.

use addons::upgrade::{self, Component};
use addons::{Api, Inventory, Progress};
use contract::AddOnPlan;
use crds::cluster_plugin::PluginPhase;
use crds::conditions::reason;
use tokio::time::Instant;

use super::Installation;
use super::kubernetes::unsupported;
use super::plan::PlannedAddOn;
use super::rollout::{Rollout, Target};
use crate::controller::addon::check::{self, Findings};
use crate::controller::addon::plugins::{Verdict, hints};
use crate::controller::addon::progress::StepProgress;
use crate::workload::WorkloadCluster;

/// What an add-on needs before its plan is rolled out.
struct Prerequisites<'a> {
    plan: &'a AddOnPlan,
    warnings: &'a [String],
    installed: Option<&'a Inventory>,
    workload: &'a WorkloadCluster,
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
            let findings = self.findings(add_on).await;
            let verified = self.verified_until(add_on, &findings).filter(|_| is_another_on_its_way);
            let progress = self.advance_one(add_on, &findings, verified.is_some()).await;
            let drift = self.memory(add_on.desired.module).drift(|memory| memory.next_check());
            let times = [self.next, check::next(&findings), verified, drift];
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
    async fn findings(&self, add_on: &PlannedAddOn) -> Findings {
        match &add_on.answer.verdict {
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
        let memory = self.memory(add_on.desired.module);
        let progress = match self.prerequisites(add_on) {
            Err(progress) => *progress,
            Ok(Prerequisites { plan, warnings, installed, workload }) => {
                let target = Target { add_on, plan, installed, workload, findings };
                let reached = if is_verified { StepProgress::Done } else { self.roll_out(target).await };
                let drifted = memory.drift(|memory| memory.warnings());
                reported(&target, reached, warnings, drifted)
            }
        };
        Progress { repaired: memory.drift(|memory| memory.repaired), ..progress }
    }

    async fn roll_out(&self, target: Target<'_>) -> StepProgress {
        match Rollout::of(self, target).await {
            Ok(rollout) => rollout.run().await,
            Err(progress) => progress,
        }
    }

    /// What has to be there before an add-on can be rolled out; or what it waits for.
    fn prerequisites<'a>(&'a self, add_on: &'a PlannedAddOn) -> Result<Prerequisites<'a>, Box<Progress>> {
        let pending = |reason, message| Err(Box::new(add_on.progress(PluginPhase::Pending, reason, message)));
        let (plan, warnings) = match &add_on.answer.verdict {
            Verdict::Refused(reason, message) => {
                return Err(Box::new(add_on.progress(PluginPhase::Failed, reason, message.clone())));
            }
            Verdict::Unsupported(message) => return Err(Box::new(unsupported(add_on, message))),
            Verdict::Pending(message) => return pending(reason::CREATING, message.clone()),
            Verdict::Left(message) => {
                let message = message.clone();
                let progress = add_on.progress(PluginPhase::Running, reason::UPGRADE_AVAILABLE, message);
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

/// How an add-on fares, by how far its plan has come.
fn reported(
    target: &Target<'_>,
    reached: StepProgress,
    warnings: &[String],
    drifted: Vec<String>,
) -> Progress {
    let Target { add_on, plan, installed, findings, .. } = *target;
    let was_complete = installed.is_some_and(|it| it.complete);
    let phase = if was_complete { PluginPhase::Updating } else { PluginPhase::Provisioning };
    match reached {
        StepProgress::Done => {
            let upgrade = upgrade_available(add_on, installed);
            let reason = if !drifted.is_empty() {
                reason::DRIFT
            } else if upgrade.is_some() {
                reason::UPGRADE_AVAILABLE
            } else {
                reason::READY
            };
            let warnings: Vec<String> = upgrade
                .into_iter()
                .chain(drifted)
                .chain(warnings.iter().cloned())
                .chain(check::warnings(findings))
                .collect();
            add_on.progress(PluginPhase::Running, reason, warnings.join("; "))
        }
        StepProgress::Waiting(awaited) if awaited.is_overdue => {
            let all: Vec<String> =
                std::iter::once(awaited.what).chain(hints(&add_on.desired, plan)).collect();
            add_on.progress(phase, reason::WAIT_TIMED_OUT, all.join("; "))
        }
        StepProgress::Waiting(awaited) => add_on.progress(phase, reason::CREATING, awaited.what),
        StepProgress::Unreachable(what) => add_on.progress(phase, reason::UNREACHABLE, what),
        StepProgress::Refused(reason, what) => add_on.progress(PluginPhase::Failed, reason, what),
    }
}

/// What is said of an add-on that is whole and served by what installed it, when this operator brings another
/// component.
fn upgrade_available(add_on: &PlannedAddOn, installed: Option<&Inventory>) -> Option<String> {
    let (available, installed) = (add_on.available.as_ref()?, installed?);
    let brought = Component { version: available.version.clone(), digest: available.digest.clone() };
    let is_pinned = add_on.desired.version.is_some();
    Some(upgrade::available(add_on.desired.module, installed, &brought, is_pinned))
}
