//! Networks that users brought: which of their subnets are public follows from their routes, and nothing is
//! decided before these are read. Subnets that are kept for pods are left alone, there as in a network of
//! ours.

use std::collections::BTreeSet;

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use crds::conditions::READY;
use crds::names::ROLE_TAG;
use model::{FoundInternetGateway, FoundSubnet, FoundVpc, Part, Read, State, Tags};
use serde_json::{Value, json};

const VPC: &str = "vpc-user";
/// A subnet whose own route table leads to the internet, one whose own does not, and one that has none of its
/// own.
const OUT: &str = "subnet-0000000a";
const IN: &str = "subnet-0000000b";
const OTHER: &str = "subnet-0000000c";

const ASSOCIATION: &str = "sigs.k8s.io/cluster-api-provider-aws/association";

/// A VPC whose main route table leads there. By the addresses that its subnets give to machines, each looks
/// like what it is not.
fn users_vpc(main_route: Option<&str>) -> World {
    let mut world = World::new(3, Faults::default());
    let (cidr, tags) = ("10.9.0.0/16".into(), Tags::new());
    world.truth.vpcs.push(FoundVpc { id: VPC.into(), cidr, state: State::Ready, dns_hostnames: None, tags });
    let subnets =
        [(OUT, "us-east-1a", false), (IN, "us-east-1a", true), (OTHER, "us-east-1b", main_route.is_none())];
    for (n, (id, zone, public)) in subnets.into_iter().enumerate() {
        let (vpc_id, zone, cidr, tags) =
            (VPC.to_owned(), zone.to_owned(), format!("10.9.{n}.0/24"), Tags::new());
        world.truth.subnets.push(FoundSubnet {
            id: id.into(),
            vpc_id,
            zone,
            cidr,
            public,
            state: State::Ready,
            tags,
        });
    }
    let gateway = FoundInternetGateway { id: "igw-user".into(), vpc_id: Some(VPC.into()), tags: Tags::new() };
    world.truth.internet_gateways.push(gateway);
    world.route_table_of_user(VPC, true, &[], main_route);
    world.route_table_of_user(VPC, false, &[OUT], Some("igw-user"));
    world.route_table_of_user(VPC, false, &[IN], Some("nat-user"));
    world
}

fn brought(subnets: Value, scheme: &str) -> Fleet {
    let network = json!({"vpc": {"id": VPC}, "subnets": subnets});
    Fleet::new("prod", json!({"network": network, "controlPlaneLoadBalancer": {"scheme": scheme}}))
}

fn all() -> Value {
    json!([{"id": OUT}, {"id": IN}, {"id": OTHER}])
}

fn tag(world: &mut World, subnet: &str, key: &str, value: &str) {
    let found = world.truth.subnets.iter_mut().find(|it| it.id == subnet).expect("a subnet");
    found.tags.insert(key.into(), value.into());
}

fn ids(subnets: &[&str]) -> BTreeSet<String> {
    subnets.iter().map(|it| (*it).to_owned()).collect()
}

/// Subnets of the load balancer.
fn balanced(world: &World) -> BTreeSet<String> {
    world.truth.load_balancers[0].subnets.clone()
}

fn subnet_of(world: &World, machine: &str) -> String {
    let instance = world.truth.instances.iter().find(|it| it.tags["Name"] == machine).expect("an instance");
    instance.subnet_id.clone().expect("a subnet")
}

fn said(fleet: &Fleet, world: &mut World) -> crds::AWSClusterStatus {
    let snapshot = fleet.snapshot(world);
    let decision = fleet.decide_with(world, &snapshot);
    fleet.status(world.now, &snapshot, &decision, &[], None)
}

/// Zones that are offered to machines.
fn failure_domains(fleet: &Fleet, world: &mut World) -> Vec<String> {
    said(fleet, world).failure_domains.into_iter().map(|it| it.name).collect()
}

