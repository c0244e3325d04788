//! What can be done now for a machine.

use std::collections::BTreeSet;

use crds::conditions::reason;
use model::condition::timestamp;
use model::{
    Action, Desired, FoundInstance, Instance, Interest, Invalid, LoadBalancer, Observed, Plan, Read,
    Resource, Secret, Subnet, Target,
};

use super::health::{failure, has_node, is_suspect};
use super::observed_cluster::ObservedCluster;
use super::plan_input::make_plan;
use super::{Decision, Input, Wait, desired, identity, name, placement, preconditions, user_data};
use crate::PersistedState;
use crate::cluster::{Layout, is_external, unmanaged};
use crate::observe::{self, Identity, Named};
use crate::token::derive;

/// Decides what to do for a machine now.
pub fn decide(input: &Input<'_>) -> Decision {
    decide_in(input, &input.observe_cluster())
}

/// Decides what to do for a machine now. `cluster`: its own, as the input's snapshot shows it.
pub fn decide_in(input: &Input<'_>, cluster: &ObservedCluster) -> Decision {
    let identity = identity(input);
    let names = || identity.machine_names.iter().chain(&identity.former_names);
    let is_own = |prefix: &str| {
        identity.ids.iter().any(|id| names().any(|name| user_data::is_prefix_of(prefix, id, name)))
    };
    match &input.record.secret {
        Some((prefix, _)) if !is_own(prefix) => {
            // Somebody wrote it there, or an operator or provider before: neither read nor removed. An
            // instance that boots removes its own.
            let record = PersistedState { secret: None, ..input.record.clone() };
            let mut res = decide_known(&Input { record: &record, ..clone(input) }, cluster);
            if res.record.secret.is_none() {
                res.record.secret.clone_from(&input.record.secret);
            }
            res
        }
        _ => decide_known(input, cluster),
    }
}

/// Decides for a machine whose record names nothing of another one.
fn decide_known(input: &Input<'_>, cluster: &ObservedCluster) -> Decision {
    let deleting = input.aws_machine.metadata.deletion_timestamp.is_some();
    let unread = input.unread();
    if !unread.is_empty() {
        return Decision {
            interest: Interest { unread, ..Interest::default() },
            ..wait(input, reason::NOT_READY, "reading AWS")
        };
    }
    let name = name(input.aws_machine);
    let mut record = input.record.clone();
    record.id = id(input);
    let (found, foreign) = match identity(input).instance(input.snapshot, &record) {
        Named::Nothing => (None, None),
        Named::Mine(found) => (Some(found.clone()), None),
        Named::Foreign(found, why) => (None, Some(format!("{} is not this machine's: {why}", found.id))),
    };
    match (&found, &foreign) {
        (Some(found), _) => adopt(&mut record, &name, found, input),
        // Nothing follows from it, neither that the machine was there nor that it is lost.
        (None, Some(_)) => drop(record.ids.remove(&Instance::key(&name))),
        (None, None) => (),
    }
    let lost = failure(input, &record, &name, found.as_ref());
    let up_or_gone = has_node(input) || deleting || lost.is_some();
    let mut observed =
        observe::machine(input.snapshot, &cluster.observed, &record, &name, found.as_ref(), !up_or_gone);
    observe::looked_up(&mut observed, input.answers);
    let base = Decision {
        observed: own(&observed),
        instance: found.clone(),
        foreign,
        ..settled(input, record.clone())
    };
    if deleting {
        return delete(input, base, &record, &observed);
    }
    if let Some(message) = &base.foreign {
        let message = format!(
            "{message}; nothing is done with it, and it stays. Give it back the tags that it had, or delete the Machine to replace it"
        );
        return Decision { waits: Some(Wait { reason: reason::NOT_OWNED, message }), ..base };
    }
    if let Some(failed) = lost {
        let plan = make_plan(input, &Desired::new(), &observed, &record, found.as_ref(), None);
        return conclude(Decision { failed: Some(failed), ..base }, plan, &record, Desired::new(), input);
    }
    let begun = found.is_some()
        || record.ids.contains_key(&Instance::key(&name))
        || record.intents.contains_key(&Instance::key(&name));
    let interest =
        unmanaged::interest(input.cluster, input.aws_cluster, input.cluster_record, input.snapshot);
    let base = if begun { base } else { Decision { interest, ..base } };
    match preconditions::unmet(input).filter(|_| !begun) {
        Some(waits) => Decision { waits: Some(waits), ..base },
        None => proceed(input, base, cluster.layout.clone(), record, &observed, begun),
    }
}

/// Decides what to do for a machine that is to be there. `begun`: something of it was made or tried already.
fn proceed(
    input: &Input<'_>,
    base: Decision,
    layout: Result<Layout, Invalid>,
    mut record: PersistedState,
    observed: &Observed,
    begun: bool,
) -> Decision {
    let (name, found) = (name(input.aws_machine), base.instance.clone());
    let with_record = Input { record: &record, ..clone(input) };
    let found_here = desired::Found { status: found.as_ref().map(|it| &it.status), node: has_node(input) };
    let desired = layout
        .and_then(|layout| Ok((desired::desired(&with_record, &layout, observed, &found_here)?, layout)));
    let (desired, layout) = match desired {
        Ok(it) => it,
        Err(invalid) => return Decision { invalid: Some(invalid), ..base },
    };
    let mut plan = make_plan(input, &desired.resources, observed, &record, found.as_ref(), None);
    placement::wait_for_way_out(&mut plan, &Instance::key(&name), &layout, observed);
    // Of the load balancer of somebody else, not all subnets may be known.
    if !is_external(input.aws_cluster) {
        block_uncovered_target(&mut plan, &name, observed, found.as_ref());
    }
    if plan.open.contains_key(&Secret::key(&name)) || desired.secret.is_some() {
        record.secret = desired.secret;
    }
    if let Some(applied) = desired.applied.filter(|_| begun || plan.open.contains_key(&Instance::key(&name)))
    {
        record.applied = applied;
    }
    let base = Decision {
        needs_bootstrap: desired.needs_bootstrap,
        needs_image: desired.needs_image,
        lookups: desired.lookups,
        ..base
    };
    let mut res = conclude(base, plan, &record, desired.resources, input);
    if is_suspect(input) {
        res.interest.reads.insert(Read::Instances);
    }
    res
}

