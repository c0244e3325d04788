//! What is particular of each kind when creations and reads are decided. It decides nothing itself.

use crate::{Key, Kind, LoadBalancer, LoadBalancerKind, Read, Resource};

/// What keeps a creation from being done twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// AWS refuses a second one (a CIDR block, a name), or making it again is the same.
    Name,
    /// Likewise, and parts of it that no read shows are made after it.
    NameAndIntent,
    /// A client token.
    Token,
    /// Nothing but that it was written down: sent once, and again only when reads have shown that nothing came of it.
    Intent,
}

pub(super) fn guard(kind: Kind) -> Guard {
    match kind {
        Kind::Vpc | Kind::InternetGateway | Kind::ElasticIp => Guard::Intent,
        Kind::NatGateway | Kind::RouteTable | Kind::Instance => Guard::Token,
        Kind::LoadBalancer | Kind::Secret => Guard::NameAndIntent,
        Kind::Subnet | Kind::SecurityGroup | Kind::SecurityGroupRules | Kind::NetworkInterface | Kind::Target => Guard::Name,
    }
}

/// What may not change while one client token is retried.
pub(super) fn inputs(is: &Resource) -> Option<serde_json::Value> {
    match is {
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
            Some(Resource::LoadBalancer(it)) if it.kind == LoadBalancerKind::Classic => &[Read::ClassicLoadBalancers],
            Some(_) => &[Read::LoadBalancers, Read::TargetGroups],
            None => &[Read::ClassicLoadBalancers, Read::LoadBalancers],
        },
        Kind::Target => &[],
    };
    reads.iter().copied()
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

/// What can be left of something that is gone: a target group stays when somebody removes its load balancer. Deleting it once more takes that.
pub(super) fn remains(key: &Key, id: &str) -> Option<Resource> {
    (key.kind == Kind::LoadBalancer && id.starts_with("arn:")).then(|| LoadBalancer::remains(&key.name, id).into())
}