/// Why a machine cannot be put into a zone.
fn invalid_in(fleet: &mut Fleet, world: &mut World, zone: &str) -> String {
    fleet.add_machine("elsewhere", false, json!({}));
    fleet.machines.get_mut("elsewhere").expect("a machine").0.spec.failure_domain = Some(zone.into());
    let decision = fleet.decide_machine(world, "elsewhere");
    fleet.machines.remove("elsewhere");
    decision.invalid.map(|it| it.to_string()).unwrap_or_default()
}

#[test]
fn a_subnet_is_public_when_its_routes_lead_to_an_internet_gateway() {
    for (main_route, public, zones) in [
        (None, vec![OUT], vec!["us-east-1a", "us-east-1b"]),
        (Some("igw-user"), vec![OUT, OTHER], vec!["us-east-1a"]),
    ] {
        let mut world = users_vpc(main_route);
        let mut fleet = brought(all(), "internet-facing");
        fleet.add_machine("inside", false, json!({}));
        fleet.add_machine("edge", false, json!({"publicIP": true}));
        fleet.add_machine("named", false, json!({"publicIP": true, "subnet": {"id": OUT}}));
        fleet.settle(&mut world);
        assert_eq!(balanced(&world), ids(&public));
        assert_eq!(["inside", "edge", "named"].map(|it| subnet_of(&world, it)), [IN, OUT, OUT]);
        let shown = said(&fleet, &mut world).network_status.subnets.into_iter().filter(|it| it.is_public);
        assert_eq!(shown.map(|it| it.id).collect::<BTreeSet<_>>(), ids(&public));
        assert_eq!(failure_domains(&fleet, &mut world), zones);
        fleet.add_machine("private", false, json!({"publicIP": true, "subnet": {"id": IN}}));
        let invalid = fleet.decide_machine(&mut world, "private").invalid.expect("it is private").to_string();
        assert_eq!(
            invalid,
            format!("spec.subnet.id: {IN} is private, and spec.publicIP asks for a public one")
        );
    }
}

#[test]
fn a_subnet_is_public_when_its_tag_says_so() {
    let mut world = users_vpc(None);
    tag(&mut world, OTHER, ROLE_TAG, "public");
    brought(all(), "internet-facing").settle(&mut world);
    assert_eq!(balanced(&world), ids(&[OUT, OTHER]));
}

#[test]
fn what_is_found_counts_more_than_what_the_spec_says() {
    let mut world = users_vpc(None);
    let subnets = json!([{"id": IN, "isPublic": true}, {"id": OTHER}]);
    let invalid = brought(subnets.clone(), "internet-facing")
        .decide(&mut world)
        .invalid
        .expect("none is public")
        .to_string();
    assert_eq!(
        invalid,
        "spec.network.subnets: none is public, as an internet-facing load balancer needs it: give the route table of one a route to an \
         internet gateway, or set spec.controlPlaneLoadBalancer.scheme to internal"
    );
    brought(subnets, "internal").settle(&mut world);
    assert_eq!((world.truth.load_balancers[0].internal, balanced(&world)), (true, ids(&[IN, OTHER])));
}

#[test]
fn a_machine_is_put_where_its_zone_really_is() {
    let mut world = users_vpc(None);
    let mut fleet = brought(all(), "internet-facing");
    fleet.settle(&mut world);
    let edited = json!([{"id": OUT}, {"id": IN, "availabilityZone": "us-east-1b"}, {"id": OTHER, "availabilityZone": "us-east-1a"}]);
    fleet.aws_cluster.spec.network.subnets = serde_json::from_value(edited).expect("subnets");
    fleet.add_machine("worker-0", false, json!({}));
    fleet.machines.get_mut("worker-0").expect("a machine").0.spec.failure_domain = Some("us-east-1b".into());
    fleet.settle(&mut world);
    assert_eq!(subnet_of(&world, "worker-0"), OTHER);
}

#[test]
fn an_internal_load_balancer_takes_public_subnets_if_need_be() {
    let mut world = users_vpc(Some("igw-user"));
    brought(json!([{"id": OUT}, {"id": OTHER}]), "internal").settle(&mut world);
    assert_eq!((world.truth.load_balancers[0].internal, balanced(&world)), (true, ids(&[OUT, OTHER])));
}

