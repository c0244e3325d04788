//! What AWS refused for one object, and how long to leave it alone. It is in memory only: after a start
//! everything is tried once.

use std::collections::BTreeMap;
use std::time::Duration;

use infra::PersistedState;
use model::{Action, ActionNeeded, Key, Outcome, Plan, Problem};
use tokio::time::Instant;

use super::queue::backoff;

/// How long to leave alone what was done and had no effect.
const AFTER_NO_EFFECT: Duration = Duration::from_secs(2);

/// The refusals of one object, by key.
#[derive(Default)]
pub struct Refusals {
    refused: BTreeMap<Key, Refusal>,
    /// The lookup that actions need and that AWS refused.
    lookup: Option<(Problem, Refusal)>,
    /// What was done in this reconciliation.
    done: Vec<Action>,
    /// The version of the spec that they are about.
    generation: Option<i64>,
}

struct Refusal {
    outcome: Outcome,
    failures: u32,
    not_before: Instant,
}

impl Refusals {
    /// A reconciliation begins. A changed spec deserves a new try at once.
    pub fn begin(&mut self, generation: Option<i64>) {
        if self.generation != generation {
            *self = Refusals { generation, ..Refusals::default() };
        }
    }

    /// A reconciliation ended. What was done is not stored: bootstrap data may be in it.
    pub fn end(&mut self) {
        self.done.clear();
    }

    /// The actions of a plan but for those that are to be left alone for now, whose intents are not opened
    /// either.
    pub fn due(&mut self, plan: &mut Plan, record: &mut PersistedState, now: Instant) -> Vec<Action> {
        self.refused.retain(|key, _| plan.actions.iter().any(|it| it.key() == *key));
        self.hold_repeated(&plan.actions, now);
        let is_held = |key: &Key| self.refused.get(key).is_some_and(|it| it.not_before > now);
        let opened: Vec<Key> = plan.open.keys().filter(|it| is_held(it)).cloned().collect();
        for key in opened {
            plan.open.remove(&key);
            record.intents.remove(&key);
        }
        plan.actions.iter().filter(|it| !is_held(&it.key())).cloned().collect()
    }

    /// What was done and is asked for again, word for word, had no effect that can be seen: once more would
    /// have none either.
    fn hold_repeated(&mut self, actions: &[Action], now: Instant) {
        for action in actions.iter().filter(|it| self.done.contains(it)) {
            let key = action.key();
            if self.refused.get(&key).is_none_or(|it| it.not_before <= now) {
                self.refused.insert(
                    key,
                    Refusal { outcome: Outcome::Done, failures: 0, not_before: now + AFTER_NO_EFFECT },
                );
            }
        }
    }

    /// Records how actions ended, in their order.
    pub fn record(&mut self, actions: &[Action], outcomes: &[(Key, Outcome)], now: Instant) {
        for (n, (key, outcome)) in outcomes.iter().enumerate() {
            let failures = self.refused.remove(key).map_or(0, |it| it.failures);
            if let Some(refusal) = Refusal::after(failures, outcome, now) {
                self.refused.insert(key.clone(), refusal);
            }
            if *outcome == Outcome::Done {
                self.done.extend(actions.get(n).cloned());
            }
        }
    }

    /// Records the result of a lookup that actions need.
    pub fn record_lookup(&mut self, answer: Result<(), Problem>, now: Instant) {
        let failures = self.lookup.take().map_or(0, |(_, it)| it.failures);
        if let Err(problem) = answer {
            let Problem { code, message, who } = problem.clone();
            let outcome = Outcome::Refused { code, message, retry: false, who };
            self.lookup = Refusal::after(failures, &outcome, now).map(|it| (problem, it));
        }
    }

    /// Whether that lookup may be made now.
    pub fn may_look_up(&self, now: Instant) -> bool {
        self.lookup.as_ref().is_none_or(|(_, it)| it.not_before <= now)
    }

    /// Why that lookup has no result.
    pub fn lookup_problem(&self) -> Option<&Problem> {
        self.lookup.as_ref().map(|(problem, _)| problem)
    }

    /// The latest refusal of each key.
    pub fn outcomes(&self) -> Vec<(Key, Outcome)> {
        self.refused.iter().map(|(key, it)| (key.clone(), it.outcome.clone())).collect()
    }

    /// Whether this refusal was reported before.
    pub fn is_reported(&self, key: &Key, outcome: &Outcome) -> bool {
        self.refused.get(key).is_some_and(|it| same(&it.outcome, outcome))
    }

    /// When the next of them may be tried again.
    pub fn next(&self) -> Option<Instant> {
        self.refused.values().chain(self.lookup.as_ref().map(|(_, it)| it)).map(|it| it.not_before).min()
    }
}

impl Refusal {
    fn after(failures: u32, outcome: &Outcome, now: Instant) -> Option<Self> {
        let (first, longest) = delays(outcome)?;
        let failures = failures + 1;
        Some(Self { outcome: outcome.clone(), failures, not_before: now + backoff(failures, first, longest) })
    }
}

