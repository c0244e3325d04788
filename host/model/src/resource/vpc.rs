//! VPCs.

use crate::{Guard, Key, Read, ResourceKind, State, Tags};

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

/// A VPC.
/// A snapshot holds those with a cluster's tag, and those that users brought.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundVpc {
    /// `vpc-...`
    pub id: String,
    /// Primary IPv4 range, such as `10.0.0.0/16`.
    pub cidr: String,
    /// `Creating` or `Ready`.
    pub state: State,
    /// Describe does not show it: `Some(true)` once this process set it.
    pub dns_hostnames: Option<bool>,
    /// All of its tags.
    pub tags: Tags,
}

impl ResourceKind for Vpc {
    const GUARD: Guard = Guard::Intent;
    const READS: &'static [Read] = &[Read::Vpcs];

    fn after(&self) -> Vec<Key> {
        Vec::new()
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self == observed
    }

    fn immutable(&self, observed: &Self) -> Option<&'static str> {
        (self.cidr != observed.cidr).then_some("cidrBlock")
    }

    fn details(&self) -> String {
        format!(" {}", self.cidr)
    }
}
