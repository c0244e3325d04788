//! Load balancers of the Kubernetes API with their listeners.

use std::collections::BTreeSet;

use crate::text::join;
use crate::{Guard, InternetGateway, Key, Read, ResourceKind, SecurityGroup, State, Subnet, Tags};

/// A load balancer. Ours has the role `apiserver`; one that somebody else made is named by its AWS name.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadBalancer {
    /// Its role.
    pub name: String,
    /// Its name in AWS (at most 32 characters).
    pub aws_name: String,
    /// Cannot be changed.
    pub kind: LoadBalancerKind,
    /// Internet-facing ones come after this attached gateway.
    pub internet_gateway: Option<String>,
    /// Scheme `internal`, else `internet-facing`. Cannot be changed.
    pub internal: bool,
    /// Subnets that it has addresses in, by role.
    pub subnets: BTreeSet<String>,
    /// As wanted: subnets that it is to be taken off. Others that it has stay.
    pub leaving: BTreeSet<String>,
    /// Security groups, by role; empty for a network load balancer that was made without.
    pub groups: BTreeSet<String>,
    /// As seen: `None` while the listener (and, for network load balancers, the target group behind it) is
    /// not there yet.
    pub listener: Option<Listener>,
    /// Cross-zone load balancing and idle timeout; `None` as seen until they were read, which takes a call for
    /// each load balancer.
    pub attributes: Option<LoadBalancerAttributes>,
}

/// The kinds of load balancers, in AWS's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalancerKind {
    /// Elastic Load Balancing's first version.
    Classic,
    /// Forwards TCP; of Elastic Load Balancing's second version.
    Network,
    /// As seen only: made by others.
    Application,
    /// As seen only: made by others.
    Gateway,
}

/// One TCP listener, the port behind it, and how targets are checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Where clients reach it, such as 6443.
    pub port: u16,
    /// Port of the API server on its instances.
    pub target_port: u16,
    /// Of the classic load balancer, or of the target group.
    pub health_check: HealthCheck,
}

/// How a target's health is found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthCheck {
    /// `TCP`, `SSL`, `HTTP`, `HTTPS`.
    pub protocol: String,
    /// Port that is checked on the instance.
    pub port: u16,
    /// For HTTP and HTTPS: `/readyz`.
    pub path: Option<String>,
    /// Seconds from one check to the next.
    pub interval_seconds: i32,
    /// Seconds after which a check without an answer has failed.
    pub timeout_seconds: i32,
    /// Checks that have to succeed in a row.
    pub healthy_threshold: i32,
    /// Checks that have to fail in a row.
    pub unhealthy_threshold: i32,
}

/// What ModifyLoadBalancerAttributes sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadBalancerAttributes {
    /// Whether each zone's addresses reach the targets of all zones.
    pub cross_zone: bool,
    /// Classic only; seconds.
    pub idle_timeout_seconds: Option<i32>,
}

/// A load balancer of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundLoadBalancer {
    /// The ARN; a classic load balancer's name.
    pub id: String,
    /// Unique in the region among those of its version of Elastic Load Balancing.
    pub name: String,
    /// Which of the kinds.
    pub kind: LoadBalancerKind,
    /// Such as `c1-apiserver-123.us-east-1.elb.amazonaws.com`; empty while AWS does not say.
    pub dns_name: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// Scheme `internal`, else `internet-facing`.
    pub internal: bool,
    /// `Creating`, `Ready` or `Failed`. A network load balancer whose listeners were not read yet counts as
    /// being made.
    pub state: State,
    /// By id.
    pub subnets: BTreeSet<String>,
    /// By id.
    pub groups: BTreeSet<String>,
    /// What its listeners forward to; of a network load balancer whose target group is attached, that one.
    pub listeners: Vec<FoundListener>,
    /// Instance ids behind it.
    pub targets: BTreeSet<String>,
    /// What describes load balancers does not show them: `None` until this process set or read them.
    pub attributes: Option<LoadBalancerAttributes>,
    /// Target groups attached to it, by ARN.
    pub target_groups: Vec<String>,
    /// Only read for VPCs that are being deleted.
    pub tags: Option<Tags>,
}

/// A listener and what is behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundListener {
    /// Where clients reach it.
    pub port: u16,
    /// Port of the instances, or of the target group.
    pub target_port: u16,
    /// `None`: just made and not set yet, or in a form that cannot be read.
    pub health_check: Option<HealthCheck>,
}

