//! What the tasks of a poll read, each by itself: it ends with what is to be put into the base, or with what
//! failed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::try_join_all;
use model::{FoundLoadBalancer, LoadBalancerKind, Part, Read, Snapshot, Timestamp};

use crate::context::Context;
use crate::errors::Failure;
use crate::kinds::load_balancer::{classic, network, target_group};
use crate::kinds::{network_interface, security_group, zone};
use crate::region_state::{Base, DeletingVpc, Forward, Merge, TargetGroup};
use crate::schedule::{Due, Task};

/// How one reading ended: some of it well, perhaps.
pub(super) struct Ended {
    pub began: Timestamp,
    pub merges: Vec<Merge>,
    pub read: Vec<Task>,
    pub failed: Vec<(Task, Part, Failure)>,
}

impl Ended {
    pub fn new(began: Timestamp) -> Self {
        Ended { began, merges: Vec::new(), read: Vec::new(), failed: Vec::new() }
    }

    pub fn of(began: Timestamp, task: Task, part: Part, result: Result<Merge, Failure>) -> Self {
        let mut res = Ended::new(began);
        match result {
            Ok(merge) => {
                res.merges.push(merge);
                res.read.push(task);
            }
            Err(failure) => res.failed.push((task, part, failure)),
        }
        res
    }
}

pub(super) async fn zones(region: &Context) -> Result<Merge, Failure> {
    let zones = zone::describe(&region.api).await?;
    Ok(Box::new(move |base: &mut Base| base.snapshot.zones = zones))
}

/// Load balancers of the second version, target groups, what is registered there, and listeners where they
/// are not known yet.
pub(super) async fn load_balancers(region: &Context, due: &Due, began: Timestamp) -> Ended {
    const BALANCERS: Task = Task::Kind(Read::LoadBalancers);
    const GROUPS: Task = Task::Kind(Read::TargetGroups);
    let mut res = Ended::new(began);
    let mut balancers = region.state().known.base().load_balancers.clone();
    if due.tasks.contains(&BALANCERS) {
        match network::describe(&region.api).await {
            Ok(found) => balancers = found,
            Err(failure) => {
                let tried = [Read::LoadBalancers, Read::TargetGroups].into_iter().filter(|it| due.reads(*it));
                res.failed.extend(tried.map(|it| (Task::Kind(it), Part::Kind(it), failure.clone())));
                return res;
            }
        }
        let found = balancers.clone();
        res.merges.push(Box::new(move |base: &mut Base| base.load_balancers = found));
        res.read.push(BALANCERS);
    }
    match behind(region, due, &balancers).await {
        Ok(merge) => {
            res.merges.push(merge);
            res.read.extend(due.tasks.get(&GROUPS));
        }
        Err(failure) => res.failed.push((GROUPS, Part::Kind(Read::TargetGroups), failure)),
    }
    res
}

/// What these load balancers forward to.
async fn behind(region: &Context, due: &Due, balancers: &[FoundLoadBalancer]) -> Result<Merge, Failure> {
    let (known_groups, known_listeners) = {
        let state = region.state();
        let base = state.known.base();
        (base.target_groups.clone(), base.listeners.clone())
    };
    // Nobody's groups: one call less for everyone without network load balancers.
    let some = balancers.iter().any(|it| it.kind == LoadBalancerKind::Network) || !due.slow;
    let groups = if !due.reads(Read::TargetGroups) {
        known_groups
    } else if some {
        target_groups(region, due, &known_groups).await?
    } else {
        Vec::new()
    };
    let listeners = listeners(region, balancers, &groups, known_listeners).await?;
    Ok(Box::new(move |base: &mut Base| {
        base.target_groups = groups;
        base.listeners = listeners;
    }))
}

async fn target_groups(
    region: &Context,
    due: &Due,
    known: &[TargetGroup],
) -> Result<Vec<TargetGroup>, Failure> {
    let mut groups = target_group::describe(&region.api).await?;
    for group in &mut groups {
        if let Some(known) = known.iter().find(|it| it.arn == group.arn) {
            (group.targets, group.is_stale) = (known.targets.clone(), known.is_stale);
        }
    }
    // One call each: not for those that are settled, but for the slow poll.
    let unsettled = groups.iter_mut().filter(|it| !it.load_balancers.is_empty()).filter(|group| {
        let written = || group.load_balancers.iter().any(|it| region.state().known.is_written(it));
        due.slow || group.targets.is_none() || group.is_stale || written()
    });
    try_join_all(unsettled.map(|group| async move {
        let read = own_fault(target_group::describe_targets(&region.api, &group.arn).await)?;
        group.is_stale = read.is_none();
        group.targets = read.or_else(|| group.targets.take());
        Ok(())
    }))
    .await?;
    Ok(groups)
}

