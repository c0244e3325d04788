//! In which clusters an upgrade of an add-on may begin: no more at once than a flag allows, those with a label
//! first, and nowhere any more once it failed in one. What was begun goes on.

use std::collections::BTreeSet;

/// Annotation of a ClusterPlugin with which a user lets upgrades begin there although they failed elsewhere, or are
/// awaited elsewhere by a label, in the form of [`UPGRADE_ANNOTATION`](crate::upgrade::UPGRADE_ANNOTATION).
pub const DESPITE_FAILURES_ANNOTATION: &str = "cluster.kurator.dev/upgrade-despite-failures";

/// How many clusters a message names.
const NAMED: usize = 5;

/// A cluster that an upgrade of one add-on to one component concerns. Those where it is not consented to, where
/// it was made, or where nothing can be done now (its API server does not answer, it is paused) are left out:
/// nobody waits for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Namespace and name of its ClusterPlugin.
    pub name: String,
    /// Whether it goes before those without the label.
    pub is_first: bool,
    pub state: MemberState,
}

/// How far an upgrade is in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It is consented to.
    Waiting,
    /// It was begun, and is not whole yet.
    Upgrading,
    /// It was undone, or should be and cannot. Why.
    Failed(String),
}

/// What is known of all clusters when an upgrade of one add-on to one component is to begin in one of them.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    pub members: Vec<Member>,
    /// Clusters in which any add-on is being upgraded and that answer.
    pub upgrading: BTreeSet<String>,
    /// In how many clusters add-ons may be upgraded at once.
    pub limit: usize,
    /// What an entry of [`DESPITE_FAILURES_ANNOTATION`] has to be.
    pub entry: String,
}

impl Fleet {
    /// Whether the upgrade may begin in a cluster where it is consented to; or why it has to wait.
    ///
    /// # Errors
    /// It has to wait.
    pub fn may_begin(&self, name: &str, despite_failures: bool) -> Result<(), String> {
        let own = self.members.iter().find(|it| it.name == name);
        let is_tried_again = own.is_some_and(|it| matches!(it.state, MemberState::Failed(_)));
        if own.is_some_and(|it| it.state == MemberState::Upgrading) {
            return Ok(());
        }
        let others = || self.members.iter().filter(|it| it.name != name);
        let failed = others().find_map(|it| match &it.state {
            MemberState::Failed(why) => Some((&it.name, why)),
            _ => None,
        });
        // Whoever asks for it again where it failed knows of that.
        if let Some((cluster, why)) = failed.filter(|_| !despite_failures && !is_tried_again) {
            let place = if is_neighbor(cluster, name) {
                format!("{cluster} ({why})")
            } else {
                "a cluster of another namespace".to_owned()
            };
            return Err(format!(
                "it failed in {place}; it goes on when that one is upgraded, or pinned to the version that it has; to \
                 upgrade here all the same, annotate this ClusterPlugin with {DESPITE_FAILURES_ANNOTATION}={}",
                self.entry
            ));
        }
        let is_ahead = |it: &&Member| it.is_first && !matches!(it.state, MemberState::Failed(_));
        let ahead: Vec<&str> = others().filter(is_ahead).map(|it| it.name.as_str()).collect();
        if !ahead.is_empty() && !despite_failures && own.is_none_or(|it| !it.is_first) {
            let label = crds::names::UPGRADE_FIRST_LABEL;
            return Err(format!("clusters with the label {label} go first: {}", named(ahead, name)));
        }
        let upgrading: Vec<&str> =
            self.upgrading.iter().map(String::as_str).filter(|it| *it != name).collect();
        if upgrading.len() >= self.limit && !self.upgrading.contains(name) {
            return Err(format!(
                "as many clusters as may be upgraded at once are being upgraded (--max-concurrent-upgrades={}): {}",
                self.limit,
                named(upgrading, name)
            ));
        }
        Ok(())
    }
}

