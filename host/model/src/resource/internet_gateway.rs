//! Internet gateways, with their attachment.

use crate::{Guard, Key, Read, ResourceKind, Tags, Vpc};

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

/// An internet gateway.
/// A snapshot holds those with a cluster's tag, and those that users brought.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundInternetGateway {
    /// `igw-...`
    pub id: String,
    /// The VPC it is attached to; `None` when to none.
    pub vpc_id: Option<String>,
    /// All of its tags.
    pub tags: Tags,
}

impl ResourceKind for InternetGateway {
    const GUARD: Guard = Guard::Intent;
    const READS: &'static [Read] = &[Read::InternetGateways];
    const EVIDENCE: &'static [Read] = &[Read::Vpcs];

    fn after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self == observed
    }
}