/// What was read of one thing; `None` where it alone could not be, which keeps back none of the others.
fn own_fault<T>(read: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match read {
        Err(failure) if failure.is_general() => Err(failure),
        Err(failure) => {
            let code = failure.code.as_deref();
            tracing::warn!(code, error = %failure, "read failed; what an earlier one showed stays");
            Ok(None)
        }
        Ok(read) => Ok(Some(read)),
    }
}

/// A listener is only read when a target group of ours was attached by somebody else or before this process
/// began: as long as the group is attached, the listener is there. What could not be read is missing, and
/// tried again with the next read.
async fn listeners(
    region: &Context,
    balancers: &[FoundLoadBalancer],
    groups: &[TargetGroup],
    mut known: BTreeMap<String, Vec<Forward>>,
) -> Result<BTreeMap<String, Vec<Forward>>, Failure> {
    let attached = |arn: &str| {
        groups.iter().filter(|it| it.load_balancers.contains(arn)).map(|it| it.arn.clone()).collect()
    };
    for balancer in balancers.iter().filter(|it| it.kind == LoadBalancerKind::Network) {
        let attached: BTreeSet<String> = attached(&balancer.id);
        let mut forwards = known.remove(&balancer.id);
        forwards.iter_mut().for_each(|all| all.retain(|it| attached.contains(&it.target_group)));
        let is_known = |group: &String| forwards.iter().flatten().any(|it| it.target_group == *group);
        if !attached.iter().all(is_known) {
            let read = own_fault(target_group::describe_listeners(&region.api, &balancer.id).await)?;
            forwards = read.or(forwards.filter(|it| !it.is_empty()));
        } else {
            forwards.get_or_insert_default();
        }
        known.extend(forwards.map(|it| (balancer.id.clone(), it)));
    }
    known.retain(|arn, _| balancers.iter().any(|it| it.id == *arn));
    Ok(known)
}

/// What stands in the way of deletions. Where something of one VPC cannot be read, the others' is shown all
/// the same.
pub(super) async fn deleting_vpcs(region: &Context, vpcs: BTreeSet<String>, began: Timestamp) -> Ended {
    let snapshot: Arc<Snapshot> = region.snapshot();
    let balancers: Vec<&FoundLoadBalancer> =
        snapshot.load_balancers.iter().filter(|it| vpcs.contains(&it.vpc_id)).collect();
    let is_classic = |it: &FoundLoadBalancer| it.kind == LoadBalancerKind::Classic;
    let named = |classic: bool| {
        balancers.iter().filter(|it| is_classic(it) == classic).map(|it| it.id.clone()).collect()
    };
    let (names, arns): (Vec<String>, Vec<String>) = (named(true), named(false));
    let (interfaces, groups, classic_tags, tags) = futures::join!(
        network_interface::describe(&region.api, &vpcs),
        security_group::describe_in(&region.api, &vpcs),
        classic::describe_tags(&region.api, &names),
        network::describe_tags(&region.api, &arns),
    );
    let mut res = Ended::new(began);
    let mut found: BTreeMap<String, DeletingVpc> = BTreeMap::new();
    for vpc in &vpcs {
        let has = |classic: bool| balancers.iter().any(|it| it.vpc_id == *vpc && is_classic(it) == classic);
        let of_tags =
            [classic_tags.as_ref().err().filter(|_| has(true)), tags.as_ref().err().filter(|_| has(false))];
        let failure =
            [interfaces.as_ref().err(), groups.as_ref().err()].into_iter().chain(of_tags).flatten().next();
        if let Some(failure) = failure {
            res.failed.push((Task::DeletingVpcs, Part::DeletingVpc(vpc.clone()), failure.clone()));
            continue;
        }
        let all_tags = [&classic_tags, &tags].into_iter().flatten().flatten();
        let deleting = DeletingVpc {
            began,
            interfaces: interfaces.iter().flatten().filter(|it| it.vpc_id == *vpc).cloned().collect(),
            groups: groups.iter().flatten().filter(|it| it.vpc_id == *vpc).cloned().collect(),
            tags: all_tags.map(|(id, tags)| (id.clone(), tags.clone())).collect(),
        };
        found.insert(vpc.clone(), deleting);
    }
    if !found.is_empty() || vpcs.is_empty() {
        res.read.push(Task::DeletingVpcs);
    }
    res.merges.push(Box::new(move |base: &mut Base| base.deleting.extend(found)));
    res
}
