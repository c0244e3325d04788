//! Whether an upgrade may begin: before anything is written, it is checked that the new component takes the
//! configuration, that AWS allows what it needs, and that the API server would take every object of its plan.

use addons::{Inventory, ObjectRef, Progress, Recreate, UpgradeProgress, grant, may_take_over, recreate};
use contract::{AddOnPlan, StepSpec};
use crds::cluster_plugin::PluginPhase;
use crds::conditions::reason;
use serde_json::Value;
use tokio::time::Instant;

use super::Installation;
use super::advance::Prerequisites;
use super::bounded::bounded;
use super::plan::PlannedAddOn;
use super::rollout::{Rollout, Target};
use crate::controller::addon::check;
use crate::controller::addon::options::field_manager;
use crate::controller::addon::plugins::Answer;
use crate::controller::addon::progress::StepProgress;
use crate::workload::{WorkloadCluster, WorkloadError};

impl Installation<'_> {
    /// Begins the upgrade of an add-on to the component with this answer; or why it cannot be begun.
    pub(super) async fn begin_upgrade(
        &self,
        add_on: &PlannedAddOn,
        new: &Answer,
    ) -> Result<Progress, String> {
        let Prerequisites { plan, installed, workload, .. } =
            self.prerequisites(add_on, new).map_err(|progress| progress.message)?;
        let findings = self.findings(add_on, new).await;
        if let Some((_, why)) = plan.steps.iter().find_map(|step| check::refusal(&findings, &step.id)) {
            return Err(why);
        }
        let controller = self.controller;
        let reserved =
            controller.reserve_upgrade(&self.plugin_name, &add_on.desired.module, &new.component)?;
        let options = DryRun {
            manager: field_manager(&add_on.desired.module),
            taken_over: controller.plugins.grants(&add_on.desired).taken_over,
            force: self.force(),
            until: self.until,
        };
        options.check(plan, installed, workload).await?;
        let target = Target { add_on, answer: new, plan, installed, workload, findings: &findings };
        let begun = match Rollout::of(self, target).await {
            Ok(rollout) => {
                reserved.keep();
                rollout.begin().await
            }
            Err(progress) => progress,
        };
        match begun {
            StepProgress::Waiting(awaited) => {
                let from = installed.map(|it| bounded(&it.version));
                let phase = PluginPhase::Updating;
                let progress = add_on.progress_of(&new.component, phase, reason::CREATING, awaited.what);
                let upgrade = Some(UpgradeProgress { from, failed: None });
                Ok(Progress { available: None, upgrade, ..progress })
            }
            StepProgress::Unreachable(why) | StepProgress::Refused(_, why) => Err(why),
            StepProgress::Done => Err("nothing was begun".to_owned()),
        }
    }
}

/// How objects are tried, without writing any.
struct DryRun {
    manager: String,
    taken_over: Vec<grant::TakeOver>,
    force: bool,
    until: Instant,
}

impl DryRun {
    /// Asks the API server whether it would take the objects of a plan, without writing any. What cannot be
    /// changed in place counts as taken where it may be made anew.
    async fn check(
        &self,
        plan: &AddOnPlan,
        installed: Option<&Inventory>,
        workload: &WorkloadCluster,
    ) -> Result<(), String> {
        for step in &plan.steps {
            let Ok(StepSpec::Apply(spec)) = step.typed() else { continue };
            for object in spec.objects {
                if Instant::now() >= self.until {
                    return Err("the API server answers slowly".to_owned());
                }
                let error = match workload.would_apply(object, &self.manager).await {
                    Ok(_) => continue,
                    Err(error) => error,
                };
                match error {
                    WorkloadError::Conflict { object: ref reference, ref causes, .. } => {
                        let managers = grant::taken_over(&self.taken_over, reference);
                        let is_ours = |known: &ObjectRef| known.same_object(reference);
                        let was_applied = installed.is_some_and(|it| it.objects.iter().any(is_ours));
                        if !was_applied && !self.force && !may_take_over(causes, &managers) {
                            return Err(error.to_string());
                        }
                    }
                    WorkloadError::Refused { code: 422, object: ref reference, ref fields, .. } => {
                        may_be_recreated(workload, object, reference, fields, &self.manager)
                            .await?
                            .map_err(|()| error.to_string())?;
                    }
                    WorkloadError::Refused { code: 403, .. }
                    | WorkloadError::Unreachable(_)
                    | WorkloadError::NotAsked(_)
                    | WorkloadError::NotAllowed(_)
                    | WorkloadError::Kubeconfig(_) => return Err(error.to_string()),
                    // What it depends on is applied before it, or it takes no dry runs.
                    WorkloadError::UnknownKind { .. } | WorkloadError::Refused { .. } => (),
                }
            }
        }
        Ok(())
    }
}

