//! The status of an AWSCluster.

use std::collections::BTreeSet;

use crds::cluster::{
    AWSClusterStatus, LoadBalancerStatus, NetworkStatus, SecurityGroupStatus, SubnetStatus, VPCStatus,
};
use crds::conditions::cluster::{
    CLUSTER_SECURITY_GROUPS_READY, INTERNET_GATEWAY_READY, LOAD_BALANCER_READY, NAT_GATEWAYS_READY,
    ROUTE_TABLES_READY, SERVICE_ACCOUNT_ISSUER_READY, SUBNETS_READY, VPC_READY,
};
use crds::conditions::{PAUSED, READY, reason};
use crds::status::{FailureDomain, Initialization};

use crate::cluster::{Decision, Input, deleting, egress, load_balancer_kind};
use crate::observe::{API_SERVER, GROUP_ROLES, MAIN, kept_for_pods};
use model::condition::{ConditionState, lacking, merge, paused, paused_state, problem, was_reported};
use model::finding::{Finding, Status};
use model::{
    Key, Kind, LoadBalancer, ObservedResource, Outcome, Owner, Plan, Problem, Resource, SecurityGroup, State,
    Tags, Vpc,
};

/// Condition while the object is being deleted.
const DELETING: &str = "Deleting";

/// The areas that have a condition of their own.
const AREAS: [(&str, &[Kind]); 7] = [
    (VPC_READY, &[Kind::Vpc]),
    (SUBNETS_READY, &[Kind::Subnet]),
    (INTERNET_GATEWAY_READY, &[Kind::InternetGateway]),
    (NAT_GATEWAYS_READY, &[Kind::NatGateway, Kind::ElasticIp]),
    (ROUTE_TABLES_READY, &[Kind::RouteTable]),
    (CLUSTER_SECURITY_GROUPS_READY, &[Kind::SecurityGroup, Kind::SecurityGroupRules]),
    (LOAD_BALANCER_READY, &[Kind::LoadBalancer]),
];

/// What a cluster's status is made of.
pub struct Cluster<'a> {
    pub input: &'a Input<'a>,
    pub decision: &'a Decision,
    /// How the actions ended, the latest for each key.
    pub outcomes: &'a [(Key, Outcome)],
    /// Why AWS cannot be read.
    pub problem: Option<&'a Problem>,
    /// The name that must resolve and does not.
    pub unresolved: Option<&'a str>,
    /// What is found about the issuer of service account tokens; `None`: none was asked for.
    pub issuer: Option<&'a Finding>,
}

/// The whole status of a cluster.
pub fn cluster(facts: &Cluster<'_>) -> AWSClusterStatus {
    let object = facts.input.aws_cluster;
    let previous = object.status.clone().unwrap_or_default();
    let was = previous.initialization.as_ref().and_then(|it| it.provisioned).unwrap_or_default();
    let ready = ready(facts);
    let provisioned = was || ready.status;
    let mut state = areas(facts);
    if deleting(object) {
        state.push((DELETING, ConditionState { status: true, ..ready.clone() }));
    }
    state.extend(facts.issuer.map(|it| {
        let message = if it.status == Status::Unknown {
            format!("not known: {}", it.message)
        } else {
            it.message.clone()
        };
        (
            SERVICE_ACCOUNT_ISSUER_READY,
            ConditionState { status: it.status == Status::True, reason: it.reason, message },
        )
    }));
    state.push((READY, ready));
    state.push((PAUSED, paused_state(false)));
    let mut ours: Vec<&str> = AREAS.iter().map(|(name, _)| *name).collect();
    ours.extend([DELETING, READY, PAUSED, SERVICE_ACCOUNT_ISSUER_READY]);
    // As long as AWS was not read, nothing is known, and what was said of it stays.
    let read = facts.input.unread().is_empty();
    if !read && facts.problem.is_none() && was_reported(&previous.conditions) {
        let conditions = paused(&previous.conditions, false, facts.input.now, object.metadata.generation);
        return AWSClusterStatus { conditions, ..previous };
    }
    let keep = !read || deleting(object);
    AWSClusterStatus {
        ready: provisioned,
        initialization: provisioned.then_some(Initialization { provisioned: Some(true) }),
        network_status: if read { network(facts) } else { previous.network_status },
        failure_domains: if keep { previous.failure_domains } else { failure_domains(facts) },
        conditions: merge(
            &previous.conditions,
            state,
            object.metadata.generation,
            facts.input.now,
            if read { &ours } else { &[] },
        ),
    }
}

