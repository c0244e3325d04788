//! Looks at the objects of one add-on, one after the other, and sets back what is not as it was applied. It
//! remembers nothing itself.

use std::collections::BTreeMap;

use addons::{Change, Compared, Decision, Drift, ObjectRef, compare, drift, without};
use crds::cluster_plugin::Drift as Setting;
use model::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::known::{Known, One, Said};
use super::would;
use crate::controller::addon::apply::apply;
use crate::controller::addon::execute::{ApplyOptions, StepProgress, carried};
use crate::controller::addon::now;
use crate::management::Note;
use crate::workload::WorkloadCluster;

/// How many seconds after something was set back it is looked at again.
const AGAIN: Timestamp = 30.0;
/// How many seconds after it could not be.
const FAILED: Timestamp = 300.0;
/// How many seconds after a look had no time left.
const SOON: Timestamp = 2.0;

/// How objects are looked at.
pub(super) struct Look<'a> {
    pub cluster: &'a WorkloadCluster,
    pub manner: &'a ApplyOptions<'a>,
    pub setting: Setting,
    /// All of them rather than those that were read anyway.
    pub is_full: bool,
    /// Whether something may be written, as it is by now.
    pub may_write: &'a (dyn Fn() -> bool + Sync),
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Looked {
    pub notes: Vec<Note>,
    /// Something was applied again.
    pub is_repaired: bool,
    /// A definition or a namespace is gone: everything is to be applied again.
    pub is_base_gone: bool,
    /// When something is to be looked at again.
    pub next: Option<Timestamp>,
}

impl Looked {
    fn again(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |it| it.min(at)));
    }
}

impl Look<'_> {
    /// Looks at what the plan applies; `marks` is what was written down of it, and what is to be.
    pub(super) async fn all(
        &self,
        objects: &[Value],
        marks: &mut BTreeMap<ObjectRef, String>,
        known: &mut Known,
    ) -> Result<Looked, StepProgress> {
        let mut looked = Looked::default();
        for object in objects {
            if Instant::now() >= self.manner.until {
                looked.again(now() + SOON);
                break;
            }
            let Some(reference) = ObjectRef::of(object) else { continue };
            let mark = marks.get(&reference).cloned();
            let mut one = known.objects.remove(&reference).unwrap_or_default();
            let repaired = looked.is_repaired;
            let new = self.one(object, &reference, mark.as_deref(), &mut one, &mut looked).await?;
            if looked.is_repaired && !repaired {
                known.repaired = Some(now());
            }
            if one != One::default() {
                known.objects.insert(reference.clone(), one);
            }
            marks.extend(new.map(|it| (reference, it)));
            if looked.is_base_gone {
                known.repaired = Some(now());
                break;
            }
        }
        Ok(looked)
    }

    /// Looks at one object; what is to be written down of it, if that is something else now.
    async fn one(
        &self,
        object: &Value,
        reference: &ObjectRef,
        mark: Option<&str>,
        one: &mut One,
        looked: &mut Looked,
    ) -> Result<Option<String>, StepProgress> {
        let seen = match self.manner.ledger.was_seen(reference) {
            Some(seen) => seen,
            None if !self.is_full => return Ok(None),
            None => self.cluster.writers(reference).await.map_err(carried)?,
        };
        let mark = match (mark, &seen) {
            (None, Some(_)) => return self.adopt(object, reference, one, looked).await,
            (mark, _) => mark.unwrap_or_default(),
        };
        match compare(mark, seen.as_ref(), self.manner.field_manager) {
            Compared::Same => {
                one.history.is_same();
                one.said = None;
                return Ok(None);
            }
            Compared::Going => {
                looked.again(now() + AGAIN);
                return Ok(None);
            }
            Compared::Different => (),
        }
        let would = match seen {
            Some(_) => would(self.cluster, object, self.manner.field_manager).await?,
            None => None,
        };
        let drift = drift(mark, seen.as_ref(), would.as_ref(), self.manner.field_manager);
        if drift.change == Change::Scaled {
            one.said = None;
            return Ok(seen.map(|it| it.mark(self.manner.field_manager)));
        }
        let said = match one.history.decide(self.setting, &drift, now()) {
            Decision::Repair => return self.repair(object, reference, &drift, one, looked).await,
            Decision::Later(at) => {
                looked.again(at);
                return Ok(None);
            }
            Decision::Stop => Said::drifted(drift.stopped(reference)),
            Decision::Warn => Said::Warned(drift.warned(reference)),
            Decision::Nothing => return Ok(None),
        };
        self.say(reference, said, one, looked);
        Ok(None)
    }

    /// An object of an earlier version's record, of which nothing is written down: it is applied once more,
    /// as at first.
    async fn adopt(
        &self,
        object: &Value,
        reference: &ObjectRef,
        one: &mut One,
        looked: &mut Looked,
    ) -> Result<Option<String>, StepProgress> {
        if self.is_full && (self.may_write)() {
            let applied = apply(self.cluster, object, self.manner).await;
            self.outcome(reference, applied, one, looked)?;
        }
        Ok(self.manner.ledger.marks().remove(reference))
    }

    async fn repair(
        &self,
        object: &Value,
        reference: &ObjectRef,
        drift: &Drift,
        one: &mut One,
        looked: &mut Looked,
    ) -> Result<Option<String>, StepProgress> {
        if !(self.may_write)() {
            return Ok(None);
        }
        one.history.repaired(drift, now());
        let note = || {
            let action = format!("Repair {reference}").chars().take(128).collect();
            let message = format!("{}, and is applied again", drift.told(reference));
            Note { warning: false, reason: "Repaired".into(), action, message }
        };
        if drift.change == Change::Gone
            && ["CustomResourceDefinition", "Namespace"].contains(&reference.kind.as_str())
        {
            looked.notes.push(note());
            looked.is_base_gone = true;
            return Ok(None);
        }
        let manner = ApplyOptions { force: true, is_repair: true, ..*self.manner };
        let applied = apply(self.cluster, &without(object, &drift.left), &manner).await;
        if self.outcome(reference, applied, one, looked)? {
            looked.notes.push(note());
            looked.is_repaired = true;
            looked.again(now() + AGAIN);
        }
        Ok(self.manner.ledger.marks().remove(reference))
    }

    /// What is said of an object that was applied; `true` when it was.
    fn outcome(
        &self,
        reference: &ObjectRef,
        applied: Result<(), StepProgress>,
        one: &mut One,
        looked: &mut Looked,
    ) -> Result<bool, StepProgress> {
        match applied {
            Ok(()) | Err(StepProgress::Out) => {
                one.said = None;
                Ok(true)
            }
            Err(StepProgress::Unreachable(why)) => Err(StepProgress::Unreachable(why)),
            Err(StepProgress::Waiting(_)) => {
                looked.again(now() + SOON);
                Ok(false)
            }
            Err(StepProgress::Refused(reason, why)) => {
                one.history.refused();
                looked.again(now() + FAILED);
                self.say(reference, Said::Failed(reason, why), one, looked);
                Ok(false)
            }
        }
    }

    /// Says something of an object, as an event when it is said for the first time.
    fn say(&self, reference: &ObjectRef, said: Said, one: &mut One, looked: &mut Looked) {
        if one.said.as_ref() != Some(&said) {
            let (Said::Warned(message) | Said::Failed(_, message)) = said.clone();
            let action = format!("Repair {reference}").chars().take(128).collect();
            looked.notes.push(Note { warning: true, reason: "NotRepaired".into(), action, message });
        }
        one.said = Some(said);
    }
}
