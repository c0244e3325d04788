//! Reads a region, over and over: what the schedule says is due, all of it at once, and shown only when every page of everything asked
//! for was read. It changes nothing in AWS.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::try_join_all;
use plan::{FoundLoadBalancer, LoadBalancerKind, Read, Snapshot};
use tokio::sync::Notify;

use crate::errors::Failure;
use crate::kinds::load_balancer::{classic, network, target_group};
use crate::kinds::{
    elastic_ip, instance, internet_gateway, nat_gateway, network_interface, route_table, security_group, selections, subnet, vpc, zone,
};
use crate::now;
use crate::region::Inner;
use crate::schedule::{Due, Task};
use crate::world::{Base, DeletingVpc, Forward, TargetGroup};

/// Puts what one read found into the base.
type Merge = Box<dyn FnOnce(&mut Base) + Send>;
type Reading<'a> = Pin<Box<dyn Future<Output = Result<Merge, Failure>> + Send + 'a>>;

/// Sweeps until the region is dropped.
pub(crate) async fn run(region: Weak<Inner>, wake: Arc<Notify>) {
    loop {
        let Some(inner) = region.upgrade() else { return };
        let (due, next) = {
            let state = inner.state();
            let awaited = state.awaited();
            (state.schedule.due(now(), &awaited), state.schedule.next(&awaited))
        };
        if !due.tasks.is_empty() {
            sweep(&inner, due).await;
            continue;
        }
        drop(inner);
        // A region that nobody uses any more is looked at now and then, to end with it.
        let wait = Duration::from_secs_f64((next - now()).clamp(0.001, 60.0));
        let _ = tokio::time::timeout(wait, wake.notified()).await;
    }
}

/// The kind of read that shows an id.
pub(crate) fn reads(id: &str) -> Option<Read> {
    Some(match id.split_once('-')?.0 {
        "vpc" => Read::Vpcs,
        "subnet" => Read::Subnets,
        "igw" => Read::InternetGateways,
        "nat" => Read::NatGateways,
        "eipalloc" => Read::Addresses,
        "rtb" => Read::RouteTables,
        "sg" => Read::SecurityGroups,
        "i" => Read::Instances,
        _ => return None,
    })
}

async fn sweep(inner: &Inner, due: Due) {
    let began = now();
    let merges = read_all(inner, &due).await;
    let problem = match merges {
        Ok(merges) => {
            let mut state = inner.state();
            for merge in merges {
                merge(state.world.base_mut());
            }
            let kinds: Vec<Read> = due.tasks.iter().filter_map(|it| if let Task::Kind(read) = it { Some(*read) } else { None }).collect();
            state.world.settle(&kinds, began);
            let deleting = state.deleting_vpcs();
            state.world.base_mut().deleting.retain(|vpc, _| deleting.contains(vpc));
            state.schedule.read(&due, began);
            None
        }
        Err(failure) => {
            tracing::warn!(code = failure.code, error = %failure, "sweep failed");
            inner.state().schedule.failed(now());
            Some(failure.problem())
        }
    };
    inner.publish(problem);
}

async fn read_all(inner: &Inner, due: &Due) -> Result<Vec<Merge>, Failure> {
    let (ids, deleting) = {
        let state = inner.state();
        (state.ids(), state.deleting_vpcs())
    };
    let mut readings: Vec<Reading<'_>> = Vec::new();
    for task in &due.tasks {
        match task {
            // These two need one another.
            Task::Kind(Read::LoadBalancers | Read::TargetGroups) => {}
            Task::Kind(read) => {
                let ids: Vec<String> = ids.iter().filter(|it| reads(it) == Some(*read)).cloned().collect();
                readings.push(Box::pin(kind(inner, *read, ids)));
            }
            Task::DeletingVpcs => readings.push(Box::pin(deleting_vpcs(inner, deleting.clone()))),
            Task::Zones => readings.push(Box::pin(async move {
                let zones = zone::describe(&inner.api).await?;
                Ok(Box::new(move |base: &mut Base| base.snapshot.zones = zones) as Merge)
            })),
        }
    }
    if due.tasks.contains(&Task::Kind(Read::LoadBalancers)) || due.tasks.contains(&Task::Kind(Read::TargetGroups)) {
        readings.push(Box::pin(load_balancers(inner, due)));
    }
    try_join_all(readings).await
}

async fn kind(inner: &Inner, read: Read, ids: Vec<String>) -> Result<Merge, Failure> {
    macro_rules! read {
        ($module:ident, $field:ident) => {{
            let found = $module::describe(&inner.api, selections(read, &ids)).await?;
            Ok(Box::new(move |base: &mut Base| base.snapshot.$field = found.into()))
        }};
    }
    match read {
        Read::Vpcs => read!(vpc, vpcs),
        Read::Subnets => read!(subnet, subnets),
        Read::InternetGateways => read!(internet_gateway, internet_gateways),
        Read::NatGateways => read!(nat_gateway, nat_gateways),
        Read::Addresses => read!(elastic_ip, addresses),
        Read::RouteTables => read!(route_table, route_tables),
        Read::SecurityGroups => read!(security_group, security_groups),
        Read::Instances => read!(instance, instances),
        Read::ClassicLoadBalancers => {
            let found = classic::describe(&inner.api).await?;
            Ok(Box::new(move |base: &mut Base| base.classic = found))
        }
        Read::LoadBalancers | Read::TargetGroups => load_balancers(inner, &Due::default()).await,
    }
}

