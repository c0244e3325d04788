//! Network load balancers with one target group and one TCP listener. The load balancer is made first; target group and listener follow
//! by updates. Load balancers of other kinds are seen, and removed, but never made.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_elasticloadbalancingv2::operation::create_target_group::builders::CreateTargetGroupFluentBuilder;
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, Listener as AwsListener, LoadBalancer as AwsLoadBalancer, LoadBalancerAttribute, LoadBalancerSchemeEnum,
    LoadBalancerStateEnum, LoadBalancerTypeEnum, ProtocolEnum, Tag, TargetDescription, TargetGroup as AwsTargetGroup, TargetGroupAttribute,
    TargetHealthStateEnum, TargetTypeEnum,
};
use plan::{
    FoundListener, FoundLoadBalancer, HealthCheck, Ids, Listener, LoadBalancer, LoadBalancerAttributes, LoadBalancerKind, Read, State, Tags,
};
use sha2::{Digest, Sha256};

use super::{group_ids, subnet_ids};
use crate::api::Api;
use crate::errors::{Failure, NOT_YET, TAKEN, gone_is_done};
use crate::kinds::{incomplete, is_ours};
use crate::ledger::{changed, gone, made};
use crate::region::Inner;
use crate::schedule::Task;
use crate::world::{Forward, TargetGroup};

const CREATE: &str = "elasticloadbalancing:CreateLoadBalancer";
const DESCRIBE: &str = "elasticloadbalancing:DescribeLoadBalancers";
const TARGET_GROUP: &str = "elasticloadbalancing:CreateTargetGroup";
const TARGET_GROUPS: &str = "elasticloadbalancing:DescribeTargetGroups";
/// AWS describes the tags of no more at once.
const TAGS_AT_ONCE: usize = 20;
/// Names of our target groups begin so, and so do CAPA's.
const PREFIX: &str = "apiserver-target-";

pub(crate) async fn describe(api: &Api) -> Result<Vec<FoundLoadBalancer>, Failure> {
    let pages = api.pages(DESCRIBE, api.elb.describe_load_balancers().page_size(400).into_paginator().send()).await?;
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

fn found(it: AwsLoadBalancer) -> Option<FoundLoadBalancer> {
    Some(FoundLoadBalancer {
        id: it.load_balancer_arn?,
        name: it.load_balancer_name.unwrap_or_default(),
        kind: match it.r#type {
            Some(LoadBalancerTypeEnum::Network) => LoadBalancerKind::Network,
            Some(LoadBalancerTypeEnum::Gateway) => LoadBalancerKind::Gateway,
            _ => LoadBalancerKind::Application,
        },
        dns_name: it.dns_name.unwrap_or_default(),
        vpc_id: it.vpc_id.unwrap_or_default(),
        internal: it.scheme == Some(LoadBalancerSchemeEnum::Internal),
        state: match it.state.and_then(|it| it.code) {
            Some(LoadBalancerStateEnum::Provisioning) => State::Creating,
            Some(LoadBalancerStateEnum::Failed) => State::Failed,
            _ => State::Ready,
        },
        subnets: it.availability_zones.unwrap_or_default().into_iter().filter_map(|it| it.subnet_id).collect(),
        groups: it.security_groups.unwrap_or_default().into_iter().collect(),
        listeners: Vec::new(),
        targets: BTreeSet::new(),
        attributes: None,
        target_groups: Vec::new(),
        tags: None,
    })
}

/// Target groups with our name, or CAPA's; what is registered there is not read.
pub(crate) async fn describe_target_groups(api: &Api) -> Result<Vec<TargetGroup>, Failure> {
    let pages = api.pages(TARGET_GROUPS, api.elb.describe_target_groups().page_size(400).into_paginator().send()).await?;
    let all = pages.into_iter().flat_map(|it| it.target_groups.unwrap_or_default());
    Ok(all.filter(|it| it.target_group_name().is_some_and(|it| it.starts_with(PREFIX))).filter_map(target_group).collect())
}

