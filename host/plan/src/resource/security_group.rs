//! Security groups and their ingress rules. Egress stays as AWS makes it: everything is allowed.

use std::collections::BTreeSet;

use super::Vpc;
use crate::Key;

/// A security group, by its role: `apiserver-lb`, `lb`, `controlplane`, `node`; one that somebody else made: its group name.
#[derive(Clone, Debug, PartialEq)]
pub struct SecurityGroup {
    pub name: String,
    pub vpc: String,
    /// What the group is called in AWS.
    pub group_name: String,
    pub description: String,
}

/// The ingress rules of one group. They are a resource of their own because groups name one another.
#[derive(Clone, Debug, PartialEq)]
pub struct SecurityGroupRules {
    /// The role of the group.
    pub name: String,
    pub rules: BTreeSet<Rule>,
    /// Others add rules to this group (the cloud provider to `lb`), or it is not known yet what the add-ons need: nothing is revoked.
    pub keep_unknown: bool,
}

/// One rule: one protocol, one range of ports, one source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// AWS's word: `tcp`, `udp`, `icmp`, `-1` (all), or a protocol number such as `4` (IP in IP).
    pub protocol: String,
    /// -1 for protocols without ports.
    pub from_port: i32,
    pub to_port: i32,
    pub source: Source,
    pub description: String,
}

/// Where a rule lets traffic come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An IPv4 or IPv6 range.
    Cidr(String),
    /// A group of this cluster, by role.
    Group(String),
    /// A group that the user named, or that has no role here, by id.
    GroupId(String),
    /// A managed prefix list, as seen; never wanted.
    PrefixList(String),
}

impl SecurityGroup {
    pub(super) fn after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        self.name == seen.name
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
}

impl SecurityGroupRules {
    pub(super) fn after(&self) -> Vec<Key> {
        let mut res = vec![SecurityGroup::key(&self.name)];
        for rule in &self.rules {
            if let Source::Group(role) = &rule.source {
                let key = SecurityGroup::key(role);
                if !res.contains(&key) {
                    res.push(key);
                }
            }
        }
        res
    }
    pub(super) fn satisfied_by(&self, seen: &Self) -> bool {
        match self.keep_unknown {
            true => self.missing_from(seen).is_empty(),
            false => self.missing_from(seen).is_empty() && self.extra_in(seen).is_empty(),
        }
    }
    pub(super) fn immutable(&self, _: &Self) -> Option<&'static str> {
        None
    }
    /// What has to be authorized. Two rules that differ only in their description are one rule for AWS.
    pub fn missing_from(&self, seen: &Self) -> Vec<Rule> {
        self.rules.iter().filter(|it| !seen.rules.iter().any(|other| it.same_traffic(other))).cloned().collect()
    }
    /// What has to be revoked, were it not for [`keep_unknown`](Self::keep_unknown).
    pub fn extra_in(&self, seen: &Self) -> Vec<Rule> {
        seen.rules.iter().filter(|it| !self.rules.iter().any(|other| it.same_traffic(other))).cloned().collect()
    }
}

impl Rule {
    /// Whether both let the same traffic in.
    pub fn same_traffic(&self, other: &Self) -> bool {
        let ports = |it: &Self| if it.protocol == "-1" || it.protocol == "4" { (-1, -1) } else { (it.from_port, it.to_port) };
        self.protocol == other.protocol && ports(self) == ports(other) && self.source == other.source
    }
}
