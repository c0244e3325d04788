//! Elastic Load Balancing's first version. The name guards it against being made twice. Health check and
//! attributes are set by updates: creation takes neither.

use std::collections::BTreeMap;

use aws_sdk_elasticloadbalancing::types::{
    HealthCheck as AwsHealthCheck, Instance, Listener as AwsListener, LoadBalancerDescription, Tag,
};
use model::{
    FoundListener, FoundLoadBalancer, HealthCheck, Ids, Listener, LoadBalancer, LoadBalancerKind, Read,
    State, Tags,
};

use super::attributes;
use super::ids::{group_ids, leaving_ids, subnet_ids, vpc_of};
use super::tags;
use crate::api::Api;
use crate::context::Context;
use crate::errors::{Failure, TAKEN, gone_is_done};
use crate::kind::{Change, Creation, is_ours};
use crate::pending_writes::{changed, gone, made};
use crate::schedule::Task;

const CREATE: &str = "elasticloadbalancing:CreateLoadBalancer";
const DESCRIBE: &str = "elasticloadbalancing:DescribeLoadBalancers";

pub(crate) async fn describe(api: &Api) -> Result<Vec<FoundLoadBalancer>, Failure> {
    let pages = api
        .pages(DESCRIBE, api.classic.describe_load_balancers().page_size(400).into_paginator().send())
        .await?;
    let all = pages.into_iter().flat_map(|it| it.load_balancer_descriptions.unwrap_or_default());
    Ok(all.filter_map(found).collect())
}

