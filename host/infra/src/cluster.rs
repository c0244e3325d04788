//! The infrastructure of one cluster: what its AWSCluster asks for, as resources, and what can be done about
//! it now.

pub(crate) mod adopted;
mod copied;
mod desired;
pub(crate) mod egress;
mod external;
mod group;
mod layout;
mod load_balancer;
mod name;
mod network;
mod pause;
mod tag;
mod unlisted;
pub(crate) mod unmanaged;

use std::collections::BTreeSet;

use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::names::{ID_ANNOTATION, ID_TAG, OWNED, cluster_tag};

use crate::gc::Collected;
use crate::observe::{NETWORK, Scope};
use crate::token::derive;
use crate::{PersistedState, PlanInput, observe, plan, proven_from, trusted_from};
use model::{
    AddOnRule, Desired, FoundLoadBalancer, Interest, Invalid, Kind, LoadBalancer, LoadBalancerKind, Observed,
    Owner, Part, Plan, Read, SecurityGroupRules, Snapshot, State, Subnet, Timestamp, Vpc,
};

pub use copied::{copied, copied_from, dropped, dropped_message};
pub use desired::desired;
pub use external::is_external;
pub use layout::Layout;
pub(crate) use layout::load_balancer_kind;
pub use load_balancer::must_resolve;
pub use model::owner;
pub(crate) use name::cluster_name;
pub(crate) use pause::open_outcomes;
pub(crate) use tag::common;
pub(crate) use unlisted::name as subnet_name;

/// Seconds after which a load balancer that stands in the way is looked at again.
const LOOK_AGAIN: f64 = 30.0;

/// What the infrastructure of a cluster is decided from.
pub struct Input<'a> {
    pub cluster: &'a Cluster,
    pub aws_cluster: &'a AWSCluster,
    /// Names of the AWSMachines of the cluster that still exist; they matter when it is being deleted.
    pub machines: &'a [String],
    /// Rules that add-ons asked for; `None` as long as that is not known, and then nothing is revoked.
    pub rules: Option<&'a [AddOnRule]>,
    pub snapshot: &'a Snapshot,
    pub record: &'a PersistedState,
    pub now: Timestamp,
    /// At least 128 random bits, fresh for every pass.
    pub random: &'a str,
}

impl Input<'_> {
    /// What was never read and has to be before anything can be said.
    pub(crate) fn unread(&self) -> BTreeSet<Part> {
        let mut res = self.snapshot.lacks(NETWORK.into_iter().chain(load_balancer_reads(self.aws_cluster)));
        let chosen = !self.record.zones.is_empty()
            || !self.aws_cluster.spec.network.subnets.is_empty()
            || deleting(self.aws_cluster);
        if !chosen && self.snapshot.zones.is_empty() {
            res.insert(Part::Zones);
        }
        res.extend(self.unread_routes().map(|_| Part::Kind(Read::RouteTables)));
        res
    }

    /// The VPC whose route tables have to be read first. What is deleted does not depend on them.
    fn unread_routes(&self) -> Option<&str> {
        unmanaged::unread(self.cluster, self.aws_cluster, self.record, self.snapshot)
            .filter(|_| !deleting(self.aws_cluster))
    }
}

/// What shows a cluster's load balancer.
pub(crate) fn load_balancer_reads(aws_cluster: &AWSCluster) -> Vec<Read> {
    match load_balancer_kind(aws_cluster) {
        Some(LoadBalancerKind::Classic) => vec![Read::ClassicLoadBalancers],
        Some(LoadBalancerKind::Network) => vec![Read::LoadBalancers, Read::TargetGroups],
        _ => Vec::new(),
    }
}

/// What is to be done for a cluster.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub plan: Plan,
    /// To be on the object before the plan is carried out.
    pub record: PersistedState,
    pub observed: Observed,
    pub desired: Desired,
    /// What of the spec is not carried out, because something that lives would lose what it uses: of which
    /// kind, why, and what to do.
    pub held: Vec<(Kind, String)>,
    /// Subnets that are kept though the spec does not list them any more.
    pub unlisted: BTreeSet<model::Key>,
    /// The spec cannot be carried out.
    pub invalid: Option<Invalid>,
    pub interest: Interest,
    /// It is being deleted, and nothing of it is left.
    pub finished: bool,
}

