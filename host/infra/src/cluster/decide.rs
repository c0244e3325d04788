//! What can be done now for a cluster.

use std::collections::BTreeSet;

use crds::AWSCluster;
use crds::names::{ID_ANNOTATION, ID_TAG, OWNED, cluster_tag};

use super::delete::delete;
use super::desired::desired;
use super::interest::interest;
use super::plan_input::make_plan;
use super::{Decision, Input, Layout, deleting, egress, endpoint, name, unmanaged};
use crate::PersistedState;
use crate::observe::{self, Scope};
use crate::token::derive;
use model::{
    Desired, Interest, Key, LoadBalancer, Observed, Owner, Plan, Read, Resource, State, Subnet, Vpc,
};

/// Decides what to do for a cluster now.
pub fn decide(input: &Input<'_>) -> Decision {
    let mut record = input.record.clone();
    if record.id.is_empty() {
        record.id = derive(input.random, "id");
    }
    let unread = input.unread();
    if !unread.is_empty() {
        let routes = input.unread_routes().filter(|_| unread.len() == 1);
        let reading = routes
            .map_or_else(|| "reading AWS".to_owned(), |vpc| format!("reading the route tables of {vpc}"));
        let interest = Interest { unread, ..interest(input, &Plan::default()) };
        return Decision { interest, ..Decision::waiting(input.record, Vpc::key(observe::MAIN), &reading) };
    }
    let layout = Layout::of(input.cluster, input.aws_cluster, &mut record, input.snapshot, input.random);
    let scope = match &layout {
        Ok(layout) => layout.scope(input.cluster, input.aws_cluster, &record),
        Err(_) => Layout::default().scope(input.cluster, input.aws_cluster, &record),
    };
    let observed = observe::cluster(input.snapshot, &scope);
    record_created(&mut record, input, &observed);
    let keeps_all = deleting(input.aws_cluster) && !input.machines.is_empty();
    if let Some(why) = disowned(&scope, &observed).filter(|_| !keeps_all) {
        let plan = Plan { blocked: vec![(Vpc::key(observe::MAIN), why)], ..Plan::default() };
        return Decision { interest: interest(input, &plan), plan, record, observed, ..Decision::default() };
    }
    if deleting(input.aws_cluster) {
        return delete(input, record, observed);
    }
    if let Ok(layout) = &layout
        && layout.not_adopted
    {
        let plan = Plan { blocked: layout.blocked.clone(), ..Plan::default() };
        return Decision {
            interest: interest(input, &plan),
            plan,
            record: input.record.clone(),
            observed,
            ..Decision::default()
        };
    }
    match layout.and_then(|layout| Ok((desired(input, &layout, &record.id, &observed)?, layout))) {
        Ok((desired, layout)) => proceed(input, layout, record, observed, desired),
        Err(invalid) => {
            let (interest, invalid) = (interest(input, &Plan::default()), Some(invalid));
            let record = input.record.clone();
            Decision { record, observed, invalid, interest, ..Decision::default() }
        }
    }
}

/// Decides what to do for a cluster that is to be there, and whose spec can be carried out.
fn proceed(
    input: &Input<'_>,
    layout: Layout,
    record: PersistedState,
    observed: Observed,
    desired: Desired,
) -> Decision {
    let mut with_given = record.clone();
    with_given.ids.extend(layout.given());
    // What the spec names is never made, also as long as no read shows it.
    let given =
        unmanaged::given(input.aws_cluster, &record).map(|id| (Vpc::key(observe::MAIN), id.to_owned()));
    with_given.ids.extend(given);
    let mut plan = make_plan(input, &desired, &observed, &with_given, None);
    egress::wait(input, &layout, &mut plan);
    plan.blocked.extend(layout.blocked.iter().cloned());
    name_load_balancer(input.aws_cluster, &observed, &mut plan);
    let record = record.before(&plan, input.now, input.snapshot.since);
    let nat_gateways_of = egress::of_vpc(input.aws_cluster, &layout).map(str::to_owned).into_iter().collect();
    let mut interest = Interest { nat_gateways_of, ..interest(input, &plan) };
    let unlisted: BTreeSet<Key> =
        layout.subnets.iter().filter(|it| it.unlisted).map(|it| Subnet::key(&it.name)).collect();
    if !layout.examined.is_empty() {
        interest.reads.insert(Read::Instances);
        plan.waiting.extend(
            layout.examined.iter().map(|key| (key.clone(), "making sure that nothing is in it".to_owned())),
        );
    }
    if let Some(vpc) = observed.get(&Vpc::key(observe::MAIN)).filter(|_| layout.looks_inside) {
        interest.interfaces_of.insert(vpc.id.clone());
        if layout.unread {
            plan.waiting.extend(unlisted.iter().map(|it| (it.clone(), "reading what is in it".to_owned())));
        }
    }
    let held = layout.held.into_iter().chain(endpoint::held(input, &observed)).collect();
    Decision { interest, plan, record, observed, desired, held, unlisted, invalid: None, finished: false }
}