/// Whether an object that cannot be changed in place may be made anew; the outer error says why not.
async fn may_be_recreated(
    workload: &WorkloadCluster,
    object: &Value,
    reference: &ObjectRef,
    fields: &[String],
    manager: &str,
) -> Result<Result<(), ()>, String> {
    let live = workload.get(reference).await.map_err(|error| error.to_string())?;
    match live.map(|live| recreate(object, &live, manager, fields, false)) {
        Some(Recreate::Safe) => Ok(Ok(())),
        Some(Recreate::Refused(why)) => Err(why),
        Some(Recreate::No) | None => Ok(Err(())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::addon::timing::BUDGET;
    use crate::workload::fake::{Answer, Server, cluster, kinds};

    /// What is said before an upgrade whose DaemonSet has another selector than the live one, which these
    /// managers wrote; and what was asked besides kinds.
    async fn said(writers: &[(&str, &str)]) -> (Result<(), String>, Vec<String>) {
        let selector = json!({"f:spec": {"f:selector": {}}});
        let managed: Vec<Value> = writers
            .iter()
            .map(|(manager, operation)| json!({"manager": manager, "operation": operation, "fieldsV1": selector}))
            .collect();
        let daemonset = |app: &str| {
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a", "namespace": "n"},
                "spec": {"selector": {"matchLabels": {"app": app}}}})
        };
        let mut live = daemonset("old");
        live["metadata"]["managedFields"] = json!(managed);
        let server = Server::start(move |target| match kinds(target) {
            Some(answer) => answer,
            None if target.starts_with("GET ") => Answer::json(&live),
            None => {
                let causes = json!([{"field": "spec.selector", "message": "field is immutable"}]);
                let status = json!({"kind": "Status", "message": "invalid", "details": {"causes": causes}});
                Answer::Text(422, status.to_string())
            }
        });
        let server = server.await;
        let step =
            json!({"id": "a", "kind": "k8s.apply/v1", "spec": {"objects": [daemonset("new")]}, "after": []});
        let plan = json!({"steps": [step], "removal": [], "diagnostics": [], "extra": {}});
        let plan = serde_json::from_value(plan).expect("a plan");
        let until = Instant::now() + BUDGET;
        let run = DryRun { manager: "ours".into(), taken_over: Vec::new(), force: false, until };
        let outcome = run.check(&plan, None, &cluster(&server).await).await;
        let asked = server.requests().into_iter().filter(|it| it.contains("/daemonsets/"));
        (outcome, asked.collect())
    }

    #[tokio::test]
    async fn what_cannot_be_made_anew_is_said_before_anything_is_written() {
        let (outcome, asked) = said(&[("ours", "Apply")]).await;
        assert_eq!(outcome, Ok(()), "it is made anew");
        assert!(asked.iter().all(|it| it.starts_with("GET ") || it.contains("dryRun=All")), "{asked:?}");
        let (outcome, asked) = said(&[("ours", "Apply"), ("helm", "Update")]).await;
        let why = outcome.expect_err("somebody else wrote it too");
        assert!(why.contains("DaemonSet n/a: spec.selector cannot be changed in place, and helm"), "{why}");
        assert!(asked.iter().all(|it| it.starts_with("GET ") || it.contains("dryRun=All")), "{asked:?}");
    }
}
