//! VPC, subnets, gateways, addresses, route tables and network interfaces.

use std::collections::BTreeSet;

use super::SecurityGroup;
use crate::Key;

/// A VPC. Its only role name is `main`.
#[derive(Clone, Debug, PartialEq)]
pub struct Vpc {
    /// `main`; of an empty second one that is to go: its id.
    pub name: String,
    /// Primary IPv4 range, such as `10.0.0.0/16`. Cannot be changed.
    pub cidr: String,
    /// `enableDnsHostnames`: off in a new VPC, needed for private DNS names of nodes.
    pub dns_hostnames: bool,
}

/// A subnet, by the role and zone it has: `public-us-east-1a`; a subnet the user brought: its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Subnet {
    /// Its role or id.
    pub name: String,
    /// Role of its VPC.
    pub vpc: String,
    /// Availability zone, such as `us-east-1a`. Cannot be changed.
    pub zone: String,
    /// IPv4 range, such as `10.0.0.0/20`; empty as seen when nothing but the id is known. Cannot be changed.
    pub cidr: String,
    /// `MapPublicIpOnLaunch`; of a subnet the user brought: whether the internet reaches it.
    pub public: bool,
}

/// The internet gateway of a VPC, `main`. Created, then attached.
#[derive(Clone, Debug, PartialEq)]
pub struct InternetGateway {
    /// Its role.
    pub name: String,
    /// Role of the VPC that it is for.
    pub vpc: String,
    /// Whether it is attached to that VPC; always wanted.
    pub attached: bool,
}

/// The address of a NAT gateway, which it is named after.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticIp {
    /// Its role: the zone of the NAT gateway.
    pub name: String,
}

/// A NAT gateway, named after its zone.
#[derive(Clone, Debug, PartialEq)]
pub struct NatGateway {
    /// Its role: the zone, such as `us-east-1a`.
    pub name: String,
    /// The public subnet that it lies in, by role. Cannot be changed.
    pub subnet: String,
    /// Role of its address.
    pub elastic_ip: String,
    /// The internet gateway without which it cannot reach anything.
    pub internet_gateway: String,
}

/// The route table of one subnet, named like it.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteTable {
    /// Its role: that of the subnet.
    pub name: String,
    /// Role of its VPC.
    pub vpc: String,
    /// Subnets associated with it.
    pub subnets: BTreeSet<String>,
    /// Where 0.0.0.0/0 goes: an internet gateway or a NAT gateway; `None` as seen when the route is not there
    /// yet.
    pub default_route: Option<Key>,
}

/// An interface that somebody else made in our VPC. Never desired: seen while deleting, because it holds its
/// subnet and groups.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkInterface {
    /// Its AWS id: it has no role.
    pub name: String,
    /// Its subnet, by role; by id if it has none.
    pub subnet: Option<String>,
    /// Its security groups, by role; by id those that have none.
    pub groups: BTreeSet<String>,
}

impl Vpc {
    pub(super) fn after(&self) -> Vec<Key> {
        Vec::new()
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self == seen
    }
    pub(super) fn immutable(&self, seen: &Self) -> Option<&'static str> {
        (self.cidr != seen.cidr).then_some("cidrBlock")
    }
}

impl Subnet {
    pub(super) fn after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self == seen
    }
    pub(super) fn immutable(&self, seen: &Self) -> Option<&'static str> {
        if self.cidr != seen.cidr {
            return Some("cidrBlock");
        }
        (self.zone != seen.zone).then_some("availabilityZone")
    }
}

impl InternetGateway {
    pub(super) fn after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self == seen
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}

impl ElasticIp {
    pub(super) fn after(&self) -> Vec<Key> {
        Vec::new()
    }
    pub(super) fn satisfied_by(&self, _: &Self) -> bool {
        true
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}

impl NatGateway {
    pub(super) fn after(&self) -> Vec<Key> {
        vec![
            Subnet::key(&self.subnet),
            ElasticIp::key(&self.elastic_ip),
            InternetGateway::key(&self.internet_gateway),
        ]
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self.subnet == seen.subnet
    }
    pub(super) fn immutable(&self, seen: &Self) -> Option<&'static str> {
        (self.subnet != seen.subnet).then_some("subnet")
    }
}

impl RouteTable {
    /// It is made empty; its route and its subnets come to it once they are there.
    pub(super) fn made_after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }
    pub(super) fn after(&self) -> Vec<Key> {
        let mut res = vec![Vpc::key(&self.vpc)];
        res.extend(self.default_route.clone());
        res.extend(self.subnets.iter().map(Subnet::key));
        res
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self.default_route == seen.default_route && self.subnets.is_subset(&seen.subnets)
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}

impl NetworkInterface {
    pub(super) fn after(&self) -> Vec<Key> {
        let mut res: Vec<Key> = self.subnet.iter().map(Subnet::key).collect();
        res.extend(self.groups.iter().map(SecurityGroup::key));
        res
    }
    pub(super) fn satisfied_by(&self, _: &Self) -> bool {
        true
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}
