//! A pretend AWS with rules of its own: what it refuses follows from what AWS documents, never from what the
//! planner says comes after what. Time goes only when a test says so. It answers by value and keeps no secret
//! from the test.

mod create;
mod delete;
pub mod driver;
mod faults;
mod lives;
mod load_balancer;
mod lookup;
pub mod machines;
pub mod objects;
mod read;
pub mod users;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use model::*;

pub use faults::{Faults, Hindrance, Mishap};

/// How many lists of a snapshot reads may be behind with.
const KINDS: usize = 10;

/// The time from one reconciliation to the next.
pub const TICK: Duration = Duration::from_secs(5);
/// Rounds that slow things take.
pub const SLOW: u32 = 3;

/// 2027-01-15T08:00:00Z.
pub const START: Timestamp = 1_800_000_000.0;

/// The pretend AWS.
#[derive(Clone)]
pub struct World {
    pub now: Timestamp,
    pub truth: Snapshot,
    /// What reads showed in earlier rounds, latest last.
    past: VecDeque<Snapshot>,
    /// Says for each kind how far its reads are behind now.
    swings: [u64; KINDS],
    /// Ids that successful writes of this process touched, and when.
    pending_writes: Vec<(String, Timestamp)>,
    /// What reads showed this process lately, and when each id was shown first.
    shown: Snapshot,
    first_shown: BTreeMap<String, Timestamp>,
    /// What each client token made, and with which parameters.
    tokens: BTreeMap<String, (String, String)>,
    /// Looks that something still takes, by id.
    pending: BTreeMap<String, u32>,
    /// Interfaces that outlive their load balancer, and for how many rounds.
    fading: BTreeMap<String, u32>,
    pub secrets: BTreeMap<String, Vec<u8>>,
    /// Load balancers, also removed ones, by id, whose target group is there.
    pub target_groups: BTreeSet<String>,
    /// What load balancers are set to, by id, whatever this process knows of it.
    pub attributes: BTreeMap<String, LoadBalancerAttributes>,
    /// Tags of instances' volumes, by id.
    pub parts: BTreeMap<String, Tags>,
    /// Ids of subnets and groups that users made and no sweep shows.
    pub unlisted: BTreeSet<String>,
    pub faults: Faults,
    pub mishap: Option<Mishap>,
    /// What the latest read of each kind showed that did not fail, and when that was. A process that has just
    /// started knows of none.
    latest: Snapshot,
    /// Looks that the calls of a plan wait for their turn.
    pub queue: u32,
    /// What was asked for that would have taken something from a machine that lives.
    pub cut_off: Vec<String>,
    /// Every call that changed something or was to: key, and how it ended.
    pub log: Vec<(String, Outcome)>,
    next: u32,
    random: u64,
}

