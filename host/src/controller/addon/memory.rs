//! What is remembered of each ClusterPlugin between reconciliations, in one place and evicted at once. It is
//! lost at a restart: then steps are carried out once more, and everything is read again.

mod drift;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use addons::{Inventory, Progress, plan_hash};
use contract::AddOnPlan;
use model::Timestamp;
use tokio::time::Instant;

use super::progress::StepProgress;

use crate::object_name::ObjectName;

pub use drift::{DriftMemory, DriftReport, FULL, ObjectDrift, WAITING};

/// How long it counts that all of an add-on was found to be there.
const VERIFIED: Duration = Duration::from_secs(30);

/// What is remembered of all ClusterPlugins.
#[derive(Default)]
pub struct Memories(Mutex<HashMap<ObjectName, PluginMemory>>);

/// What is remembered of one.
#[derive(Default)]
struct PluginMemory {
    /// What reconciliations have found, and since when.
    progress: Option<(Vec<Progress>, Instant)>,
    add_ons: HashMap<String, AddOnState>,
}

/// What is remembered of one of its add-ons.
#[derive(Default)]
struct AddOnState {
    /// The hash of a plan and the steps of it that were carried out.
    completed: (String, BTreeSet<String>),
    verified: Option<Verification>,
    /// Since when steps wait.
    waits: HashMap<String, Instant>,
    drift: DriftMemory,
    upgrade: UpgradeAttempt,
    /// Its plugin was asked what uninstalls it.
    asked_for_removal: bool,
}

/// How an upgrade under way fared when its plan was last carried out as far as it came.
#[derive(Default)]
struct UpgradeAttempt {
    /// Digest of the component that it is to.
    digest: String,
    /// What was awaited; `None` while the cluster does not answer, or before it was tried.
    awaited: Option<String>,
    /// When the cluster last did not answer.
    unreachable: Timestamp,
}

/// All of an add-on was found to be there: a reconciliation that is made for the sake of another add-on does
/// not ask for all of it again.
struct Verification {
    plan: String,
    /// The plan with what was put into it, as it was recorded.
    installed: String,
    until: Instant,
}

/// The memory of one add-on of one ClusterPlugin.
#[derive(Clone, Copy)]
pub struct AddOnMemory<'a> {
    all: &'a Memories,
    name: &'a ObjectName,
    module: &'a str,
}

impl Memories {
    pub fn of<'a>(&'a self, name: &'a ObjectName, module: &'a str) -> AddOnMemory<'a> {
        AddOnMemory { all: self, name, module }
    }

    /// How long reconciliations have found the same.
    pub fn unchanged_for(&self, name: &ObjectName, progress: Vec<Progress>) -> Duration {
        self.with(name, |memory| {
            let since = memory
                .progress
                .take()
                .filter(|(before, _)| *before == progress)
                .map_or_else(Instant::now, |(_, since)| since);
            memory.progress = Some((progress, since));
            since.elapsed()
        })
    }

    /// The ClusterPlugin is gone. What comes back under its name is another one.
    pub fn evict(&self, name: &ObjectName) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }

    fn with<T>(&self, name: &ObjectName, use_it: impl FnOnce(&mut PluginMemory) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        use_it(all.entry(name.clone()).or_default())
    }
}

