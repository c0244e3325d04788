//! Instances behind load balancers. Registrations at one load balancer at about the same time go in one call.

use super::load_balancer::{classic, target_group};
use crate::batch::BatchedCall;
use crate::context::Context;
use crate::errors::{Failure, NOT_YET, gone_is_done};
use crate::kind::{AwsKind, Creation, id_of};
use crate::pending_writes::changed;
use model::{FoundLoadBalancer, Ids, Instance, LoadBalancer, LoadBalancerKind, Read, Target};
const REGISTER: &str = "elasticloadbalancing:RegisterTargets";

/// Where instances are registered.
enum Group {
    /// A classic load balancer, by name.
    LoadBalancer(String),
    /// By ARN.
    TargetGroup(String),
}

impl AwsKind for Target {
    type Found = ();

    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        let balancer = id_of(REGISTER, with.ids, &LoadBalancer::key(&self.load_balancer))?;
        let instance = id_of(REGISTER, with.ids, &Instance::key(&self.instance))?.to_owned();
        for group in groups(region, balancer)? {
            region.batches.send(&region.api, group.registration(), &instance).await?;
        }
        let change = move |it: &mut FoundLoadBalancer| it.targets.extend([instance.clone()]);
        let read = if is_arn(balancer) { Read::TargetGroups } else { Read::ClassicLoadBalancers };
        region.record(read, changed(balancer, change));
        Ok(())
    }

    /// Takes the instance from behind the load balancer. Done when either is gone.
    async fn delete(&self, region: &Context, _: &str, ids: &Ids) -> Result<(), Failure> {
        let balancer = id_of(REGISTER, ids, &LoadBalancer::key(&self.load_balancer))?;
        let instance = id_of(REGISTER, ids, &Instance::key(&self.instance))?.to_owned();
        for group in groups(region, balancer).unwrap_or_default() {
            gone_is_done(region.batches.send(&region.api, group.deregistration(), &instance).await)?;
        }
        let change = move |it: &mut FoundLoadBalancer| it.targets.retain(|it| *it != instance);
        let read = if is_arn(balancer) { Read::TargetGroups } else { Read::ClassicLoadBalancers };
        region.record(read, changed(balancer, change));
        Ok(())
    }

    fn shown_by(has_arn: bool) -> Option<Read> {
        Some(if has_arn { Read::TargetGroups } else { Read::ClassicLoadBalancers })
    }
}

fn is_arn(id: &str) -> bool {
    id.starts_with("arn:")
}

/// Where one registers at this load balancer: its target groups, or itself.
fn groups(region: &Context, balancer: &str) -> Result<Vec<Group>, Failure> {
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

impl Group {
    fn registration(self) -> BatchedCall {
        match self {
            Group::LoadBalancer(name) => BatchedCall {
                action: "elasticloadbalancing:RegisterInstancesWithLoadBalancer",
                of: name,
                send: |api, name, ids| Box::pin(async move { classic::register(&api, &name, &ids).await }),
            },
            Group::TargetGroup(arn) => BatchedCall {
                action: REGISTER,
                of: arn,
                send: |api, arn, ids| Box::pin(async move { target_group::register(&api, &arn, &ids).await }),
            },
        }
    }

    fn deregistration(self) -> BatchedCall {
        match self {
            Group::LoadBalancer(name) => BatchedCall {
                action: "elasticloadbalancing:DeregisterInstancesFromLoadBalancer",
                of: name,
                send: |api, name, ids| Box::pin(async move { classic::deregister(&api, &name, &ids).await }),
            },
            Group::TargetGroup(arn) => BatchedCall {
                action: "elasticloadbalancing:DeregisterTargets",
                of: arn,
                send: |api, arn, ids| {
                    Box::pin(async move { target_group::deregister(&api, &arn, &ids).await })
                },
            },
        }
    }
}
