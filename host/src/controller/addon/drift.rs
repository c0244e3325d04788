//! Objects of installed add-ons that somebody changed or deleted: what was applied is remembered, looked at
//! again, and set back. Whether an object is set back is `addons`'s to say; nothing is watched, and nothing
//! written to what is paused, moved or removed.

mod known;
mod look;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addons::{self, Change, Compared, Inventory, ObjectRef, Writers, compare, drift, without};
use contract::{AddOnPlan, StepSpec};
use crds::cluster_api::Cluster;
use crds::cluster_plugin::{ClusterPlugin, Drift as Setting};
use crds::names;
use kube::api::ObjectMeta;
use serde_json::Value;
use tokio::time::Instant;

pub use known::Drifts;
use look::Look;

use super::execute::{ApplyOptions, StepProgress, carried, content, execute};
use super::{AddOns, SETTLED, now};
use crate::context::ObjectName;
use crate::management::Cached;
use crate::workload::{WorkloadCluster, WorkloadError};

/// How long it counts that all objects of an add-on were looked at.
const FULL: Duration = SETTLED;
/// How much sooner they may be looked at: with the look that is made of what is settled.
const SLACK: Duration = Duration::from_secs(10);
/// And where nothing is to be expected of them: add-ons that were installed one after the other come to be
/// looked at together, since each look at a cluster has requests of its own.
const TOGETHER: Duration = Duration::from_secs(120);
/// How often while the add-on is not ready: somebody's change may be why.
const WAITING: Duration = Duration::from_secs(60);

/// What one look saw and applied, by object.
#[derive(Default)]
pub struct Ledger {
    /// What was written down of objects that were applied before.
    before: BTreeMap<ObjectRef, String>,
    /// They are taken back from whoever took them since.
    takes_back: bool,
    seen: Mutex<BTreeMap<ObjectRef, Option<Writers>>>,
    applied: Mutex<BTreeMap<ObjectRef, String>>,
}

impl Ledger {
    /// Of an add-on of which this was written down, by this program or by somebody else.
    pub fn of(installed: Option<&Inventory>, setting: Setting) -> Self {
        let known = installed.filter(|it| it.standing == addons::Standing::Proven).map(Inventory::marked);
        Ledger {
            before: known.unwrap_or_default(),
            takes_back: setting == Setting::Correct,
            ..Ledger::default()
        }
    }

    pub fn before(&self) -> &BTreeMap<ObjectRef, String> {
        &self.before
    }

    /// An object was read; `None`: it is not there.
    pub fn seen(&self, object: &ObjectRef, live: Option<&Value>) {
        lock(&self.seen).insert(object.clone(), live.map(Writers::of));
    }

    pub fn applied(&self, object: &Value, writers: &Writers, manager: &str) {
        if let Some(reference) = ObjectRef::of(object) {
            lock(&self.applied).insert(reference, writers.mark(manager));
        }
    }

    /// What is to be written down of what was applied.
    pub fn marks(&self) -> BTreeMap<ObjectRef, String> {
        lock(&self.applied).clone()
    }