impl World {
    pub fn new(seed: u64, faults: Faults) -> World {
        let zones = ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"].map(str::to_owned).to_vec();
        let truth =
            Snapshot { region: "us-east-1".into(), zones, since: START - 3600.0, ..Snapshot::default() };
        World {
            now: START,
            truth,
            past: VecDeque::new(),
            swings: [0; KINDS],
            pending_writes: Vec::new(),
            shown: Snapshot::default(),
            first_shown: BTreeMap::new(),
            tokens: BTreeMap::new(),
            pending: BTreeMap::new(),
            fading: BTreeMap::new(),
            secrets: BTreeMap::new(),
            target_groups: BTreeSet::new(),
            attributes: BTreeMap::new(),
            parts: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            faults,
            mishap: None,
            latest: Snapshot::default(),
            queue: 0,
            cut_off: Vec::new(),
            log: Vec::new(),
            next: 0,
            random: seed ^ 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Xorshift: good enough to choose faults, and the same for the same seed.
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.random() % 100 < u64::from(percent)
    }

    fn id(&mut self, prefix: &str) -> String {
        self.next += 1;
        // An id that users give is known by its length; of the others it does not matter.
        let digits = if prefix == "subnet" { 8 } else { 4 };
        format!("{prefix}-{:0digits$}", self.next)
    }

    /// Time goes on.
    pub fn tick(&mut self) {
        if let Some(left) = self.mishap.as_mut().and_then(|it| it.left.as_mut()) {
            *left = left.saturating_sub(1);
        }
        if self.faults.swing {
            self.swings = std::array::from_fn(|_| self.random());
        }
        self.past.push_back(self.truth.clone());
        if self.past.len() > 12 {
            self.past.pop_front();
        }
        self.now += TICK.as_secs_f64();
        let done: Vec<String> =
            self.pending.iter().filter(|(_, left)| **left <= 1).map(|(id, _)| id.clone()).collect();
        self.pending.values_mut().for_each(|left| *left = left.saturating_sub(1));
        for id in done {
            self.pending.remove(&id);
            self.finish(&id);
        }
        self.fading.values_mut().for_each(|left| *left = left.saturating_sub(1));
        let gone: Vec<String> =
            self.fading.iter().filter(|(_, left)| **left == 0).map(|(id, _)| id.clone()).collect();
        for id in gone {
            self.fading.remove(&id);
            self.truth.network_interfaces.retain(|it| it.id != id);
        }
    }

    /// Something slow comes to its end.
    fn finish(&mut self, id: &str) {
        if let Some(at) = self.truth.nat_gateways.iter().position(|it| it.id == id) {
            let state = self.truth.nat_gateways[at].state;
            match state {
                State::Deleting => {
                    let gateway = self.truth.nat_gateways.remove(at);
                    self.release(gateway.allocation_id.as_deref());
                }
                _ if self.chance(self.faults.failed_start) => {
                    let gateway = &mut self.truth.nat_gateways[at];
                    (gateway.state, gateway.failure) = (State::Failed, Some("InternalError".into()));
                    let allocation = gateway.allocation_id.clone();
                    self.release(allocation.as_deref());
                }
                _ => self.truth.nat_gateways[at].state = State::Ready,
            }
        }
        if let Some(it) = self.truth.load_balancers.iter_mut().find(|it| it.id == id) {
            it.state = State::Ready;
        }
        let mut terminated = None;
        if let Some(it) = self.truth.instances.iter_mut().find(|it| it.id == id) {
            it.status.state = match it.status.state.as_str() {
                "pending" => "running".into(),
                _ => {
                    terminated = Some(it.id.clone());
                    "terminated".into()
                }
            };
        }
        if let Some(id) = terminated {
            self.truth.load_balancers.iter_mut().for_each(|it| it.targets.retain(|target| *target != id));
            self.truth.network_interfaces.retain(|it| it.attached_instance.as_ref() != Some(&id));
        }
    }

    fn release(&mut self, allocation: Option<&str>) {
        for it in self.truth.addresses.iter_mut().filter(|it| Some(it.id.as_str()) == allocation) {
            it.association_id = None;
        }
    }

    /// Carries out one action, with whatever goes wrong.
    pub fn act(&mut self, action: &Action) -> Outcome {
        self.watch(action);
        // As the real leaf does: it waited too long to be sent.
        if matches!(action, Action::Create { until: Some(until), .. } if *until < self.now) {
            return self.logged(action, refused("NotYetVisible"));
        }
        let is_repeated = |it: &Mishap| it.lasts() && format!("{action}").starts_with(&it.write);
        if self.mishap.as_ref().is_some_and(is_repeated) {
            return self.logged(action, Outcome::Unknown { message: "timed out".into() });
        }
        if self.chance(self.faults.throttled) {
            return self.logged(action, refused("RequestLimitExceeded"));
        }
        if self.chance(self.faults.lost_request) {
            return self.logged(action, Outcome::Unknown { message: "timed out".into() });
        }
        let outcome = match self.carry_out(action) {
            Ok(id) => {
                self.pending_writes.push((id, self.now));
                Outcome::Done
            }
            // As the real leaf does: what made it is not known.
            Err(MISMATCH) => return self.logged(action, Outcome::Unknown { message: MISMATCH.into() }),
            Err(code) => refused(code),
        };
        let meets = |it: &&mut Mishap| {
            it.left.is_none() && outcome == Outcome::Done && format!("{action}").starts_with(&it.write)
        };
        if let Some(mishap) = self.mishap.as_mut().filter(meets) {
            mishap.left = Some(mishap.rounds);
            self.pending_writes.pop();
            return self.logged(action, Outcome::Unknown { message: "the connection was closed".into() });
        }
        if self.chance(self.faults.lost_reply) {
            self.pending_writes.pop();
            return self.logged(action, Outcome::Unknown { message: "the connection was closed".into() });
        }
        self.logged(action, outcome)
    }

    fn logged(&mut self, action: &Action, outcome: Outcome) -> Outcome {
        self.log.push((format!("{action}"), outcome.clone()));
        outcome
    }

    /// The operator died and starts again: it knows nothing that is not written down.
    pub fn crash(&mut self) {
        self.pending_writes.clear();
        self.latest = Snapshot::default();
        self.shown = Snapshot::default();
        self.first_shown.clear();
        // Two processes never begin at the same time.
        self.truth.since = self.now.max(self.truth.since + 0.01);
        for vpc in &mut self.truth.vpcs {
            vpc.dns_hostnames = None;
        }
        for balancer in &mut self.truth.load_balancers {
            balancer.attributes = None;
        }
    }

    fn carry_out(&mut self, action: &Action) -> Result<String, &'static str> {
        match action {
            Action::Create { is, tags, ids, client_token, .. } => {
                self.create(is, tags, ids, client_token.as_ref())
            }
            Action::Update { id, is, ids, .. } => self.update(id, is, ids),
            Action::Tag { id, parts, tags, untag, .. } => self.tag(id, parts, tags, untag),
            Action::Delete { id, is, ids } => self.delete(id, is, ids),
            Action::Confirm { id, .. } => {
                if let Some(balancer) = self.truth.load_balancers.iter_mut().find(|it| it.id == *id) {
                    balancer.attributes = self.attributes.get(id).cloned();
                }
                Ok(id.clone())
            }
        }
    }

