//! Load balancers of the Kubernetes API with their listeners, and the instances behind them.

use std::collections::BTreeSet;

use super::{Instance, InternetGateway, SecurityGroup, Subnet};
use crate::Key;

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
    /// Attributes that a describe call does not show: cross-zone load balancing, idle timeout; `None` as seen
    /// when not known to be set.
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

/// One control plane instance behind a load balancer; named like the instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its role: that of the instance.
    pub name: String,
    /// Role of the load balancer.
    pub load_balancer: String,
    /// Role of the instance.
    pub instance: String,
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
    pub(super) fn after(&self) -> Vec<Key> {
        let mut res: Vec<Key> = self.internet_gateway.iter().map(InternetGateway::key).collect();
        res.extend(self.groups.iter().map(SecurityGroup::key));
        res.extend(self.subnets.iter().map(Subnet::key));
        res
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self.kind == seen.kind
            && self.internal == seen.internal
            && self.subnets.is_subset(&seen.subnets)
            && self.leaving.is_disjoint(&seen.subnets)
            && !self.can_change_groups_of(seen)
            && self.listener == seen.listener
            && self.attributes == seen.attributes
    }
    /// Whether the groups of `seen` are others than these, and can be set: AWS gives none to a network load
    /// balancer that was made without.
    pub fn can_change_groups_of(&self, seen: &Self) -> bool {
        self.groups != seen.groups && !(seen.kind == LoadBalancerKind::Network && seen.groups.is_empty())
    }
    pub(super) fn immutable(&self, seen: &Self) -> Option<&'static str> {
        if self.kind != seen.kind {
            return Some("loadBalancerType");
        }
        (self.internal != seen.internal).then_some("scheme")
    }
}

impl Target {
    pub(super) fn after(&self) -> Vec<Key> {
        vec![LoadBalancer::key(&self.load_balancer), Instance::key(&self.instance)]
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self.instance == seen.instance
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_load_balancer_that_was_made_without_groups_stays_without() {
        let of = |kind: LoadBalancerKind, groups: &[&str]| LoadBalancer {
            kind,
            groups: groups.iter().map(|it| (*it).to_owned()).collect(),
            ..LoadBalancer::remains(
                "apiserver",
                "arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/c1/50dc6c495c0c9188",
            )
        };
        let satisfied = |kind, seen: &[&str]| of(kind, &["apiserver-lb"]).satisfied_by(&of(kind, seen));
        assert!(satisfied(LoadBalancerKind::Network, &[]), "AWS refuses to give it some");
        assert!(!satisfied(LoadBalancerKind::Network, &["another"]));
        assert!(!satisfied(LoadBalancerKind::Classic, &[]));
    }
}
