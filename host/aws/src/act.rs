//! Carries out one action: finds the kind it is about, and says how it ended. It chooses nothing.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::Tag;
use model::{Action, Ids, Key, Kind, Outcome, Read, Resource, Tags};
use tokio::sync::Semaphore;

use crate::api::Api;
use crate::errors::Failure;
use crate::kinds::load_balancer::{self, classic, network};
use crate::kinds::{
    Once, by_id, ec2_tags, elastic_ip, instance, internet_gateway, nat_gateway, network_interface,
    route_table, secret, security_group, security_group_rules, subnet, target, vpc,
};
use crate::now;
use crate::pending_writes::{Found, answered, changed};
use crate::region::Inner;
use crate::schedule::Task;

pub(crate) async fn act(region: &Inner, who: &str, action: &Action) -> (Key, Outcome) {
    let key = action.key();
    let permit = match queue(region, &key, action) {
        Some(queue) => queue.acquire().await.ok(),
        None => None,
    };
    let result = match carry_out(region, action).await {
        Err(failure) if failure.is_forbidden() => unless_gone(region, &key, action, failure).await,
        other => other,
    };
    drop(permit);
    let outcome = match result {
        Ok(()) => {
            if matches!(action, Action::Delete { .. }) {
                region.follow(Task::DeletingVpcs);
            }
            Outcome::Done
        }
        Err(failure) => {
            tracing::info!(who, %key, code = failure.code, error = %failure, "action failed");
            failure.outcome()
        }
    };
    if let (Outcome::Unknown { .. }, Some(read)) = (&outcome, read_of(&key, action)) {
        region.doubt(read);
    }
    (key, outcome)
}

/// Where an action waits for its turn.
fn queue<'a>(region: &'a Inner, key: &Key, action: &Action) -> Option<&'a Semaphore> {
    match action {
        // What is put together with others waits for them: it must not keep others out meanwhile.
        _ if key.kind == Kind::Target => None,
        Action::Delete { is: Resource::Instance(_), .. } => None,
        Action::Create { client_token: None, until: Some(_), .. } => Some(&region.urgent),
        _ => Some(&region.actions),
    }
}

async fn carry_out(region: &Inner, action: &Action) -> Result<(), Failure> {
    match action {
        Action::Create { is, tags, ids, client_token, until } => {
            let once = Once { token: client_token.as_deref(), until: *until };
            create(region, is, tags, ids, once).await
        }
        Action::Update { id, is, seen, tags, ids } => update(region, id, is, seen, tags, ids).await,
        Action::Tag { key, id, parts, tags, untag } => tag(region, key, id, parts, tags, untag).await,
        Action::Delete { id, is, ids } => delete(region, id, is, ids).await,
        Action::Confirm { key, id } => confirm(region, key, id).await,
    }
}

async fn create(
    region: &Inner,
    is: &Resource,
    tags: &Tags,
    ids: &Ids,
    once: Once<'_>,
) -> Result<(), Failure> {
    match is {
        Resource::Vpc(it) => vpc::create(region, it, tags, once).await,
        Resource::Subnet(it) => subnet::create(region, it, tags, ids).await,
        Resource::InternetGateway(_) => internet_gateway::create(region, tags, once).await,
        Resource::ElasticIp(_) => elastic_ip::create(region, tags, once).await,
        Resource::NatGateway(it) => nat_gateway::create(region, it, tags, ids, once).await,
        Resource::RouteTable(it) => route_table::create(region, it, tags, ids, once).await,
        Resource::SecurityGroup(it) => security_group::create(region, it, tags, ids).await,
        Resource::LoadBalancer(it) => load_balancer::create(region, it, tags, ids).await,
        Resource::Secret(it) => secret::create(region, it, tags).await,
        Resource::Instance(it) => instance::create(region, it, tags, ids, once).await,
        Resource::Target(it) => target::create(region, it, ids).await,
        Resource::SecurityGroupRules(_) | Resource::NetworkInterface(_) => Err(senseless("create", is)),
    }
}