/// The first and the longest delay before another try; `None`: it was no failure.
fn delays(outcome: &Outcome) -> Option<(Duration, Duration)> {
    match outcome {
        Outcome::Done => None,
        Outcome::Unknown { .. } => Some((Duration::from_secs(1), Duration::from_secs(30))),
        // Until somebody acts, one try is as good as many.
        Outcome::Refused { who: ActionNeeded::CloudAdmin | ActionNeeded::SpecAuthor, .. } => {
            Some((Duration::from_secs(10), Duration::from_secs(300)))
        }
        Outcome::Refused { retry: true, .. } => Some((Duration::from_secs(1), Duration::from_secs(15))),
        Outcome::Refused { .. } => Some((Duration::from_secs(2), Duration::from_secs(60))),
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
    use model::{Intent, Kind};

    fn refused(retry: bool, who: ActionNeeded) -> Outcome {
        Outcome::Refused {
            code: "VpcLimitExceeded".into(),
            message: "The maximum number of VPCs has been reached.".into(),
            retry,
            who,
        }
    }

    fn plan_of(key: &Key) -> (Plan, PersistedState) {
        let intent = Intent { nonce: "n".into(), at: 1.0, inputs: None };
        let actions = vec![Action::Confirm { key: key.clone(), id: "vpc-1".into() }];
        let plan = Plan { actions, open: BTreeMap::from([(key.clone(), intent.clone())]), ..Plan::default() };
        let record =
            PersistedState { intents: BTreeMap::from([(key.clone(), intent)]), ..PersistedState::default() };
        (plan, record)
    }

    #[test]
    fn a_refused_action_waits_and_its_intent_is_not_opened() {
        let now = Instant::now();
        let key = Key::new(Kind::Vpc, "main");
        let mut refusals = Refusals::default();
        refusals.record(&[], &[(key.clone(), refused(false, ActionNeeded::CloudAdmin))], now);

        let (mut plan, mut record) = plan_of(&key);
        assert!(refusals.due(&mut plan, &mut record, now + Duration::from_secs(9)).is_empty());
        assert!(plan.open.is_empty() && record.intents.is_empty());
        assert_eq!(plan.actions.len(), 1, "the status still tells of it");
        assert_eq!(refusals.next(), Some(now + Duration::from_secs(10)));

        let (mut plan, mut record) = plan_of(&key);
        assert_eq!(refusals.due(&mut plan, &mut record, now + Duration::from_secs(10)).len(), 1);
        assert!(!plan.open.is_empty() && !record.intents.is_empty());
    }

    #[test]
    fn a_refusal_that_needs_somebody_backs_off_to_five_minutes() {
        let now = Instant::now();
        let key = Key::new(Kind::Vpc, "main");
        let mut refusals = Refusals::default();
        for retry in [true, false] {
            for _ in 0..9 {
                refusals.record(&[], &[(key.clone(), refused(retry, ActionNeeded::CloudAdmin))], now);
            }
            assert_eq!(refusals.next(), Some(now + Duration::from_secs(300)));
        }
        refusals.record(&[], &[(key.clone(), Outcome::Done)], now);
        refusals.record(&[], &[(key.clone(), refused(true, ActionNeeded::None))], now);
        assert_eq!(refusals.next(), Some(now + Duration::from_secs(1)), "a throttle passes by itself");
        refusals.record(&[], &[(key, Outcome::Done)], now);
        assert_eq!(refusals.next(), None);
    }

    #[test]
    fn what_had_no_effect_is_not_repeated_in_one_reconciliation() {
        let now = Instant::now();
        let key = Key::new(Kind::NatGateway, "a");
        let mut refusals = Refusals::default();
        refusals.begin(Some(1));
        let (mut plan, mut record) = plan_of(&key);
        let due = refusals.due(&mut plan, &mut record, now);
        refusals.record(&due, &[(key.clone(), Outcome::Done)], now);
        let (mut plan, mut record) = plan_of(&key);
        assert!(refusals.due(&mut plan, &mut record, now).is_empty());
        assert_eq!(refusals.next(), Some(now + Duration::from_secs(2)));
        let (mut plan, mut record) = plan_of(&key);
        assert!(
            refusals.due(&mut plan, &mut record, now + Duration::from_secs(9)).is_empty(),
            "however long the look takes"
        );
        let other = Action::Confirm { key: Key::new(Kind::NatGateway, "b"), id: "nat-2".into() };
        let mut another = Plan { actions: vec![other.clone()], ..Plan::default() };
        assert_eq!(refusals.due(&mut another, &mut record, now), [other]);

        refusals.end();
        let (mut plan, mut record) = plan_of(&key);
        assert_eq!(
            refusals.due(&mut plan, &mut record, now + Duration::from_secs(11)).len(),
            1,
            "a later look tries again"
        );
    }

    #[test]
    fn a_changed_spec_or_plan_drops_a_refusal() {
        let now = Instant::now();
        let key = Key::new(Kind::Vpc, "main");
        let mut refusals = Refusals::default();
        refusals.begin(Some(1));
        refusals.record(&[], &[(key.clone(), refused(false, ActionNeeded::SpecAuthor))], now);
        refusals.begin(Some(1));
        assert_eq!(refusals.outcomes().len(), 1);
        refusals.begin(Some(2));
        assert!(refusals.outcomes().is_empty());

        refusals.record(&[], &[(key, refused(true, ActionNeeded::None))], now);
        refusals.due(&mut Plan::default(), &mut PersistedState::default(), now);
        assert!(refusals.outcomes().is_empty());
    }
}