fn target_group(it: AwsTargetGroup) -> Option<TargetGroup> {
    let port = u16::try_from(it.port.unwrap_or_default()).unwrap_or_default();
    let check_port = it.health_check_port.as_deref().and_then(|it| it.parse().ok());
    Some(TargetGroup {
        arn: it.target_group_arn?,
        port,
        health_check: HealthCheck {
            protocol: it.health_check_protocol.map(|it| it.as_str().to_owned()).unwrap_or_default(),
            port: check_port.unwrap_or(port),
            path: it.health_check_path.filter(|it| !it.is_empty()),
            interval_seconds: it.health_check_interval_seconds.unwrap_or_default(),
            timeout_seconds: it.health_check_timeout_seconds.unwrap_or_default(),
            healthy_threshold: it.healthy_threshold_count.unwrap_or_default(),
            unhealthy_threshold: it.unhealthy_threshold_count.unwrap_or_default(),
        },
        load_balancers: it.load_balancer_arns.unwrap_or_default().into_iter().collect(),
        targets: None,
    })
}

/// Ids registered at a target group; those that only finish what they have are left out.
pub(crate) async fn describe_targets(api: &Api, group: &str) -> Result<BTreeSet<String>, Failure> {
    let call = api.elb.describe_target_health().target_group_arn(group);
    let answer = match api.read("elasticloadbalancing:DescribeTargetHealth", call.send()).await {
        Err(failure) if failure.is_gone() => return Ok(BTreeSet::new()),
        other => other?,
    };
    let all = answer.target_health_descriptions.unwrap_or_default().into_iter();
    let stays = all.filter(|it| it.target_health().and_then(|it| it.state()) != Some(&TargetHealthStateEnum::Draining));
    Ok(stays.filter_map(|it| it.target?.id).collect())
}

pub(crate) async fn describe_listeners(api: &Api, balancer: &str) -> Result<Vec<Forward>, Failure> {
    Ok(listeners(api, balancer).await?.into_iter().flat_map(forwards).collect())
}

