//! What is particular of each kind when creations and reads are decided. It decides nothing itself.

use model::{ElasticIp, Ids, Intent, Key, Kind, LoadBalancer, LoadBalancerKind, Read, Resource};

/// Of the inputs of a NAT gateway: the id of the address that it was given.
const ADDRESS: &str = "address";

/// What keeps a creation from being done twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// AWS refuses a second one (a CIDR block, a name), or making it again is the same.
    Name,
    /// Likewise, and parts of it that no read shows are made after it.
    NameAndIntent,
    /// A client token.
    Token,
    /// Nothing but that it was written down: sent once, and again only when reads have shown that nothing
    /// came of it.
    Intent,
}

pub(super) fn guard(kind: Kind) -> Guard {
    match kind {
        Kind::Vpc | Kind::InternetGateway | Kind::ElasticIp => Guard::Intent,
        Kind::NatGateway | Kind::RouteTable | Kind::Instance => Guard::Token,
        Kind::LoadBalancer | Kind::Secret => Guard::NameAndIntent,
        Kind::Subnet
        | Kind::SecurityGroup
        | Kind::SecurityGroupRules
        | Kind::NetworkInterface
        | Kind::Target => Guard::Name,
    }
}

/// What may not change while one client token is retried.
pub(super) fn inputs(is: &Resource, ids: &Ids) -> Option<serde_json::Value> {
    match is {
        // An address in use shows whose it is before the gateway itself is seen.
        Resource::NatGateway(it) => {
            Some(serde_json::json!({ADDRESS: ids.get(&ElasticIp::key(&it.elastic_ip))?}))
        }
        Resource::Instance(it) => {
            let launch = it.launch.as_ref().and_then(|launch| serde_json::to_value(launch).ok())?;
            Some(serde_json::json!({"subnet": it.subnet, "launch": launch}))
        }
        _ => None,
    }
}

/// The calls that show a resource.
pub(super) fn reads(kind: Kind, is: Option<&Resource>) -> impl Iterator<Item = Read> {
    let reads: &[Read] = match kind {
        Kind::Vpc => &[Read::Vpcs],
        Kind::Subnet => &[Read::Subnets],
        Kind::InternetGateway => &[Read::InternetGateways],
        Kind::ElasticIp => &[Read::Addresses],
        Kind::NatGateway => &[Read::NatGateways],
        Kind::RouteTable => &[Read::RouteTables],
        Kind::SecurityGroup | Kind::SecurityGroupRules => &[Read::SecurityGroups],
        Kind::Instance => &[Read::Instances],
        Kind::NetworkInterface | Kind::Secret => &[],
        Kind::LoadBalancer => match is {
            Some(Resource::LoadBalancer(it)) if it.kind == LoadBalancerKind::Classic => {
                &[Read::ClassicLoadBalancers]
            }
            Some(_) => &[Read::LoadBalancers, Read::TargetGroups],
            None => &[Read::ClassicLoadBalancers, Read::LoadBalancers],
        },
        Kind::Target => &[],
    };
    reads.iter().copied()
}

/// The calls that show whether a resource is there, what its role is and whose it is: that may follow from
/// other kinds too. Nothing is made anew, given up or taken away before all of them show what was made.
pub(super) fn evidence(kind: Kind, is: Option<&Resource>) -> impl Iterator<Item = Read> {
    let others: &[Read] = match kind {
        // What an address is for, its gateway says; which zone that is of, its subnet.
        Kind::ElasticIp => &[Read::Vpcs, Read::Subnets, Read::NatGateways],
        Kind::NatGateway | Kind::RouteTable => &[Read::Vpcs, Read::Subnets],
        Kind::Subnet | Kind::InternetGateway | Kind::SecurityGroup | Kind::SecurityGroupRules => {
            &[Read::Vpcs]
        }
        // Ours carries our group.
        Kind::LoadBalancer => &[Read::Vpcs, Read::SecurityGroups],
        Kind::Vpc | Kind::NetworkInterface | Kind::Secret | Kind::Instance | Kind::Target => &[],
    };
    reads(kind, is).chain(others.iter().copied())
}

/// The address that an attempt to make a NAT gateway was given.
pub(crate) fn address_of(intent: &Intent) -> Option<&str> {
    intent.inputs.as_ref()?.get(ADDRESS)?.as_str()
}

/// The calls that show something recorded by its id.
pub(super) fn reads_of(kind: Kind, id: &str) -> impl Iterator<Item = Read> {
    let other = match (kind, id.starts_with("arn:")) {
        (Kind::LoadBalancer, true) => Some(Read::ClassicLoadBalancers),
        (Kind::LoadBalancer, false) => Some(Read::LoadBalancers),
        _ => None,
    };
    reads(kind, None).filter(move |it| Some(*it) != other)
}

/// What can be left of something that is gone: a target group stays when somebody removes its load balancer.
/// Deleting it once more takes that.
pub(super) fn remains(key: &Key, id: &str) -> Option<Resource> {
    (key.kind == Kind::LoadBalancer && id.starts_with("arn:"))
        .then(|| LoadBalancer::remains(&key.name, id).into())
}