/// Names as whoever reads the condition of `reader` may know them: what is in other namespaces is counted.
fn named(names: Vec<&str>, reader: &str) -> String {
    let all = names.len();
    let mut shown: Vec<&str> = names.into_iter().filter(|it| is_neighbor(it, reader)).collect();
    shown.sort_unstable();
    shown.truncate(NAMED);
    let more = all - shown.len();
    match (shown.is_empty(), more) {
        (true, 1) => "a cluster of another namespace".to_owned(),
        (true, more) => format!("{more} clusters of other namespaces"),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether two clusters are of one namespace.
fn is_neighbor(one: &str, other: &str) -> bool {
    let namespace = |name: &str| name.split_once('/').map(|(namespace, _)| namespace.to_owned());
    namespace(one) == namespace(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELLED: bool = true;

    fn member(name: &str, is_first: bool, state: MemberState) -> Member {
        Member { name: format!("default/{name}"), is_first, state }
    }

    fn fleet(members: Vec<Member>, limit: usize) -> Fleet {
        let is_upgrading = |it: &&Member| it.state == MemberState::Upgrading;
        let upgrading = members.iter().filter(is_upgrading).map(|it| it.name.clone()).collect();
        Fleet { members, upgrading, limit, entry: "calico@sha256:2".into() }
    }

    fn failed() -> MemberState {
        MemberState::Failed("it awaited DaemonSet calico-system/calico-node".into())
    }

    #[test]
    fn no_more_begin_than_may_be_upgraded_at_once() {
        let all = vec![
            member("a", false, MemberState::Upgrading),
            member("b", false, MemberState::Waiting),
            member("c", false, MemberState::Waiting),
        ];
        let one = fleet(all.clone(), 1);
        expect_test::expect!["as many clusters as may be upgraded at once are being upgraded (--max-concurrent-upgrades=1): default/a"]
            .assert_eq(&one.may_begin("default/b", false).unwrap_err());
        assert_eq!(one.may_begin("default/a", false), Ok(()), "it goes on");
        assert_eq!(fleet(all, 2).may_begin("default/c", false), Ok(()));
    }

    #[test]
    fn nobody_is_told_of_clusters_of_other_namespaces() {
        let waiting = member("b", false, MemberState::Waiting);
        let alien = |is_first, state| Member { name: "secret/project".into(), is_first, state };
        for (state, expected) in [
            (alien(false, failed()), "it failed in a cluster of another namespace; it goes on when"),
            (alien(true, MemberState::Waiting), "go first: a cluster of another namespace"),
            (alien(false, MemberState::Upgrading), "=1): a cluster of another namespace"),
        ] {
            let told = fleet(vec![state, waiting.clone()], 1).may_begin("default/b", false).unwrap_err();
            assert!(
                told.contains(expected) && !told.contains("secret") && !told.contains("DaemonSet"),
                "{told}"
            );
        }
        let blocked = fleet(vec![alien(true, MemberState::Waiting), waiting], 1);
        assert_eq!(blocked.may_begin("default/b", true), Ok(()), "nobody can hold up others for good");
    }

    #[test]
    fn several_add_ons_of_one_cluster_count_once() {
        let mut other = fleet(vec![member("a", false, MemberState::Waiting)], 1);
        other.upgrading.insert("default/a".into());
        assert_eq!(other.may_begin("default/a", false), Ok(()));
        assert!(other.may_begin("default/b", false).is_err());
    }

    #[test]
    fn a_failed_one_stops_those_that_have_not_begun() {
        let all = vec![
            member("a", false, failed()),
            member("b", false, MemberState::Waiting),
            member("c", false, MemberState::Upgrading),
        ];
        let fleet = fleet(all, 3);
        expect_test::expect!["it failed in default/a (it awaited DaemonSet calico-system/calico-node); it goes on when that one is upgraded, or pinned to the version that it has; to upgrade here all the same, annotate this ClusterPlugin with cluster.kurator.dev/upgrade-despite-failures=calico@sha256:2"]
            .assert_eq(&fleet.may_begin("default/b", false).unwrap_err());
        assert_eq!(fleet.may_begin("default/c", false), Ok(()), "it goes on");
        assert_eq!(fleet.may_begin("default/a", false), Ok(()), "it is tried again where it failed");
        assert_eq!(fleet.may_begin("default/b", true), Ok(()), "its user knows");
    }

    #[test]
    fn who_is_forced_to_begin_still_waits_for_its_turn() {
        let all = vec![member("a", false, failed()), member("b", false, MemberState::Upgrading)];
        let fleet = fleet(all, 1);
        assert!(
            fleet.may_begin("default/c", true).is_err_and(|why| why.contains("--max-concurrent-upgrades"))
        );
        assert!(fleet.may_begin("default/a", false).is_err());
    }

    #[test]
    fn labelled_clusters_go_first_until_they_are_whole() {
        let waiting = |first: MemberState| {
            let labelled: Vec<Member> =
                (0..7).map(|n| member(&format!("first-{n}"), LABELLED, first.clone())).collect();
            fleet([labelled, vec![member("b", false, MemberState::Waiting)]].concat(), 10)
        };
        expect_test::expect!["clusters with the label cluster.kurator.dev/upgrade-first go first: default/first-0, default/first-1, default/first-2, default/first-3, default/first-4 and 2 more"]
            .assert_eq(&waiting(MemberState::Waiting).may_begin("default/b", false).unwrap_err());
        assert!(waiting(MemberState::Upgrading).may_begin("default/b", false).is_err());
        assert_eq!(waiting(MemberState::Waiting).may_begin("default/first-6", false), Ok(()));
        assert_eq!(waiting(failed()).may_begin("default/b", true), Ok(()), "the failed ones are not awaited");
    }

    /// A cluster as it really is; a member only as far as the fleet may know it.
    #[derive(Clone)]
    struct Cluster {
        name: String,
        is_first: bool,
        answers: bool,
        /// Looks that its upgrade still takes.
        left: Option<u32>,
        state: Option<MemberState>,
    }

    struct World {
        clusters: Vec<Cluster>,
        limit: usize,
        random: u64,
    }

    impl World {
        fn new(seed: u64) -> World {
            let mut world = World { clusters: Vec::new(), limit: 0, random: seed ^ 0x9e37_79b9_7f4a_7c15 };
            world.limit = 1 + world.below(4);
            for number in 0..2 + world.below(12) {
                let (is_first, answers) = (world.below(4) == 0, world.below(5) > 0);
                let (name, state) = (format!("default/{number}"), Some(MemberState::Waiting));
                world.clusters.push(Cluster { name, is_first, answers, left: None, state });
            }
            world
        }

        /// Xorshift: the same for the same seed.
        fn below(&mut self, count: usize) -> usize {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            usize::try_from(self.random % count as u64).expect("a small number")
        }

        fn fleet(&self) -> Fleet {
            let member = |it: &Cluster| {
                let is_known = it.answers || matches!(it.state, Some(MemberState::Failed(_)));
                let state = it.state.clone().filter(|_| is_known)?;
                Some(Member { name: it.name.clone(), is_first: it.is_first, state })
            };
            fleet(self.clusters.iter().filter_map(member).collect(), self.limit)
        }

        /// One look at one of the clusters; whether its upgrade began.
        fn look(&mut self, at: usize, fails: bool) -> bool {
            let (fleet, duration) = (self.fleet(), self.below(5) as u32);
            let cluster = &mut self.clusters[at];
            match (&cluster.state, cluster.answers) {
                (Some(MemberState::Waiting), true) if fleet.may_begin(&cluster.name, false).is_ok() => {
                    (cluster.state, cluster.left) = (Some(MemberState::Upgrading), Some(duration));
                    return true;
                }
                (Some(MemberState::Upgrading), true) => match cluster.left {
                    Some(0) if fails => cluster.state = Some(failed()),
                    Some(0) => cluster.state = None,
                    left => cluster.left = left.map(|it| it - 1),
                },
                _ => (),
            }
            false
        }

        fn is_over(&self) -> bool {
            self.clusters.iter().all(|it| it.state.is_none())
        }
    }

    #[test]
    fn all_are_upgraded_in_the_end_in_whatever_order_they_are_looked_at() {
        for seed in 0..500 {
            let mut world = World::new(seed);
            for step in 0.. {
                let at = world.below(world.clusters.len());
                // Every cluster answers some day.
                let changes = world.below(10) == 0;
                world.clusters[at].answers ^= changes && step < 300;
                world.clusters[at].answers |= step >= 300;
                let began = world.look(at, false);
                let upgrading = world.fleet().upgrading.len();
                assert!(!began || upgrading <= world.limit, "seed {seed}: {upgrading} at once");
                let is_first = world.clusters[at].is_first;
                let waits_for = |it: &Cluster| it.is_first && it.answers && it.state.is_some();
                let jumped = began && !is_first && world.clusters.iter().any(waits_for);
                assert!(!jumped, "seed {seed}: a labelled cluster was not upgraded yet");
                if world.is_over() {
                    break;
                }
                assert!(step < 10_000, "seed {seed}: it never ends");
            }
        }
    }

    #[test]
    fn after_a_failure_nothing_begins_and_what_was_begun_goes_on() {
        for seed in 0..500 {
            let mut world = World::new(seed);
            world.clusters.iter_mut().for_each(|it| it.answers = true);
            let is_failed = |it: &Cluster| matches!(it.state, Some(MemberState::Failed(_)));
            for _ in 0..1000 {
                let (at, fails) = (world.below(world.clusters.len()), world.below(4) == 0);
                let had_failed = world.clusters.iter().any(is_failed);
                assert!(!(world.look(at, fails) && had_failed), "seed {seed}");
            }
            let is_upgrading = |it: &Cluster| it.state == Some(MemberState::Upgrading);
            assert!(!world.clusters.iter().any(is_upgrading), "seed {seed}: it did not go on");
            assert!(world.is_over() || world.clusters.iter().any(is_failed), "seed {seed}");
        }
    }
}