#[test]
fn nothing_is_decided_before_the_route_tables_are_read() {
    let mut world = users_vpc(None);
    let mut fleet = brought(all(), "internet-facing");
    fleet.add_machine("worker-0", false, json!({}));
    // A new process begins with a sweep that knows of no such wish.
    fleet.route_tables_of.clear();
    let decision = fleet.decide(&mut world);
    assert_eq!((decision.plan.actions.len(), &decision.invalid), (0, &None));
    let waiting: Vec<String> =
        decision.plan.waiting.iter().map(|(key, why)| format!("{key}: {why}")).collect();
    assert_eq!(waiting, ["vpc/main: reading the route tables of vpc-user"]);
    let part = Part::Kind(Read::RouteTables);
    assert!(
        decision.interest.route_tables_of.contains(VPC)
            && decision.interest.reads.contains(&Read::RouteTables)
    );
    assert!(decision.interest.needs(&part), "why they cannot be read is said");
    let ready = said(&fleet, &mut world)
        .conditions
        .into_iter()
        .find(|it| it.type_ == READY)
        .expect("a condition Ready");
    assert_eq!((ready.status.as_str(), ready.message), ("False", waiting[0].clone()));
    let decision = fleet.decide_machine(&mut world, "worker-0");
    assert_eq!(decision.waits.map(|it| it.message).as_deref(), Some("reading the route tables of vpc-user"));
    assert!(
        decision.plan.actions.is_empty()
            && decision.interest.route_tables_of.contains(VPC)
            && decision.interest.needs(&part)
    );
    fleet.settle(&mut world);
    assert_eq!(subnet_of(&world, "worker-0"), IN);
}

#[test]
fn what_is_there_stays_until_the_route_tables_are_read_again() {
    let mut world = users_vpc(None);
    let mut fleet = brought(all(), "internet-facing");
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    let before = said(&fleet, &mut world);
    fleet.aws_cluster.status = Some(before.clone());
    let calls = world.log.len();
    fleet.route_tables_of.clear();
    assert_eq!(said(&fleet, &mut world), before, "nothing new is known");
    let decision = fleet.decide_machine(&mut world, "worker-0");
    assert!(decision.plan.is_settled() && decision.waits.is_none(), "it has its subnet");
    fleet.settle(&mut world);
    assert_eq!(world.log.len(), calls);
    fleet.route_tables_of.clear();
    fleet.delete(&world);
    let waiting = fleet.decide(&mut world).plan.waiting;
    assert!(
        waiting.iter().all(|(_, why)| why.starts_with("used by")),
        "what goes does not depend on them: {waiting:?}"
    );
    fleet.settle(&mut world);
    assert_eq!(
        (world.truth.subnets.len(), world.truth.route_tables.len(), world.truth.load_balancers.len()),
        (3, 3, 0)
    );
}

#[test]
fn subnets_of_a_users_vpc_that_are_kept_for_pods_are_not_used() {
    for (main_route, by_spec) in
        [(None, false), (None, true), (Some("igw-user"), false), (Some("igw-user"), true)]
    {
        let mut world = users_vpc(main_route);
        let mut subnets = json!([{"id": OTHER}, {"id": OUT}, {"id": IN}]);
        if by_spec {
            subnets[0]["tags"] = json!({ASSOCIATION: "secondary"});
        } else {
            tag(&mut world, OTHER, ASSOCIATION, "secondary");
        }
        let mut fleet = brought(subnets, "internet-facing");
        fleet.add_machine("inside", false, json!({}));
        fleet.add_machine("edge", false, json!({"publicIP": true}));
        fleet.settle(&mut world);
        assert_eq!(balanced(&world), ids(&[OUT]));
        assert_eq!(["inside", "edge"].map(|it| subnet_of(&world, it)), [IN, OUT]);
        assert_eq!(failure_domains(&fleet, &mut world), ["us-east-1a"]);
        let invalid = invalid_in(&mut fleet, &mut world, "us-east-1b");
        assert_eq!(invalid, "Machine spec.failureDomain: the cluster has no private subnet in us-east-1b");
    }
    let mut world = users_vpc(None);
    tag(&mut world, IN, ASSOCIATION, "secondary");
    let invalid = brought(json!([{"id": IN}]), "internal")
        .decide(&mut world)
        .invalid
        .expect("there is none for machines")
        .to_string();
    assert_eq!(
        invalid,
        "spec.network.subnets: all are kept for pods by their tags; list subnets of vpc-user for machines too"
    );
}

