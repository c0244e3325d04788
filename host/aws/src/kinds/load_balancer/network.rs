//! Network load balancers. The load balancer is made first; target group and listener follow by updates. Load
//! balancers of other kinds are read and removed, and not made.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_elasticloadbalancingv2::types::{
    LoadBalancer as AwsLoadBalancer, LoadBalancerSchemeEnum, LoadBalancerStateEnum, LoadBalancerTypeEnum, Tag,
};
use model::{FoundLoadBalancer, Ids, LoadBalancer, LoadBalancerKind, Read, State, Tags};

use super::attributes;
use super::ids::{group_ids, leaving_ids, subnet_ids};
use super::tags;
use super::target_group::{self, aws_tags};
use crate::api::Api;
use crate::context::Context;
use crate::errors::{Failure, TAKEN, gone_is_done};
use crate::kind::{Change, Creation, is_ours};
use crate::pending_writes::{changed, gone, made};
use crate::schedule::Task;

const CREATE: &str = "elasticloadbalancing:CreateLoadBalancer";
const DESCRIBE: &str = "elasticloadbalancing:DescribeLoadBalancers";

pub(crate) async fn describe(api: &Api) -> Result<Vec<FoundLoadBalancer>, Failure> {
    let pages =
        api.pages(DESCRIBE, api.elb.describe_load_balancers().page_size(400).into_paginator().send()).await?;
    Ok(pages.into_iter().flat_map(|it| it.load_balancers.unwrap_or_default()).filter_map(found).collect())
}

