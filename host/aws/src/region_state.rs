//! What is known of one region: what was read, what was written since, and what no read shows. Puts the three
//! together into a [`Snapshot`]. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{
    FoundListener, FoundLoadBalancer, FoundNetworkInterface, FoundSecurityGroup, FoundVpc, HealthCheck,
    LoadBalancerAttributes, LoadBalancerKind, Read, Snapshot, State, Tags, Timestamp,
};

use crate::pending_writes::{Amendment, PendingWrites};
use crate::recently_seen::RecentlySeen;

/// How long it counts that something was not there.
const ABSENT: Duration = Duration::from_secs(3600);

/// One target group whose name says that it is ours, or CAPA's.
#[derive(Clone, Debug)]
pub(crate) struct TargetGroup {
    pub arn: String,
    pub port: u16,
    pub health_check: HealthCheck,
    /// Load balancers that forward to it, by ARN.
    pub load_balancers: BTreeSet<String>,
    /// Instance ids; `None` until they were read.
    pub targets: Option<BTreeSet<String>>,
    /// The latest read of the targets failed: they are those of an earlier one.
    pub is_stale: bool,
}

/// A listener of a network load balancer: its port, and the target group it forwards to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forward {
    pub port: u16,
    pub target_group: String,
}

/// What only the deletion of a VPC has to know.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeletingVpc {
    pub began: Timestamp,
    pub interfaces: Vec<FoundNetworkInterface>,
    /// All, also those without a cluster's tag.
    pub groups: Vec<FoundSecurityGroup>,
    /// By id of the load balancer.
    pub tags: BTreeMap<String, Tags>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Base {
    /// All but load balancers and what deletions need.
    pub snapshot: Snapshot,
    pub classic: Vec<FoundLoadBalancer>,
    pub load_balancers: Vec<FoundLoadBalancer>,
    pub target_groups: Vec<TargetGroup>,
    /// By ARN of the load balancer. Of those that are not there, nothing could be read.
    pub listeners: BTreeMap<String, Vec<Forward>>,
    pub deleting: BTreeMap<String, DeletingVpc>,
}

/// Puts what one read found into the base.
pub(crate) type Merge = Box<dyn FnOnce(&mut Base) + Send>;

/// What no read shows.
#[derive(Default)]
pub(crate) struct Memory {
    /// VPCs whose `enableDnsHostnames` this process set.
    pub dns_hostnames: BTreeSet<String>,
    /// Attributes this process set, by id of the load balancer.
    pub attributes: BTreeMap<String, LoadBalancerAttributes>,
    /// Target groups of load balancers that are being removed, by ARN: once its listeners are gone, nothing
    /// says any more what they forwarded to.
    pub target_groups: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Default)]
pub(crate) struct RegionState {
    base: Base,
    recently_seen: RecentlySeen,
    pending_writes: PendingWrites,
    memory: Memory,
    /// All three together, as long as nothing but amendments came since: most of a region is the same from
    /// one write to the next.
    shown: Option<Snapshot>,
}

impl Base {
    fn snapshot(&self) -> Snapshot {
        let mut res = self.snapshot.clone();
        let others = self.load_balancers.iter().map(|it| self.with_listeners(it));
        res.load_balancers = self.classic.iter().cloned().chain(others).collect();
        for (vpc, deleting) in &self.deleting {
            res.deleting_vpcs_read.insert(vpc.clone(), deleting.began);
            res.network_interfaces.extend(deleting.interfaces.iter().cloned());
            let known: BTreeSet<String> = res.security_groups.iter().map(|it| it.id.clone()).collect();
            res.security_groups.extend(deleting.groups.iter().filter(|it| !known.contains(&it.id)).cloned());
            for balancer in res.load_balancers.iter_mut().filter(|it| it.vpc_id == *vpc) {
                balancer.tags = deleting.tags.get(&balancer.id).cloned();
            }
        }
        res
    }

    fn with_listeners(&self, balancer: &FoundLoadBalancer) -> FoundLoadBalancer {
        let mut res = balancer.clone();
        for group in self.target_groups.iter().filter(|it| it.load_balancers.contains(&balancer.id)) {
            res.target_groups.push(group.arn.clone());
            res.targets.extend(group.targets.iter().flatten().cloned());
            let forwards = self
                .listeners
                .get(&balancer.id)
                .into_iter()
                .flatten()
                .filter(|it| it.target_group == group.arn);
            res.listeners.extend(forwards.map(|it| FoundListener {
                port: it.port,
                target_port: group.port,
                health_check: Some(group.health_check.clone()),
            }));
        }
        let is_unread = !res.target_groups.is_empty() && !self.listeners.contains_key(&balancer.id);
        if is_unread && res.kind == LoadBalancerKind::Network && res.state == State::Ready {
            // Without a listener it would be given another.
            res.state = State::Creating;
        }
        res
    }
}