pub(crate) async fn describe_one(api: &Api, name: &str) -> Result<Option<FoundLoadBalancer>, Failure> {
    let call = api.classic.describe_load_balancers().load_balancer_names(name);
    match api.read(DESCRIBE, call.send()).await {
        Ok(answer) => Ok(answer.load_balancer_descriptions.unwrap_or_default().into_iter().find_map(found)),
        Err(failure) if failure.is_gone() => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn found(balancer: LoadBalancerDescription) -> Option<FoundLoadBalancer> {
    let health_check = balancer.health_check.as_ref().and_then(health);
    let listeners =
        balancer.listener_descriptions.unwrap_or_default().into_iter().filter_map(|it| it.listener);
    let name = balancer.load_balancer_name?;
    Some(FoundLoadBalancer {
        id: name.clone(),
        name,
        kind: LoadBalancerKind::Classic,
        dns_name: balancer.dns_name.unwrap_or_default(),
        vpc_id: balancer.vpc_id.unwrap_or_default(),
        internal: balancer.scheme.as_deref() == Some("internal"),
        state: State::Ready,
        subnets: balancer.subnets.unwrap_or_default().into_iter().collect(),
        groups: balancer.security_groups.unwrap_or_default().into_iter().collect(),
        listeners: listeners
            .map(|it| FoundListener {
                port: u16::try_from(it.load_balancer_port).unwrap_or_default(),
                target_port: u16::try_from(it.instance_port).unwrap_or_default(),
                health_check: health_check.clone(),
            })
            .collect(),
        targets: balancer.instances.unwrap_or_default().into_iter().filter_map(|it| it.instance_id).collect(),
        attributes: None,
        target_groups: Vec::new(),
        tags: None,
    })
}

/// `HTTPS:6443/readyz`, `TCP:6443`.
fn health(check: &AwsHealthCheck) -> Option<HealthCheck> {
    let (protocol, rest) = check.target.split_once(':')?;
    let (port, path) = match rest.split_once('/') {
        Some((port, path)) => (port, Some(format!("/{path}"))),
        None => (rest, None),
    };
    Some(HealthCheck {
        protocol: protocol.to_owned(),
        port: port.parse().ok()?,
        path,
        interval_seconds: check.interval,
        timeout_seconds: check.timeout,
        healthy_threshold: check.healthy_threshold,
        unhealthy_threshold: check.unhealthy_threshold,
    })
}

/// By name. One that is gone has none.
pub(crate) async fn describe_tags(api: &Api, names: &[String]) -> Result<BTreeMap<String, Tags>, Failure> {
    tags::by_id(names, |some| tags_of(api, some)).await
}

async fn tags_of(api: &Api, names: Vec<String>) -> Result<BTreeMap<String, Tags>, Failure> {
    let call = api.classic.describe_tags().set_load_balancer_names(Some(names));
    let answer = api.read("elasticloadbalancing:DescribeTags", call.send()).await?;
    let all = answer.tag_descriptions.unwrap_or_default().into_iter();
    let tags = |tags: Option<Vec<Tag>>| {
        tags.unwrap_or_default().into_iter().map(|it| (it.key, it.value.unwrap_or_default())).collect()
    };
    Ok(all.filter_map(|it| Some((it.load_balancer_name?, tags(it.tags)))).collect())
}

pub(crate) async fn create(
    region: &Context,
    balancer: &LoadBalancer,
    with: Creation<'_>,
) -> Result<(), Failure> {
    let (subnets, groups) = (subnet_ids(CREATE, balancer, with.ids)?, group_ids(CREATE, balancer, with.ids)?);
    let missing = || Failure::local(CREATE, "InvalidCall", "a classic load balancer needs a listener");
    let listener = balancer.listener.as_ref().ok_or_else(missing)?;
    let tag = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build();
    let tags = with.tags.iter().map(tag).collect::<Result<Vec<_>, _>>().map_err(|_| missing())?;
    let call = region
        .api
        .classic
        .create_load_balancer()
        .load_balancer_name(&balancer.aws_name)
        .set_scheme(balancer.internal.then(|| "internal".to_owned()))
        .set_subnets(Some(subnets.iter().cloned().collect()))
        .set_security_groups(Some(groups.iter().cloned().collect()))
        .listeners(aws_listener(listener)?)
        .set_tags(Some(tags));
    let dns_name = match region.api.write(CREATE, call.send()).await {
        Ok(answer) => answer.dns_name.unwrap_or_default(),
        Err(failure) if failure.is_duplicate() => return adopt(region, balancer, with.tags, failure).await,
        Err(failure) => return Err(failure),
    };
    let new = FoundLoadBalancer {
        id: balancer.aws_name.clone(),
        name: balancer.aws_name.clone(),
        kind: LoadBalancerKind::Classic,
        dns_name,
        vpc_id: vpc_of(region, &subnets, with.ids),
        internal: balancer.internal,
        state: State::Ready,
        subnets,
        groups,
        listeners: vec![FoundListener {
            port: listener.port,
            target_port: listener.target_port,
            health_check: None,
        }],
        targets: Default::default(),
        attributes: None,
        target_groups: Vec::new(),
        tags: Some(with.tags.clone()),
    };
    region.record(Read::ClassicLoadBalancers, made(new));
    Ok(())
}

/// The load balancer that has the name already: ours, when the answer to a first try was lost.
async fn adopt(
    region: &Context,
    balancer: &LoadBalancer,
    with: &Tags,
    failure: Failure,
) -> Result<(), Failure> {
    let name = &balancer.aws_name;
    let Some(found) = describe_one(&region.api, name).await? else { return Err(failure) };
    let tags = describe_tags(&region.api, std::slice::from_ref(name)).await?.remove(name).unwrap_or_default();
    if !is_ours(&tags, with) {
        return Err(Failure::local(
            CREATE,
            TAKEN,
            format!("the name {name} is taken by another load balancer, in {}", found.vpc_id),
        ));
    }
    region.record(Read::ClassicLoadBalancers, made(FoundLoadBalancer { tags: Some(tags), ..found }));
    Ok(())
}

fn aws_listener(listener: &Listener) -> Result<AwsListener, Failure> {
    let res = AwsListener::builder()
        .protocol("TCP")
        .load_balancer_port(i32::from(listener.port))
        .instance_protocol("TCP")
        .instance_port(i32::from(listener.target_port));
    res.build().map_err(|_| Failure::local(CREATE, "InvalidCall", "the listener is incomplete"))
}

pub(crate) async fn update(
    region: &Context,
    is: &LoadBalancer,
    observed: &LoadBalancer,
    with: Change<'_>,
) -> Result<(), Failure> {
    let listener = async {
        match &is.listener {
            Some(it) if observed.listener.as_ref() != Some(it) => {
                set_listener(region, with.id, it, observed.listener.as_ref()).await
            }
            _ => Ok(()),
        }
    };
    let attributes = async {
        match &is.attributes {
            Some(it) if observed.attributes.as_ref() != Some(it) => {
                attributes::set_classic(region, with.id, it).await
            }
            _ => Ok(()),
        }
    };
    let network = set_network(region, with.id, is, observed, with.ids);
    let (listener, attributes, network) = futures::join!(listener, attributes, network);
    listener.and(attributes).and(network)
}

async fn set_listener(
    region: &Context,
    name: &str,
    listener: &Listener,
    observed: Option<&Listener>,
) -> Result<(), Failure> {
    const LISTEN: &str = "elasticloadbalancing:CreateLoadBalancerListeners";
    let shown = region.snapshot();
    let ports = |it: &FoundListener| it.port == listener.port && it.target_port == listener.target_port;
    let listens =
        shown.load_balancers.iter().find(|it| it.id == name).is_some_and(|it| it.listeners.iter().any(ports));
    if !listens
        && observed.is_none_or(|it| (it.port, it.target_port) != (listener.port, listener.target_port))
    {
        let call = region
            .api
            .classic
            .create_load_balancer_listeners()
            .load_balancer_name(name)
            .listeners(aws_listener(listener)?);
        region.api.write(LISTEN, call.send()).await?;
    }
    if observed.map(|it| &it.health_check) != Some(&listener.health_check) {
        set_health_check(region, name, &listener.health_check).await?;
    }
    let now = FoundListener {
        port: listener.port,
        target_port: listener.target_port,
        health_check: Some(listener.health_check.clone()),
    };
    let change = move |it: &mut FoundLoadBalancer| {
        it.listeners.iter_mut().for_each(|it| it.health_check = now.health_check.clone());
        if !it.listeners.iter().any(|it| it.port == now.port && it.target_port == now.target_port) {
            it.listeners.push(now.clone());
        }
    };
    region.record(Read::ClassicLoadBalancers, changed(name, change));
    Ok(())
}

async fn set_health_check(region: &Context, name: &str, check: &HealthCheck) -> Result<(), Failure> {
    const ACTION: &str = "elasticloadbalancing:ConfigureHealthCheck";
    let check = AwsHealthCheck::builder()
        .target(format!("{}:{}{}", check.protocol, check.port, check.path.as_deref().unwrap_or_default()))
        .interval(check.interval_seconds)
        .timeout(check.timeout_seconds)
        .healthy_threshold(check.healthy_threshold)
        .unhealthy_threshold(check.unhealthy_threshold)
        .build()
        .map_err(|_| Failure::local(ACTION, "InvalidCall", "the health check is incomplete"))?;
    let call = region.api.classic.configure_health_check().load_balancer_name(name).health_check(check);
    region.api.write(ACTION, call.send()).await.map(drop)
}

/// Sets its groups, adds subnets, and takes it off those that it is to leave; others that it has stay.
async fn set_network(
    region: &Context,
    name: &str,
    is: &LoadBalancer,
    observed: &LoadBalancer,
    ids: &Ids,
) -> Result<(), Failure> {
    const GROUPS: &str = "elasticloadbalancing:ApplySecurityGroupsToLoadBalancer";
    const SUBNETS: &str = "elasticloadbalancing:AttachLoadBalancerToSubnets";
    const DETACH: &str = "elasticloadbalancing:DetachLoadBalancerFromSubnets";
    if is.groups != observed.groups {
        let groups = group_ids(GROUPS, is, ids)?;
        let call = region.api.classic.apply_security_groups_to_load_balancer().load_balancer_name(name);
        region
            .api
            .write(GROUPS, call.set_security_groups(Some(groups.iter().cloned().collect())).send())
            .await?;
        region.record(
            Read::ClassicLoadBalancers,
            changed::<FoundLoadBalancer>(name, move |it| it.groups = groups.clone()),
        );
    }
    if !is.subnets.is_subset(&observed.subnets) {
        let subnets = subnet_ids(SUBNETS, is, ids)?;
        let call = region.api.classic.attach_load_balancer_to_subnets().load_balancer_name(name);
        region.api.write(SUBNETS, call.set_subnets(Some(subnets.iter().cloned().collect())).send()).await?;
        region.record(
            Read::ClassicLoadBalancers,
            changed::<FoundLoadBalancer>(name, move |it| it.subnets.extend(subnets.clone())),
        );
    }
    let leaving = leaving_ids(DETACH, is, observed, ids)?;
    if !leaving.is_empty() {
        let call = region.api.classic.detach_load_balancer_from_subnets().load_balancer_name(name);
        region.api.write(DETACH, call.set_subnets(Some(leaving.iter().cloned().collect())).send()).await?;
        region.record(
            Read::ClassicLoadBalancers,
            changed::<FoundLoadBalancer>(name, move |it| {
                it.subnets.retain(|subnet| !leaving.contains(subnet))
            }),
        );
    }
    Ok(())
}

/// AWS succeeds also when it is not there.
pub(crate) async fn delete(region: &Context, name: &str) -> Result<(), Failure> {
    let call = region.api.classic.delete_load_balancer().load_balancer_name(name);
    gone_is_done(region.api.write("elasticloadbalancing:DeleteLoadBalancer", call.send()).await.map(drop))?;
    region.state().known.memory_mut().attributes.remove(name);
    region.follow(Task::DeletingVpcs);
    region.record(Read::ClassicLoadBalancers, gone::<FoundLoadBalancer>(name));
    Ok(())
}

fn instances(ids: &[String]) -> Option<Vec<Instance>> {
    Some(ids.iter().map(|it| Instance::builder().instance_id(it).build()).collect())
}

pub(crate) async fn register(api: &Api, name: &str, ids: &[String]) -> Result<(), Failure> {
    let call = api
        .classic
        .register_instances_with_load_balancer()
        .load_balancer_name(name)
        .set_instances(instances(ids));
    api.write("elasticloadbalancing:RegisterInstancesWithLoadBalancer", call.send()).await.map(drop)
}

pub(crate) async fn deregister(api: &Api, name: &str, ids: &[String]) -> Result<(), Failure> {
    let call = api
        .classic
        .deregister_instances_from_load_balancer()
        .load_balancer_name(name)
        .set_instances(instances(ids));
    api.write("elasticloadbalancing:DeregisterInstancesFromLoadBalancer", call.send()).await.map(drop)
}

pub(crate) async fn tag(api: &Api, name: &str, tags: &Tags) -> Result<(), Failure> {
    const ACTION: &str = "elasticloadbalancing:AddTags";
    let all = tags
        .iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build())
        .collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|_| Failure::local(ACTION, "InvalidCall", "a tag has no key"))?;
    let call = api.classic.add_tags().load_balancer_names(name).set_tags(Some(all));
    api.write(ACTION, call.send()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_checks_are_read_as_they_are_written() {
        let check = |target: &str| {
            let it = AwsHealthCheck::builder()
                .target(target)
                .interval(5)
                .timeout(4)
                .healthy_threshold(2)
                .unhealthy_threshold(6);
            health(&it.build().unwrap()).map(|it| (it.protocol, it.port, it.path))
        };
        assert_eq!(check("TCP:6443"), Some(("TCP".into(), 6443, None)));
        assert_eq!(check("HTTPS:6443/readyz"), Some(("HTTPS".into(), 6443, Some("/readyz".into()))));
        assert_eq!(check("nonsense"), None);
    }
}