/// By ARN or by name.
pub(crate) async fn describe_one(api: &Api, id: &str) -> Result<Option<FoundLoadBalancer>, Failure> {
    let call = api.elb.describe_load_balancers();
    let call = if id.starts_with("arn:") { call.load_balancer_arns(id) } else { call.names(id) };
    match api.read(DESCRIBE, call.send()).await {
        Ok(answer) => Ok(answer.load_balancers.unwrap_or_default().into_iter().find_map(found)),
        Err(failure) if failure.is_gone() => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn found(balancer: AwsLoadBalancer) -> Option<FoundLoadBalancer> {
    Some(FoundLoadBalancer {
        id: balancer.load_balancer_arn?,
        name: balancer.load_balancer_name.unwrap_or_default(),
        kind: match balancer.r#type {
            Some(LoadBalancerTypeEnum::Network) => LoadBalancerKind::Network,
            Some(LoadBalancerTypeEnum::Gateway) => LoadBalancerKind::Gateway,
            _ => LoadBalancerKind::Application,
        },
        dns_name: balancer.dns_name.unwrap_or_default(),
        vpc_id: balancer.vpc_id.unwrap_or_default(),
        internal: balancer.scheme == Some(LoadBalancerSchemeEnum::Internal),
        state: match balancer.state.and_then(|it| it.code) {
            Some(LoadBalancerStateEnum::Provisioning) => State::Creating,
            Some(LoadBalancerStateEnum::Failed) => State::Failed,
            _ => State::Ready,
        },
        subnets: balancer
            .availability_zones
            .unwrap_or_default()
            .into_iter()
            .filter_map(|it| it.subnet_id)
            .collect(),
        groups: balancer.security_groups.unwrap_or_default().into_iter().collect(),
        listeners: Vec::new(),
        targets: BTreeSet::new(),
        attributes: None,
        target_groups: Vec::new(),
        tags: None,
    })
}

/// By ARN. One that is gone has none.
pub(crate) async fn describe_tags(api: &Api, arns: &[String]) -> Result<BTreeMap<String, Tags>, Failure> {
    tags::by_id(arns, |some| tags_of(api, some)).await
}

async fn tags_of(api: &Api, arns: Vec<String>) -> Result<BTreeMap<String, Tags>, Failure> {
    let call = api.elb.describe_tags().set_resource_arns(Some(arns));
    let answer = api.read("elasticloadbalancing:DescribeTags", call.send()).await?;
    let all = answer.tag_descriptions.unwrap_or_default().into_iter();
    let tags = |tags: Option<Vec<Tag>>| -> Tags {
        tags.unwrap_or_default()
            .into_iter()
            .filter_map(|it| Some((it.key?, it.value.unwrap_or_default())))
            .collect()
    };
    Ok(all.filter_map(|it| Some((it.resource_arn?, tags(it.tags)))).collect())
}

pub(crate) async fn create(
    region: &Context,
    balancer: &LoadBalancer,
    with: Creation<'_>,
) -> Result<(), Failure> {
    let (subnets, groups) = (subnet_ids(CREATE, balancer, with.ids)?, group_ids(CREATE, balancer, with.ids)?);
    let scheme = if balancer.internal {
        LoadBalancerSchemeEnum::Internal
    } else {
        LoadBalancerSchemeEnum::InternetFacing
    };
    let call = region
        .api
        .elb
        .create_load_balancer()
        .name(&balancer.aws_name)
        .r#type(LoadBalancerTypeEnum::Network)
        .scheme(scheme)
        .set_subnets(Some(subnets.into_iter().collect()))
        .set_security_groups(Some(groups.into_iter().collect()).filter(|it: &Vec<String>| !it.is_empty()))
        .set_tags(aws_tags(with.tags));
    let new = match region.api.write(CREATE, call.send()).await {
        Ok(answer) => answer
            .load_balancers
            .unwrap_or_default()
            .into_iter()
            .find_map(found)
            .ok_or_else(|| Failure::incomplete(CREATE))?,
        Err(failure) if failure.is_duplicate() => existing(region, balancer, with.tags, failure).await?,
        Err(failure) => return Err(failure),
    };
    region.follow(Task::Kind(Read::LoadBalancers));
    region.record(Read::LoadBalancers, made(FoundLoadBalancer { tags: Some(with.tags.clone()), ..new }));
    Ok(())
}

/// The load balancer that has the name already: ours, when the answer to a first try was lost.
async fn existing(
    region: &Context,
    balancer: &LoadBalancer,
    with: &Tags,
    failure: Failure,
) -> Result<FoundLoadBalancer, Failure> {
    let name = &balancer.aws_name;
    let Some(found) = describe_one(&region.api, name).await? else { return Err(failure) };
    let tags = describe_tags(&region.api, std::slice::from_ref(&found.id))
        .await?
        .remove(&found.id)
        .unwrap_or_default();
    if !is_ours(&tags, with) {
        return Err(Failure::local(
            CREATE,
            TAKEN,
            format!("the name {name} is taken by another load balancer, in {}", found.vpc_id),
        ));
    }
    Ok(found)
}

pub(crate) async fn update(
    region: &Context,
    is: &LoadBalancer,
    observed: &LoadBalancer,
    with: Change<'_>,
) -> Result<(), Failure> {
    let listener = async {
        match (&is.listener, &observed.listener) {
            (Some(desired), observed) if observed.as_ref() != Some(desired) => {
                target_group::set_listener(region, with.id, desired, with.tags).await
            }
            _ => Ok(()),
        }
    };
    let attributes = async {
        match &is.attributes {
            Some(it) if observed.attributes.as_ref() != Some(it) => {
                attributes::set_network(region, with.id, it).await
            }
            _ => Ok(()),
        }
    };
    let network = set_network(region, with.id, is, observed, with.ids);
    let (listener, attributes, network) = futures::join!(listener, attributes, network);
    listener.and(attributes).and(network)
}

/// Sets its groups, and its subnets to those wanted and those it has, but those that it is to be taken off.
async fn set_network(
    region: &Context,
    arn: &str,
    is: &LoadBalancer,
    observed: &LoadBalancer,
    ids: &Ids,
) -> Result<(), Failure> {
    const GROUPS: &str = "elasticloadbalancing:SetSecurityGroups";
    const SUBNETS: &str = "elasticloadbalancing:SetSubnets";
    if is.can_change_groups_of(observed) {
        let groups = group_ids(GROUPS, is, ids)?;
        let call = region.api.elb.set_security_groups().load_balancer_arn(arn);
        region
            .api
            .write(GROUPS, call.set_security_groups(Some(groups.iter().cloned().collect())).send())
            .await?;
        region.record(
            Read::LoadBalancers,
            changed::<FoundLoadBalancer>(arn, move |it| it.groups = groups.clone()),
        );
    }
    if !is.subnets.is_subset(&observed.subnets) || !is.leaving.is_disjoint(&observed.subnets) {
        let mut subnets = subnet_ids(SUBNETS, is, ids)?;
        let shown = region.snapshot();
        subnets.extend(
            shown.load_balancers.iter().filter(|it| it.id == arn).flat_map(|it| it.subnets.iter().cloned()),
        );
        let leaving = leaving_ids(SUBNETS, is, observed, ids)?;
        subnets.retain(|it| !leaving.contains(it));
        let call = region.api.elb.set_subnets().load_balancer_arn(arn);
        region.api.write(SUBNETS, call.set_subnets(Some(subnets.iter().cloned().collect())).send()).await?;
        region.record(
            Read::LoadBalancers,
            changed::<FoundLoadBalancer>(arn, move |it| it.subnets = subnets.clone()),
        );
    }
    Ok(())
}

/// Listeners, then target groups, then the load balancer: as long as something of it is left, it is seen.
pub(crate) async fn delete(region: &Context, arn: &str) -> Result<(), Failure> {
    let api = &region.api;
    let attached = target_group::target_groups_of(api, arn).await?;
    let groups = region.state().known.forwards_to(arn, attached);
    for listener in target_group::listeners(api, arn).await?.into_iter().filter_map(|it| it.listener_arn) {
        let call = api.elb.delete_listener().listener_arn(listener);
        gone_is_done(api.write("elasticloadbalancing:DeleteListener", call.send()).await.map(drop))?;
    }
    for group in groups {
        target_group::delete(api, &group).await?;
    }
    delete_alone(region, arn).await
}

/// The load balancer and its listeners, which go with it.
pub(crate) async fn delete_alone(region: &Context, arn: &str) -> Result<(), Failure> {
    let call = region.api.elb.delete_load_balancer().load_balancer_arn(arn);
    gone_is_done(region.api.write("elasticloadbalancing:DeleteLoadBalancer", call.send()).await.map(drop))?;
    let mut state = region.state();
    let memory = state.known.memory_mut();
    memory.attributes.remove(arn);
    memory.target_groups.remove(arn);
    state.known.base_mut().listeners.remove(arn);
    drop(state);
    region.follow(Task::DeletingVpcs);
    region.record(Read::LoadBalancers, gone::<FoundLoadBalancer>(arn));
    Ok(())
}

pub(crate) async fn tag(api: &Api, arn: &str, tags: &Tags) -> Result<(), Failure> {
    let call = api.elb.add_tags().resource_arns(arn).set_tags(aws_tags(tags));
    api.write("elasticloadbalancing:AddTags", call.send()).await.map(drop)
}
