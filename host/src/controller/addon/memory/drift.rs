//! What is remembered of the objects of one add-on: what was done about them, what is reported of them, and
//! when they are checked again. After a restart all of them are checked, and what somebody changes again and
//! again is repaired a few times more.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use addons::{History, Inventory, ObjectRef, RECORDS_ANNOTATION};
use crds::cluster_plugin::{ClusterPlugin, Drift as Setting};
use crds::conditions::reason;
use kube::ResourceExt;
use model::Timestamp;
use tokio::time::Instant;

use crate::controller::addon::progress::StepProgress;
use crate::controller::addon::timing::SETTLED;

/// How long it counts that all objects of an add-on were checked.
pub const FULL: Duration = SETTLED;
/// How much sooner they may be checked: in the reconciliation of what is settled.
const SLACK: Duration = Duration::from_secs(10);
/// And where nothing is to be expected of them: add-ons that were installed one after the other come to be
/// checked together, since each reconciliation of a cluster has requests of its own.
const TOGETHER: Duration = Duration::from_secs(120);
/// How often while the add-on is not ready: somebody's change may be why.
pub const WAITING: Duration = Duration::from_secs(60);

/// What is remembered of the objects of one add-on.
#[derive(Clone, Default)]
pub struct DriftMemory {
    /// Hash of the plan, and the setting, that the rest is of.
    of: (String, Setting),
    pub objects: BTreeMap<ObjectRef, ObjectDrift>,
    /// What was applied of a plan that is not carried out yet.
    applied: BTreeMap<ObjectRef, String>,
    /// What the ClusterPlugin was when all objects were checked, and until when that counts.
    checked: Option<(u64, Instant)>,
    /// How much sooner they are checked all the same.
    slack: Duration,
    /// When something was last set back.
    pub repaired: Option<Timestamp>,
}

/// What is remembered of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectDrift {
    pub history: History,
    pub report: Option<DriftReport>,
}

/// What is reported of an object that is not as it was applied.
#[derive(Clone, Debug, PartialEq)]
pub enum DriftReport {
    /// It may be so.
    Warned(String),
    /// Somebody has to act.
    Failed(&'static str, String),
}

impl DriftMemory {
    /// What is known of an installed add-on. By another plan, or under another setting, everything begins
    /// anew.
    pub fn begin(&mut self, installed: &Inventory, setting: Setting) {
        let of = (installed.plan_hash.clone(), setting);
        if self.of != of {
            *self = DriftMemory { of, repaired: self.repaired, ..DriftMemory::default() };
        }
        // It is in the record by now.
        self.applied.clear();
    }

    /// Remembers what was applied of a plan that is being carried out; `is_new`: what was applied before
    /// counts for nothing.
    pub fn applied(&mut self, is_new: bool, marks: BTreeMap<ObjectRef, String>) {
        if is_new {
            self.applied.clear();
        }
        self.applied.extend(marks);
    }

    /// The plan that is recorded so was carried out just now: what it applied, which is as it was applied.
    pub fn finished(&mut self, object: &ClusterPlugin, record: &Inventory) -> BTreeMap<ObjectRef, String> {
        let applied = std::mem::take(&mut self.applied);
        let marks = applied.clone();
        *self = DriftMemory {
            of: (record.plan_hash.clone(), object.spec.drift),
            applied,
            checked: Some((fingerprint(object), Instant::now() + FULL)),
            slack: TOGETHER,
            repaired: self.repaired,
            ..DriftMemory::default()
        };
        marks
    }

    /// What somebody should know of an add-on that runs.
    pub fn warnings(&self) -> Vec<String> {
        let warned = |object: &ObjectDrift| match &object.report {
            Some(DriftReport::Warned(text)) => Some(text.clone()),
            _ => None,
        };
        self.objects.values().filter_map(warned).collect()
    }

    /// When objects are checked again, if that is sooner than what is settled is.
    pub fn next_check(&self) -> Option<Instant> {
        let (_, until) = self.checked?;
        let now = Instant::now();
        Some(until).filter(|it| *it > now && *it < now + FULL - SLACK)
    }

    /// Whether all objects are to be checked: the time has come, or somebody changed the ClusterPlugin.
    pub fn is_due(&self, object: &ClusterPlugin, now: Instant) -> bool {
        self.checked.is_none_or(|(of, until)| of != fingerprint(object) || until <= now + self.slack)
    }

    /// They were checked, all of them or a few; some are to be checked again after `next`.
    pub fn checked(
        &mut self,
        object: &ClusterPlugin,
        is_full: bool,
        lasts: Duration,
        next: Option<Duration>,
        now: Instant,
    ) {
        let until = match self.checked {
            Some((_, until)) if !is_full => until.min(now + lasts),
            _ => now + lasts,
        };
        let is_settled = lasts == FULL && next.is_none() && (is_full || self.slack == TOGETHER);
        self.slack = if is_settled { TOGETHER } else { SLACK };
        let next = next.map(|it| now + it.min(FULL));
        self.checked = Some((fingerprint(object), next.map_or(until, |it| it.min(until))));
    }

    /// How the add-on fares, with what is wrong with its objects.
    pub fn worse_of(&self, executed: StepProgress) -> StepProgress {
        let failed = |object: &ObjectDrift| match &object.report {
            Some(DriftReport::Failed(reason, text)) => Some((*reason, text.clone())),
            _ => None,
        };
        let all: Vec<(&'static str, String)> = self.objects.values().filter_map(failed).collect();
        match (executed, all.first()) {
            (StepProgress::Done | StepProgress::Waiting(_), Some((reason, _))) => StepProgress::Refused(
                reason,
                all.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; "),
            ),
            (other, _) => other,
        }
    }
}

/// What of a ClusterPlugin people change: its spec, labels and annotations, without what this program writes.
fn fingerprint(object: &ClusterPlugin) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.metadata.generation.hash(&mut hasher);
    object.labels().hash(&mut hasher);
    object
        .annotations()
        .iter()
        .filter(|(key, _)| *key != RECORDS_ANNOTATION)
        .for_each(|it| it.hash(&mut hasher));
    hasher.finish()
}

impl DriftReport {
    pub fn drifted(text: String) -> Self {
        DriftReport::Failed(reason::DRIFT, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_ons_installed_one_after_the_other_are_checked_together() {
        let spec = serde_json::json!({"clusterName": "one", "networking": {"calico": {}}});
        let object = ClusterPlugin::new("one", serde_json::from_value(spec).expect("a spec"));
        let (begin, seconds) = (Instant::now(), Duration::from_secs);
        let checked = |lasts, next, at| {
            let mut memory = DriftMemory::default();
            memory.checked(&object, true, lasts, next, at);
            memory
        };
        let [network, storage] = [checked(FULL, None, begin), checked(FULL, None, begin + seconds(100))];
        let settled = begin + FULL;
        assert!(network.is_due(&object, settled) && storage.is_due(&object, settled));
        assert!(
            !network.is_due(&object, begin + seconds(300)),
            "most reconciliations are made for another reason"
        );
        let soon = begin + seconds(15);
        assert!(!checked(WAITING, None, begin).is_due(&object, soon), "what is not ready is checked often");
        assert!(!checked(FULL, Some(seconds(30)), begin).is_due(&object, soon), "so is what was set back");
    }
}