    fn was_seen(&self, object: &ObjectRef) -> Option<Option<Writers>> {
        lock(&self.seen).get(object).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Applies an object of ours again that is in conflict because somebody took fields since it was last
/// applied; what an autoscaler took is left to it. `false`: the conflict is about what was never ours.
pub(super) async fn taken_back(
    cluster: &WorkloadCluster,
    object: &Value,
    manner: &ApplyOptions<'_>,
) -> Result<bool, StepProgress> {
    let manager = manner.field_manager;
    let Some((reference, mark)) =
        ObjectRef::of(object).and_then(|it| manner.ledger.before.get_key_value(&it))
    else {
        return Ok(false);
    };
    if !manner.ledger.takes_back {
        return Ok(false);
    }
    let Some(seen) = cluster.writers(reference).await.map_err(carried)? else { return Ok(false) };
    if compare(mark, Some(&seen), manager) != Compared::Different {
        return Ok(false);
    }
    let would = would(cluster, object, manager).await?;
    let drift = drift(mark, Some(&seen), would.as_ref(), manager);
    let writers =
        match cluster.apply(&without(object, &drift.left), manager, drift.change != Change::Scaled).await {
            Err(WorkloadError::Conflict { .. }) => return Ok(false),
            other => other.map_err(carried)?,
        };
    manner.ledger.applied(object, &writers, manager);
    Ok(true)
}

/// Who would have what if the object were applied; `None` when the API server does not say, as where a
/// webhook takes no dry runs.
async fn would(
    cluster: &WorkloadCluster,
    object: &Value,
    manager: &str,
) -> Result<Option<Writers>, StepProgress> {
    match cluster.would_apply(object, manager).await {
        Ok(would) => Ok(Some(would)),
        Err(error @ (WorkloadError::Unreachable(_) | WorkloadError::NotAsked(_))) => Err(carried(error)),
        Err(_) => Ok(None),
    }
}

/// The steps that count as carried out when a plan was: all but those that are looked at again and again.
pub(super) fn carried_out_once(plan: &AddOnPlan) -> BTreeSet<String> {
    plan.steps.iter().filter(|it| !addons::is_looked_at_again(it)).map(|it| it.id.clone()).collect()
}

impl AddOns {
    /// Looks whether what was installed by this plan is as it was applied, sets back what is not, and says
    /// how the add-on fares then. `so_far`: what its waits say.
    pub(super) async fn keep(
        &self,
        (object, cluster): (&Cached<ClusterPlugin>, &ObjectName),
        plan: &AddOnPlan,
        installed: &Inventory,
        workload: &WorkloadCluster,
        manner: &ApplyOptions<'_>,
        so_far: StepProgress,
    ) -> StepProgress {
        let (name, setting) = (object.object_name(), object.spec.drift);
        let mut known = self.drifts.begin(&name, installed, setting);
        if setting == Setting::Off || matches!(so_far, StepProgress::Unreachable(_)) {
            return so_far;
        }
        let may_write = || self.may_repair(&name, cluster, setting);
        let is_full = known.is_due(object, Instant::now());
        let look = Look { cluster: workload, manner, setting, is_full, may_write: &may_write };
        let before = installed.marked();
        let mut marks = before.clone();
        let looked = match look.all(&objects(plan, manner), &mut marks, &mut known).await {
            Ok(looked) => looked,
            Err(carried) => {
                self.drifts.put(&name, &installed.module, known);
                return carried;
            }
        };
        for note in looked.notes {
            tracing::info!(cluster_plugin = %name, module = installed.module, "{}", note.message);
            self.context.management.note(object, note);
        }
        let executed = match (looked.is_base_gone, looked.is_repaired) {
            // What is made of a definition, or was in a namespace, went with it.
            (true, _) => {
                execute(
                    workload,
                    &plan.steps,
                    &mut BTreeSet::new(),
                    &ApplyOptions { force: true, is_repair: true, ..*manner },
                )
                .await
            }
            (false, true) => execute(workload, &plan.steps, &mut carried_out_once(plan), manner).await,
            (false, false) => so_far,
        };
        marks.extend(manner.ledger.marks());
        if marks != before
            && let Err(carried) =
                self.write_record(&name, workload, &installed.clone().with_marks(&marks)).await
        {
            return carried;
        }
        let is_waiting = matches!(executed, StepProgress::Waiting(_));
        let lasts = if is_waiting { WAITING } else { FULL };
        known.looked(object, is_full, lasts, looked.next.map(|it| it - now()), Instant::now());
        let executed = known.judged(executed);
        self.drifts.put(&name, &installed.module, known);
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
fn objects(plan: &AddOnPlan, manner: &ApplyOptions<'_>) -> Vec<Value> {
    let mut res = Vec::new();
    for step in &plan.steps {
        if let Ok(StepSpec::Apply(spec)) = step.typed()
            && let Ok(objects) = content(&step.id, &spec, manner.authority)
        {
            res.extend(objects.into_owned());
        }
    }
    res
}