impl AddOnMemory<'_> {
    /// The steps of this plan that were carried out since this process began.
    pub fn completed_steps(&self, plan_hash: &str) -> BTreeSet<String> {
        self.with(|state| {
            let (of, steps) = &state.completed;
            if of == plan_hash { steps.clone() } else { BTreeSet::new() }
        })
    }

    pub fn set_completed_steps(&self, plan_hash: &str, steps: BTreeSet<String>) {
        self.with(|state| state.completed = (plan_hash.to_owned(), steps));
    }

    /// Nothing counts as carried out any more.
    pub fn clear_completed_steps(&self) {
        self.with(|state| state.completed = Default::default());
    }

    /// Whether its plugin is still to be asked what uninstalls it: the first time only.
    pub fn ask_for_removal(&self) -> bool {
        self.with(|state| !std::mem::replace(&mut state.asked_for_removal, true))
    }

    /// It is uninstalled. What is installed later under its name is another one.
    pub fn removed(&self) {
        self.with(|state| state.asked_for_removal = false);
    }

    /// The step waits; true when it has done so for longer than `patience`.
    pub fn is_overdue(&self, step: &str, patience: Duration) -> bool {
        self.with(|state| {
            state.waits.entry(step.to_owned()).or_insert_with(Instant::now).elapsed() > patience
        })
    }

    /// The step waits no longer.
    pub fn end_wait(&self, step: &str) {
        self.with(|state| state.waits.remove(step));
    }

    /// Until when an add-on that was installed by this plan counts as verified; `None` when it has to be
    /// checked.
    pub fn verified_until(&self, plan: &AddOnPlan, installed: &Inventory) -> Option<Instant> {
        self.with(|state| {
            let verified = state.verified.as_ref().filter(|it| it.until > Instant::now())?;
            let is_same = installed.complete
                && verified.installed == installed.plan_hash
                && verified.plan == plan_hash(plan, "");
            is_same.then_some(verified.until)
        })
    }

    /// All of it was found to be there.
    pub fn set_verified(&self, plan: &AddOnPlan, installed: &str) {
        let verification = Verification {
            plan: plan_hash(plan, ""),
            installed: installed.to_owned(),
            until: Instant::now() + VERIFIED,
        };
        self.with(|state| state.verified = Some(verification));
    }

    /// Remembers how far the upgrade to the component of this digest came.
    pub fn attempted_upgrade(&self, digest: &str, reached: &StepProgress, now: Timestamp) {
        self.with(|state| {
            let attempt = &mut state.upgrade;
            digest.clone_into(&mut attempt.digest);
            attempt.awaited = match reached {
                StepProgress::Done | StepProgress::Unreachable(_) => None,
                StepProgress::Waiting(awaited) => Some(awaited.what.clone()),
                StepProgress::Refused(_, what) => Some(what.clone()),
            };
            if matches!(reached, StepProgress::Unreachable(_)) {
                attempt.unreachable = now;
            }
        });
    }

    /// The cluster does not answer, so that an upgrade of the add-on, if there is one, cannot go on.
    pub fn missed_upgrade(&self, now: Timestamp) {
        self.with(|state| (state.upgrade.awaited, state.upgrade.unreachable) = (None, now));
    }

    /// What the upgrade under way still awaits though its time is over. A cluster that did not answer has all
    /// of it from then on, and nothing is given up that was not tried.
    pub fn overdue_upgrade(
        &self,
        installed: &Inventory,
        timeout: Duration,
        now: Timestamp,
    ) -> Option<String> {
        let since = installed.replaced()?.since;
        self.with(|state| {
            let attempt = Some(&state.upgrade).filter(|attempt| attempt.digest == installed.digest)?;
            let is_over = now - since.max(attempt.unreachable) > timeout.as_secs_f64();
            attempt.awaited.clone().filter(|_| is_over)
        })
    }

    /// Uses what is remembered of its objects.
    pub fn drift<T>(&self, use_it: impl FnOnce(&mut DriftMemory) -> T) -> T {
        self.with(|state| use_it(&mut state.drift))
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut AddOnState) -> T) -> T {
        self.all.with(self.name, |memory| use_it(memory.add_ons.entry(self.module.to_owned()).or_default()))
    }
}