async fn update(
    region: &Inner,
    id: &str,
    is: &Resource,
    seen: &Resource,
    tags: &Tags,
    ids: &Ids,
) -> Result<(), Failure> {
    match (is, seen) {
        (Resource::Vpc(it), _) => vpc::update(region, id, it).await,
        (Resource::Subnet(it), _) => subnet::update(region, id, it).await,
        (Resource::InternetGateway(it), _) => internet_gateway::update(region, id, it, ids).await,
        (Resource::RouteTable(it), Resource::RouteTable(seen)) => {
            route_table::update(region, id, it, seen, ids).await
        }
        (Resource::SecurityGroupRules(it), Resource::SecurityGroupRules(seen)) => {
            security_group_rules::update(region, id, it, seen, ids).await
        }
        (Resource::LoadBalancer(it), Resource::LoadBalancer(seen)) => {
            load_balancer::update(region, id, it, seen, tags, ids).await
        }
        (Resource::Instance(it), _) => instance::update(region, id, it, ids).await,
        _ => Err(senseless("update", is)),
    }
}

async fn delete(region: &Inner, id: &str, is: &Resource, ids: &Ids) -> Result<(), Failure> {
    match is {
        Resource::Vpc(_) => vpc::delete(region, id).await,
        Resource::Subnet(_) => subnet::delete(region, id).await,
        Resource::InternetGateway(it) => internet_gateway::delete(region, id, it, ids).await,
        Resource::ElasticIp(_) => elastic_ip::delete(region, id).await,
        Resource::NatGateway(_) => nat_gateway::delete(region, id).await,
        Resource::RouteTable(_) => route_table::delete(region, id).await,
        Resource::SecurityGroup(_) => security_group::delete(region, id).await,
        Resource::SecurityGroupRules(it) => security_group_rules::delete(region, id, it, ids).await,
        Resource::LoadBalancer(it) => load_balancer::delete(region, id, it).await,
        Resource::NetworkInterface(_) => network_interface::delete(region, id).await,
        Resource::Secret(it) => secret::delete(region, it).await,
        Resource::Instance(_) => instance::delete(region, id).await,
        Resource::Target(it) => target::delete(region, it, ids).await,
    }
}

/// What a policy allows by its tags may be forbidden once it is gone: then it has none. Whoever may see it
/// may also see that.
async fn unless_gone(region: &Inner, key: &Key, action: &Action, failure: Failure) -> Result<(), Failure> {
    let Action::Delete { id, .. } = action else { return Err(failure) };
    if region.is_young(id) || confirm(region, key, id).await.is_err() {
        return Err(failure);
    }
    let is_gone = region.state().world.base().snapshot.absent.contains_key(id);
    if !is_gone {
        return Err(failure);
    }
    if let Some(read) = read_of(key, action) {
        region.doubt(read);
    }
    Ok(())
}

fn senseless(verb: &str, is: &Resource) -> Failure {
    Failure::local("plan", "InvalidCall", format!("there is no way to {verb} {}", is.key()))
}

/// Adds tags, and takes tags away from what is in EC2; only what is not has calls of its own for that.
async fn tag(
    region: &Inner,
    key: &Key,
    id: &str,
    parts: &BTreeSet<String>,
    tags: &Tags,
    untag: &BTreeSet<String>,
) -> Result<(), Failure> {
    match key.kind {
        Kind::LoadBalancer if id.starts_with("arn:") => network::tag(&region.api, id, tags).await?,
        Kind::LoadBalancer => classic::tag(&region.api, id, tags).await?,
        _ => {
            tag_in_ec2(
                &region.api,
                std::iter::once(id.to_owned()).chain(parts.iter().cloned()).collect(),
                tags,
                untag,
            )
            .await?
        }
    }
    macro_rules! tagged {
        ($Found:ident, $read:ident) => {{
            let (tags, untag) = (tags.clone(), untag.clone());
            let change = move |it: &mut model::$Found| {
                it.tags.extend(tags.clone());
                it.tags.retain(|key, _| !untag.contains(key));
            };
            region.record(Read::$read, changed(id, change));
        }};
    }
    match key.kind {
        Kind::Vpc => tagged!(FoundVpc, Vpcs),
        Kind::Subnet => tagged!(FoundSubnet, Subnets),
        Kind::InternetGateway => tagged!(FoundInternetGateway, InternetGateways),
        Kind::ElasticIp => tagged!(FoundAddress, Addresses),
        Kind::NatGateway => tagged!(FoundNatGateway, NatGateways),
        Kind::RouteTable => tagged!(FoundRouteTable, RouteTables),
        Kind::SecurityGroup => tagged!(FoundSecurityGroup, SecurityGroups),
        Kind::Instance => tagged!(FoundInstance, Instances),
        Kind::LoadBalancer => {
            // No sweep reads their tags, so what was read once is kept right here.
            for deleting in region.state().world.base_mut().deleting.values_mut() {
                deleting.tags.get_mut(id).into_iter().for_each(|it| it.extend(tags.clone()));
            }
            let read = if id.starts_with("arn:") { Read::LoadBalancers } else { Read::ClassicLoadBalancers };
            let tags = tags.clone();
            region.record(
                read,
                changed::<model::FoundLoadBalancer>(id, move |it| {
                    it.tags.iter_mut().for_each(|it| it.extend(tags.clone()))
                }),
            );
        }
        _ => {}
    }
    Ok(())
}

