//! What reads showed lately for the first time. Answers come from servers that do not all know of it yet, so
//! that a later read may hide it once more: it stays for a while. Pure: no I/O and no clock.

use std::collections::{BTreeMap, BTreeSet};

use model::{READ_LAG, Read, Snapshot, Timestamp, for_each_kind};

use crate::pending_writes::Found;

/// What was shown, and since when.
#[derive(Default)]
pub(crate) struct RecentlySeen {
    /// When the first of the reads began that showed an id.
    first: BTreeMap<Read, BTreeMap<String, Timestamp>>,
    shown: Snapshot,
}

impl RecentlySeen {
    /// After `reads`, which began at `began`, put what they found into `base`: adds what they should have
    /// found. Of load balancers nothing is added: their names keep them from being made twice.
    pub fn keep(&mut self, reads: &[Read], began: Timestamp, base: &mut Snapshot) {
        for read in reads {
            self.keep_read(*read, began, base);
        }
        self.shown = base.clone();
    }

    /// Whether a read showed it for the first time not long ago.
    pub fn has(&self, id: &str, now: Timestamp) -> bool {
        self.first.values().any(|of_kind| of_kind.get(id).is_some_and(|at| now - at < READ_LAG))
    }

    fn keep_all<T: Found>(&mut self, read: Read, began: Timestamp, base: &mut Snapshot) {
        let first = self.first.entry(read).or_default();
        let found: BTreeSet<&str> = T::all(base).iter().map(T::id).collect();
        let is_fresh = |id: &str| first.get(id).is_some_and(|at| began - at < READ_LAG);
        let hidden: Vec<T> = T::all(&self.shown)
            .iter()
            .filter(|it| !found.contains(it.id()) && is_fresh(it.id()))
            .cloned()
            .collect();
        if !hidden.is_empty() {
            T::all_mut(base).extend(hidden);
        }
        let mut before = std::mem::take(first);
        first.extend(
            T::all(base)
                .iter()
                .map(|it| before.remove_entry(it.id()).unwrap_or_else(|| (it.id().to_owned(), began))),
        );
    }
}

macro_rules! keep_read {
    ($(
        $(#[$doc:meta])* $Kind:ident $word:literal $event:literal
            $(=> $Found:ident $field:ident $read:ident)?,
    )*) => {
        impl RecentlySeen {
            fn keep_read(&mut self, read: Read, began: Timestamp, base: &mut Snapshot) {
                match read {
                    $($(Read::$read => self.keep_all::<model::$Found>(read, began, base),)?)*
                    Read::ClassicLoadBalancers | Read::LoadBalancers | Read::TargetGroups => {}
                }
            }
        }
    };
}

for_each_kind!(keep_read);

#[cfg(test)]
mod tests {
    use super::*;
    use model::FoundAddress;

    fn address(id: &str) -> FoundAddress {
        FoundAddress {
            id: id.into(),
            public_ip: String::new(),
            association_id: None,
            network_interface_id: None,
            tags: Default::default(),
        }
    }

    /// What is shown after a read that found these.
    fn read(recent: &mut RecentlySeen, began: Timestamp, found: &[&str]) -> Vec<String> {
        let mut base =
            Snapshot { addresses: found.iter().map(|it| address(it)).collect(), ..Snapshot::default() };
        recent.keep(&[Read::Addresses], began, &mut base);
        base.addresses.iter().map(|it| it.id.clone()).collect()
    }

    #[test]
    fn what_was_just_shown_is_not_hidden_by_a_read_that_lags() {
        let mut recent = RecentlySeen::default();
        assert_eq!(read(&mut recent, 10.0, &["old"]), ["old"]);
        assert_eq!(read(&mut recent, 40.0, &["new", "old"]), ["new", "old"]);
        assert_eq!(read(&mut recent, 42.0, &["old"]), ["old", "new"], "the read lags");
        assert!(recent.has("new", 42.0) && !recent.has("old", 42.0));
        assert_eq!(read(&mut recent, 44.0, &["new", "old"]), ["new", "old"]);
        assert_eq!(read(&mut recent, 46.0, &[]), ["new"], "the old one was removed by somebody");
        assert_eq!(read(&mut recent, 40.0 + READ_LAG, &[]), [""; 0], "and this one too");
    }

    #[test]
    fn a_read_of_another_kind_changes_nothing() {
        let mut recent = RecentlySeen::default();
        read(&mut recent, 10.0, &["new"]);
        let mut base = Snapshot { addresses: [address("new")].into_iter().collect(), ..Snapshot::default() };
        recent.keep(&[Read::Vpcs], 20.0, &mut base);
        assert_eq!(read(&mut recent, 22.0, &[]), ["new"]);
    }
}
