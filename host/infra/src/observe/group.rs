//! Security groups and their rules as one cluster sees them. The group that AWS makes with each VPC goes with
//! it and is ignored.

use std::collections::BTreeSet;

use super::{GROUP_ROLES, MAIN, Observer, role_of};
use crate::gc::LeftoverKind;
use model::{
    FoundRule, FoundSecurityGroup, FoundSource, Owner, Rule, SecurityGroup, SecurityGroupRules, Source, State,
};

/// The group that every VPC has and that cannot be deleted.
pub(super) const DEFAULT: &str = "default";

impl Observer<'_> {
    pub(super) fn groups(&mut self) {
        let mut found: Vec<(&FoundSecurityGroup, Owner)> = Vec::new();
        for it in self.snapshot.security_groups.iter().filter(|it| self.in_vpc(&it.vpc_id)) {
            let owner = self.group_owner(it);
            if owner != Owner::User || self.scope.deleting {
                found.push((it, owner));
            }
        }
        for (it, owner) in &found {
            let name =
                match role_of(&it.tags).filter(|role| *owner != Owner::User && GROUP_ROLES.contains(role)) {
                    Some(role) => role.to_owned(),
                    None if GROUP_ROLES.contains(&it.group_name.as_str()) => it.id.clone(),
                    None => it.group_name.clone(),
                };
            if it.group_name == DEFAULT || *owner == Owner::User && !self.owns_network() {
                self.names.insert(it.id.clone(), name);
                continue;
            }
            let (group_name, description) = (it.group_name.clone(), it.description.clone());
            let is = SecurityGroup { name, vpc: MAIN.into(), group_name, description };
            self.put(&it.id, owner.clone(), State::Ready, is.into(), Some(&it.tags), None);
        }
        for (it, owner) in found {
            let name = self.name(&it.id);
            let rules: BTreeSet<Rule> = it.rules.iter().map(|rule| self.rule(rule)).collect();
            let names_another =
                rules.iter().any(|rule| matches!(&rule.source, Source::Group(other) if *other != name));
            if !self.scope.deleting || names_another {
                let is = SecurityGroupRules { name, rules, keep_unknown: false };
                self.put(&it.id, owner, State::Ready, is.into(), None, None);
            }
        }
    }

    fn group_owner(&self, found: &FoundSecurityGroup) -> Owner {
        let left_over =
            || found.group_name != DEFAULT && self.left_over(LeftoverKind::SecurityGroup, &found.tags);
        match self.owner(&found.tags) {
            Owner::User if self.scope.deleting && self.owns_network() && left_over() => Owner::Mine,
            owner => owner,
        }
    }

    fn rule(&self, found: &FoundRule) -> Rule {
        let source = match &found.source {
            FoundSource::Cidr(range) => Source::range(range),
            FoundSource::PrefixList(id) => Source::PrefixList(id.clone()),
            FoundSource::GroupId(id) => self
                .names
                .get(id)
                .map_or_else(|| Source::GroupId(id.clone()), |name| Source::Group(name.clone())),
        };
        let (protocol, description) = (found.protocol.clone(), found.description.clone());
        Rule { protocol, from_port: found.from_port, to_port: found.to_port, source, description }
    }
}