/// Whether an AWSCluster is being deleted.
pub(crate) fn deleting(aws_cluster: &AWSCluster) -> bool {
    aws_cluster.metadata.deletion_timestamp.is_some()
}

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
        return Decision { interest, ..waiting(input.record, Vpc::key(observe::MAIN), &reading) };
    }
    let layout = Layout::of(input.cluster, input.aws_cluster, &mut record, input.snapshot, input.random);
    let scope = match &layout {
        Ok(layout) => layout.scope(input.cluster, input.aws_cluster, &record),
        Err(_) => Layout::default().scope(input.cluster, input.aws_cluster, &record),
    };
    let observed = observe::cluster(input.snapshot, &scope);
    remember(&mut record, input, &observed);
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
    let wanted = layout.and_then(|layout| Ok((desired(input, &layout, &record.id, &observed)?, layout)));
    let (desired, layout) = match wanted {
        Ok(wanted) => wanted,
        Err(invalid) => {
            let (interest, invalid) = (interest(input, &Plan::default()), Some(invalid));
            return Decision {
                record: input.record.clone(),
                observed,
                invalid,
                interest,
                ..Decision::default()
            };
        }
    };
    let mut with_given = record.clone();
    with_given.ids.extend(layout.given());
    // What the spec names is never made, also as long as no read shows it.
    let given =
        unmanaged::given(input.aws_cluster, &record).map(|id| (Vpc::key(observe::MAIN), id.to_owned()));
    with_given.ids.extend(given);
    let mut plan = ask(input, &desired, &observed, &with_given, None);
    egress::wait(input, &layout, &mut plan);
    plan.blocked.extend(layout.blocked.iter().cloned());
    name_load_balancer(input.aws_cluster, &observed, &mut plan);
    let record = record.before(&plan, input.now, input.snapshot.since);
    let nat_gateways_of = egress::of_vpc(input.aws_cluster, &layout).map(str::to_owned).into_iter().collect();
    let mut interest = Interest { nat_gateways_of, ..interest(input, &plan) };
    let unlisted: BTreeSet<model::Key> =
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
    let held = layout.held.into_iter().chain(load_balancer::held(input, &observed)).collect();
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

fn ask(
    input: &Input<'_>,
    desired: &Desired,
    observed: &Observed,
    record: &PersistedState,
    stopped: Option<Timestamp>,
) -> Plan {
    plan(&question(input, desired, observed, record, stopped))
}