#[cfg(test)]
mod tests {
    use contract::Step;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_step_is_overdue_when_it_has_waited_for_too_long_at_a_stretch() {
        let (memories, name) = (Memories::default(), ObjectName::new("default", "one"));
        let (moment, memory) = (Duration::from_millis(1), memories.of(&name, "calico"));
        assert!(!memory.is_overdue("running", Duration::MAX));
        std::thread::sleep(moment * 2);
        assert!(memory.is_overdue("running", moment) && !memory.is_overdue("running", Duration::MAX));
        memory.end_wait("running");
        assert!(!memory.is_overdue("running", Duration::from_secs(60)));
        std::thread::sleep(moment * 2);
        assert!(memory.is_overdue("running", moment));
        memories.evict(&name);
        assert!(!memory.is_overdue("running", Duration::from_secs(60)));
    }

    #[test]
    fn a_plugin_is_asked_once_what_uninstalls_it() {
        let (memories, name) = (Memories::default(), ObjectName::new("default", "one"));
        let memory = memories.of(&name, "calico");
        assert_eq!([memory.ask_for_removal(), memory.ask_for_removal()], [true, false]);
        memory.removed();
        assert!(memory.ask_for_removal(), "it was installed anew");
    }

    fn planned(step: &str) -> AddOnPlan {
        let step = Step {
            id: step.into(),
            kind: "k8s.apply/v1".into(),
            spec: json!({"objects": []}),
            after: vec![],
        };
        AddOnPlan { steps: vec![step], removal: vec![], diagnostics: vec![], extra: Value::Null }
    }

    #[test]
    fn the_time_of_an_upgrade_stops_while_its_cluster_is_silent() {
        let (memories, name) = (Memories::default(), ObjectName::new("default", "one"));
        let (memory, minute) = (memories.of(&name, "calico"), Duration::from_secs(60));
        let previous = json!({"version": "0", "digest": "sha256:0", "since": 100.0});
        let begun = Inventory {
            standing: addons::Standing::Proven,
            previous: serde_json::from_value(previous).expect("a component"),
            ..record("a", false)
        };
        let overdue = |now: f64| memory.overdue_upgrade(&begun, minute, now);
        let awaits = |now: f64| memory.attempted_upgrade(&begun.digest, &StepProgress::waiting("a Pod"), now);
        assert_eq!(overdue(1000.0), None, "this process has not tried it");
        awaits(110.0);
        assert_eq!((overdue(120.0), overdue(161.0).as_deref()), (None, Some("a Pod")));
        memory.missed_upgrade(1000.0);
        assert_eq!(overdue(1001.0), None, "it was not tried since");
        awaits(1002.0);
        assert_eq!((overdue(1059.0), overdue(1061.0).as_deref()), (None, Some("a Pod")));
    }

    fn record(plan_hash: &str, complete: bool) -> Inventory {
        let value = json!({"module": "calico", "version": "1", "digest": "", "config": {},
            "planHash": plan_hash,
            "complete": complete, "objects": [], "removal": []});
        serde_json::from_value(value).expect("a record")
    }

    #[test]
    fn an_add_on_is_verified_for_a_moment_and_by_the_same_plan_only() {
        let (memories, name) = (Memories::default(), ObjectName::new("default", "one"));
        let memory = memories.of(&name, "calico");
        let (plan, installed) = (planned("a"), record("with bundle", true));
        assert_eq!(memory.verified_until(&plan, &installed), None);
        memory.set_verified(&plan, "with bundle");
        assert!(memory.verified_until(&plan, &installed).is_some());
        assert_eq!(memory.verified_until(&planned("b"), &installed), None, "a setting was changed");
        assert_eq!(memory.verified_until(&plan, &record("by another", true)), None);
        assert_eq!(memory.verified_until(&plan, &record("with bundle", false)), None);
        memory.with(|state| state.verified.iter_mut().for_each(|it| it.until = Instant::now()));
        assert_eq!(memory.verified_until(&plan, &installed), None);
        memory.set_verified(&plan, "with bundle");
        memories.evict(&name);
        assert_eq!(memory.verified_until(&plan, &installed), None);
    }
}
