//! What is remembered of the objects of each add-on between two looks: what was done about them, what is said
//! of them, and when they are looked at again. It is lost at a restart: then all of them are looked at, and
//! what somebody changes again and again is repaired a few times more.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::Duration;

use addons::{History, Inventory, ObjectRef, RECORDS_ANNOTATION};
use crds::cluster_plugin::{ClusterPlugin, Drift as Setting};
use crds::conditions::reason;
use kube::ResourceExt;
use model::Timestamp;
use tokio::time::Instant;

use super::lock;
use crate::context::ObjectName;
use crate::controller::addon::execute::StepProgress;
use crate::management::Cached as Object;

/// What is known of all add-ons, by ClusterPlugin and module.
#[derive(Default)]
pub struct Drifts(Mutex<HashMap<(ObjectName, String), Known>>);

/// What is known of one.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Hash of the plan, and the setting, that the rest is of.
    of: (String, Setting),
    pub(super) objects: BTreeMap<ObjectRef, One>,
    /// What was applied of a plan that is not carried out yet.
    applied: BTreeMap<ObjectRef, String>,
    /// What the ClusterPlugin was when all objects were looked at, and until when that counts.
    looked: Option<(u64, Instant)>,
    /// How much sooner they are looked at all the same.
    slack: Duration,
    /// When something was last set back.
    pub(super) repaired: Option<Timestamp>,
}

/// What is known of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct One {
    pub(super) history: History,
    pub(super) said: Option<Said>,
}

/// What is said of an object that is not as it was applied.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    /// It may be so.
    Warned(String),
    /// Somebody has to act.
    Failed(&'static str, String),
}

impl Drifts {
    /// What is known of an installed add-on. By another plan, or under another setting, everything begins
    /// anew.
    pub(super) fn begin(&self, name: &ObjectName, installed: &Inventory, setting: Setting) -> Known {
        let mut all = lock(&self.0);
        let known = all.entry((name.clone(), installed.module.clone())).or_default();
        let of = (installed.plan_hash.clone(), setting);
        if known.of != of {
            *known = Known { of, repaired: known.repaired, ..Known::default() };
        }
        // It is in the record by now.
        known.applied.clear();
        known.clone()
    }

    pub(super) fn put(&self, name: &ObjectName, module: &str, known: Known) {
        lock(&self.0).insert((name.clone(), module.to_owned()), known);
    }

    /// Remembers what was applied of a plan that is being carried out; `is_new`: what was applied before
    /// counts for nothing.
    pub fn applied(&self, name: &ObjectName, module: &str, is_new: bool, marks: BTreeMap<ObjectRef, String>) {
        let mut all = lock(&self.0);
        let known = all.entry((name.clone(), module.to_owned())).or_default();
        if is_new {
            known.applied.clear();
        }
        known.applied.extend(marks);
    }

    /// The plan that is written down so was carried out just now: what it applied, which is as it was
    /// applied.
    pub fn finished(
        &self,
        object: &Object<ClusterPlugin>,
        record: &Inventory,
    ) -> BTreeMap<ObjectRef, String> {
        let mut all = lock(&self.0);
        let known = all.entry((object.object_name(), record.module.clone())).or_default();
        let applied = std::mem::take(&mut known.applied);
        let marks = applied.clone();
        let looked = Some((fingerprint(object), Instant::now() + super::FULL));
        let (of, repaired, slack) =
            ((record.plan_hash.clone(), object.spec.drift), known.repaired, super::TOGETHER);
        *known = Known { of, applied, looked, slack, repaired, ..Known::default() };
        marks
    }

    /// What should be looked at of an add-on that runs, and when something of it was last set back.
    pub fn told(&self, name: &ObjectName, module: &str) -> (Vec<String>, Option<Timestamp>) {
        let all = lock(&self.0);
        let Some(known) = all.get(&(name.clone(), module.to_owned())) else { return Default::default() };
        let warned = |it: &One| match &it.said {
            Some(Said::Warned(text)) => Some(text.clone()),
            _ => None,
        };
        (known.objects.values().filter_map(warned).collect(), known.repaired)
    }

    /// When objects of an add-on are looked at again, if that is sooner than what is settled is.
    pub fn next(&self, name: &ObjectName, module: &str) -> Option<Instant> {
        let all = lock(&self.0);
        let (_, until) = all.get(&(name.clone(), module.to_owned()))?.looked?;
        let now = Instant::now();
        Some(until).filter(|it| *it > now && *it < now + super::FULL - super::SLACK)
    }

    /// The ClusterPlugin is gone.
    pub fn forget(&self, name: &ObjectName) {
        lock(&self.0).retain(|(object, _), _| object != name);
    }
}

impl Known {
    /// Whether all objects are to be looked at: the time has come, or somebody changed the ClusterPlugin.
    pub(super) fn is_due(&self, object: &ClusterPlugin, now: Instant) -> bool {
        self.looked.is_none_or(|(of, until)| of != fingerprint(object) || until <= now + self.slack)
    }

    /// They were looked at, all of them or a few; some are to be looked at again so many seconds from now.
    pub(super) fn looked(
        &mut self,
        object: &ClusterPlugin,
        is_full: bool,
        lasts: Duration,
        next: Option<Timestamp>,
        now: Instant,
    ) {
        let until = match self.looked {
            Some((_, until)) if !is_full => until.min(now + lasts),
            _ => now + lasts,
        };
        let is_settled = lasts == super::FULL && next.is_none() && (is_full || self.slack == super::TOGETHER);
        self.slack = if is_settled { super::TOGETHER } else { super::SLACK };
        let next = next.map(|it| now + Duration::from_secs_f64(it.clamp(0.0, super::FULL.as_secs_f64())));
        self.looked = Some((fingerprint(object), next.map_or(until, |it| it.min(until))));
    }

    /// How the add-on fares, with what is wrong with its objects.
    pub(super) fn judged(&self, executed: StepProgress) -> StepProgress {
        let failed = |it: &One| match &it.said {
            Some(Said::Failed(reason, text)) => Some((*reason, text.clone())),
            _ => None,
        };
        let all: Vec<(&'static str, String)> = self.objects.values().filter_map(failed).collect();
        match (executed, all.first()) {
            (StepProgress::Out | StepProgress::Waiting(_), Some((reason, _))) => StepProgress::Refused(
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

impl Said {
    pub(super) fn drifted(text: String) -> Self {
        Said::Failed(reason::DRIFT, text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FULL, WAITING};
    use super::*;

    #[test]
    fn add_ons_that_were_installed_one_after_the_other_come_to_be_looked_at_together() {
        let spec = serde_json::json!({"clusterName": "one", "networking": {"calico": {}}});
        let object = ClusterPlugin::new("one", serde_json::from_value(spec).expect("a spec"));
        let (begin, seconds) = (Instant::now(), Duration::from_secs);
        let looked = |lasts, next, at| {
            let mut known = Known::default();
            known.looked(&object, true, lasts, next, at);
            known
        };
        let [network, storage] = [looked(FULL, None, begin), looked(FULL, None, begin + seconds(100))];
        let settled = begin + FULL;
        assert!(network.is_due(&object, settled) && storage.is_due(&object, settled));
        assert!(!network.is_due(&object, begin + seconds(300)), "most looks are made for another reason");
        let soon = begin + seconds(15);
        assert!(!looked(WAITING, None, begin).is_due(&object, soon), "what is not ready is looked at often");
        assert!(!looked(FULL, Some(30.0), begin).is_due(&object, soon), "so is what was set back");
    }
}