#[test]
fn subnets_that_are_made_for_pods_are_not_used_for_anything_else() {
    let mut world = World::new(3, Faults::default());
    let subnet = |id: &str, zone: &str, number: u8, public: bool, for_pods: bool| {
        let tags = if for_pods { json!({ASSOCIATION: "secondary"}) } else { json!({}) };
        json!({"id": id, "availabilityZone": zone, "cidrBlock": format!("10.0.{number}.0/24"), "isPublic": public, "tags": tags})
    };
    let subnets = json!([
        subnet("pods-a", "us-east-1a", 0, false, true),
        subnet("edge-pods-a", "us-east-1a", 1, true, true),
        subnet("edge-a", "us-east-1a", 2, true, false),
        subnet("nodes-a", "us-east-1a", 3, false, false),
        subnet("edge-b", "us-east-1b", 4, true, false),
        subnet("pods-b", "us-east-1b", 5, false, true),
    ]);
    let mut fleet = Fleet::new("prod", json!({"network": {"subnets": subnets}}));
    fleet.add_machine("inside", false, json!({}));
    fleet.add_machine("edge", false, json!({"publicIP": true}));
    fleet.settle(&mut world);
    assert_eq!(world.truth.subnets.len(), 6);
    let name = |id: &String| {
        world.truth.subnets.iter().find(|it| it.id == *id).expect("a subnet").tags["Name"].clone()
    };
    assert_eq!(balanced(&world).iter().map(name).collect::<BTreeSet<_>>(), ids(&["edge-a", "edge-b"]));
    let gateways = world.truth.nat_gateways.iter().map(|it| name(&it.subnet_id));
    assert_eq!(gateways.collect::<BTreeSet<_>>(), ids(&["edge-a", "edge-b"]), "pods need a way out as well");
    assert_eq!(["inside", "edge"].map(|it| name(&subnet_of(&world, it))), ["nodes-a", "edge-a"]);
    assert_eq!(failure_domains(&fleet, &mut world), ["us-east-1a"]);
    let invalid = invalid_in(&mut fleet, &mut world, "us-east-1b");
    assert_eq!(invalid, "Machine spec.failureDomain: the cluster has no private subnet in us-east-1b");
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}

#[test]
fn a_load_balancer_stays_in_the_subnet_that_it_has_of_a_zone() {
    let mut world = users_vpc(Some("igw-user"));
    let mut fleet = brought(json!([{"id": OUT}, {"id": IN}]), "internet-facing");
    fleet.settle(&mut world);
    assert_eq!(balanced(&world), ids(&[OUT]));
    let second = "subnet-0000000d";
    let out = world.truth.subnets.iter().find(|it| it.id == OUT).cloned().expect("a subnet");
    world.truth.subnets.push(FoundSubnet { id: second.into(), cidr: "10.9.9.0/24".into(), ..out });
    fleet.aws_cluster.spec.network.subnets =
        serde_json::from_value(json!([{"id": second}, {"id": IN}, {"id": OTHER}])).expect("subnets");
    (0..8).for_each(|_| world.tick());
    fleet.settle(&mut world);
    assert_eq!(balanced(&world), ids(&[OUT, OTHER]));
}

#[test]
fn a_vpc_that_is_named_and_not_seen_yet_is_never_made() {
    let mut world = World::new(3, Faults::default());
    let mut fleet = brought(all(), "internal");
    for _ in 0..10 {
        let plan = fleet.reconcile_unchecked(&mut world);
        assert!(plan.actions.iter().all(|it| matches!(it, model::Action::Confirm { .. })), "{plan}");
        world.tick();
    }
    assert_eq!(world.inventory(), Vec::<String>::new());
}
