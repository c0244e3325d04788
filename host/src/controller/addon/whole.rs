//! Add-ons that were found whole a moment ago: a look that is made for the sake of another one does not ask
//! for all of theirs again. It asks nothing itself, and what it remembers is lost at a restart without harm.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use addons::{Inventory, plan_hash};
use contract::AddOnPlan;
use tokio::time::Instant;

use crate::context::ObjectName;

/// How long it counts that an add-on was whole.
const GOOD: Duration = Duration::from_secs(30);

/// By ClusterPlugin and module.
#[derive(Default)]
pub struct Whole(Mutex<HashMap<(ObjectName, String), Found>>);

struct Found {
    plan: String,
    /// The plan with what was put into it, as it was written down.
    installed: String,
    until: Instant,
}

impl Whole {
    /// Until when an add-on that was installed by this plan counts as whole; `None` when it has to be looked
    /// at.
    pub fn until(&self, name: &ObjectName, plan: &AddOnPlan, installed: &Inventory) -> Option<Instant> {
        let all = self.lock();
        let found =
            all.get(&(name.clone(), installed.module.clone())).filter(|it| it.until > Instant::now())?;
        (installed.complete && found.installed == installed.plan_hash && found.plan == plan_hash(plan, ""))
            .then_some(found.until)
    }

    /// All of it was found to be there.
    pub fn found(&self, name: &ObjectName, module: &str, plan: &AddOnPlan, installed: &str) {
        let found = Found {
            plan: plan_hash(plan, ""),
            installed: installed.to_owned(),
            until: Instant::now() + GOOD,
        };
        self.lock().insert((name.clone(), module.to_owned()), found);
    }

    /// The ClusterPlugin is gone.
    pub fn forget(&self, name: &ObjectName) {
        self.lock().retain(|(object, _), _| object != name);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ObjectName, String), Found>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use contract::Step;
    use serde_json::{Value, json};

    use super::*;

    fn planned(step: &str) -> AddOnPlan {
        let step = Step {
            id: step.into(),
            kind: "k8s.apply/v1".into(),
            spec: json!({"objects": []}),
            after: vec![],
        };
        AddOnPlan { steps: vec![step], removal: vec![], diagnostics: vec![], extra: Value::Null }
    }

    fn record(plan_hash: &str, complete: bool) -> Inventory {
        let value = json!({"module": "calico", "version": "1", "digest": "", "config": {}, "planHash": plan_hash, "complete": complete,
            "objects": [], "removal": []});
        serde_json::from_value(value).expect("a record")
    }

    #[test]
    fn what_was_whole_is_so_for_a_moment_and_by_the_same_plan_only() {
        let (whole, name) = (Whole::default(), ObjectName::new("default", "one"));
        let (plan, installed) = (planned("a"), record("with bundle", true));
        assert_eq!(whole.until(&name, &plan, &installed), None);
        whole.found(&name, "calico", &plan, "with bundle");
        assert!(whole.until(&name, &plan, &installed).is_some());
        assert_eq!(whole.until(&name, &planned("b"), &installed), None, "a setting was changed");
        assert_eq!(whole.until(&name, &plan, &record("by another", true)), None);
        assert_eq!(whole.until(&name, &plan, &record("with bundle", false)), None);
        whole.lock().values_mut().for_each(|it| it.until = Instant::now());
        assert_eq!(whole.until(&name, &plan, &installed), None);
        whole.found(&name, "calico", &plan, "with bundle");
        whole.forget(&name);
        assert_eq!(whole.until(&name, &plan, &installed), None);
    }
}