async fn listeners(api: &Api, balancer: &str) -> Result<Vec<AwsListener>, Failure> {
    let pages = api.elb.describe_listeners().load_balancer_arn(balancer).into_paginator().send();
    match api.pages("elasticloadbalancing:DescribeListeners", pages).await {
        Ok(pages) => Ok(pages.into_iter().flat_map(|it| it.listeners.unwrap_or_default()).collect()),
        Err(failure) if failure.is_gone() => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

fn forwards(it: AwsListener) -> Vec<Forward> {
    let port = u16::try_from(it.port.unwrap_or_default()).unwrap_or_default();
    let all = it.default_actions.unwrap_or_default().into_iter();
    all.filter_map(|it| it.target_group_arn).map(|target_group| Forward { port, target_group }).collect()
}

/// By ARN. One that is gone has none.
pub(crate) async fn describe_tags(api: &Api, arns: &[String]) -> Result<BTreeMap<String, Tags>, Failure> {
    let mut res = BTreeMap::new();
    for arns in arns.chunks(TAGS_AT_ONCE) {
        match tags_of(api, arns).await {
            // One missing ARN fails the whole call.
            Err(failure) if failure.is_gone() => {
                for arn in arns {
                    match tags_of(api, std::slice::from_ref(arn)).await {
                        Err(failure) if failure.is_gone() => {}
                        other => res.extend(other?),
                    }
                }
            }
            other => res.extend(other?),
        }
    }
    Ok(res)
}

async fn tags_of(api: &Api, arns: &[String]) -> Result<BTreeMap<String, Tags>, Failure> {
    let call = api.elb.describe_tags().set_resource_arns(Some(arns.to_vec()));
    let answer = api.read("elasticloadbalancing:DescribeTags", call.send()).await?;
    let all = answer.tag_descriptions.unwrap_or_default().into_iter();
    let tags = |tags: Option<Vec<Tag>>| -> Tags {
        tags.unwrap_or_default().into_iter().filter_map(|it| Some((it.key?, it.value.unwrap_or_default()))).collect()
    };
    Ok(all.filter_map(|it| Some((it.resource_arn?, tags(it.tags)))).collect())
}

fn aws_tags(tags: &Tags) -> Option<Vec<Tag>> {
    Some(tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect())
}

pub(crate) async fn create(region: &Inner, balancer: &LoadBalancer, with: &Tags, ids: &Ids) -> Result<(), Failure> {
    let (subnets, groups) = (subnet_ids(CREATE, balancer, ids)?, group_ids(CREATE, balancer, ids)?);
    let scheme = if balancer.internal { LoadBalancerSchemeEnum::Internal } else { LoadBalancerSchemeEnum::InternetFacing };
    let call = region
        .api
        .elb
        .create_load_balancer()
        .name(&balancer.aws_name)
        .r#type(LoadBalancerTypeEnum::Network)
        .scheme(scheme)
        .set_subnets(Some(subnets.into_iter().collect()))
        .set_security_groups(Some(groups.into_iter().collect()).filter(|it: &Vec<String>| !it.is_empty()))
        .set_tags(aws_tags(with));
    let new = match region.api.write(CREATE, call.send()).await {
        Ok(answer) => answer.load_balancers.unwrap_or_default().into_iter().find_map(found).ok_or_else(|| incomplete(CREATE))?,
        Err(failure) if failure.is_duplicate() => existing(region, balancer, with, failure).await?,
        Err(failure) => return Err(failure),
    };
    region.follow(Task::Kind(Read::LoadBalancers));
    region.record(Read::LoadBalancers, made(FoundLoadBalancer { tags: Some(with.clone()), ..new }));
    Ok(())
}

/// The load balancer that has the name already: ours, when the answer to a first try was lost.
async fn existing(region: &Inner, balancer: &LoadBalancer, with: &Tags, failure: Failure) -> Result<FoundLoadBalancer, Failure> {
    let name = &balancer.aws_name;
    let Some(found) = describe_one(&region.api, name).await? else { return Err(failure) };
    let tags = describe_tags(&region.api, std::slice::from_ref(&found.id)).await?.remove(&found.id).unwrap_or_default();
    match is_ours(&tags, with) {
        true => Ok(found),
        false => Err(Failure::local(CREATE, TAKEN, format!("the name {name} is taken by another load balancer, in {}", found.vpc_id))),
    }
}

pub(crate) async fn update(
    region: &Inner,
    arn: &str,
    is: &LoadBalancer,
    seen: &LoadBalancer,
    with: &Tags,
    ids: &Ids,
) -> Result<(), Failure> {
    let listener = async {
        match (&is.listener, &seen.listener) {
            (Some(want), seen) if seen.as_ref() != Some(want) => set_listener(region, arn, want, with).await,
            _ => Ok(()),
        }
    };
    let attributes = async {
        match &is.attributes {
            Some(it) if seen.attributes.as_ref() != Some(it) => set_attributes(region, arn, it).await,
            _ => Ok(()),
        }
    };
    let network = set_network(region, arn, is, seen, ids);
    let (listener, attributes, network) = futures::join!(listener, attributes, network);
    listener.and(attributes).and(network)
}

/// Makes what is missing of target group and listener, and sets the health check where it differs.
async fn set_listener(region: &Inner, arn: &str, want: &Listener, with: &Tags) -> Result<(), Failure> {
    let shown = region.snapshot();
    let balancer = shown.load_balancers.iter().find(|it| it.id == arn).cloned();
    let balancer = balancer.ok_or_else(|| Failure::local(TARGET_GROUP, NOT_YET, "the load balancer is not shown yet"))?;
    let group = match (balancer.listeners.iter().any(|it| it.port == want.port), balancer.target_groups.first()) {
        (true, Some(group)) => {
            set_health_check(region, group, &want.health_check).await?;
            group.to_owned()
        }
        _ => {
            let group = create_target_group(region, &balancer, want, with).await?;
            create_listener(region, arn, want.port, &group, with).await?;
            group
        }
    };
    let now = FoundListener { port: want.port, target_port: want.target_port, health_check: Some(want.health_check.clone()) };
    let change = move |it: &mut FoundLoadBalancer| {
        if !it.target_groups.contains(&group) {
            it.target_groups.push(group.clone());
        }
        it.listeners.retain(|it| it.port != now.port);
        it.listeners.push(now.clone());
    };
    region.record(Read::TargetGroups, changed(arn, change));
    Ok(())
}

/// One name for each load balancer, so that a second try finds what a first one made.
fn target_group_name(arn: &str) -> String {
    let hash = Sha256::digest(arn.as_bytes());
    let text: String = hash.iter().take(8).map(|it| format!("{it:02x}")).collect();
    format!("{PREFIX}{}", &text[..15])
}

async fn create_target_group(region: &Inner, balancer: &FoundLoadBalancer, want: &Listener, with: &Tags) -> Result<String, Failure> {
    const ATTRIBUTES: &str = "elasticloadbalancing:ModifyTargetGroupAttributes";
    let name = target_group_name(&balancer.id);
    let call = region
        .api
        .elb
        .create_target_group()
        .name(&name)
        .protocol(ProtocolEnum::Tcp)
        .port(i32::from(want.target_port))
        .vpc_id(&balancer.vpc_id)
        .target_type(TargetTypeEnum::Instance)
        .set_tags(aws_tags(with));
    let arn = match region.api.write(TARGET_GROUP, checked(call, &want.health_check).send()).await {
        Ok(answer) => answer.target_groups.unwrap_or_default().into_iter().find_map(|it| it.target_group_arn),
        Err(failure) if failure.is_duplicate() => named_target_group(&region.api, &name).await?,
        Err(failure) => return Err(failure),
    };
    let arn = arn.ok_or_else(|| incomplete(TARGET_GROUP))?;
    // With the client's address kept, a node could not reach itself through the load balancer.
    let attributes = [("preserve_client_ip.enabled", "false"), ("deregistration_delay.connection_termination.enabled", "false")];
    let attributes = attributes.map(|(key, value)| TargetGroupAttribute::builder().key(key).value(value).build()).to_vec();
    let call = region.api.elb.modify_target_group_attributes().target_group_arn(&arn).set_attributes(Some(attributes));
    region.api.write(ATTRIBUTES, call.send()).await?;
    Ok(arn)
}

fn checked(call: CreateTargetGroupFluentBuilder, check: &HealthCheck) -> CreateTargetGroupFluentBuilder {
    call.health_check_enabled(true)
        .health_check_protocol(ProtocolEnum::from(check.protocol.as_str()))
        .health_check_port(check.port.to_string())
        .set_health_check_path(check.path.clone())
        .health_check_interval_seconds(check.interval_seconds)
        .health_check_timeout_seconds(check.timeout_seconds)
        .healthy_threshold_count(check.healthy_threshold)
        .unhealthy_threshold_count(check.unhealthy_threshold)
}

async fn named_target_group(api: &Api, name: &str) -> Result<Option<String>, Failure> {
    match api.read(TARGET_GROUPS, api.elb.describe_target_groups().names(name).send()).await {
        Ok(answer) => Ok(answer.target_groups.unwrap_or_default().into_iter().find_map(|it| it.target_group_arn)),
        Err(failure) if failure.is_gone() => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn create_listener(region: &Inner, balancer: &str, port: u16, group: &str, with: &Tags) -> Result<(), Failure> {
    const ACTION: &str = "elasticloadbalancing:CreateListener";
    let forward = Action::builder().r#type(ActionTypeEnum::Forward).target_group_arn(group).build();
    let call = region.api.elb.create_listener().load_balancer_arn(balancer).protocol(ProtocolEnum::Tcp).port(i32::from(port));
    match region.api.write(ACTION, call.default_actions(forward).set_tags(aws_tags(with)).send()).await {
        // A second try: where it forwards to is read.
        Err(failure) if failure.is_duplicate() => {
            region.doubt(Read::TargetGroups);
            return Ok(());
        }
        other => drop(other?),
    }
    let forward = Forward { port, target_group: group.to_owned() };
    region.state().world.base.listeners.entry(balancer.to_owned()).or_default().push(forward);
    Ok(())
}

async fn set_health_check(region: &Inner, group: &str, check: &HealthCheck) -> Result<(), Failure> {
    let call = region
        .api
        .elb
        .modify_target_group()
        .target_group_arn(group)
        .health_check_protocol(ProtocolEnum::from(check.protocol.as_str()))
        .health_check_port(check.port.to_string())
        .set_health_check_path(check.path.clone())
        .health_check_interval_seconds(check.interval_seconds)
        .health_check_timeout_seconds(check.timeout_seconds)
        .healthy_threshold_count(check.healthy_threshold)
        .unhealthy_threshold_count(check.unhealthy_threshold);
    region.api.write("elasticloadbalancing:ModifyTargetGroup", call.send()).await.map(drop)
}

async fn set_attributes(region: &Inner, arn: &str, attributes: &LoadBalancerAttributes) -> Result<(), Failure> {
    let cross_zone =
        LoadBalancerAttribute::builder().key("load_balancing.cross_zone.enabled").value(attributes.cross_zone.to_string()).build();
    let call = region.api.elb.modify_load_balancer_attributes().load_balancer_arn(arn).attributes(cross_zone);
    region.api.write("elasticloadbalancing:ModifyLoadBalancerAttributes", call.send()).await?;
    region.state().world.memory.attributes.insert(arn.to_owned(), attributes.clone());
    Ok(())
}

/// Sets its groups, and its subnets to those wanted and those it has.
async fn set_network(region: &Inner, arn: &str, is: &LoadBalancer, seen: &LoadBalancer, ids: &Ids) -> Result<(), Failure> {
    const GROUPS: &str = "elasticloadbalancing:SetSecurityGroups";
    const SUBNETS: &str = "elasticloadbalancing:SetSubnets";
    if is.groups != seen.groups {
        let groups = group_ids(GROUPS, is, ids)?;
        let call = region.api.elb.set_security_groups().load_balancer_arn(arn);
        region.api.write(GROUPS, call.set_security_groups(Some(groups.iter().cloned().collect())).send()).await?;
        region.record(Read::LoadBalancers, changed::<FoundLoadBalancer>(arn, move |it| it.groups = groups.clone()));
    }
    if !is.subnets.is_subset(&seen.subnets) {
        let mut subnets = subnet_ids(SUBNETS, is, ids)?;
        let shown = region.snapshot();
        subnets.extend(shown.load_balancers.iter().filter(|it| it.id == arn).flat_map(|it| it.subnets.iter().cloned()));
        let call = region.api.elb.set_subnets().load_balancer_arn(arn);
        region.api.write(SUBNETS, call.set_subnets(Some(subnets.iter().cloned().collect())).send()).await?;
        region.record(Read::LoadBalancers, changed::<FoundLoadBalancer>(arn, move |it| it.subnets.extend(subnets.clone())));
    }
    Ok(())
}

/// Listeners, then target groups, then the load balancer: as long as something of it is left, it is seen.
pub(crate) async fn delete(region: &Inner, arn: &str) -> Result<(), Failure> {
    let api = &region.api;
    let groups = target_groups_of(api, arn).await?;
    for listener in listeners(api, arn).await?.into_iter().filter_map(|it| it.listener_arn) {
        let call = api.elb.delete_listener().listener_arn(listener);
        gone_is_done(api.write("elasticloadbalancing:DeleteListener", call.send()).await.map(drop))?;
    }
    for group in groups {
        let call = api.elb.delete_target_group().target_group_arn(group);
        gone_is_done(api.write("elasticloadbalancing:DeleteTargetGroup", call.send()).await.map(drop))?;
    }
    let call = api.elb.delete_load_balancer().load_balancer_arn(arn);
    gone_is_done(api.write("elasticloadbalancing:DeleteLoadBalancer", call.send()).await.map(drop))?;
    let mut state = region.state();
    state.world.memory.attributes.remove(arn);
    state.world.base.listeners.remove(arn);
    drop(state);
    region.follow(Task::DeletingVpcs);
    region.record(Read::LoadBalancers, gone::<FoundLoadBalancer>(arn));
    Ok(())
}

/// Those attached to it, and the one that its name gives, which may be attached no more.
async fn target_groups_of(api: &Api, arn: &str) -> Result<BTreeSet<String>, Failure> {
    let call = api.elb.describe_target_groups().load_balancer_arn(arn);
    let mut res: BTreeSet<String> = match api.read(TARGET_GROUPS, call.send()).await {
        Ok(answer) => answer.target_groups.unwrap_or_default().into_iter().filter_map(|it| it.target_group_arn).collect(),
        Err(failure) if failure.is_gone() => BTreeSet::new(),
        Err(failure) => return Err(failure),
    };
    if res.is_empty() {
        res.extend(named_target_group(api, &target_group_name(arn)).await?);
    }
    Ok(res)
}

fn targets(ids: &[String]) -> Option<Vec<TargetDescription>> {
    Some(ids.iter().map(|it| TargetDescription::builder().id(it).build()).collect())
}

pub(crate) async fn register(api: &Api, group: &str, ids: &[String]) -> Result<(), Failure> {
    let call = api.elb.register_targets().target_group_arn(group).set_targets(targets(ids));
    api.write("elasticloadbalancing:RegisterTargets", call.send()).await.map(drop)
}

pub(crate) async fn deregister(api: &Api, group: &str, ids: &[String]) -> Result<(), Failure> {
    let call = api.elb.deregister_targets().target_group_arn(group).set_targets(targets(ids));
    api.write("elasticloadbalancing:DeregisterTargets", call.send()).await.map(drop)
}

pub(crate) async fn tag(api: &Api, arn: &str, tags: &Tags) -> Result<(), Failure> {
    let call = api.elb.add_tags().resource_arns(arn).set_tags(aws_tags(tags));
    api.write("elasticloadbalancing:AddTags", call.send()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_groups_name_fits_and_follows_from_its_load_balancer() {
        let name = target_group_name("arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/c1/50dc6c495c0c9188");
        assert_eq!(name.len(), 32, "AWS takes 32 characters");
        assert_ne!(name, target_group_name("arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/c1/50dc6c495c0c9189"));
    }
}
