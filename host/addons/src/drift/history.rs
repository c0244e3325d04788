//! How often an object was repaired, and whether it is once more: somebody who changes it again and again is
//! not fought for ever, and edits that come fast are not answered one by one.

use std::time::Duration;

use crds::cluster_plugin::Drift as Setting;

use super::{Change, Drift};
use model::Timestamp;

/// Repairs of one object against one manager, after which it is left to that.
const MOST: usize = 3;
/// How long a repair counts.
const HOUR: Duration = Duration::from_secs(3600);
/// How long after a repair the next one of the same object may be; twice as long after each further one.
const FIRST: Duration = Duration::from_secs(30);
const LAST: Duration = Duration::from_secs(600);
/// Repairs that are stored: more than there can be in an hour.
const STORED: usize = 16;

/// What is done about a drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decision {
    /// It is taken back.
    Repair,
    /// It is taken back, and not before then.
    Later(Timestamp),
    /// It was taken back often enough.
    Stop,
    /// It is only said.
    Warn,
    Nothing,
}

/// What was done to one object for one plan and one setting; lost at a restart, after which it begins anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// When, and against whom; `None` where the API server refused.
    repairs: Vec<(Timestamp, Option<String>)>,
    /// The manager that the object is left to.
    left_to: Option<String>,
}

impl History {
    /// What to do about this drift now.
    pub fn decide(&mut self, setting: Setting, drift: &Drift, now: Timestamp) -> Decision {
        match setting {
            Setting::Off => return Decision::Nothing,
            Setting::Warn => return Decision::Warn,
            Setting::Correct => (),
        }
        self.repairs.retain(|(then, _)| now - then < HOUR.as_secs_f64());
        let against = self.repairs.iter().filter(|(_, by)| by.as_ref() == Some(&drift.by)).count();
        // Who deleted an object is never known: it may be somebody else each time.
        if drift.change != Change::Gone && (against >= MOST || self.left_to.as_ref() == Some(&drift.by)) {
            self.left_to = Some(drift.by.clone());
            return Decision::Stop;
        }
        let doublings = u32::try_from(self.repairs.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(LAST).as_secs_f64();
        match self.repairs.last() {
            Some((last, _)) if now < last + pause => Decision::Later(last + pause),
            _ => Decision::Repair,
        }
    }

    /// It is being taken back.
    pub fn repaired(&mut self, drift: &Drift, now: Timestamp) {
        self.repairs.push((now, Some(drift.by.clone())));
        let surplus = self.repairs.len().saturating_sub(STORED);
        self.repairs.drain(..surplus);
    }

    /// The API server refused that: it is tried again, no sooner than after a repair.
    pub fn refused(&mut self) {
        if let Some((_, by)) = self.repairs.last_mut() {
            *by = None;
        }
    }

    /// The object is as it was applied.
    pub fn is_same(&mut self) {
        if self.left_to.is_some() {
            *self = History::default();
        }
    }
}
