//! Elastic IP addresses of NAT gateways.

use crate::{Guard, Key, Read, ResourceKind, Tags};

/// The address of a NAT gateway, which it is named after.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticIp {
    /// Its role: the zone of the NAT gateway.
    pub name: String,
}

/// An Elastic IP address.
/// A snapshot holds those with a cluster's tag.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundAddress {
    /// `eipalloc-...`
    pub id: String,
    /// IPv4 address.
    pub public_ip: String,
    /// `eipassoc-...`; `None` when nothing uses it.
    pub association_id: Option<String>,
    /// `eni-...` of the network interface that uses it; `None` when none does.
    pub network_interface_id: Option<String>,
    /// All of its tags.
    pub tags: Tags,
}

impl ResourceKind for ElasticIp {
    const GUARD: Guard = Guard::Intent;
    const READS: &'static [Read] = &[Read::Addresses];
    /// What an address is for, its gateway says; which zone that is of, its subnet.
    const EVIDENCE: &'static [Read] = &[Read::Vpcs, Read::Subnets, Read::NatGateways];

    fn after(&self) -> Vec<Key> {
        Vec::new()
    }

    fn satisfied_by(&self, _: &Self) -> bool {
        true
    }
}