    fn tag(
        &mut self,
        id: &str,
        parts: &BTreeSet<String>,
        tags: &Tags,
        untag: &BTreeSet<String>,
    ) -> Result<String, &'static str> {
        let truth = &mut self.truth;
        let change = |it: &mut Tags| {
            it.extend(tags.clone());
            it.retain(|key, _| !untag.contains(key));
        };
        let of = truth
            .vpcs
            .iter_mut()
            .map(|it| (&it.id, &mut it.tags))
            .chain(truth.subnets.iter_mut().map(|it| (&it.id, &mut it.tags)))
            .chain(truth.internet_gateways.iter_mut().map(|it| (&it.id, &mut it.tags)))
            .chain(truth.nat_gateways.iter_mut().map(|it| (&it.id, &mut it.tags)))
            .chain(truth.addresses.iter_mut().map(|it| (&it.id, &mut it.tags)))
            .chain(truth.route_tables.iter_mut().map(|it| (&it.id, &mut it.tags)))
            .chain(truth.security_groups.iter_mut().map(|it| (&it.id, &mut it.tags)))
            .chain(truth.instances.iter_mut().map(|it| (&it.id, &mut it.tags)))
            .chain(truth.load_balancers.iter_mut().filter_map(|it| Some((&it.id, it.tags.as_mut()?))))
            .find(|(other, _)| *other == id)
            .map(|(_, tags)| tags);
        change(of.ok_or("InvalidID.NotFound")?);
        for part in parts {
            change(self.parts.get_mut(part).ok_or("InvalidVolume.NotFound")?);
        }
        Ok(id.to_owned())
    }

    /// Everything that exists, terminated instances aside: kind and id.
    pub fn inventory(&self) -> Vec<String> {
        let truth = &self.truth;
        let mut res: Vec<String> = truth.vpcs.iter().map(|it| format!("vpc {}", it.id)).collect();
        res.extend(truth.subnets.iter().map(|it| format!("subnet {} {}", it.id, it.cidr)));
        res.extend(truth.internet_gateways.iter().map(|it| format!("internet-gateway {}", it.id)));
        res.extend(truth.nat_gateways.iter().map(|it| format!("nat-gateway {} {:?}", it.id, it.state)));
        res.extend(truth.addresses.iter().map(|it| format!("elastic-ip {}", it.id)));
        res.extend(
            truth.route_tables.iter().filter(|it| !it.main).map(|it| format!("route-table {}", it.id)),
        );
        res.extend(
            truth
                .security_groups
                .iter()
                .filter(|it| it.group_name != "default")
                .map(|it| format!("security-group {}", it.group_name)),
        );
        res.extend(truth.load_balancers.iter().map(|it| format!("load-balancer {}", it.name)));
        let alive = truth.instances.iter().filter(|it| it.status.state != "terminated");
        res.extend(alive.map(|it| format!("instance {} {}", it.id, it.status.state)));
        res.extend(self.secrets.keys().map(|it| format!("secret {it}")));
        res.extend(self.target_groups.iter().map(|it| format!("target-group {it}")));
        res
    }

    /// How many of each kind there are.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut res = BTreeMap::new();
        for line in self.inventory() {
            *res.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        res
    }
}

fn refused(code: &str) -> Outcome {
    let retry = code == "RequestLimitExceeded";
    Outcome::Refused {
        code: code.into(),
        message: "refused".into(),
        retry,
        who: if retry { ActionNeeded::None } else { ActionNeeded::SpecAuthor },
    }
}

/// What AWS says of a token that was used with other parameters.
const MISMATCH: &str = "IdempotentParameterMismatch";

/// Numbers that follow from the seed (xorshift, Marsaglia 2003).
pub fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}