impl Memory {
    /// Puts what no read shows into a snapshot.
    fn complete(&self, snapshot: &mut Snapshot) {
        let forgot = |it: &FoundVpc| it.dns_hostnames != Some(true) && self.dns_hostnames.contains(&it.id);
        if snapshot.vpcs.iter().any(forgot) {
            snapshot.vpcs.iter_mut().filter(|it| forgot(it)).for_each(|it| it.dns_hostnames = Some(true));
        }
        let differs = |it: &FoundLoadBalancer| it.attributes.as_ref() != self.attributes.get(&it.id);
        if snapshot.load_balancers.iter().any(differs) {
            let all = snapshot.load_balancers.iter_mut().filter(|it| differs(it));
            all.for_each(|it| it.attributes = self.attributes.get(&it.id).cloned());
        }
    }
}

impl RegionState {
    /// What was read.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// What was read, to be changed.
    pub fn base_mut(&mut self) -> &mut Base {
        self.shown = None;
        &mut self.base
    }

    /// What no read shows, to be changed.
    pub fn memory_mut(&mut self) -> &mut Memory {
        self.shown = None;
        &mut self.memory
    }

    /// The target groups of a load balancer that is being removed: those attached to it now, and those that
    /// were at an earlier try.
    pub fn forwards_to(&mut self, arn: &str, attached: BTreeSet<String>) -> BTreeSet<String> {
        let groups = self.memory.target_groups.entry(arn.to_owned()).or_default();
        groups.extend(attached);
        groups.clone()
    }

    /// Whether something about this id is not shown by reads yet.
    pub fn is_written(&self, id: &str) -> bool {
        self.pending_writes.mentions(id)
    }

    /// AWS knows of what was made: reads that do not show it leave it out.
    pub fn mark_known(&mut self, id: &str) {
        self.pending_writes.mark_known(id);
    }

    /// Whether it came so lately that AWS may say of it still that it does not exist.
    pub fn is_young(&self, id: &str, now: Timestamp) -> bool {
        self.pending_writes.is_unseen(id, now)
            || (self.recently_seen.has(id, now) && !self.pending_writes.is_ended(id))
    }

    /// Adds what a write's answer, which came `at`, said; `read` is what will show it.
    pub fn record(&mut self, read: Read, at: Timestamp, amendment: Amendment) {
        let follows = self.pending_writes.record(read, at, amendment);
        self.shown = self.shown.take().filter(|_| follows).map(|mut shown| {
            self.pending_writes.amend_latest(&mut shown);
            self.memory.complete(&mut shown);
            shown
        });
    }

    /// Everything known, put together.
    pub fn snapshot(&mut self) -> Snapshot {
        let (base, pending_writes, memory) = (&self.base, &self.pending_writes, &self.memory);
        let build = || {
            let mut res = base.snapshot();
            pending_writes.amend(&mut res);
            memory.complete(&mut res);
            res
        };
        self.shown.get_or_insert_with(build).clone()
    }

    /// After `reads`, which began at `began`, were put into the base: adds what they hid, and forgets what
    /// they show or overrule.
    pub fn settle(&mut self, reads: &[Read], began: Timestamp) {
        self.shown = None;
        self.recently_seen.keep(reads, began, &mut self.base.snapshot);
        let mut scratch = self.base.snapshot();
        for read in reads {
            self.base.snapshot.read_at.insert(*read, began);
            self.pending_writes.settle(*read, began, &mut scratch);
        }
        self.pending_writes.amend(&mut scratch);
        let vpcs: BTreeSet<&String> = scratch.vpcs.iter().map(|it| &it.id).collect();
        self.memory.dns_hostnames.retain(|it| vpcs.contains(it));
        let balancers: BTreeSet<&String> = scratch.load_balancers.iter().map(|it| &it.id).collect();
        self.memory.attributes.retain(|it, _| balancers.contains(it));
        self.base.listeners.retain(|it, _| balancers.contains(it));
        let seen = ids(&scratch);
        self.base.snapshot.absent.retain(|id, at| began - *at < ABSENT.as_secs_f64() && !seen.contains(id));
    }
}

