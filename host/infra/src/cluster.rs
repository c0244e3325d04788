//! The infrastructure of one cluster: what its AWSCluster asks for, as resources, and what can be done about
//! it now.

pub(crate) mod adopted;
mod aws_id;
mod copied;
mod decide;
mod delete;
mod desired;
pub(crate) mod egress;
mod endpoint;
mod external;
mod group;
mod interest;
mod layout;
mod load_balancer;
mod name;
mod network;
mod pause;
mod plan_input;
mod tag;
mod unlisted;
pub(crate) mod unmanaged;

use std::collections::BTreeSet;

use crds::AWSCluster;
use crds::cluster_api::Cluster;

use crate::PersistedState;
use crate::observe::NETWORK;
use model::{
    AddOnRule, Desired, Interest, Invalid, Key, Kind, LoadBalancerKind, Observed, Part, Plan, Read, Resource,
    SecurityGroupRules, Snapshot, Timestamp,
};

pub use copied::{copied, copied_from, dropped, dropped_message};
pub use decide::decide;
pub use desired::desired;
pub use endpoint::must_resolve;
pub use external::is_external;
pub use layout::Layout;
pub(crate) use layout::load_balancer_kind;
pub use model::owner;
pub(crate) use name::cluster_name;
pub(crate) use pause::open_outcomes;
pub(crate) use tag::common;
pub(crate) use unlisted::name as subnet_name;

/// What the infrastructure of a cluster is decided from.
pub struct Input<'a> {
    pub cluster: &'a Cluster,
    pub aws_cluster: &'a AWSCluster,
    /// Names of the AWSMachines of the cluster that still exist; they matter when it is being deleted.
    pub machines: &'a [String],
    /// Rules that add-ons asked for; `None` as long as that is not known, and then nothing is revoked.
    pub rules: Option<&'a [AddOnRule]>,
    pub snapshot: &'a Snapshot,
    pub record: &'a PersistedState,
    pub now: Timestamp,
    /// At least 128 random bits, fresh for every reconciliation.
    pub random: &'a str,
}

impl Input<'_> {
    /// What was never read and has to be before anything can be said.
    pub(crate) fn unread(&self) -> BTreeSet<Part> {
        let mut res = self.snapshot.lacks(NETWORK.into_iter().chain(load_balancer_reads(self.aws_cluster)));
        let chosen = !self.record.zones.is_empty()
            || !self.aws_cluster.spec.network.subnets.is_empty()
            || deleting(self.aws_cluster);
        if !chosen && self.snapshot.zones.is_empty() {
            res.insert(Part::Zones);
        }
        res.extend(self.unread_routes().map(|_| Part::Kind(Read::RouteTables)));
        res
    }

    /// The VPC whose route tables have to be read first. What is deleted does not depend on them.
    fn unread_routes(&self) -> Option<&str> {
        unmanaged::unread(self.cluster, self.aws_cluster, self.record, self.snapshot)
            .filter(|_| !deleting(self.aws_cluster))
    }
}

/// What shows a cluster's load balancer.
pub(crate) fn load_balancer_reads(aws_cluster: &AWSCluster) -> Vec<Read> {
    match load_balancer_kind(aws_cluster) {
        Some(LoadBalancerKind::Classic) => vec![Read::ClassicLoadBalancers],
        Some(LoadBalancerKind::Network) => vec![Read::LoadBalancers, Read::TargetGroups],
        _ => Vec::new(),
    }
}

/// What is to be done for a cluster.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub plan: Plan,
    /// To be on the object before the plan is carried out.
    pub record: PersistedState,
    pub observed: Observed,
    pub desired: Desired,
    /// What of the spec is not carried out, because something that lives would lose what it uses: of which
    /// kind, why, and what to do.
    pub held: Vec<(Kind, String)>,
    /// Subnets that are kept though the spec does not list them any more.
    pub unlisted: BTreeSet<Key>,
    /// The spec cannot be carried out.
    pub invalid: Option<Invalid>,
    pub interest: Interest,
    /// It is being deleted, and nothing of it is left.
    pub finished: bool,
}

impl Decision {
    fn waiting(record: &PersistedState, key: Key, reason: &str) -> Decision {
        let plan = Plan { waiting: vec![(key, reason.to_owned())], ..Plan::default() };
        Decision { plan, record: record.clone(), ..Decision::default() }
    }
}

/// Whether an AWSCluster is being deleted.
pub(crate) fn deleting(aws_cluster: &AWSCluster) -> bool {
    aws_cluster.metadata.deletion_timestamp.is_some()
}

/// Whether the groups let in what add-ons asked for, so that these can be installed.
pub fn groups_have_rules(decision: &Decision, rules: &[AddOnRule]) -> bool {
    rules.iter().all(|it| {
        match decision.observed.get(&SecurityGroupRules::key(&it.group)).map(|observed| &observed.is) {
            Some(Resource::SecurityGroupRules(observed)) => {
                observed.rules.iter().any(|rule| rule.same_traffic(&it.rule))
            }
            _ => false,
        }
    })
}