fn ready(facts: &Cluster<'_>) -> ConditionState<'static> {
    let deleting = deleting(facts.input.aws_cluster);
    if let Some(invalid) = &facts.decision.invalid {
        return ConditionState::no(reason::INVALID_SPEC, invalid.to_string());
    }
    if let Some(cause) = facts.problem {
        return problem(cause);
    }
    match (deleting, lacking(&facts.decision.plan, facts.outcomes, |_| true)) {
        (true, _) if !facts.input.machines.is_empty() => {
            ConditionState::no(reason::WAITING_FOR_MACHINES, text(&facts.decision.plan))
        }
        (true, None) => {
            ConditionState::no(if facts.decision.finished { reason::DELETED } else { reason::DELETING }, "")
        }
        (true, Some(state)) if [reason::CREATING, reason::NOT_READY].contains(&state.reason) => {
            ConditionState { reason: reason::DELETING, ..state }
        }
        (_, Some(state)) => state,
        (false, None) => endpoint(facts),
    }
}

fn text(plan: &Plan) -> String {
    plan.waiting.iter().map(|(key, text)| format!("{key}: {text}")).collect::<Vec<_>>().join("; ")
}

/// Everything is there; whether the API can be reached by name.
fn endpoint(facts: &Cluster<'_>) -> ConditionState<'static> {
    match (&facts.decision.record.endpoint, facts.unresolved) {
        (None, _) if load_balancer_kind(facts.input.aws_cluster).is_none() => {
            let message =
                "spec.controlPlaneEndpoint is not set, and there is no load balancer to take it from; set it";
            ConditionState::no("WaitForExternalControlPlaneEndpoint", message)
        }
        (None, _) => ConditionState::no(reason::WAIT_FOR_DNS_NAME, "the load balancer has no host name yet"),
        (Some(_), Some(name)) => ConditionState::no(
            reason::WAIT_FOR_DNS_NAME_RESOLVE,
            format!(
                "{name} does not resolve yet; where it never will, set spec.controlPlaneLoadBalancer.dnsResolutionCheck: None"
            ),
        ),
        (Some(_), _) => {
            ConditionState { message: held(&facts.decision.held, |_| true), ..ConditionState::yes() }
        }
    }
}

/// What of the spec is not carried out, though everything is as it should be otherwise.
fn held(all: &[(Kind, String)], concerns: impl Fn(&Kind) -> bool) -> String {
    all.iter()
        .filter(|(kind, _)| concerns(kind))
        .map(|(_, text)| text.as_str())
        .collect::<Vec<_>>()
        .join("; ")
}

fn areas(facts: &Cluster<'_>) -> Vec<(&'static str, ConditionState<'static>)> {
    let known: BTreeSet<Kind> =
        facts.decision.desired.keys().chain(facts.decision.observed.keys()).map(|key| key.kind).collect();
    let mut res = Vec::new();
    for (name, kinds) in AREAS {
        if !kinds.iter().any(|kind| known.contains(kind)) || facts.decision.invalid.is_some() {
            continue;
        }
        let concerns = |key: &Key| kinds.contains(&key.kind);
        let there = facts.decision.observed.keys().any(concerns);
        let state = match lacking(&facts.decision.plan, facts.outcomes, concerns) {
            Some(state) => state,
            None if deleting(facts.input.aws_cluster) && !there => ConditionState::no(reason::DELETED, ""),
            None if name == CLUSTER_SECURITY_GROUPS_READY => ConditionState {
                message: facts.decision.remark_on_rules(facts.input).unwrap_or_default().to_owned(),
                ..ConditionState::yes()
            },
            None => ConditionState {
                message: held(&facts.decision.held, |kind| kinds.contains(kind)),
                ..ConditionState::yes()
            },
        };
        res.push((name, state));
    }
    res
}

/// Zones of the subnets that machines are put in.
fn failure_domains(facts: &Cluster<'_>) -> Vec<FailureDomain> {
    let observed = &facts.decision.observed;
    let for_nodes = |tags: Option<&Tags>| !tags.is_some_and(kept_for_pods);
    let usable = observed.iter().filter(|(key, _)| !facts.decision.unlisted.contains(key)).filter(
        |(key, resource)| {
            let desired = facts.decision.desired.get(key);
            resource.state == State::Ready
                && desired.is_some_and(|it| for_nodes(Some(&it.tags)) && for_nodes(resource.tags.as_ref()))
        },
    );
    let subnets: Vec<_> = usable
        .filter_map(|(_, resource)| if let Resource::Subnet(it) = &resource.is { Some(it) } else { None })
        .collect();
    let balanced: Option<BTreeSet<&String>> = match observed
        .get(&LoadBalancer::key(API_SERVER))
        .map(|it| &it.is)
    {
        Some(Resource::LoadBalancer(it)) => Some(
            subnets.iter().filter(|subnet| it.subnets.contains(&subnet.name)).map(|it| &it.zone).collect(),
        ),
        _ => None,
    };
    let any_private = subnets.iter().any(|it| !it.public);
    let zones: BTreeSet<&String> =
        subnets.iter().filter(|it| !it.public || !any_private).map(|it| &it.zone).collect();
    let domain = |zone: &String| FailureDomain {
        name: zone.clone(),
        control_plane: Some(balanced.as_ref().is_none_or(|zones| zones.contains(zone))),
        attributes: Default::default(),
    };
    zones.into_iter().map(domain).collect()
}

fn network(facts: &Cluster<'_>) -> NetworkStatus {
    let observed = &facts.decision.observed;
    let usable = |resource: &&ObservedResource| !matches!(resource.owner, Owner::OtherDriver(_));
    let vpc = observed.get(&Vpc::key(MAIN)).filter(usable).and_then(|resource| match &resource.is {
        Resource::Vpc(it) => Some(VPCStatus { id: resource.id.clone(), cidr_block: it.cidr.clone() }),
        _ => None,
    });
    let subnets = observed.values().filter(usable).filter_map(|resource| match &resource.is {
        Resource::Subnet(it) => {
            let (availability_zone, cidr_block) = (it.zone.clone(), it.cidr.clone());
            Some(SubnetStatus {
                id: resource.id.clone(),
                availability_zone,
                cidr_block,
                is_public: it.public,
            })
        }
        _ => None,
    });
    let groups = GROUP_ROLES.into_iter().filter_map(|role| {
        let resource = observed.get(&SecurityGroup::key(role)).filter(usable)?;
        let Resource::SecurityGroup(it) = &resource.is else { return None };
        Some((role.to_owned(), SecurityGroupStatus { id: resource.id.clone(), name: it.group_name.clone() }))
    });
    let balancer = observed.get(&LoadBalancer::key(API_SERVER)).filter(usable);
    let found = balancer
        .and_then(|resource| facts.input.snapshot.load_balancers.iter().find(|it| it.id == resource.id));
    let api_server_elb = found.map(|it| LoadBalancerStatus {
        name: it.name.clone(),
        arn: if it.id.starts_with("arn:") { it.id.clone() } else { String::new() },
        dns_name: it.dns_name.clone(),
    });
    NetworkStatus {
        vpc,
        subnets: subnets.collect(),
        security_groups: groups.collect(),
        api_server_elb: api_server_elb.unwrap_or_default(),
        nat_gateways_ips: egress::addresses(facts.input.snapshot, observed),
    }
}
