//! Security groups, without their rules.

use crate::{FoundRule, Key, Read, ResourceKind, Tags, Vpc};

/// A security group, by its role: `apiserver-lb`, `lb`, `controlplane`, `node`; one that somebody else made:
/// its group name.
#[derive(Clone, Debug, PartialEq)]
pub struct SecurityGroup {
    /// Its role or group name.
    pub name: String,
    /// Role of its VPC.
    pub vpc: String,
    /// What the group is called in AWS.
    pub group_name: String,
    /// What AWS shows beside the name. Cannot be changed.
    pub description: String,
}

/// A security group.
/// A snapshot holds those with a cluster's tag, those that users brought, and all of VPCs that are
/// being deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSecurityGroup {
    /// `sg-...`
    pub id: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// Unique within the VPC. `default` is the one that AWS makes with it.
    pub group_name: String,
    /// What its maker wrote; AWS never changes it.
    pub description: String,
    /// Ingress, one entry for each protocol, range and source. `source` names groups by id.
    pub rules: Vec<FoundRule>,
    /// All of its tags.
    pub tags: Tags,
}

impl ResourceKind for SecurityGroup {
    const READS: &'static [Read] = &[Read::SecurityGroups];
    const EVIDENCE: &'static [Read] = &[Read::Vpcs];

    fn after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self.name == observed.name
    }

    fn details(&self) -> String {
        format!(" {:?}", self.group_name)
    }
}
