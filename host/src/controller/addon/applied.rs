//! What one reconciliation observed of the objects of an add-on, and applied of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use addons::{Inventory, ObjectRef, Standing, Writers};
use crds::cluster_plugin::Drift;
use serde_json::Value;

/// What one reconciliation observed and applied, by object.
#[derive(Default)]
pub struct AppliedObjects {
    /// The marks of objects that were applied before.
    recorded: BTreeMap<ObjectRef, String>,
    /// They are taken back from whoever took them since.
    takes_back: bool,
    observed: Mutex<BTreeMap<ObjectRef, Option<Writers>>>,
    marks: Mutex<BTreeMap<ObjectRef, String>>,
}

impl AppliedObjects {
    /// Of an add-on with this record; nothing counts of one that somebody else may have written.
    pub fn of(installed: Option<&Inventory>, setting: Drift) -> Self {
        let recorded = installed.filter(|it| it.standing == Standing::Proven).map(Inventory::marked);
        AppliedObjects {
            recorded: recorded.unwrap_or_default(),
            takes_back: setting == Drift::Correct,
            ..AppliedObjects::default()
        }
    }

    /// The mark of an object that may be taken back, as the record has it.
    pub fn to_take_back(&self, object: &ObjectRef) -> Option<&str> {
        self.recorded.get(object).filter(|_| self.takes_back).map(String::as_str)
    }

    /// Notes an object that was read; `None`: it is not there.
    pub fn observe(&self, object: &ObjectRef, live: Option<&Value>) {
        lock(&self.observed).insert(object.clone(), live.map(Writers::of));
    }

    /// Notes an object that was applied.
    pub fn insert(&self, object: &Value, writers: &Writers, manager: &str) {
        if let Some(reference) = ObjectRef::of(object) {
            lock(&self.marks).insert(reference, writers.mark(manager));
        }
    }

    /// The marks of what was applied, for the record.
    pub fn marks(&self) -> BTreeMap<ObjectRef, String> {
        lock(&self.marks).clone()
    }

    /// Who wrote an object when it was read; the outer `None`: it was not read.
    pub fn observed(&self, object: &ObjectRef) -> Option<Option<Writers>> {
        lock(&self.observed).get(object).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
