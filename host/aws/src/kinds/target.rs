//! Instances behind load balancers. Registrations at one load balancer at about the same time go in one call.

use model::{FoundLoadBalancer, Ids, Instance, LoadBalancer, LoadBalancerKind, Read, Target};

use super::id;
use super::load_balancer::{classic, target_group};
use crate::api::Api;
use crate::batch::Group;
use crate::errors::{Failure, NOT_YET, gone_is_done};
use crate::pending_writes::changed;
use crate::region::Inner;

const REGISTER: &str = "elasticloadbalancing:RegisterTargets";

pub(crate) async fn create(region: &Inner, target: &Target, ids: &Ids) -> Result<(), Failure> {
    let balancer = id(REGISTER, ids, &LoadBalancer::key(&target.load_balancer))?;
    let instance = id(REGISTER, ids, &Instance::key(&target.instance))?.to_owned();
    for group in groups(region, balancer)? {
        region.batches.register(&region.api, group, &instance).await?;
    }
    let change = move |it: &mut FoundLoadBalancer| it.targets.extend([instance.clone()]);
    region.record(read(balancer), changed(balancer, change));
    Ok(())
}

/// Takes the instance from behind the load balancer. Done when either is gone.
pub(crate) async fn delete(region: &Inner, target: &Target, ids: &Ids) -> Result<(), Failure> {
    let balancer = id(REGISTER, ids, &LoadBalancer::key(&target.load_balancer))?;
    let instance = id(REGISTER, ids, &Instance::key(&target.instance))?.to_owned();
    for group in groups(region, balancer).unwrap_or_default() {
        gone_is_done(region.batches.deregister(&region.api, group, &instance).await)?;
    }
    let change = move |it: &mut FoundLoadBalancer| it.targets.retain(|it| *it != instance);
    region.record(read(balancer), changed(balancer, change));
    Ok(())
}

fn is_arn(id: &str) -> bool {
    id.starts_with("arn:")
}

fn read(balancer: &str) -> Read {
    match is_arn(balancer) {
        true => Read::TargetGroups,
        false => Read::ClassicLoadBalancers,
    }
}

/// Where one registers at this load balancer: its target groups, or itself.
fn groups(region: &Inner, balancer: &str) -> Result<Vec<Group>, Failure> {
    if !is_arn(balancer) {
        return Ok(vec![Group::LoadBalancer(balancer.to_owned())]);
    }
    let shown = region.snapshot();
    let found =
        shown.load_balancers.iter().find(|it| it.id == balancer && it.kind == LoadBalancerKind::Network);
    match found.map(|it| it.target_groups.as_slice()) {
        None | Some([]) => {
            Err(Failure::local(REGISTER, NOT_YET, "the load balancer has no target group yet"))
        }
        Some(groups) => Ok(groups.iter().cloned().map(Group::TargetGroup).collect()),
    }
}

pub(crate) async fn register(api: &Api, group: &Group, instances: &[String]) -> Result<(), Failure> {
    match group {
        Group::LoadBalancer(name) => classic::register(api, name, instances).await,
        Group::TargetGroup(arn) => target_group::register(api, arn, instances).await,
    }
}

pub(crate) async fn deregister(api: &Api, group: &Group, instances: &[String]) -> Result<(), Failure> {
    match group {
        Group::LoadBalancer(name) => classic::deregister(api, name, instances).await,
        Group::TargetGroup(arn) => target_group::deregister(api, arn, instances).await,
    }
}
