//! What a network load balancer forwards to: one target group, one TCP listener, and the instances registered
//! there.

use std::collections::BTreeSet;

use aws_sdk_elasticloadbalancingv2::operation::create_target_group::builders::CreateTargetGroupFluentBuilder;
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, Listener as AwsListener, ProtocolEnum, Tag, TargetDescription,
    TargetGroup as AwsTargetGroup, TargetGroupAttribute, TargetHealthStateEnum, TargetTypeEnum,
};
use infra::gc::FoundTargetGroup;
use model::{FoundListener, FoundLoadBalancer, HealthCheck, Listener, Read, Tags};
use sha2::{Digest, Sha256};

use crate::api::Api;
use crate::context::Context;
use crate::errors::{Failure, NOT_YET, gone_is_done};
use crate::pending_writes::changed;
use crate::region_state::{Forward, TargetGroup};

const CREATE: &str = "elasticloadbalancing:CreateTargetGroup";
const DESCRIBE: &str = "elasticloadbalancing:DescribeTargetGroups";
/// Names of our target groups begin so, and so do CAPA's.
const PREFIX: &str = "apiserver-target-";

pub(super) fn aws_tags(tags: &Tags) -> Option<Vec<Tag>> {
    Some(tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect())
}

/// Target groups with our name, or CAPA's; what is registered there is not read.
pub(crate) async fn describe(api: &Api) -> Result<Vec<TargetGroup>, Failure> {
    let pages =
        api.pages(DESCRIBE, api.elb.describe_target_groups().page_size(400).into_paginator().send()).await?;
    let all = pages.into_iter().flat_map(|it| it.target_groups.unwrap_or_default());
    Ok(all
        .filter(|it| it.target_group_name().is_some_and(|it| it.starts_with(PREFIX)))
        .filter_map(found)
        .collect())
}

fn found(group: AwsTargetGroup) -> Option<TargetGroup> {
    let port = u16::try_from(group.port.unwrap_or_default()).unwrap_or_default();
    let check_port = group.health_check_port.as_deref().and_then(|it| it.parse().ok());
    Some(TargetGroup {
        arn: group.target_group_arn?,
        port,
        health_check: HealthCheck {
            protocol: group.health_check_protocol.map(|it| it.as_str().to_owned()).unwrap_or_default(),
            port: check_port.unwrap_or(port),
            path: group.health_check_path.filter(|it| !it.is_empty()),
            interval_seconds: group.health_check_interval_seconds.unwrap_or_default(),
            timeout_seconds: group.health_check_timeout_seconds.unwrap_or_default(),
            healthy_threshold: group.healthy_threshold_count.unwrap_or_default(),
            unhealthy_threshold: group.unhealthy_threshold_count.unwrap_or_default(),
        },
        load_balancers: group.load_balancer_arns.unwrap_or_default().into_iter().collect(),
        targets: None,
        is_stale: false,
    })
}

/// Target groups of these ARNs, without their tags. Those that are gone are left out.
pub(crate) async fn describe_named(api: &Api, arns: &[String]) -> Result<Vec<FoundTargetGroup>, Failure> {
    if arns.is_empty() {
        return Ok(Vec::new());
    }
    // Not by ARN: one that is gone would fail the whole call.
    let pages =
        api.pages(DESCRIBE, api.elb.describe_target_groups().page_size(400).into_paginator().send()).await?;
    let all = pages.into_iter().flat_map(|it| it.target_groups.unwrap_or_default());
    let found = |it: AwsTargetGroup| {
        let (name, vpc_id) = (it.target_group_name.unwrap_or_default(), it.vpc_id.unwrap_or_default());
        Some(FoundTargetGroup { arn: it.target_group_arn?, name, vpc_id, tags: Tags::new() })
    };
    Ok(all.filter_map(found).filter(|it| arns.contains(&it.arn)).collect())
}

pub(crate) async fn delete(api: &Api, arn: &str) -> Result<(), Failure> {
    let call = api.elb.delete_target_group().target_group_arn(arn);
    gone_is_done(api.write("elasticloadbalancing:DeleteTargetGroup", call.send()).await.map(drop))
}

/// Ids registered at a target group; those that only finish what they have are left out.
pub(crate) async fn describe_targets(api: &Api, group: &str) -> Result<BTreeSet<String>, Failure> {
    let call = api.elb.describe_target_health().target_group_arn(group);
    let answer = match api.read("elasticloadbalancing:DescribeTargetHealth", call.send()).await {
        Err(failure) if failure.is_gone() => return Ok(BTreeSet::new()),
        other => other?,
    };
    let all = answer.target_health_descriptions.unwrap_or_default().into_iter();
    let stays = all
        .filter(|it| it.target_health().and_then(|it| it.state()) != Some(&TargetHealthStateEnum::Draining));
    Ok(stays.filter_map(|it| it.target?.id).collect())
}

pub(crate) async fn describe_listeners(api: &Api, balancer: &str) -> Result<Vec<Forward>, Failure> {
    Ok(listeners(api, balancer).await?.into_iter().flat_map(forwards).collect())
}