fn ids(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut res: BTreeSet<String> = snapshot.vpcs.iter().map(|it| it.id.clone()).collect();
    res.extend(snapshot.instances.iter().map(|it| it.id.clone()));
    res.extend(snapshot.load_balancers.iter().map(|it| it.id.clone()));
    res.extend(snapshot.subnets.iter().map(|it| it.id.clone()));
    res
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending_writes::{changed, gone, made};
    use model::FoundSubnet;

    fn vpc(id: &str) -> FoundVpc {
        FoundVpc {
            id: id.into(),
            cidr: "10.0.0.0/16".into(),
            state: State::Ready,
            dns_hostnames: None,
            tags: Tags::new(),
        }
    }

    fn subnet(id: &str) -> FoundSubnet {
        FoundSubnet {
            id: id.into(),
            vpc_id: "vpc-1".into(),
            zone: "a".into(),
            cidr: "10.0.0.0/24".into(),
            public: false,
            state: State::Ready,
            tags: Tags::new(),
        }
    }

    fn balancer(id: &str) -> FoundLoadBalancer {
        FoundLoadBalancer {
            id: id.into(),
            name: id.into(),
            kind: LoadBalancerKind::Classic,
            dns_name: String::new(),
            vpc_id: "vpc-1".into(),
            internal: false,
            state: State::Ready,
            subnets: BTreeSet::new(),
            groups: BTreeSet::new(),
            listeners: Vec::new(),
            targets: BTreeSet::new(),
            attributes: None,
            target_groups: Vec::new(),
            tags: None,
        }
    }

    #[test]
    fn a_write_copies_only_the_kind_that_it_is_about() {
        let mut state = RegionState::default();
        state.record(Read::Vpcs, 1.0, made(vpc("vpc-1")));
        state.record(Read::Subnets, 2.0, made(subnet("subnet-1")));
        let before = state.snapshot();
        state.record(Read::Subnets, 3.0, changed::<FoundSubnet>("subnet-1", |it| it.public = true));
        let after = state.snapshot();
        assert!(after.vpcs.is_same(&before.vpcs));
        assert!(after.subnets[0].public && !before.subnets[0].public, "a snapshot never changes");
        state.record(Read::Subnets, 4.0, changed::<FoundSubnet>("subnet-1", |it| it.public = true));
        assert!(state.snapshot().subnets.is_same(&after.subnets), "it was so already");
    }

    #[test]
    fn what_was_made_or_first_shown_lately_and_not_removed_is_young() {
        let mut state = RegionState::default();
        state.record(Read::Vpcs, 1.0, made(vpc("vpc-1")));
        assert!(state.is_young("vpc-1", 2.0) && state.is_young("vpc-1", 200.0), "no read has shown it");
        state.base_mut().snapshot.vpcs.push(vpc("vpc-1"));
        state.settle(&[Read::Vpcs], 210.0);
        assert!(state.is_young("vpc-1", 230.0) && !state.is_young("vpc-1", 250.0));
        state.record(Read::Vpcs, 231.0, gone::<FoundVpc>("vpc-1"));
        assert!(!state.is_young("vpc-1", 232.0) && !state.is_young("vpc-2", 2.0));
    }

    #[test]
    fn what_is_shown_write_by_write_is_what_is_put_together_anew() {
        let attributes = LoadBalancerAttributes { cross_zone: true, idle_timeout_seconds: Some(600) };
        let mut state = RegionState::default();
        state.base_mut().classic.push(balancer("stale"));
        let steps: Vec<Box<dyn Fn(&mut RegionState)>> = vec![
            Box::new(|it| it.record(Read::Vpcs, 1.0, made(vpc("vpc-1")))),
            Box::new(|it| it.memory_mut().dns_hostnames.extend(["vpc-1".to_owned()])),
            Box::new(|it| {
                it.record(
                    Read::Vpcs,
                    2.0,
                    changed::<FoundVpc>("vpc-1", |it| it.tags.extend([("a".into(), "b".into())])),
                )
            }),
            Box::new(|it| it.record(Read::ClassicLoadBalancers, 3.0, made(balancer("new")))),
            Box::new(move |it| it.memory_mut().attributes.extend([("new".to_owned(), attributes.clone())])),
            Box::new(|it| it.record(Read::ClassicLoadBalancers, 4.0, gone::<FoundLoadBalancer>("stale"))),
            Box::new(|it| it.record(Read::ClassicLoadBalancers, 5.0, made(balancer("stale")))),
            Box::new(|it| it.record(Read::ClassicLoadBalancers, 6.0, gone::<FoundLoadBalancer>("new"))),
            Box::new(|it| it.memory_mut().dns_hostnames.clear()),
        ];
        for (n, step) in steps.iter().enumerate() {
            step(&mut state);
            let shown = format!("{:?}", state.snapshot());
            state.base_mut();
            assert_eq!(shown, format!("{:?}", state.snapshot()), "after step {n}");
        }
    }
}
