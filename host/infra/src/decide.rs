//! The plan: compares what should exist with what was seen, alike for every kind. It knows no kind's
//! particulars; those are what a resource comes [`after`](model::Resource::after), what satisfies it and what
//! of it can never change.

mod evidence;
mod input;

use crate::PersistedState;
use crate::observe::KEY_TAG;
use crate::token::{client_token, derive};
use evidence::{evidence, reads, reads_of, remains};
pub use input::PlanInput;
pub(crate) use input::{proven_from, trusted_from};
use model::{
    Action, DesiredResource, Guard, Ids, Intent, Key, Kind, ObservedResource, Owner, Plan, READ_LAG, Read,
    Resource, Snapshot, State, Timestamp,
};

/// Seconds for which a creation is retried with the same client token.
pub const TOKEN_AGE: f64 = 900.0;
/// Seconds within which a creation is sent once it was decided: it may wait for its turn, and reads that
/// begin [`READ_LAG`] after it was decided have to show it.
pub const SEND_WITHIN: f64 = 10.0;

/// Whether something recorded is no more, beyond doubt.
pub fn is_gone(snapshot: &Snapshot, record: &PersistedState, id: &str) -> bool {
    snapshot.absent.get(id).is_some_and(|at| *at >= proven_from(snapshot, record))
}

/// Says what can be done now, what waits, and what only a person can move.
pub fn plan(input: &PlanInput<'_>) -> Plan {
    let mut res = Plan::default();
    for (key, desired) in input.desired {
        match input.observed.get(key) {
            None => input.absent(key, desired, &mut res),
            Some(observed) => input.present(key, desired, observed, &mut res),
        }
    }
    for (key, observed) in input.observed {
        if observed.owner == Owner::Mine && !input.desired.contains_key(key) {
            input.superfluous(key, observed, &mut res);
        }
    }
    input.loose_ends(&mut res);
    res
}

/// What is to be read before the outcome of every attempt is known, of an object that nothing is done for
/// meanwhile. It waits for nothing when all are.
pub(crate) fn outcomes(input: &PlanInput<'_>) -> Plan {
    let mut res = Plan::default();
    input.attempts(|_| false, &mut res);
    res
}