pub(super) async fn listeners(api: &Api, balancer: &str) -> Result<Vec<AwsListener>, Failure> {
    let pages = api.elb.describe_listeners().load_balancer_arn(balancer).into_paginator().send();
    match api.pages("elasticloadbalancing:DescribeListeners", pages).await {
        Ok(pages) => Ok(pages.into_iter().flat_map(|it| it.listeners.unwrap_or_default()).collect()),
        Err(failure) if failure.is_gone() => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

fn forwards(listener: AwsListener) -> Vec<Forward> {
    let port = u16::try_from(listener.port.unwrap_or_default()).unwrap_or_default();
    let all = listener.default_actions.unwrap_or_default().into_iter();
    all.filter_map(|it| it.target_group_arn).map(|target_group| Forward { port, target_group }).collect()
}

/// Makes what is missing of target group and listener, and sets the health check where it differs.
pub(super) async fn set_listener(
    region: &Context,
    arn: &str,
    desired: &Listener,
    with: &Tags,
) -> Result<(), Failure> {
    let shown = region.snapshot();
    let balancer = shown.load_balancers.iter().find(|it| it.id == arn).cloned();
    let balancer =
        balancer.ok_or_else(|| Failure::local(CREATE, NOT_YET, "the load balancer is not shown yet"))?;
    let group =
        match (balancer.listeners.iter().any(|it| it.port == desired.port), balancer.target_groups.first()) {
            (true, Some(group)) => {
                set_health_check(region, group, &desired.health_check).await?;
                group.to_owned()
            }
            _ => {
                let group = create(region, &balancer, desired, with).await?;
                create_listener(region, arn, desired.port, &group, with).await?;
                group
            }
        };
    let now = FoundListener {
        port: desired.port,
        target_port: desired.target_port,
        health_check: Some(desired.health_check.clone()),
    };
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
fn name_of(arn: &str) -> String {
    let hash = Sha256::digest(arn.as_bytes());
    let text: String = hash.iter().take(8).map(|it| format!("{it:02x}")).collect();
    format!("{PREFIX}{}", &text[..15])
}

async fn create(
    region: &Context,
    balancer: &FoundLoadBalancer,
    desired: &Listener,
    with: &Tags,
) -> Result<String, Failure> {
    const ATTRIBUTES: &str = "elasticloadbalancing:ModifyTargetGroupAttributes";
    let name = name_of(&balancer.id);
    let call = region
        .api
        .elb
        .create_target_group()
        .name(&name)
        .protocol(ProtocolEnum::Tcp)
        .port(i32::from(desired.target_port))
        .vpc_id(&balancer.vpc_id)
        .target_type(TargetTypeEnum::Instance)
        .set_tags(aws_tags(with));
    let arn = match region.api.write(CREATE, checked(call, &desired.health_check).send()).await {
        Ok(answer) => answer.target_groups.unwrap_or_default().into_iter().find_map(|it| it.target_group_arn),
        Err(failure) if failure.is_duplicate() => named(&region.api, &name).await?,
        Err(failure) => return Err(failure),
    };
    let arn = arn.ok_or_else(|| Failure::incomplete(CREATE))?;
    // With the client's address kept, a node could not reach itself through the load balancer.
    let attributes = [
        ("preserve_client_ip.enabled", "false"),
        ("deregistration_delay.connection_termination.enabled", "false"),
    ];
    let attributes =
        attributes.map(|(key, value)| TargetGroupAttribute::builder().key(key).value(value).build()).to_vec();
    let call = region
        .api
        .elb
        .modify_target_group_attributes()
        .target_group_arn(&arn)
        .set_attributes(Some(attributes));
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

async fn named(api: &Api, name: &str) -> Result<Option<String>, Failure> {
    match api.read(DESCRIBE, api.elb.describe_target_groups().names(name).send()).await {
        Ok(answer) => {
            Ok(answer.target_groups.unwrap_or_default().into_iter().find_map(|it| it.target_group_arn))
        }
        Err(failure) if failure.is_gone() => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn create_listener(
    region: &Context,
    balancer: &str,
    port: u16,
    group: &str,
    with: &Tags,
) -> Result<(), Failure> {
    const ACTION: &str = "elasticloadbalancing:CreateListener";
    let forward = Action::builder().r#type(ActionTypeEnum::Forward).target_group_arn(group).build();
    let call = region
        .api
        .elb
        .create_listener()
        .load_balancer_arn(balancer)
        .protocol(ProtocolEnum::Tcp)
        .port(i32::from(port));
    match region.api.write(ACTION, call.default_actions(forward).set_tags(aws_tags(with)).send()).await {
        // A second try: where it forwards to is read.
        Err(failure) if failure.is_duplicate() => {
            region.doubt(Read::TargetGroups);
            return Ok(());
        }
        other => drop(other?),
    }
    let forward = Forward { port, target_group: group.to_owned() };
    region.state().known.base_mut().listeners.entry(balancer.to_owned()).or_default().push(forward);
    Ok(())
}

async fn set_health_check(region: &Context, group: &str, check: &HealthCheck) -> Result<(), Failure> {
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

/// Those attached to it, and the one that its name gives, which may be attached no more.
pub(super) async fn target_groups_of(api: &Api, arn: &str) -> Result<BTreeSet<String>, Failure> {
    let pages = match api
        .pages(DESCRIBE, api.elb.describe_target_groups().load_balancer_arn(arn).into_paginator().send())
        .await
    {
        Err(failure) if failure.is_gone() => Vec::new(),
        other => other?,
    };
    let attached = pages.into_iter().flat_map(|it| it.target_groups.unwrap_or_default());
    let mut res: BTreeSet<String> = attached.filter_map(|it| it.target_group_arn).collect();
    if res.is_empty() {
        res.extend(named(api, &name_of(arn)).await?);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_groups_name_fits_and_follows_from_its_load_balancer() {
        let name = name_of("arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/c1/50dc6c495c0c9188");
        assert_eq!(name.len(), 32, "AWS takes 32 characters");
        assert_ne!(
            name,
            name_of("arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/c1/50dc6c495c0c9189")
        );
    }
}
