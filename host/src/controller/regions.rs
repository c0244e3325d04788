//! Wakes the objects of one controller when AWS shows something new that they wait for. It never reads AWS itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plan::{FoundInstance, Interest, Read, Snapshot};

use super::queue::Waker;
use crate::context::ObjectName;

/// Snapshots that follow one another closely are looked at together.
const TOGETHER: Duration = Duration::from_millis(50);

/// Who waits for what, of one controller.
#[derive(Clone)]
pub struct Regions(Arc<Shared>);

struct Shared {
    aws: aws::Aws,
    waker: Waker,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seats: HashMap<ObjectName, Seat>,
    watched: BTreeSet<String>,
}

/// What one object waits for.
#[derive(Clone, Debug, Default)]
pub struct Seat {
    pub region: String,
    pub interest: Interest,
    /// The instance that it is about; it is looked at whenever that changes.
    pub instance: Option<String>,
}

impl Regions {
    pub fn new(aws: aws::Aws, waker: Waker) -> Self {
        Self(Arc::new(Shared { aws, waker, state: Mutex::default() }))
    }

    /// Says what an object waits for from now on.
    pub fn sit(&self, name: &ObjectName, seat: Seat) {
        let region = seat.region.clone();
        let mut state = self.lock();
        state.seats.insert(name.clone(), seat);
        if state.watched.insert(region.clone()) {
            tokio::spawn(self.clone().watch(region));
        }
    }

    /// The object is gone. Returns what it waited for.
    pub fn leave(&self, name: &ObjectName) -> Option<Seat> {
        self.lock().seats.remove(name)
    }

    async fn watch(self, region: String) {
        let mut view = self.0.aws.region(&region).view();
        let mut before = view.borrow_and_update().clone();
        while view.changed().await.is_ok() {
            tokio::time::sleep(TOGETHER).await;
            let now = view.borrow_and_update().clone();
            let problem = before.problem.as_ref().map(|it| &it.code) != now.problem.as_ref().map(|it| &it.code);
            let news = News::between(before.snapshot.as_deref(), now.snapshot.as_deref(), problem);
            let names: Vec<ObjectName> = {
                let state = self.lock();
                let seats = state.seats.iter().filter(|(_, seat)| seat.region == region);
                seats.filter(|(_, seat)| news.concerns(seat)).map(|(name, _)| name.clone()).collect()
            };
            names.into_iter().for_each(|it| self.0.waker.wake(it));
            before = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is new in a snapshot.
struct News {
    /// Everything: the first snapshot, a whole sweep, or sweeps began to fail or to succeed.
    all: bool,
    read: BTreeSet<Read>,
    deleting_vpcs: bool,
    instances: BTreeSet<String>,
}

impl News {
    fn between(before: Option<&Snapshot>, now: Option<&Snapshot>, problem: bool) -> Self {
        let none = Snapshot::default();
        let (old, new) = (before.unwrap_or(&none), now.unwrap_or(&none));
        let oldest = |it: &Snapshot| it.read_at.values().copied().fold(f64::INFINITY, f64::min);
        let all = problem || before.is_some() != now.is_some() || old.read_at.len() != new.read_at.len() || oldest(old) < oldest(new);
        News {
            all,
            read: new.read_at.iter().filter(|(read, at)| old.read_at.get(read) != Some(at)).map(|(read, _)| *read).collect(),
            deleting_vpcs: old.deleting_vpcs_read != new.deleting_vpcs_read,
            instances: match old.instances.is_same(&new.instances) {
                true => BTreeSet::new(),
                false => changed_instances(&old.instances, &new.instances),
            },
        }
    }

    fn concerns(&self, seat: &Seat) -> bool {
        self.all
            || !self.read.is_disjoint(&seat.interest.reads)
            || (self.deleting_vpcs && !seat.interest.deleting_vpcs.is_empty())
            || seat.instance.as_ref().is_some_and(|it| self.instances.contains(it))
    }
}

fn changed_instances(before: &[FoundInstance], now: &[FoundInstance]) -> BTreeSet<String> {
    let mut old: BTreeMap<&str, &FoundInstance> = before.iter().map(|it| (it.id.as_str(), it)).collect();
    let mut changed = BTreeSet::new();
    for instance in now {
        if old.remove(instance.id.as_str()) != Some(instance) {
            changed.insert(instance.id.clone());
        }
    }
    changed.extend(old.into_keys().map(str::to_owned));
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(reads: &[(Read, f64)]) -> Snapshot {
        Snapshot { read_at: reads.iter().copied().collect(), ..Snapshot::default() }
    }

    fn waiting_for(read: Read) -> Seat {
        let interest = Interest { reads: BTreeSet::from([read]), ..Interest::default() };
        Seat { interest, ..Seat::default() }
    }

    #[test]
    fn a_partial_sweep_wakes_only_those_that_wait_for_what_was_read() {
        let before = snapshot(&[(Read::Vpcs, 1.0), (Read::NatGateways, 1.0)]);
        let now = snapshot(&[(Read::Vpcs, 1.0), (Read::NatGateways, 11.0)]);
        let news = News::between(Some(&before), Some(&now), false);
        assert!(news.concerns(&waiting_for(Read::NatGateways)));
        assert!(!news.concerns(&waiting_for(Read::Vpcs)));
        assert!(!news.concerns(&Seat::default()));
    }

    #[test]
    fn a_whole_sweep_wakes_the_settled_too() {
        let before = snapshot(&[(Read::Vpcs, 1.0), (Read::NatGateways, 11.0)]);
        let now = snapshot(&[(Read::Vpcs, 301.0), (Read::NatGateways, 301.0)]);
        assert!(News::between(Some(&before), Some(&now), false).concerns(&Seat::default()));
        assert!(News::between(None, Some(&now), false).concerns(&Seat::default()));
        assert!(News::between(Some(&now), Some(&now), true).concerns(&Seat::default()));
        assert!(!News::between(Some(&now), Some(&now), false).concerns(&Seat::default()));
    }
}