async fn tag_in_ec2(
    api: &Api,
    resources: Vec<String>,
    tags: &Tags,
    untag: &BTreeSet<String>,
) -> Result<(), Failure> {
    if !tags.is_empty() {
        let call =
            api.ec2.create_tags().set_resources(Some(resources.clone())).set_tags(Some(ec2_tags(tags)));
        api.write("ec2:CreateTags", call.send()).await?;
    }
    if !untag.is_empty() {
        // Without a value: whatever it is.
        let keys = untag.iter().map(|it| Tag::builder().key(it).build()).collect();
        let call = api.ec2.delete_tags().set_resources(Some(resources)).set_tags(Some(keys));
        api.write("ec2:DeleteTags", call.send()).await?;
    }
    Ok(())
}

/// Reads one thing by its id: from then on the snapshot shows it, or that it is absent.
async fn confirm(region: &Inner, key: &Key, id: &str) -> Result<(), Failure> {
    macro_rules! found {
        ($module:ident, $read:ident) => {{
            let all = $module::describe(&region.api, vec![by_id(Read::$read, &[id.to_owned()])]).await?;
            show(region, id, all.into_iter().next())
        }};
    }
    match key.kind {
        Kind::Vpc => found!(vpc, Vpcs),
        Kind::Subnet => found!(subnet, Subnets),
        Kind::InternetGateway => found!(internet_gateway, InternetGateways),
        Kind::ElasticIp => found!(elastic_ip, Addresses),
        Kind::NatGateway => found!(nat_gateway, NatGateways),
        Kind::RouteTable => found!(route_table, RouteTables),
        Kind::SecurityGroup => found!(security_group, SecurityGroups),
        Kind::Instance => found!(instance, Instances),
        Kind::LoadBalancer if id.starts_with("arn:") => {
            show(region, id, network::describe_one(&region.api, id).await?)
        }
        Kind::LoadBalancer => show(region, id, classic::describe_one(&region.api, id).await?),
        Kind::SecurityGroupRules | Kind::NetworkInterface | Kind::Secret | Kind::Target => {
            return Err(Failure::local("plan", "InvalidCall", format!("there is no way to look for {key}")));
        }
    }
    Ok(())
}

fn show<T: Found>(region: &Inner, id: &str, found: Option<T>) {
    match found {
        Some(it) => {
            region.state().world.base_mut().snapshot.absent.remove(id);
            region.record(it.read(), answered(it));
        }
        None => {
            region.state().world.base_mut().snapshot.absent.insert(id.to_owned(), now());
        }
    }
}

/// What shows how an action ended. Nothing does for a secret.
fn read_of(key: &Key, action: &Action) -> Option<Read> {
    let network = match action {
        Action::Create { is: Resource::LoadBalancer(it), .. } => it.kind != model::LoadBalancerKind::Classic,
        Action::Update { id, .. } | Action::Delete { id, .. } | Action::Tag { id, .. } => {
            id.starts_with("arn:")
        }
        _ => false,
    };
    Some(match key.kind {
        Kind::Vpc => Read::Vpcs,
        Kind::Subnet => Read::Subnets,
        Kind::InternetGateway => Read::InternetGateways,
        Kind::ElasticIp => Read::Addresses,
        Kind::NatGateway => Read::NatGateways,
        Kind::RouteTable => Read::RouteTables,
        Kind::SecurityGroup | Kind::SecurityGroupRules | Kind::NetworkInterface => Read::SecurityGroups,
        Kind::LoadBalancer if network => Read::LoadBalancers,
        Kind::Target if network => Read::TargetGroups,
        Kind::LoadBalancer | Kind::Target => Read::ClassicLoadBalancers,
        Kind::Instance => Read::Instances,
        Kind::Secret => return None,
    })
}
