//! What the pretend AWS answers to filters, sweeps or no sweeps.

use model::*;

use super::World;

impl World {
    /// All subnets that match.
    pub fn subnets(&self, filters: &[Filter]) -> Vec<FoundSubnet> {
        let value = |it: &FoundSubnet, name: &str| match name {
            "subnet-id" => Some(it.id.clone()),
            "vpc-id" => Some(it.vpc_id.clone()),
            "availability-zone" => Some(it.zone.clone()),
            name => it.tags.get(name.strip_prefix("tag:")?).cloned(),
        };
        self.truth
            .subnets
            .iter()
            .filter(|it| filters.iter().all(|filter| matches(filter, value(it, &filter.name))))
            .cloned()
            .collect()
    }

    /// All security groups that match.
    pub fn security_groups(&self, filters: &[Filter]) -> Vec<FoundSecurityGroup> {
        let value = |it: &FoundSecurityGroup, name: &str| match name {
            "group-id" => Some(it.id.clone()),
            "group-name" => Some(it.group_name.clone()),
            "vpc-id" => Some(it.vpc_id.clone()),
            name => it.tags.get(name.strip_prefix("tag:")?).cloned(),
        };
        let matching =
            |it: &&FoundSecurityGroup| filters.iter().all(|filter| matches(filter, value(it, &filter.name)));
        self.truth.security_groups.iter().filter(matching).cloned().collect()
    }
}

fn matches(filter: &Filter, value: Option<String>) -> bool {
    value.is_some_and(|value| filter.values.iter().any(|pattern| fits(pattern.as_bytes(), value.as_bytes())))
}

/// With `*` and `?`, as EC2 does.
fn fits(pattern: &[u8], value: &[u8]) -> bool {
    match (pattern, value) {
        ([], value) => value.is_empty(),
        ([b'*', rest @ ..], value) => (0..=value.len()).any(|skipped| fits(rest, &value[skipped..])),
        ([b'?', rest @ ..], [_, value @ ..]) => fits(rest, value),
        ([one, rest @ ..], [other, value @ ..]) => one == other && fits(rest, value),
        _ => false,
    }
}