fn question<'a>(
    input: &'a Input<'_>,
    desired: &'a Desired,
    observed: &'a Observed,
    record: &'a PersistedState,
    stopped: Option<Timestamp>,
) -> PlanInput<'a> {
    let (absent, read_at) = (&input.snapshot.absent, &input.snapshot.read_at);
    let (trusted_from, proven_from) =
        (trusted_from(input.snapshot, input.record), proven_from(input.snapshot, input.record));
    let (now, since, random) = (input.now, input.snapshot.since, input.random);
    PlanInput {
        desired,
        observed,
        record,
        absent,
        read_at,
        now,
        stopped,
        since,
        trusted_from,
        proven_from,
        random,
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

/// Nothing is wanted any more; but as long as machines are left, everything stays as it is.
fn delete(input: &Input<'_>, record: PersistedState, observed: Observed) -> Decision {
    if !input.machines.is_empty() {
        let mut names = input.machines.to_vec();
        names.sort();
        let mut res = waiting(&record, Vpc::key(observe::MAIN), &format!("used by {}", listed(&names)));
        (res.observed, res.interest) = (observed, interest(input, &Plan::default()));
        return res;
    }
    let mut interest = interest(input, &Plan::default());
    if let Err(invalid) = Collected::of(input.aws_cluster.metadata.annotations.as_ref()) {
        return Decision { record, observed, invalid: Some(invalid), interest, ..Decision::default() };
    }
    let vpc = observed.get(&Vpc::key(observe::MAIN)).filter(|it| it.owner == Owner::Mine);
    if let Some(vpc) = vpc {
        interest.deleting_vpcs.insert(vpc.id.clone());
        // One that a user put there carries no cluster's tag, and holds its subnet.
        interest.nat_gateways_of.insert(vpc.id.clone());
        if !input.snapshot.deleting_vpcs_read.contains_key(&vpc.id) {
            let res = waiting(&record, Vpc::key(observe::MAIN), "reading what is in it");
            return Decision { observed, interest, ..res };
        }
    }
    let stopped = input.aws_cluster.metadata.deletion_timestamp.as_ref().map(|it| it.0.as_second() as f64);
    let mut plan = ask(input, &Desired::new(), &observed, &record, stopped);
    make_sure(&mut plan, input);
    if let Some(vpc) = vpc {
        look_again(&mut plan, input, &vpc.id);
    }
    let finished = plan.actions.is_empty() && plan.waiting.is_empty() && plan.blocked.is_empty();
    interest.reads = plan.awaits.clone();
    let record = record.before(&plan, input.now, input.snapshot.since);
    Decision { plan, record, observed, interest, finished, ..Decision::default() }
}

/// Load balancers and NAT gateways of others that stand in the way go at some time, and nobody tells when.
fn look_again(plan: &mut Plan, input: &Input<'_>, vpc_id: &str) {
    let balancer = |classic: bool| {
        let of_kind = |it: &FoundLoadBalancer| (it.kind == LoadBalancerKind::Classic) == classic;
        input.snapshot.load_balancers.iter().any(|it| it.vpc_id == vpc_id && of_kind(it))
    };
    let nat_gateway = input.snapshot.nat_gateways.iter().any(|it| it.vpc_id == vpc_id);
    let kinds = [
        (Read::ClassicLoadBalancers, balancer(true)),
        (Read::LoadBalancers, balancer(false)),
        (Read::NatGateways, nat_gateway),
    ];
    for (read, is_there) in kinds.into_iter().filter(|_| !plan.blocked.is_empty()) {
        let is_old = input.snapshot.read_at.get(&read).is_some_and(|began| input.now - began >= LOOK_AGAIN);
        if is_there && is_old {
            plan.awaits.insert(read);
        }
    }
}

/// What an earlier process made shortly before may not be seen yet, and then it would stay for ever.
fn make_sure(plan: &mut Plan, input: &Input<'_>) {
    let from = trusted_from(input.snapshot, input.record);
    let late: Vec<Read> =
        input.snapshot.read_at.iter().filter(|(_, began)| **began < from).map(|(read, _)| *read).collect();
    if plan.is_settled() && !late.is_empty() {
        plan.waiting.push((Vpc::key(observe::MAIN), "making sure that nothing is left".into()));
        plan.awaits.extend(late);
    }
}

/// What is never made again once it was there, and where the API is.
fn remember(record: &mut PersistedState, input: &Input<'_>, observed: &Observed) {
    let there = |id: &&str| observed.get(&Vpc::key(observe::MAIN)).is_some_and(|it| it.id == *id);
    let given = unmanaged::given(input.aws_cluster, record).filter(there);
    if let Some(given) = given.filter(|_| !deleting(input.aws_cluster)) {
        record.ids.insert(Vpc::key(observe::MAIN), given.to_owned());
    }
    let balancer = LoadBalancer::key(observe::API_SERVER);
    for key in [Vpc::key(observe::MAIN), balancer.clone()] {
        let seen = observed.get(&key).filter(|it| it.owner == Owner::Mine && it.others.is_empty());
        if let Some(seen) = seen.filter(|it| it.state == State::Ready) {
            record.remember(key, &seen.id, input.now, input.snapshot.since);
        }
    }
    let Some(seen) = observed.get(&balancer).filter(|it| it.owner == Owner::Mine && it.state == State::Ready)
    else {
        return;
    };
    let found =
        input.snapshot.load_balancers.iter().find(|it| it.id == seen.id).filter(|it| !it.dns_name.is_empty());
    let made = !record.intents.contains_key(&balancer)
        || matches!(&seen.is, model::Resource::LoadBalancer(it) if it.listener.is_some());
    if let Some(found) = found.filter(|_| made && record.endpoint.is_none() && !deleting(input.aws_cluster)) {
        record.endpoint = Some((found.dns_name.clone(), name::api_server_port(input.cluster)));
    }
}

fn waiting(record: &PersistedState, key: model::Key, reason: &str) -> Decision {
    let plan = Plan { waiting: vec![(key, reason.to_owned())], ..Plan::default() };
    Decision { plan, record: record.clone(), ..Decision::default() }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|it| format!("AWSMachine {it}")).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What has to be read for this cluster besides everything now and then.
fn interest(input: &Input<'_>, plan: &Plan) -> Interest {
    let network = &input.aws_cluster.spec.network;
    let mut res = unmanaged::interest(input.cluster, input.aws_cluster, input.record, input.snapshot);
    res.reads.extend(&plan.awaits);
    res.ids.insert(network.vpc.id.clone());
    res.ids.extend(network.subnets.iter().flat_map(layout::aws_ids).cloned());
    // Where its load balancer is, also in what the spec does not list any more: AWS takes no second subnet of
    // a zone.
    let balancer =
        input.record.ids.get(&LoadBalancer::key(observe::API_SERVER)).filter(|_| !network.vpc.id.is_empty());
    let found = balancer.and_then(|id| input.snapshot.load_balancers.iter().find(|it| it.id == *id));
    res.ids.extend(found.into_iter().flat_map(|it| it.subnets.iter().cloned()));
    res.ids.retain(|it| !it.is_empty());
    res
}

/// Whether the groups let in what add-ons asked for, so that these can be installed.
pub fn groups_have_rules(decision: &Decision, rules: &[AddOnRule]) -> bool {
    rules.iter().all(|it| {
        match decision.observed.get(&SecurityGroupRules::key(&it.group)).map(|seen| &seen.is) {
            Some(model::Resource::SecurityGroupRules(seen)) => {
                seen.rules.iter().any(|rule| rule.same_traffic(&it.rule))
            }
            _ => false,
        }
    })
}