impl PlanInput<'_> {
    fn absent(&self, key: &Key, desired: &DesiredResource, res: &mut Plan) {
        if let Some(id) = self.record.ids.get(key) {
            return self.recorded(key, id, true, res);
        }
        // What cannot be completed is not begun: it would cost money, and it might end up in what belongs to
        // another.
        if self.taken() {
            return;
        }
        if let Some(vpc) = self.unseen_vpc() {
            return res.waiting.push((key.clone(), format!("after {vpc}")));
        }
        let not_ready = self.not_ready(&desired.is.made_after());
        if !not_ready.is_empty() {
            return res.waiting.push((key.clone(), format!("after {not_ready}")));
        }
        let open = self.record.intents.get(key);
        match key.kind.guard() {
            Guard::Name => self.create(key, desired, None, res),
            _ if open.is_none()
                && !self.read_after(evidence(key.kind, Some(&desired.is)), self.trusted_from) =>
            {
                res.waiting.push((key.clone(), "making sure that it is not there already".into()));
                res.awaits.extend(evidence(key.kind, Some(&desired.is)));
            }
            guard => match open {
                None => self.open(key, desired, res),
                Some(intent) => self.again(key, desired, intent, guard, res),
            },
        }
    }

    /// Whether the place of something that is wanted is another driver's.
    fn taken(&self) -> bool {
        let mut observed = self.desired.keys().filter_map(|key| self.observed.get(key));
        observed.any(|it| matches!(it.owner, Owner::OtherDriver(_)))
    }

    /// The VPC, when it was there and is not seen now: then nothing of what is in it is seen either, and all
    /// of it would be made anew.
    fn unseen_vpc(&self) -> Option<&Key> {
        self.record.ids.keys().find(|it| {
            it.kind == Kind::Vpc && self.desired.contains_key(it) && !self.observed.contains_key(it)
        })
    }

    /// An attempt was written down, and nothing is seen of it.
    fn again(&self, key: &Key, desired: &DesiredResource, intent: &Intent, guard: Guard, res: &mut Plan) {
        res.awaits.extend(reads(key.kind, Some(&desired.is)));
        let retried_for = match guard {
            Guard::Intent => 0.0,
            Guard::Token => TOKEN_AGE,
            Guard::NameAndIntent | Guard::Name => f64::INFINITY,
        };
        if self.now < intent.at + retried_for {
            return self.create(key, desired, Some(intent), res);
        }
        if self.read_after(evidence(key.kind, Some(&desired.is)), intent.at + retried_for + READ_LAG) {
            return self.open(key, desired, res);
        }
        res.awaits.extend(evidence(key.kind, Some(&desired.is)));
        res.waiting.push((key.clone(), "the outcome of an earlier attempt is not known yet".into()));
    }

    fn open(&self, key: &Key, desired: &DesiredResource, res: &mut Plan) {
        let intent = Intent {
            nonce: derive(self.random, &key.to_string()),
            at: self.now,
            inputs: desired.is.inputs(&self.ids(&desired.is)),
        };
        self.create(key, desired, Some(&intent), res);
        res.open.insert(key.clone(), intent);
    }

    fn create(&self, key: &Key, desired: &DesiredResource, intent: Option<&Intent>, res: &mut Plan) {
        let (client_token, until) = match (key.kind.guard(), intent) {
            (Guard::Token, Some(it)) => {
                (Some(client_token(&self.record.id, key, &it.nonce)), Some(it.at + TOKEN_AGE + SEND_WITHIN))
            }
            (Guard::Intent, Some(it)) => (None, Some(it.at + SEND_WITHIN)),
            _ => (None, None),
        };
        let (is, tags, ids) = (desired.is.clone(), desired.tags.clone(), self.ids(&desired.is));
        res.actions.push(Action::Create { is, tags, ids, client_token, until });
    }

    fn present(&self, key: &Key, desired: &DesiredResource, observed: &ObservedResource, res: &mut Plan) {
        if let Owner::OtherDriver(whose) = &observed.owner {
            // It may be what an attempt made, and what shows that it is ours not be seen yet.
            let attempt = self.record.intents.get(key);
            if attempt
                .is_some_and(|it| !self.read_after(evidence(key.kind, Some(&desired.is)), it.at + READ_LAG))
            {
                res.awaits.extend(evidence(key.kind, Some(&desired.is)));
                return res.waiting.push((key.clone(), format!("making sure whose {} is", observed.id)));
            }
            let reason = format!(
                "{} has its place and belongs to {whose}; rename or remove one of the two",
                observed.id
            );
            return res.blocked.push((key.clone(), reason));
        }
        if !observed.others.is_empty() {
            let others = observed.others.join(", ");
            let reason =
                format!("found more than one: {}, {others}; remove those that are not in use", observed.id);
            return res.blocked.push((key.clone(), reason));
        }
        let is_over = matches!(observed.state, State::Failed | State::Deleting);
        if is_over
            && key.kind.guard() == Guard::Token
            && observed.owner == Owner::Mine
            && self.record.intents.contains_key(key)
        {
            // With the same token, AWS would answer with this one for ever. What is well keeps its token: a
            // read may hide it once more.
            res.close.push(key.clone());
        }
        match observed.state {
            State::Creating => self.wait(key, observed, "creating", res),
            State::Deleting => self.wait(key, observed, "deleting", res),
            State::Failed if observed.owner == Owner::Mine => self.unwanted(key, observed, res),
            State::Failed => {
                res.blocked.push((key.clone(), format!("{} failed{}", observed.id, note(observed))))
            }
            State::Ready if observed.owner == Owner::Mine => self.improve(key, desired, observed, res),
            State::Ready => (),
        }
    }

    /// Mine, ready and wanted: whether it is as it should be.
    fn improve(&self, key: &Key, desired: &DesiredResource, observed: &ObservedResource, res: &mut Plan) {
        res.actions.extend(desired.retag(key, observed));
        if let Some(field) = desired.is.immutable(&observed.is) {
            return res
                .blocked
                .push((key.clone(), format!("{field} of {} cannot be changed; set it back", observed.id)));
        }
        if !observed.is.is_known() {
            // What it is like already is not written once more.
            return res.actions.push(Action::Confirm { key: key.clone(), id: observed.id.clone() });
        }
        if desired.is.satisfied_by(&observed.is) {
            if self.record.intents.contains_key(key) && !res.close.contains(key) {
                res.close.push(key.clone());
            }
            return;
        }
        let not_ready = self.not_ready(&desired.is.after());
        if !not_ready.is_empty() {
            return res.waiting.push((key.clone(), format!("after {not_ready}")));
        }
        let mut ids = self.ids(&observed.is);
        ids.extend(self.ids(&desired.is));
        let (id, is, observed, tags) =
            (observed.id.clone(), desired.is.clone(), observed.is.clone(), desired.tags.clone());
        res.actions.push(Action::Update { id, is, observed, tags, ids });
    }

    /// Mine, and nobody wants it. In a cluster that lives on, that may only seem so as long as what it
    /// belongs to is not seen.
    fn superfluous(&self, key: &Key, observed: &ObservedResource, res: &mut Plan) {
        let from = self.trusted_from.max(self.since + READ_LAG);
        if self.stopped.is_some() || self.read_after(evidence(key.kind, Some(&observed.is)), from) {
            return self.unwanted(key, observed, res);
        }
        res.waiting.push((key.clone(), "making sure that it is not needed".into()));
        res.awaits.extend(evidence(key.kind, Some(&observed.is)));
    }

    /// Mine, and to be gone.
    fn unwanted(&self, key: &Key, observed: &ObservedResource, res: &mut Plan) {
        if observed.state == State::Deleting {
            return self.wait(key, observed, "deleting", res);
        }
        let users: Vec<_> =
            self.observed.iter().filter(|(other, it)| *other != key && it.is.after().contains(key)).collect();
        let Some((other, user)) = users.iter().min_by_key(|(_, it)| goes_by_itself(it)) else {
            res.awaits
                .extend(reads(key.kind, Some(&observed.is)).filter(|_| observed.state == State::Failed));
            // If it is wanted again, the token that it was made with would be answered with it for as long as
            // AWS knows the token.
            let made_as = observed
                .tags
                .iter()
                .filter_map(|it| it.get(KEY_TAG))
                .map(|name| Key::new(key.kind, name.as_str()));
            res.close.extend(made_as.chain([key.clone()]).filter(|it| self.is_over(it)));
            return res.actions.push(Action::Delete {
                id: observed.id.clone(),
                is: observed.is.clone(),
                ids: self.ids(&observed.is),
            });
        };
        if goes_by_itself(user) || self.desired.contains_key(other) && user.owner == Owner::Mine {
            return self.wait(key, observed, &format!("used by {other}"), res);
        }
        let whose = match &user.owner {
            Owner::OtherDriver(whose) => format!("belongs to {whose}"),
            _ => "was not made by this operator".into(),
        };
        res.blocked.push((key.clone(), format!("used by {other}{}, which {whose}; remove it", note(user))));
        res.awaits.extend(reads(key.kind, Some(&observed.is)));
    }

    /// Whether an attempt was begun for something that nobody wants any more.
    fn is_over(&self, key: &Key) -> bool {
        self.record.intents.contains_key(key) && !self.desired.contains_key(key)
    }

    fn wait(&self, key: &Key, observed: &ObservedResource, reason: &str, res: &mut Plan) {
        res.waiting.push((key.clone(), reason.to_owned()));
        res.awaits.extend(reads(key.kind, Some(&observed.is)));
    }

    /// What was recorded or begun, and is neither wanted nor seen.
    fn loose_ends(&self, res: &mut Plan) {
        self.attempts(|key| self.desired.contains_key(key), res);
        let loose = |key: &Key| !self.desired.contains_key(key) && !self.observed.contains_key(key);
        for (key, id) in self.record.ids.iter().filter(|(key, _)| loose(key)) {
            self.recorded(key, id, false, res);
        }
    }

    /// Attempts of which nothing is seen that is ours, but for those that are `looked_after` elsewhere: reads
    /// settle them.
    fn attempts(&self, looked_after: impl Fn(&Key) -> bool, res: &mut Plan) {
        let is_mine = |key: &Key| self.observed.get(key).is_some_and(|it| it.owner == Owner::Mine);
        for (key, intent) in self.record.intents.iter().filter(|(key, _)| !looked_after(key) && !is_mine(key))
        {
            let stopped = match key.kind.guard() {
                Guard::Token => self.stopped.unwrap_or(intent.at + TOKEN_AGE).max(intent.at),
                _ => self.stopped.unwrap_or(intent.at).max(intent.at),
            };
            if self.read_after(evidence(key.kind, None), stopped + READ_LAG) {
                res.close.push(key.clone());
                continue;
            }
            res.waiting.push((key.clone(), "the outcome of an attempt to create it is not known yet".into()));
            res.awaits.extend(evidence(key.kind, None));
        }
    }

    /// It was there once: it is looked for by its id, and never made again.
    fn recorded(&self, key: &Key, id: &str, is_desired: bool, res: &mut Plan) {
        let gone = self.absent.get(id).is_some_and(|at| *at >= self.proven_from);
        if !gone && !self.read_after(reads_of(key.kind, id), self.proven_from) {
            res.waiting.push((key.clone(), format!("{id} is not seen yet")));
            return res.awaits.extend(reads_of(key.kind, id));
        }
        match (gone, is_desired) {
            (true, true) => {
                let reason = format!(
                    "lost: {id} was removed by somebody else, and is not replaced; \
                     delete the object, or restore it"
                );
                res.blocked.push((key.clone(), reason));
            }
            (true, false) => res.actions.extend(remains(key, id).map(|is| Action::Delete {
                id: id.to_owned(),
                is,
                ids: Ids::new(),
            })),
            (false, _) => {
                res.actions.push(Action::Confirm { key: key.clone(), id: id.to_owned() });
                res.waiting.push((key.clone(), format!("{id} is not seen; asking for it by its id")));
            }
        }
    }

    fn not_ready(&self, needed: &[Key]) -> String {
        let ready = |key: &Key| {
            self.observed.get(key).is_some_and(|it| it.state == State::Ready && it.others.is_empty())
        };
        let keys: Vec<String> = needed.iter().filter(|key| !ready(key)).map(Key::to_string).collect();
        keys.join(", ")
    }

    fn ids(&self, is: &Resource) -> Ids {
        is.after()
            .into_iter()
            .filter_map(|key| Some((key.clone(), self.observed.get(&key)?.id.clone())))
            .collect()
    }

    fn read_after(&self, mut reads: impl Iterator<Item = Read>, at: Timestamp) -> bool {
        reads.all(|read| self.read_at.get(&read).is_some_and(|began| *began >= at))
    }
}

/// Whether nobody has to do anything for it to go away.
fn goes_by_itself(observed: &ObservedResource) -> bool {
    observed.owner == Owner::Mine || observed.state == State::Deleting
}

fn note(observed: &ObservedResource) -> String {
    observed.note.as_ref().map(|it| format!(" ({it})")).unwrap_or_default()
}