impl LoadBalancerAttributes {
    /// What AWS starts with.
    pub fn untouched(kind: LoadBalancerKind) -> Self {
        let idle_timeout_seconds = (kind == LoadBalancerKind::Classic).then_some(60);
        LoadBalancerAttributes { cross_zone: false, idle_timeout_seconds }
    }
}

impl LoadBalancer {
    /// One of which nothing but its ARN, `...:loadbalancer/net/NAME/ID`, is known any more.
    pub fn remains(name: &str, arn: &str) -> Self {
        LoadBalancer {
            name: name.to_owned(),
            aws_name: arn.rsplit('/').nth(1).unwrap_or_default().to_owned(),
            kind: LoadBalancerKind::Network,
            internet_gateway: None,
            internal: false,
            subnets: BTreeSet::new(),
            leaving: BTreeSet::new(),
            groups: BTreeSet::new(),
            listener: None,
            attributes: None,
        }
    }

    /// Whether the groups of `seen` are others than these, and can be set: AWS gives none to a network load
    /// balancer that was made without.
    pub fn can_change_groups_of(&self, observed: &Self) -> bool {
        self.groups != observed.groups
            && !(observed.kind == LoadBalancerKind::Network && observed.groups.is_empty())
    }
}

impl Listener {
    /// For people: its ports, and how targets are checked.
    fn details(&self) -> String {
        let check = &self.health_check;
        let path = check.path.as_deref().unwrap_or_default();
        let (every, within) = (check.interval_seconds, check.timeout_seconds);
        let (up, down) = (check.healthy_threshold, check.unhealthy_threshold);
        let checked = format!(
            "{}:{}{path} every {every} s within {within} s, {up} up {down} down",
            check.protocol, check.port
        );
        format!(", {} to {}, checked by {checked}", self.port, self.target_port)
    }
}

impl ResourceKind for LoadBalancer {
    const GUARD: Guard = Guard::NameAndIntent;
    const READS: &'static [Read] = &[Read::ClassicLoadBalancers, Read::LoadBalancers];
    /// Ours carries our group.
    const EVIDENCE: &'static [Read] = &[Read::Vpcs, Read::SecurityGroups];

    fn reads(&self) -> &'static [Read] {
        match self.kind {
            LoadBalancerKind::Classic => &[Read::ClassicLoadBalancers],
            _ => &[Read::LoadBalancers, Read::TargetGroups],
        }
    }

    fn after(&self) -> Vec<Key> {
        let mut res: Vec<Key> = self.internet_gateway.iter().map(InternetGateway::key).collect();
        res.extend(self.groups.iter().map(SecurityGroup::key));
        res.extend(self.subnets.iter().map(Subnet::key));
        res
    }

    fn is_known(&self) -> bool {
        self.attributes.is_some()
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self.kind == observed.kind
            && self.internal == observed.internal
            && self.subnets.is_subset(&observed.subnets)
            && self.leaving.is_disjoint(&observed.subnets)
            && !self.can_change_groups_of(observed)
            && self.listener == observed.listener
            && self.attributes == observed.attributes
    }

    fn immutable(&self, observed: &Self) -> Option<&'static str> {
        if self.kind != observed.kind {
            return Some("loadBalancerType");
        }
        (self.internal != observed.internal).then_some("scheme")
    }

    fn details(&self) -> String {
        let scheme = if self.internal { "internal" } else { "internet-facing" };
        let leaving =
            if self.leaving.is_empty() { String::new() } else { format!(", off {}", join(&self.leaving)) };
        format!(
            " {:?} ({:?}, {scheme}) in {}{leaving}, groups {}{}",
            self.aws_name,
            self.kind,
            join(&self.subnets),
            join(&self.groups),
            self.listener.as_ref().map(Listener::details).unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_load_balancer_made_without_groups_stays_without() {
        let of = |kind: LoadBalancerKind, groups: &[&str]| LoadBalancer {
            kind,
            groups: groups.iter().map(|it| (*it).to_owned()).collect(),
            ..LoadBalancer::remains(
                "apiserver",
                "arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/c1/50dc6c495c0c9188",
            )
        };
        let satisfied =
            |kind, observed: &[&str]| of(kind, &["apiserver-lb"]).satisfied_by(&of(kind, observed));
        assert!(satisfied(LoadBalancerKind::Network, &[]), "AWS refuses to give it some");
        assert!(!satisfied(LoadBalancerKind::Network, &["another"]));
        assert!(!satisfied(LoadBalancerKind::Classic, &[]));
    }
}