fn clone<'a>(input: &Input<'a>) -> Input<'a> {
    Input { hold: input.hold.clone(), ..*input }
}

/// The random id that the machine's instance carries: the AWSCluster's, what was written down while that was
/// there, or, where somebody else looks after the cluster, one of the machine's own. What was begun without
/// one goes on without.
pub(super) fn id(input: &Input<'_>) -> String {
    let is_new = input.record.intents.is_empty() && input.record.ids.is_empty();
    match (&input.cluster_record.id, &input.record.id) {
        (cluster, _) if !cluster.is_empty() => cluster.clone(),
        (_, own) if !own.is_empty() || !is_new => own.clone(),
        _ => derive(input.random, "machine"),
    }
}

/// What the machine's instance has to say of itself.
pub(super) fn identity(input: &Input<'_>) -> Identity {
    let ids = vec![id(input), input.record.id.clone()];
    identity::identity(input.cluster, input.aws_cluster, Some(input.machine), input.aws_machine, ids)
}

/// A decision with what is to be on the object: an id only once there is something that carries it.
fn settled(input: &Input<'_>, mut record: PersistedState) -> Decision {
    if record.ids.is_empty() && record.intents.is_empty() && record.secret.is_none() {
        record.id.clone_from(&input.record.id);
    }
    Decision { record, ..Decision::default() }
}

/// The instance was made: it is this machine's for good.
fn adopt(record: &mut PersistedState, name: &str, found: &FoundInstance, input: &Input<'_>) {
    record.intents.remove(&Instance::key(name));
    record.remember(Instance::key(name), &found.id, input.now, input.snapshot.since);
    if record.provider_id.is_none() && !found.status.zone.is_empty() {
        record.provider_id = Some(format!("aws:///{}/{}", found.status.zone, found.id));
    }
}

fn conclude(
    base: Decision,
    plan: Plan,
    record: &PersistedState,
    desired: Desired,
    input: &Input<'_>,
) -> Decision {
    let interest = Interest { reads: plan.awaits.clone(), ..base.interest };
    let record = settled(input, record.before(&plan, input.now, input.snapshot.since)).record;
    Decision { record, plan, desired, interest, ..base }
}

/// A load balancer forwards only to zones that it has a subnet in.
fn block_uncovered_target(plan: &mut Plan, name: &str, observed: &Observed, found: Option<&FoundInstance>) {
    let Some(Resource::LoadBalancer(balancer)) =
        observed.get(&LoadBalancer::key(observe::API_SERVER)).map(|it| &it.is)
    else {
        return;
    };
    let zone_of = |subnet: &String| match observed.get(&Subnet::key(subnet)).map(|it| &it.is) {
        Some(Resource::Subnet(it)) => Some(it.zone.clone()),
        _ => None,
    };
    // Of a subnet that is not seen, the zone is not known.
    let Some(zones) = balancer.subnets.iter().map(zone_of).collect::<Option<BTreeSet<String>>>() else {
        return;
    };
    let Some(zone) = found
        .map(|it| &it.status.zone)
        .filter(|zone| !zones.is_empty() && !zone.is_empty() && !zones.contains(*zone))
    else {
        return;
    };
    let key = Target::key(name);
    let is_desired = plan.actions.iter().any(|it| matches!(it, Action::Create { is, .. } if is.key() == key));
    if is_desired {
        plan.actions.retain(|it| it.key() != key);
        plan.blocked.push((
            key,
            format!("the load balancer has no subnet in {zone}; add a subnet of that zone to the cluster"),
        ));
    }
}

/// What a machine shows of what it sees: its own.
fn own(observed: &Observed) -> Observed {
    observed
        .iter()
        .filter(|(key, _)| observe::is_own(key))
        .map(|(key, it)| (key.clone(), it.clone()))
        .collect()
}

fn wait(input: &Input<'_>, reason: &'static str, message: &str) -> Decision {
    let waits = Some(Wait { reason, message: message.to_owned() });
    Decision { record: input.record.clone(), waits, ..Decision::default() }
}

fn delete(input: &Input<'_>, base: Decision, record: &PersistedState, observed: &Observed) -> Decision {
    if let Some(message) = &input.hold {
        return Decision {
            waits: Some(Wait { reason: reason::WAITING_FOR_PLUGINS, message: message.clone() }),
            ..base
        };
    }
    let stopped = input.aws_machine.metadata.deletion_timestamp.as_ref().map(timestamp);
    let plan = make_plan(input, &Desired::new(), observed, record, base.instance.as_ref(), stopped);
    let finished = plan.actions.is_empty() && plan.waiting.is_empty() && plan.blocked.is_empty();
    Decision { finished, ..conclude(base, plan, record, Desired::new(), input) }
}
