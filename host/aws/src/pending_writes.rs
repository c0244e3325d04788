//! What was written but may not be readable yet. AWS shows a write seconds after it answered, and a read
//! that began before the write does not show it: until a later one does, what was read is amended. No I/O and
//! no clock.

use std::collections::BTreeSet;

use model::{FIRST_SEEN, READ_LAG, Read, Snapshot, Tags, Timestamp, for_each_kind};

/// A resource as a snapshot holds it.
pub(crate) trait Found: Clone + PartialEq + Send + Sync + 'static {
    fn id(&self) -> &str;
    fn all(snapshot: &Snapshot) -> &[Self];
    /// Copies them if other snapshots hold the same: only for what really changes.
    fn all_mut(snapshot: &mut Snapshot) -> &mut Vec<Self>;
    fn set_all(snapshot: &mut Snapshot, all: Vec<Self>);
}

/// One that shows its tags.
pub(crate) trait Tagged: Found {
    fn tags_mut(&mut self) -> &mut Tags;
}

macro_rules! found {
    ($Found:ident $field:ident) => {
        impl Found for model::$Found {
            fn id(&self) -> &str {
                &self.id
            }
            fn all(snapshot: &Snapshot) -> &[Self] {
                &snapshot.$field
            }
            fn all_mut(snapshot: &mut Snapshot) -> &mut Vec<Self> {
                &mut snapshot.$field
            }
            fn set_all(snapshot: &mut Snapshot, all: Vec<Self>) {
                snapshot.$field = all.into();
            }
        }
    };
}

macro_rules! described {
    ($(
        $(#[$doc:meta])* $Kind:ident $word:literal $event:literal
            $(=> $Found:ident $field:ident $read:ident)?,
    )*) => {$($(
        found!($Found $field);
        impl Tagged for model::$Found {
            fn tags_mut(&mut self) -> &mut Tags {
                &mut self.tags
            }
        }
    )?)*};
}

for_each_kind!(described);
found!(FoundLoadBalancer load_balancers);
found!(FoundNetworkInterface network_interfaces);

/// What an amendment found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The snapshot was as it says.
    Shown,
    Amended,
    /// What it is about is not there.
    Absent,
}

type Change = Box<dyn Fn(&mut Snapshot) -> Effect + Send + Sync>;

/// One thing known from the answer to a write.
pub(crate) struct Amendment {
    id: String,
    about: About,
    /// For how many seconds it is believed more than what is read.
    lasts: f64,
    change: Change,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Making,
    Changing,
    Ending,
}

/// It was made, and was so when it was made.
pub(crate) fn made<T: Found>(item: T) -> Amendment {
    let id = item.id().to_owned();
    let change = move |snapshot: &mut Snapshot| {
        if T::all(snapshot).iter().any(|it| it.id() == item.id()) {
            return Effect::Shown;
        }
        T::all_mut(snapshot).push(item.clone());
        Effect::Amended
    };
    Amendment { id, about: About::Making, lasts: FIRST_SEEN, change: Box::new(change) }
}

/// It was so when it was asked for, and reads of its kind may leave it out for good: that is not believed for
/// longer than a change.
pub(crate) fn answered<T: Found>(item: T) -> Amendment {
    Amendment { lasts: READ_LAG, ..made(item) }
}

/// It was changed: `change` makes it so, and does nothing where it is so.
pub(crate) fn changed<T: Found>(id: &str, change: impl Fn(&mut T) + Send + Sync + 'static) -> Amendment {
    let name = id.to_owned();
    let change = move |snapshot: &mut Snapshot| {
        let Some(at) = T::all(snapshot).iter().position(|it| it.id() == name) else { return Effect::Absent };
        let mut item = T::all(snapshot)[at].clone();
        change(&mut item);
        if item == T::all(snapshot)[at] {
            return Effect::Shown;
        }
        T::all_mut(snapshot)[at] = item;
        Effect::Amended
    };
    Amendment { id: id.to_owned(), about: About::Changing, lasts: READ_LAG, change: Box::new(change) }
}

/// It is no more.
pub(crate) fn gone<T: Found>(id: &str) -> Amendment {
    let name = id.to_owned();
    let change = move |snapshot: &mut Snapshot| {
        if T::all(snapshot).iter().all(|it| it.id() != name) {
            return Effect::Shown;
        }
        T::all_mut(snapshot).retain(|it| it.id() != name);
        Effect::Amended
    };
    Amendment { id: id.to_owned(), about: About::Ending, lasts: READ_LAG, change: Box::new(change) }
}

struct Entry {
    read: Read,
    /// When the answer came.
    at: Timestamp,
    amendment: Amendment,
}

impl Entry {
    fn is_making(&self) -> bool {
        self.amendment.about == About::Making
    }
}

