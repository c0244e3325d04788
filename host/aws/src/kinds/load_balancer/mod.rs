//! Load balancers of the Kubernetes API: Elastic Load Balancing's first version, and network load balancers.

pub(crate) mod classic;
pub(crate) mod network;
pub(crate) mod target_group;

use std::collections::BTreeSet;

use model::{Ids, LoadBalancer, LoadBalancerKind, Read, SecurityGroup, Subnet, Tags, Vpc};

use super::id;
use crate::errors::{Failure, NOT_YET};
use crate::region::Inner;

const DELETE: &str = "elasticloadbalancing:DeleteLoadBalancer";

pub(crate) async fn create(
    region: &Inner,
    balancer: &LoadBalancer,
    with: &Tags,
    ids: &Ids,
) -> Result<(), Failure> {
    match balancer.kind {
        LoadBalancerKind::Classic => classic::create(region, balancer, with, ids).await,
        LoadBalancerKind::Network => network::create(region, balancer, with, ids).await,
        LoadBalancerKind::Application | LoadBalancerKind::Gateway => Err(unsupported()),
    }
}

pub(crate) async fn update(
    region: &Inner,
    id: &str,
    is: &LoadBalancer,
    seen: &LoadBalancer,
    with: &Tags,
    ids: &Ids,
) -> Result<(), Failure> {
    match is.kind {
        LoadBalancerKind::Classic => classic::update(region, id, is, seen, ids).await,
        LoadBalancerKind::Network => network::update(region, id, is, seen, with, ids).await,
        LoadBalancerKind::Application | LoadBalancerKind::Gateway => Err(unsupported()),
    }
}

/// Also those that others made, of any kind: they are removed with the VPC that they are in.
pub(crate) async fn delete(region: &Inner, id: &str, is: &LoadBalancer) -> Result<(), Failure> {
    let classic = is.kind == LoadBalancerKind::Classic;
    // AWS says that it removed also what it does not know of yet.
    if region.is_young(id) && !is_shown(region, id, classic).await? {
        let read = if classic { Read::ClassicLoadBalancers } else { Read::LoadBalancers };
        region.doubt(read);
        return Err(Failure::local(
            DELETE,
            NOT_YET,
            format!("{id} was made a moment ago and is not shown yet"),
        ));
    }
    match classic {
        true => classic::delete(region, id).await,
        false => network::delete(region, id).await,
    }
}

async fn is_shown(region: &Inner, id: &str, classic: bool) -> Result<bool, Failure> {
    let found = match classic {
        true => classic::describe_one(&region.api, id).await?,
        false => network::describe_one(&region.api, id).await?,
    };
    Ok(found.is_some())
}

fn unsupported() -> Failure {
    Failure::local(
        "elasticloadbalancing:CreateLoadBalancer",
        "UnsupportedOperation",
        "only classic and network load balancers are made",
    )
}

fn subnet_ids(action: &'static str, balancer: &LoadBalancer, ids: &Ids) -> Result<BTreeSet<String>, Failure> {
    balancer.subnets.iter().map(|it| id(action, ids, &Subnet::key(it)).map(str::to_owned)).collect()
}

/// Subnets that it has and is to be taken off.
fn leaving_ids(
    action: &'static str,
    balancer: &LoadBalancer,
    seen: &LoadBalancer,
    ids: &Ids,
) -> Result<BTreeSet<String>, Failure> {
    balancer
        .leaving
        .intersection(&seen.subnets)
        .map(|it| id(action, ids, &Subnet::key(it)).map(str::to_owned))
        .collect()
}

/// Groups by role; one that the user named is its own id.
fn group_ids(action: &'static str, balancer: &LoadBalancer, ids: &Ids) -> Result<BTreeSet<String>, Failure> {
    let named = |it: &String| match it.starts_with("sg-") && !ids.contains_key(&SecurityGroup::key(it)) {
        true => Ok(it.clone()),
        false => id(action, ids, &SecurityGroup::key(it)).map(str::to_owned),
    };
    balancer.groups.iter().map(named).collect()
}

/// The VPC it is made in, which an answer of the first version does not say.
fn vpc_of(region: &Inner, subnets: &BTreeSet<String>, ids: &Ids) -> String {
    let shown = region.snapshot();
    let subnet = shown.subnets.iter().find(|it| subnets.contains(&it.id));
    subnet.map(|it| it.vpc_id.clone()).or_else(|| ids.get(&Vpc::key("main")).cloned()).unwrap_or_default()
}
