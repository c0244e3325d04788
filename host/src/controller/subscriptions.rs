//! Triggers the objects of one controller when a snapshot of AWS shows something new that they wait for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{FoundInstance, Interest, Part, Read, Snapshot, Timestamp};

use super::queue::Trigger;
use crate::object_name::ObjectName;

/// Snapshots that follow one another this closely are taken together.
const DEBOUNCE: Duration = Duration::from_millis(50);

/// What the objects of one controller wait for.
#[derive(Clone)]
pub struct Subscriptions(Arc<Shared>);

struct Shared {
    aws: aws::Aws,
    trigger: Trigger,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    subscriptions: HashMap<ObjectName, Subscription>,
    watched: BTreeSet<String>,
}

/// What one object waits for.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    pub region: String,
    pub interest: Interest,
    /// The instance that it is about; it is reconciled whenever that changes.
    pub instance: Option<String>,
}

impl Subscriptions {
    pub fn new(aws: aws::Aws, trigger: Trigger) -> Self {
        Self(Arc::new(Shared { aws, trigger, state: Mutex::default() }))
    }

    /// Subscribes an object to what it waits for from now on.
    pub fn subscribe(&self, name: &ObjectName, subscription: Subscription) {
        let region = subscription.region.clone();
        let mut state = self.lock();
        state.subscriptions.insert(name.clone(), subscription);
        if state.watched.insert(region.clone()) {
            tokio::spawn(self.clone().watch(region));
        }
    }

    /// Ends the subscription of an object, and returns it.
    pub fn unsubscribe(&self, name: &ObjectName) -> Option<Subscription> {
        self.lock().subscriptions.remove(name)
    }

