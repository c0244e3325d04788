//! What is known of one region: what was read, what was written since, and what no read shows. Puts the three together into a
//! [`Snapshot`]. No I/O.

use std::collections::{BTreeMap, BTreeSet};

use plan::{
    FoundListener, FoundLoadBalancer, FoundNetworkInterface, FoundSecurityGroup, HealthCheck, LoadBalancerAttributes, Read, Snapshot, Tags,
    Timestamp,
};

use crate::ledger::Ledger;

/// How long it counts that something was not there, in seconds.
const ABSENT: f64 = 3600.0;

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
    /// By ARN of the load balancer.
    pub listeners: BTreeMap<String, Vec<Forward>>,
    pub deleting: BTreeMap<String, DeletingVpc>,
}

/// What no read shows.
#[derive(Default)]
pub(crate) struct Memory {
    /// VPCs whose `enableDnsHostnames` this process set.
    pub dns_hostnames: BTreeSet<String>,
    /// Attributes this process set, by id of the load balancer.
    pub attributes: BTreeMap<String, LoadBalancerAttributes>,
}

#[derive(Default)]
pub(crate) struct World {
    pub base: Base,
    pub ledger: Ledger,
    pub memory: Memory,
}

impl Base {
    fn snapshot(&self) -> Snapshot {
        let mut res = self.snapshot.clone();
        res.load_balancers = self.classic.clone();
        res.load_balancers.extend(self.load_balancers.iter().map(|it| self.with_listeners(it)));
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
            let forwards = self.listeners.get(&balancer.id).into_iter().flatten().filter(|it| it.target_group == group.arn);
            res.listeners.extend(forwards.map(|it| FoundListener {
                port: it.port,
                target_port: group.port,
                health_check: Some(group.health_check.clone()),
            }));
        }
        res
    }
}

impl World {
    /// Everything known, put together.
    pub fn snapshot(&self) -> Snapshot {
        let mut res = self.base.snapshot();
        self.ledger.amend(&mut res);
        for vpc in res.vpcs.iter_mut().filter(|it| self.memory.dns_hostnames.contains(&it.id)) {
            vpc.dns_hostnames = Some(true);
        }
        for balancer in &mut res.load_balancers {
            balancer.attributes = self.memory.attributes.get(&balancer.id).cloned();
        }
        res
    }

    /// After `reads`, which began at `began`, were put into the base: forgets what they show or overrule.
    pub fn settle(&mut self, reads: &[Read], began: Timestamp) {
        let mut scratch = self.base.snapshot();
        for read in reads {
            self.base.snapshot.read_at.insert(*read, began);
            self.ledger.settle(*read, began, &mut scratch);
        }
        self.ledger.amend(&mut scratch);
        let vpcs: BTreeSet<&String> = scratch.vpcs.iter().map(|it| &it.id).collect();
        self.memory.dns_hostnames.retain(|it| vpcs.contains(it));
        let balancers: BTreeSet<&String> = scratch.load_balancers.iter().map(|it| &it.id).collect();
        self.memory.attributes.retain(|it, _| balancers.contains(it));
        self.base.listeners.retain(|it, _| balancers.contains(it));
        let seen = ids(&scratch);
        self.base.snapshot.absent.retain(|id, at| began - *at < ABSENT && !seen.contains(id));
    }
}

fn ids(snapshot: &Snapshot) -> BTreeSet<String> {
    let mut res: BTreeSet<String> = snapshot.vpcs.iter().map(|it| it.id.clone()).collect();
    res.extend(snapshot.instances.iter().map(|it| it.id.clone()));
    res.extend(snapshot.load_balancers.iter().map(|it| it.id.clone()));
    res.extend(snapshot.subnets.iter().map(|it| it.id.clone()));
    res
}
