//! What AWS refused for one object, and how long to leave it alone. It is in memory only: after a start everything is tried once.

use std::collections::BTreeMap;
use std::time::Duration;

use plan::{Key, Outcome, Plan, Record, Who};
use tokio::time::Instant;

use super::queue::backoff;

/// The refusals of one object, by key.
#[derive(Default)]
pub struct Refusals {
    refused: BTreeMap<Key, Refusal>,
    /// The version of the spec that they are about.
    generation: Option<i64>,
}

struct Refusal {
    outcome: Outcome,
    failures: u32,
    not_before: Instant,
    /// It is about a lookup that no plan has as an action.
    lookup: bool,
}

impl Refusals {
    /// A changed spec deserves a new try at once.
    pub fn begin(&mut self, generation: Option<i64>) {
        if self.generation != generation {
            self.generation = generation;
            self.refused.clear();
        }
    }

    /// Takes those actions out of a plan that are to be left alone for now, and the intents that it opened for them.
    pub fn hold_back(&mut self, plan: &mut Plan, record: &mut Record, now: Instant) {
        self.refused.retain(|key, it| it.lookup || plan.actions.iter().any(|it| it.key() == *key));
        let refused = &self.refused;
        let is_held = |key: &Key| refused.get(key).is_some_and(|it| it.not_before > now);
        plan.actions.retain(|it| !is_held(&it.key()));
        let opened: Vec<Key> = plan.open.keys().filter(|it| is_held(it)).cloned().collect();
        for key in opened {
            plan.open.remove(&key);
            record.intents.remove(&key);
        }
    }

    /// Learns how actions ended.
    pub fn learn(&mut self, outcomes: &[(Key, Outcome)], now: Instant) {
        for (key, outcome) in outcomes {
            self.learn_one(key, outcome, false, now);
        }
    }

    /// Learns how a lookup ended that an action needs the answer of.
    pub fn learn_lookup(&mut self, key: &Key, outcome: &Outcome, now: Instant) {
        self.learn_one(key, outcome, true, now);
    }

    /// Whether the lookup for `key` may be tried now.
    pub fn may_look_up(&self, key: &Key, now: Instant) -> bool {
        self.refused.get(key).is_none_or(|it| it.not_before <= now)
    }

    fn learn_one(&mut self, key: &Key, outcome: &Outcome, lookup: bool, now: Instant) {
        let Some((first, longest)) = delays(outcome) else {
            self.refused.remove(key);
            return;
        };
        let failures = self.refused.get(key).map_or(0, |it| it.failures) + 1;
        let not_before = now + backoff(failures, first, longest);
        self.refused.insert(key.clone(), Refusal { outcome: outcome.clone(), failures, not_before, lookup });
    }

    /// The latest refusal of each key.
    pub fn outcomes(&self) -> Vec<(Key, Outcome)> {
        self.refused.iter().map(|(key, it)| (key.clone(), it.outcome.clone())).collect()
    }

    /// Whether this refusal was told before.
    pub fn is_known(&self, key: &Key, outcome: &Outcome) -> bool {
        self.refused.get(key).is_some_and(|it| same(&it.outcome, outcome))
    }

    /// When the next of them may be tried again.
    pub fn next(&self) -> Option<Instant> {
        self.refused.values().map(|it| it.not_before).min()
    }
}

/// The first and the longest delay before another try; `None`: it was no failure.
fn delays(outcome: &Outcome) -> Option<(Duration, Duration)> {
    match outcome {
        Outcome::Done => None,
        Outcome::Unknown { .. } => Some((Duration::from_secs(1), Duration::from_secs(30))),
        Outcome::Refused { retry: true, .. } => Some((Duration::from_secs(1), Duration::from_secs(15))),
        Outcome::Refused { who: Who::Nobody, .. } => Some((Duration::from_secs(2), Duration::from_secs(60))),
        Outcome::Refused { .. } => Some((Duration::from_secs(10), Duration::from_secs(300))),
    }
}

/// Messages hold request ids, so only the code counts.
fn same(one: &Outcome, other: &Outcome) -> bool {
    match (one, other) {
        (Outcome::Refused { code: one, .. }, Outcome::Refused { code: other, .. }) => one == other,
        (Outcome::Unknown { .. }, Outcome::Unknown { .. }) | (Outcome::Done, Outcome::Done) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Action, Intent, Kind};

    fn refused(retry: bool, who: Who) -> Outcome {
        Outcome::Refused { code: "VpcLimitExceeded".into(), message: "The maximum number of VPCs has been reached.".into(), retry, who }
    }

    fn plan_of(key: &Key) -> (Plan, Record) {
        let intent = Intent { nonce: "n".into(), at: 1.0, inputs: None };
        let actions = vec![Action::Confirm { key: key.clone(), id: "vpc-1".into() }];
        let plan = Plan { actions, open: BTreeMap::from([(key.clone(), intent.clone())]), ..Plan::default() };
        let record = Record { intents: BTreeMap::from([(key.clone(), intent)]), ..Record::default() };
        (plan, record)
    }

    #[test]
    fn what_was_refused_is_left_alone_and_its_intent_is_not_opened_until_it_is_due() {
        let now = Instant::now();
        let key = Key::new(Kind::Vpc, "main");
        let mut refusals = Refusals::default();
        refusals.learn(&[(key.clone(), refused(false, Who::Administrator))], now);

        let (mut plan, mut record) = plan_of(&key);
        refusals.hold_back(&mut plan, &mut record, now + Duration::from_secs(9));
        assert!(plan.actions.is_empty() && plan.open.is_empty() && record.intents.is_empty());
        assert_eq!(refusals.next(), Some(now + Duration::from_secs(10)));

        let (mut plan, mut record) = plan_of(&key);
        refusals.hold_back(&mut plan, &mut record, now + Duration::from_secs(10));
        assert!(!plan.actions.is_empty() && !plan.open.is_empty() && !record.intents.is_empty());
    }

    #[test]
    fn a_refusal_that_someone_has_to_act_on_backs_off_to_five_minutes() {
        let now = Instant::now();
        let key = Key::new(Kind::Vpc, "main");
        let mut refusals = Refusals::default();
        for _ in 0..9 {
            refusals.learn(&[(key.clone(), refused(false, Who::Administrator))], now);
        }
        assert_eq!(refusals.next(), Some(now + Duration::from_secs(300)));
        refusals.learn(&[(key, Outcome::Done)], now);
        assert_eq!(refusals.next(), None);
    }

    #[test]
    fn a_changed_spec_and_a_plan_that_no_longer_wants_it_forget_a_refusal() {
        let now = Instant::now();
        let key = Key::new(Kind::Vpc, "main");
        let mut refusals = Refusals::default();
        refusals.begin(Some(1));
        refusals.learn(&[(key.clone(), refused(false, Who::Author))], now);
        refusals.begin(Some(1));
        assert_eq!(refusals.outcomes().len(), 1);
        refusals.begin(Some(2));
        assert!(refusals.outcomes().is_empty());

        refusals.learn(&[(key, refused(true, Who::Nobody))], now);
        refusals.hold_back(&mut Plan::default(), &mut Record::default(), now);
        assert!(refusals.outcomes().is_empty());
    }
}