    async fn watch(self, region: String) {
        let mut view = self.0.aws.region(&region).view();
        let mut before = view.borrow_and_update().clone();
        while view.changed().await.is_ok() {
            tokio::time::sleep(DEBOUNCE).await;
            let now = view.borrow_and_update().clone();
            let diff = SnapshotDiff::between(&before, &now);
            let names: Vec<ObjectName> = {
                let state = self.lock();
                let subscriptions =
                    state.subscriptions.iter().filter(|(_, subscription)| subscription.region == region);
                subscriptions
                    .filter(|(_, subscription)| diff.concerns(subscription))
                    .map(|(name, _)| name.clone())
                    .collect()
            };
            names.into_iter().for_each(|it| self.0.trigger.enqueue(it));
            before = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is new in a snapshot.
struct SnapshotDiff {
    /// Everything: the first snapshot, the first read of something, or all that can be read was read anew.
    all: bool,
    read: BTreeSet<Read>,
    deleting_vpcs: bool,
    zones: bool,
    instances: BTreeSet<String>,
    /// What began to fail or to succeed, or fails for another reason.
    failing: Vec<Part>,
}

impl SnapshotDiff {
    fn between(before: &aws::View, now: &aws::View) -> Self {
        let none = Snapshot::default();
        let (old, new) =
            (before.snapshot.as_deref().unwrap_or(&none), now.snapshot.as_deref().unwrap_or(&none));
        let failing = |view: &aws::View, read: &Read| view.problems.contains_key(&Part::Kind(*read));
        // What cannot be read must not keep the settled from being reconciled.
        let oldest = |view: &aws::View, snapshot: &Snapshot| {
            snapshot
                .read_at
                .iter()
                .filter(|(read, _)| !failing(view, read))
                .map(|(_, at)| *at)
                .fold(Timestamp::INFINITY, Timestamp::min)
        };
        let code = |view: &aws::View, part: &Part| view.problems.get(part).map(|it| it.code.clone());
        let parts = before.problems.keys().chain(now.problems.keys());
        SnapshotDiff {
            all: before.snapshot.is_some() != now.snapshot.is_some()
                || old.read_at.len() != new.read_at.len()
                || oldest(before, old) < oldest(now, new),
            zones: old.zones != new.zones,
            failing: parts.filter(|it| code(before, it) != code(now, it)).cloned().collect(),
            read: new
                .read_at
                .iter()
                .filter(|(read, at)| old.read_at.get(read) != Some(at))
                .map(|(read, _)| *read)
                .collect(),
            deleting_vpcs: old.deleting_vpcs_read != new.deleting_vpcs_read,
            instances: if old.instances.is_same(&new.instances) {
                BTreeSet::new()
            } else {
                changed_instances(&old.instances, &new.instances)
            },
        }
    }

    fn concerns(&self, subscription: &Subscription) -> bool {
        self.all
            || !self.read.is_disjoint(&subscription.interest.reads)
            || (self.deleting_vpcs && !subscription.interest.deleting_vpcs.is_empty())
            || (self.zones && subscription.interest.needs(&Part::Zones))
            || self.failing.iter().any(|it| subscription.interest.needs(it))
            || subscription.instance.as_ref().is_some_and(|it| self.instances.contains(it))
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
    use model::{ActionNeeded, Problem};

    fn view(reads: &[(Read, Timestamp)], failing: &[Read]) -> aws::View {
        let problem = Problem {
            code: "UnauthorizedOperation".into(),
            message: "no".into(),
            who: ActionNeeded::CloudAdmin,
        };
        aws::View {
            snapshot: Some(Arc::new(Snapshot {
                read_at: reads.iter().copied().collect(),
                ..Snapshot::default()
            })),
            problems: failing.iter().map(|it| (Part::Kind(*it), problem.clone())).collect(),
        }
    }

    fn waiting_for(read: Read) -> Subscription {
        let interest = Interest { reads: BTreeSet::from([read]), ..Interest::default() };
        Subscription { interest, ..Subscription::default() }
    }

    #[test]
    fn a_partial_read_triggers_only_those_that_wait_for_it() {
        let before = view(&[(Read::Vpcs, 1.0), (Read::NatGateways, 1.0)], &[]);
        let now = view(&[(Read::Vpcs, 1.0), (Read::NatGateways, 11.0)], &[]);
        let diff = SnapshotDiff::between(&before, &now);
        assert!(diff.concerns(&waiting_for(Read::NatGateways)));
        assert!(!diff.concerns(&waiting_for(Read::Vpcs)));
        assert!(!diff.concerns(&Subscription::default()));
    }

    #[test]
    fn a_whole_read_triggers_the_settled_too() {
        let before = view(&[(Read::Vpcs, 1.0), (Read::NatGateways, 11.0)], &[]);
        let now = view(&[(Read::Vpcs, 301.0), (Read::NatGateways, 301.0)], &[]);
        assert!(SnapshotDiff::between(&before, &now).concerns(&Subscription::default()));
        assert!(SnapshotDiff::between(&aws::View::default(), &now).concerns(&Subscription::default()));
        assert!(!SnapshotDiff::between(&now, &now).concerns(&Subscription::default()));
    }

    #[test]
    fn a_failing_read_triggers_only_those_that_wait_for_it() {
        let before = view(&[(Read::Vpcs, 1.0), (Read::NatGateways, 1.0)], &[]);
        let failing = view(&[(Read::Vpcs, 1.0), (Read::NatGateways, 1.0)], &[Read::NatGateways]);
        for diff in [SnapshotDiff::between(&before, &failing), SnapshotDiff::between(&failing, &before)] {
            assert!(diff.concerns(&waiting_for(Read::NatGateways)));
            assert!(!diff.concerns(&waiting_for(Read::Vpcs)) && !diff.concerns(&Subscription::default()));
        }
        let swept = view(&[(Read::Vpcs, 301.0), (Read::NatGateways, 1.0)], &[Read::NatGateways]);
        assert!(SnapshotDiff::between(&failing, &swept).concerns(&Subscription::default()));
    }
}