/// Load balancers of the second version, target groups, what is registered there, and listeners where they are not known yet.
async fn load_balancers(inner: &Inner, due: &Due) -> Result<Merge, Failure> {
    let known = {
        let state = inner.state();
        let base = state.world.base();
        (base.load_balancers.clone(), base.target_groups.clone(), base.listeners.clone())
    };
    let balancers = match due.tasks.contains(&Task::Kind(Read::LoadBalancers)) {
        true => network::describe(&inner.api).await?,
        false => known.0,
    };
    // Nobody's groups: one call less for everyone without network load balancers.
    let some = balancers.iter().any(|it| it.kind == LoadBalancerKind::Network) || !due.slow;
    let groups = match due.tasks.contains(&Task::Kind(Read::TargetGroups)) {
        true if some => target_groups(inner, due, &known.1).await?,
        true => Vec::new(),
        false => known.1,
    };
    let listeners = listeners(inner, &balancers, &groups, known.2).await?;
    Ok(Box::new(move |base: &mut Base| {
        base.load_balancers = balancers;
        base.target_groups = groups;
        base.listeners = listeners;
    }))
}

async fn target_groups(inner: &Inner, due: &Due, known: &[TargetGroup]) -> Result<Vec<TargetGroup>, Failure> {
    let mut groups = target_group::describe(&inner.api).await?;
    for group in &mut groups {
        group.targets = known.iter().find(|it| it.arn == group.arn).and_then(|it| it.targets.clone());
    }
    // One call each: not for those that are settled, but for the slow sweep.
    let unsettled = groups.iter_mut().filter(|it| !it.load_balancers.is_empty()).filter(|group| {
        let written = || group.load_balancers.iter().any(|it| inner.state().world.is_written(it));
        due.slow || group.targets.is_none() || written()
    });
    try_join_all(unsettled.map(|group| async move {
        group.targets = Some(target_group::describe_targets(&inner.api, &group.arn).await?);
        Ok(())
    }))
    .await?;
    Ok(groups)
}

/// A listener is only read when a target group of ours was attached by somebody else or before this process began: as long as the
/// group is attached, the listener is there.
async fn listeners(
    inner: &Inner,
    balancers: &[FoundLoadBalancer],
    groups: &[TargetGroup],
    mut known: BTreeMap<String, Vec<Forward>>,
) -> Result<BTreeMap<String, Vec<Forward>>, Failure> {
    let attached = |arn: &str| groups.iter().filter(|it| it.load_balancers.contains(arn)).map(|it| it.arn.clone()).collect();
    for balancer in balancers.iter().filter(|it| it.kind == LoadBalancerKind::Network) {
        let attached: BTreeSet<String> = attached(&balancer.id);
        let forwards = known.entry(balancer.id.clone()).or_default();
        forwards.retain(|it| attached.contains(&it.target_group));
        if attached.iter().any(|group| !forwards.iter().any(|it| it.target_group == *group)) {
            *forwards = target_group::describe_listeners(&inner.api, &balancer.id).await?;
        }
    }
    known.retain(|arn, _| balancers.iter().any(|it| it.id == *arn));
    Ok(known)
}

async fn deleting_vpcs(inner: &Inner, vpcs: BTreeSet<String>) -> Result<Merge, Failure> {
    let began = now();
    let vpcs: Vec<String> = vpcs.into_iter().collect();
    let snapshot: Arc<Snapshot> = inner.snapshot();
    let balancers: Vec<&FoundLoadBalancer> = snapshot.load_balancers.iter().filter(|it| vpcs.contains(&it.vpc_id)).collect();
    let named = |kind: bool| balancers.iter().filter(|it| (it.kind == LoadBalancerKind::Classic) == kind).map(|it| it.id.clone()).collect();
    let (names, arns): (Vec<String>, Vec<String>) = (named(true), named(false));
    let (interfaces, groups, tags, more_tags) = futures::try_join!(
        network_interface::describe(&inner.api, &vpcs),
        security_group::describe_in(&inner.api, &vpcs),
        classic::describe_tags(&inner.api, &names),
        network::describe_tags(&inner.api, &arns),
    )?;
    let found: BTreeMap<String, DeletingVpc> = vpcs
        .iter()
        .map(|vpc| {
            let deleting = DeletingVpc {
                began,
                interfaces: interfaces.iter().filter(|it| it.vpc_id == *vpc).cloned().collect(),
                groups: groups.iter().filter(|it| it.vpc_id == *vpc).cloned().collect(),
                tags: tags.iter().chain(&more_tags).map(|(id, tags)| (id.clone(), tags.clone())).collect(),
            };
            (vpc.clone(), deleting)
        })
        .collect();
    Ok(Box::new(move |base: &mut Base| base.deleting.extend(found)))
}