/// All amendments that reads do not show yet, in order.
#[derive(Default)]
pub(crate) struct PendingWrites {
    entries: Vec<Entry>,
}

impl PendingWrites {
    /// Adds what a write's answer, which came `at`, said; `read` is what will show it. False: earlier entries
    /// were dropped for it, so that [`amend_latest`](Self::amend_latest) is not enough.
    pub fn record(&mut self, read: Read, at: Timestamp, amendment: Amendment) -> bool {
        let before = self.entries.len();
        // A classic load balancer's name can be used again, and what ended needs no changes.
        if amendment.about != About::Changing {
            self.entries.retain(|it| it.amendment.id != amendment.id);
        }
        let all_left = self.entries.len() == before;
        self.entries.push(Entry { read, at, amendment });
        all_left
    }

    /// Drops what a read of `read`, which began at `began` and is in `base`, shows or overrules. `base`
    /// itself is not changed for good: it is where amendments are tried out.
    pub fn settle(&mut self, read: Read, began: Timestamp, base: &mut Snapshot) {
        let mut unseen: BTreeSet<String> =
            self.entries.iter().filter(|it| it.is_making()).map(|it| it.amendment.id.clone()).collect();
        self.entries.retain(|it| {
            if it.read != read || it.at >= began {
                return true;
            }
            let fresh = began - it.at < it.amendment.lasts;
            match it.amendment.about {
                // Ids of what ended are not used again, and reads may swing back for a while.
                About::Ending => fresh,
                About::Making => {
                    let stays = fresh && (it.amendment.change)(base) != Effect::Shown;
                    if !stays {
                        unseen.remove(&it.amendment.id);
                    }
                    stays
                }
                // What no read shows is as it was left.
                About::Changing => {
                    (fresh || unseen.contains(&it.amendment.id))
                        && (it.amendment.change)(base) != Effect::Shown
                }
            }
        });
    }

    /// Makes `snapshot` show what is known beyond what was read.
    pub fn amend(&self, snapshot: &mut Snapshot) {
        for entry in &self.entries {
            (entry.amendment.change)(snapshot);
        }
    }

    /// Makes `snapshot`, which shows everything but the latest entry, show that too.
    pub fn amend_latest(&self, snapshot: &mut Snapshot) {
        if let Some(entry) = self.entries.last() {
            (entry.amendment.change)(snapshot);
        }
    }

    /// Whether something about this id is not shown by reads yet.
    pub fn mentions(&self, id: &str) -> bool {
        self.entries.iter().any(|it| it.amendment.id == id)
    }

    /// AWS knows of what was made: reads that do not show it leave it out, and it is not believed for longer
    /// than a change.
    pub fn mark_known(&mut self, id: &str) {
        for entry in self.entries.iter_mut().filter(|it| it.is_making() && it.amendment.id == id) {
            entry.amendment.lasts = READ_LAG;
        }
    }

    /// Whether it was made, and reads may lack it still.
    pub fn is_unseen(&self, id: &str, now: Timestamp) -> bool {
        self.entries
            .iter()
            .any(|it| it.is_making() && it.amendment.id == id && now - it.at < it.amendment.lasts)
    }

