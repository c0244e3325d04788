//! Waits of plans that take longer than their plugin expects: since when each step waits. It only tells;
//! whoever waits goes on waiting.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::context::ObjectName;

/// Since when steps wait, by ClusterPlugin, module and step. Lost at a restart, after which the time begins
/// anew.
#[derive(Default)]
pub struct Late(Mutex<HashMap<(ObjectName, String, String), Instant>>);

/// The steps of one plan.
#[derive(Clone, Copy)]
pub struct LatePlan<'a> {
    all: &'a Late,
    name: &'a ObjectName,
    module: &'a str,
}

impl Late {
    pub fn of<'a>(&'a self, name: &'a ObjectName, module: &'a str) -> LatePlan<'a> {
        LatePlan { all: self, name, module }
    }

    /// The ClusterPlugin is gone.
    pub fn forget(&self, name: &ObjectName) {
        self.lock().retain(|(object, ..), _| object != name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ObjectName, String, String), Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LatePlan<'_> {
    /// The step waits; true when it has done so for longer than this.
    pub fn waits(&self, step: &str, longer_than: Duration) -> bool {
        let key = (self.name.clone(), self.module.to_owned(), step.to_owned());
        self.all.lock().entry(key).or_insert_with(Instant::now).elapsed() > longer_than
    }

    /// The step waits no longer.
    pub fn came(&self, step: &str) {
        self.all.lock().remove(&(self.name.clone(), self.module.to_owned(), step.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_late_when_it_has_waited_for_too_long_at_a_stretch() {
        let (late, name) = (Late::default(), ObjectName::new("default", "one"));
        let (moment, plan) = (Duration::from_millis(1), late.of(&name, "calico"));
        assert!(!plan.waits("running", Duration::MAX));
        std::thread::sleep(moment * 2);
        assert!(plan.waits("running", moment) && !plan.waits("running", Duration::MAX));
        plan.came("running");
        assert!(!plan.waits("running", Duration::from_secs(60)));
        std::thread::sleep(moment * 2);
        assert!(plan.waits("running", moment));
        late.forget(&name);
        assert!(!late.of(&name, "calico").waits("running", Duration::from_secs(60)));
    }
}
