//! Objects of installed add-ons that somebody changed or deleted are set back: what was applied is recorded
//! and checked. Whether an object is set back is decided in `addons`. Nothing is watched, and nothing is
//! written to what is paused, moved or removed.

mod check;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use addons::{self, Inventory};
use contract::{AddOnPlan, StepSpec};
use crds::cluster_api::Cluster;
use crds::cluster_plugin::{ClusterPlugin, Drift as Setting};
use crds::names;
use kube::api::ObjectMeta;
use serde_json::Value;
use tokio::time::Instant;

use check::DriftCheck;

use super::AddOns;
use super::execute::{content, execute};
use super::memory::{FULL, WAITING};
use super::options::ApplyOptions;
use super::progress::StepProgress;
use crate::management::Cached;
use crate::object_name::ObjectName;
use crate::system::now;
use crate::workload::WorkloadCluster;

/// The steps that count as carried out when a plan was: all but those that are checked again and again.
pub(super) fn steps_done_once(plan: &AddOnPlan) -> BTreeSet<String> {
    plan.steps.iter().filter(|it| !addons::is_checked_again(it)).map(|it| it.id.clone()).collect()
}

impl AddOns {
    /// Checks whether what was installed by this plan is as it was applied, sets back what is not, and
    /// reports how the add-on fares then. `executed`: how its waits fare.
    pub(super) async fn correct_drift(
        &self,
        (object, cluster): (&Cached<ClusterPlugin>, &ObjectName),
        plan: &AddOnPlan,
        installed: &Inventory,
        workload: &WorkloadCluster,
        options: &ApplyOptions<'_>,
        executed: StepProgress,
    ) -> StepProgress {
        let (name, setting) = (object.object_name(), object.spec.drift);
        let mut memory = options.memory.drift(|memory| {
            memory.begin(installed, setting);
            memory.clone()
        });
        if setting == Setting::Off || matches!(executed, StepProgress::Unreachable(_)) {
            return executed;
        }
        let may_write = || self.may_repair(&name, cluster, setting);
        let is_full = memory.is_due(object, Instant::now());
        let check = DriftCheck { cluster: workload, options, setting, is_full, may_write: &may_write };
        let before = installed.marked();
        let mut marks = before.clone();
        let findings = match check.all(&objects(plan, options), &mut marks, &mut memory).await {
            Ok(findings) => findings,
            Err(progress) => {
                options.memory.drift(|remembered| *remembered = memory);
                return progress;
            }
        };
        for event in findings.events {
            tracing::info!(cluster_plugin = %name, module = installed.module, "{}", event.message);
            self.context.management.publish_event(object, event);
        }
        let executed = if findings.is_base_gone {
            // What is made of a definition, or was in a namespace, went with it.
            let options = ApplyOptions { force: true, is_repair: true, ..*options };
            execute(workload, &plan.steps, &mut BTreeSet::new(), &options).await
        } else if findings.is_repaired {
            execute(workload, &plan.steps, &mut steps_done_once(plan), options).await
        } else {
            executed
        };
        marks.extend(options.objects.marks());
        if marks != before
            && let Err(progress) =
                self.write_record(&name, workload, &installed.clone().with_marks(&marks)).await
        {
            return progress;
        }
        let lasts = if matches!(executed, StepProgress::Waiting(_)) { WAITING } else { FULL };
        let next = findings.next.map(|at| Duration::from_secs_f64((at - now()).max(0.0)));
        memory.checked(object, is_full, lasts, next, Instant::now());
        let executed = memory.worse_of(executed);
        options.memory.drift(|remembered| *remembered = memory);
        executed
    }

    /// Whether anything may be written to a cluster as it is by now.
    fn may_repair(&self, name: &ObjectName, cluster: &ObjectName, setting: Setting) -> bool {
        let management = &self.context.management;
        let object = management.get::<ClusterPlugin>(name).filter(|object| !management.is_paused(object));
        let cluster = management.get::<Cluster>(cluster);
        may_repair(object.as_deref().map(|known| &**known), cluster.as_deref().map(|known| &**known), setting)
    }
}

/// Whether anything may be written to a cluster whose objects are these: none of them is on its way out, and
/// nobody changed the setting.
fn may_repair(object: Option<&ClusterPlugin>, cluster: Option<&Cluster>, setting: Setting) -> bool {
    let (Some(object), Some(cluster)) = (object, cluster) else { return false };
    let stays = |metadata: &ObjectMeta| {
        let is_moved = metadata
            .annotations
            .as_ref()
            .is_some_and(|it| it.contains_key(names::DELETE_FOR_MOVE_ANNOTATION));
        metadata.deletion_timestamp.is_none() && !is_moved
    };
    stays(&object.metadata) && stays(&cluster.metadata) && object.spec.drift == setting
}

/// What a plan applies, in its order.
fn objects(plan: &AddOnPlan, options: &ApplyOptions<'_>) -> Vec<Value> {
    let mut res = Vec::new();
    for step in &plan.steps {
        if let Ok(StepSpec::Apply(spec)) = step.typed()
            && let Ok(objects) = content(&step.id, &spec, options.authority)
        {
            res.extend(objects.into_owned());
        }
    }
    res
}