    /// Whether it was removed.
    pub fn is_ended(&self, id: &str) -> bool {
        self.entries.iter().any(|it| it.amendment.about == About::Ending && it.amendment.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{FoundSubnet, FoundVpc, State};

    fn vpc(id: &str) -> FoundVpc {
        FoundVpc {
            id: id.into(),
            cidr: "10.0.0.0/16".into(),
            state: State::Ready,
            dns_hostnames: None,
            tags: Default::default(),
        }
    }

    fn subnet(id: &str, public: bool) -> FoundSubnet {
        FoundSubnet {
            id: id.into(),
            vpc_id: "vpc-1".into(),
            zone: "a".into(),
            cidr: "10.0.0.0/24".into(),
            public,
            state: State::Ready,
            tags: Default::default(),
        }
    }

    fn shown(pending: &PendingWrites, base: &Snapshot) -> Vec<String> {
        let mut snapshot = base.clone();
        pending.amend(&mut snapshot);
        snapshot.vpcs.iter().map(|it| it.id.clone()).collect()
    }

    #[test]
    fn what_was_made_is_shown_until_a_later_read_shows_it() {
        let mut pending = PendingWrites::default();
        let mut empty = Snapshot::default();
        pending.record(Read::Vpcs, 10.0, made(vpc("vpc-1")));
        pending.settle(Read::Vpcs, 9.0, &mut empty.clone());
        assert_eq!(shown(&pending, &empty), ["vpc-1"], "a read that began before the write");
        pending.settle(Read::Vpcs, 11.0, &mut empty.clone());
        assert_eq!(shown(&pending, &empty), ["vpc-1"], "a read that lags");
        empty.vpcs.push(vpc("vpc-1"));
        pending.settle(Read::Vpcs, 13.0, &mut empty);
        assert!(!pending.mentions("vpc-1"));
    }

    #[test]
    fn reads_win_after_the_lag() {
        let mut pending = PendingWrites::default();
        let empty = Snapshot::default();
        pending.record(Read::Vpcs, 10.0, made(vpc("vpc-1")));
        pending.settle(Read::Vpcs, 10.0 + FIRST_SEEN, &mut empty.clone());
        assert!(shown(&pending, &empty).is_empty());
        pending.record(Read::Vpcs, 400.0, answered(vpc("vpc-2")));
        pending.settle(Read::Vpcs, 400.0 + READ_LAG, &mut empty.clone());
        assert!(shown(&pending, &empty).is_empty(), "nobody made it just now");
        pending.record(Read::Vpcs, 500.0, made(vpc("vpc-3")));
        pending.mark_known("vpc-3");
        pending.settle(Read::Vpcs, 500.0 + READ_LAG, &mut empty.clone());
        assert!(shown(&pending, &empty).is_empty(), "and this one is left out on purpose");
    }

    #[test]
    fn what_no_read_has_shown_is_shown_for_minutes_as_it_was_left() {
        let mut pending = PendingWrites::default();
        let mut base = Snapshot::default();
        pending.record(Read::Subnets, 10.0, made(subnet("subnet-1", false)));
        pending.record(Read::Subnets, 11.0, changed::<FoundSubnet>("subnet-1", |it| it.public = true));
        pending.settle(Read::Subnets, 100.0, &mut base.clone());
        let mut snapshot = base.clone();
        pending.amend(&mut snapshot);
        assert!(snapshot.subnets.len() == 1 && snapshot.subnets[0].public);
        assert!(pending.is_unseen("subnet-1", 100.0) && !pending.is_unseen("subnet-1", 10.0 + FIRST_SEEN));
        base.subnets.push(subnet("subnet-1", false));
        pending.settle(Read::Subnets, 110.0, &mut base.clone());
        assert!(!pending.mentions("subnet-1"), "a read shows it, long after it was changed");
    }

    #[test]
    fn reads_of_other_kinds_settle_nothing() {
        let mut pending = PendingWrites::default();
        let empty = Snapshot::default();
        pending.record(Read::Vpcs, 10.0, made(vpc("vpc-1")));
        pending.settle(Read::Subnets, 500.0, &mut empty.clone());
        assert_eq!(shown(&pending, &empty), ["vpc-1"]);
    }

    #[test]
    fn what_was_deleted_does_not_come_back() {
        let mut pending = PendingWrites::default();
        let stale = Snapshot { vpcs: vec![vpc("vpc-1")].into(), ..Snapshot::default() };
        pending.record(Read::Vpcs, 5.0, made(vpc("vpc-1")));
        pending.record(Read::Vpcs, 10.0, gone::<FoundVpc>("vpc-1"));
        pending.settle(Read::Vpcs, 11.0, &mut stale.clone());
        assert!(shown(&pending, &stale).is_empty(), "a lagging read");
        pending.settle(Read::Vpcs, 12.0, &mut Snapshot::default());
        assert!(shown(&pending, &stale).is_empty(), "a read that swings back after one that did not show it");
    }

    #[test]
    fn a_change_waits_for_what_it_changes_and_ends_once_shown() {
        let mut pending = PendingWrites::default();
        let mut base = Snapshot::default();
        pending.record(Read::Subnets, 10.0, made(subnet("subnet-1", false)));
        pending.record(Read::Subnets, 10.5, changed::<FoundSubnet>("subnet-1", |it| it.public = true));
        pending.settle(Read::Subnets, 12.0, &mut base.clone());
        let mut snapshot = base.clone();
        pending.amend(&mut snapshot);
        assert!(snapshot.subnets[0].public);
        base.subnets.push(subnet("subnet-1", false));
        pending.settle(Read::Subnets, 14.0, &mut base.clone());
        pending.amend(&mut base);
        assert!(base.subnets[0].public, "the read shows it as it was made");
        pending.settle(Read::Subnets, 16.0, &mut base);
        assert!(!pending.mentions("subnet-1"));
    }

    #[test]
    fn a_name_can_be_used_again_after_its_end() {
        let mut pending = PendingWrites::default();
        pending.record(Read::Vpcs, 10.0, gone::<FoundVpc>("name"));
        pending.record(Read::Vpcs, 11.0, made(vpc("name")));
        assert_eq!(shown(&pending, &Snapshot::default()), ["name"]);
    }
}
