//! Subnets.

use crate::{Key, Read, ResourceKind, State, Tags, Vpc};

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

/// A subnet.
/// A snapshot holds those with a cluster's tag, and those that users brought.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSubnet {
    /// `subnet-...`
    pub id: String,
    /// The VPC that it is a part of.
    pub vpc_id: String,
    /// Availability zone, such as `us-east-1a`.
    pub zone: String,
    /// IPv4 range, such as `10.0.0.0/20`.
    pub cidr: String,
    /// `MapPublicIpOnLaunch`. Whether the internet reaches it, its routes say.
    pub public: bool,
    /// `Creating`, `Ready` or `Failed`.
    pub state: State,
    /// All of its tags.
    pub tags: Tags,
}

impl ResourceKind for Subnet {
    const READS: &'static [Read] = &[Read::Subnets];
    const EVIDENCE: &'static [Read] = &[Read::Vpcs];

    fn after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self == observed
    }

    fn immutable(&self, observed: &Self) -> Option<&'static str> {
        if self.cidr != observed.cidr {
            return Some("cidrBlock");
        }
        (self.zone != observed.zone).then_some("availabilityZone")
    }

    fn details(&self) -> String {
        format!(" {} in {}, {}", self.cidr, self.zone, if self.public { "public" } else { "private" })
    }
}
