//! Network interfaces that others made: only ever deleted.

use std::collections::BTreeSet;

use crate::{Key, ResourceKind, SecurityGroup, Subnet, Tags};

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

/// A network interface in a VPC that is being deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundNetworkInterface {
    /// `eni-...`
    pub id: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// The subnet that it is in.
    pub subnet_id: String,
    /// By id.
    pub groups: BTreeSet<String>,
    /// `available` or `in-use`.
    pub status: String,
    /// What its maker wrote, such as `ELB NAME`; empty when nothing.
    pub description: String,
    /// `interface`, `nat_gateway`, `network_load_balancer`, ...
    pub interface_type: String,
    /// Whether a service of AWS made it and looks after it.
    pub requester_managed: bool,
    /// `i-...`; `None` when it is attached to none.
    pub attached_instance: Option<String>,
    /// All of its tags.
    pub tags: Tags,
}

impl ResourceKind for NetworkInterface {
    fn after(&self) -> Vec<Key> {
        let mut res: Vec<Key> = self.subnet.iter().map(Subnet::key).collect();
        res.extend(self.groups.iter().map(SecurityGroup::key));
        res
    }

    fn satisfied_by(&self, _: &Self) -> bool {
        true
    }
}
