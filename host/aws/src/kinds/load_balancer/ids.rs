//! AWS's ids of what a load balancer refers to.

use std::collections::BTreeSet;

use model::{Ids, LoadBalancer, SecurityGroup, Subnet, Vpc};

use crate::context::Context;
use crate::errors::Failure;
use crate::kind::id_of;

pub(super) fn subnet_ids(
    action: &'static str,
    balancer: &LoadBalancer,
    ids: &Ids,
) -> Result<BTreeSet<String>, Failure> {
    balancer.subnets.iter().map(|it| id_of(action, ids, &Subnet::key(it)).map(str::to_owned)).collect()
}

/// Subnets that it has and is to be taken off.
pub(super) fn leaving_ids(
    action: &'static str,
    balancer: &LoadBalancer,
    observed: &LoadBalancer,
    ids: &Ids,
) -> Result<BTreeSet<String>, Failure> {
    balancer
        .leaving
        .intersection(&observed.subnets)
        .map(|it| id_of(action, ids, &Subnet::key(it)).map(str::to_owned))
        .collect()
}

/// Groups by role; one that the user named is its own id.
pub(super) fn group_ids(
    action: &'static str,
    balancer: &LoadBalancer,
    ids: &Ids,
) -> Result<BTreeSet<String>, Failure> {
    let named = |group: &String| {
        let key = SecurityGroup::key(group);
        if group.starts_with("sg-") && !ids.contains_key(&key) {
            Ok(group.clone())
        } else {
            id_of(action, ids, &key).map(str::to_owned)
        }
    };
    balancer.groups.iter().map(named).collect()
}

/// The VPC it is made in, which an answer of the first version does not say.
pub(super) fn vpc_of(region: &Context, subnets: &BTreeSet<String>, ids: &Ids) -> String {
    let shown = region.snapshot();
    let subnet = shown.subnets.iter().find(|it| subnets.contains(&it.id));
    subnet.map(|it| it.vpc_id.clone()).or_else(|| ids.get(&Vpc::key("main")).cloned()).unwrap_or_default()
}