/// Of a load balancer of somebody else's that the user named in the spec, the field is said.
fn name_load_balancer(aws_cluster: &AWSCluster, observed: &Observed, plan: &mut Plan) {
    let key = LoadBalancer::key(observe::API_SERVER);
    let name = aws_cluster.spec.control_plane_load_balancer.name.as_ref().filter(|it| !it.is_empty());
    let (Some(name), Some(Owner::OtherDriver(whose))) = (name, observed.get(&key).map(|it| &it.owner)) else {
        return;
    };
    for (_, reason) in plan.blocked.iter_mut().filter(|(it, _)| *it == key) {
        *reason = format!(
            "spec.controlPlaneLoadBalancer.name: {name} has its place and belongs to {whose}; using an existing load balancer is not \
             supported: create the cluster again with another name, or with loadBalancerType: disabled and spec.controlPlaneEndpoint"
        );
    }
}

/// Why nothing can be made or removed in a VPC of ours that does not carry our tags any more: whose it is
/// now, nobody can tell.
fn disowned(scope: &Scope, observed: &Observed) -> Option<String> {
    let vpc =
        observed.get(&Vpc::key(observe::MAIN)).filter(|it| it.owner == Owner::User && !scope.vpc_given)?;
    let tag = cluster_tag(&scope.cluster);
    let id = format!("{ID_TAG} with the value of the AWSCluster's annotation {ID_ANNOTATION}");
    Some(format!(
        "{} lost the tags that say whose it is; tag it {tag}={OWNED} and {id}, or remove it",
        vpc.id
    ))
}

/// What is never made again once it was there, and where the API is.
fn record_created(record: &mut PersistedState, input: &Input<'_>, observed: &Observed) {
    let there = |id: &&str| observed.get(&Vpc::key(observe::MAIN)).is_some_and(|it| it.id == *id);
    let given = unmanaged::given(input.aws_cluster, record).filter(there);
    if let Some(given) = given.filter(|_| !deleting(input.aws_cluster)) {
        record.ids.insert(Vpc::key(observe::MAIN), given.to_owned());
    }
    let balancer = LoadBalancer::key(observe::API_SERVER);
    for key in [Vpc::key(observe::MAIN), balancer.clone()] {
        let resource = observed.get(&key).filter(|it| it.owner == Owner::Mine && it.others.is_empty());
        if let Some(resource) = resource.filter(|it| it.state == State::Ready) {
            record.remember(key, &resource.id, input.now, input.snapshot.since);
        }
    }
    let Some(resource) =
        observed.get(&balancer).filter(|it| it.owner == Owner::Mine && it.state == State::Ready)
    else {
        return;
    };
    let found = input
        .snapshot
        .load_balancers
        .iter()
        .find(|it| it.id == resource.id)
        .filter(|it| !it.dns_name.is_empty());
    let made = !record.intents.contains_key(&balancer)
        || matches!(&resource.is, Resource::LoadBalancer(it) if it.listener.is_some());
    if let Some(found) = found.filter(|_| made && record.endpoint.is_none() && !deleting(input.aws_cluster)) {
        record.endpoint = Some((found.dns_name.clone(), name::api_server_port(input.cluster)));
    }
}
