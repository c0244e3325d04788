//! Where a cluster's nodes come from when they call its API from outside: the public addresses of NAT
//! gateways. Those of a VPC that a user brought carry no tag of ours, and are read only where a rule lets
//! them in. Nothing here is made or changed.

use crds::AWSCluster;
use crds::load_balancer::{LoadBalancerScheme, LoadBalancerType};

use super::{Input, Layout};
use crate::observe::MAIN;
use model::{
    FoundNatGateway, Kind, NatGateway, Observed, Owner, Plan, Read, SecurityGroupRules, Snapshot, State, Vpc,
};

/// The public addresses of the NAT gateways, as far as they are known. Of a VPC that a user brought they are
/// those of all its gateways: which of them the nodes' subnets lead to only the user's route tables say.
pub(crate) fn addresses(snapshot: &Snapshot, observed: &Observed) -> Vec<String> {
    let vpc = observed.get(&Vpc::key(MAIN)).filter(|it| it.owner == Owner::User);
    let Some(vpc) = vpc else {
        // Addresses are noted where they are seen.
        let used = |name: &str| observed.contains_key(&NatGateway::key(name));
        let addresses = observed.iter().filter(|(key, _)| key.kind == Kind::ElasticIp && used(&key.name));
        return addresses.filter_map(|(_, resource)| resource.note.clone()).collect();
    };
    let usable =
        |it: &&FoundNatGateway| it.vpc_id == vpc.id && matches!(it.state, State::Creating | State::Ready);
    let mut res: Vec<String> =
        snapshot.nat_gateways.iter().filter(usable).flat_map(|it| it.public_ips.iter().cloned()).collect();
    res.sort();
    res.dedup();
    res
}

/// The VPC that a user brought and whose NAT gateways a rule lets in.
pub(super) fn of_vpc<'a>(aws_cluster: &'a AWSCluster, layout: &Layout) -> Option<&'a str> {
    let id = aws_cluster.spec.network.vpc.id.as_str();
    (!layout.owned && !id.is_empty() && lets_in(aws_cluster)).then_some(id)
}

/// Whether the addresses are known, if that matters.
pub(super) fn is_known(aws_cluster: &AWSCluster, layout: &Layout, snapshot: &Snapshot) -> bool {
    of_vpc(aws_cluster, layout).is_none_or(|id| snapshot.nat_gateways_read.contains(id))
}

/// As long as they are not known, they are awaited.
pub(super) fn wait(input: &Input<'_>, layout: &Layout, plan: &mut Plan) {
    let Some(id) =
        of_vpc(input.aws_cluster, layout).filter(|_| !is_known(input.aws_cluster, layout, input.snapshot))
    else {
        return;
    };
    plan.waiting.push((SecurityGroupRules::key("apiserver-lb"), format!("reading the NAT gateways of {id}")));
    plan.awaits.insert(Read::NatGateways);
}

fn lets_in(aws_cluster: &AWSCluster) -> bool {
    let (network, balancer) = (&aws_cluster.spec.network, &aws_cluster.spec.control_plane_load_balancer);
    let balanced = balancer.load_balancer_type != LoadBalancerType::Disabled;
    let restricted = balanced
        && !balancer.ingress_rules.is_empty()
        && balancer.scheme == LoadBalancerScheme::InternetFacing;
    let given =
        network.additional_control_plane_ingress_rules.iter().chain(&network.additional_node_ingress_rules);
    let mut given = given.chain(balancer.ingress_rules.iter().filter(|_| balanced));
    restricted || given.any(|it| it.nat_gateways_ips_source)
}
