//! Edits of a cluster that lives: whatever somebody writes into its spec, nothing that a machine uses is
//! taken from it, and what is not carried out is said.

use std::collections::BTreeSet;

use crate::world::driver::Fleet;
use crate::world::{Faults, World, numbers};
use crds::conditions::READY;
use crds::conditions::cluster::{LOAD_BALANCER_READY, SUBNETS_READY};
use model::{Kind, Resource, State, Subnet};
use serde_json::{Value, json};

const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];

fn subnet(zone: usize, public: bool) -> Value {
    let (word, number) = if public { ("public", 10 + zone) } else { ("private", 20 + zone) };
    json!({"id": format!("{word}-{zone}"), "cidrBlock": format!("10.0.{number}.0/24"), "availabilityZone": ZONES[zone], "isPublic": public})
}

fn in_zones(zones: &[usize]) -> Vec<Value> {
    zones.iter().flat_map(|zone| [subnet(*zone, true), subnet(*zone, false)]).collect()
}

fn set_subnets(fleet: &mut Fleet, subnets: &[Value]) {
    fleet.aws_cluster.spec.network.subnets =
        serde_json::from_value(Value::Array(subnets.to_vec())).expect("subnets");
}

/// A cluster that is there, in these zones, with a control plane machine in the first and a worker in the
/// last.
fn living(zones: &[usize]) -> (Fleet, World) {
    let mut world = World::new(7, Faults::default());
    let mut fleet = Fleet::new("prod", json!({"network": {"subnets": in_zones(zones)}}));
    fleet.settle(&mut world);
    fleet.add_machine("control-plane-0", true, json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    for (name, zone) in [("control-plane-0", zones.first()), ("worker-0", zones.last())] {
        let domain = zone.map(|zone| ZONES[*zone].to_owned());
        fleet.machines.get_mut(name).expect("a machine").0.spec.failure_domain = domain;
    }
    fleet.settle(&mut world);
    world.log.clear();
    (fleet, world)
}

fn look(fleet: &mut Fleet, world: &mut World, looks: usize) {
    for _ in 0..looks {
        fleet.look_unchecked(world);
        fleet.look_at_machines(world);
        world.tick();
    }
    assert_eq!(world.cut_off, Vec::<String>::new());
}

/// What was called, in order, by key alone.
fn calls(world: &World) -> Vec<String> {
    world
        .log
        .iter()
        .map(|(what, _)| what.split(' ').filter(|it| !it.is_empty()).take(2).collect::<Vec<_>>().join(" "))
        .collect()
}

fn said(fleet: &Fleet, world: &mut World, condition: &str) -> (String, String) {
    let snapshot = fleet.snapshot(world);
    let decision = fleet.decide_with(world, &snapshot);
    let status = fleet.said(world.now, &snapshot, &decision, &[], None);
    let found = status.conditions.into_iter().find(|it| it.type_ == condition).expect("the condition");
    (found.status, found.message)
}

#[test]
fn a_zone_that_is_not_listed_any_more_stays_as_long_as_a_machine_is_in_it() {
    let (mut fleet, mut world) = living(&[0, 1]);
    set_subnets(&mut fleet, &in_zones(&[0]));
    look(&mut fleet, &mut world, 20);
    assert_eq!(calls(&world), Vec::<String>::new());
    let (status, message) = said(&fleet, &mut world, SUBNETS_READY);
    assert_eq!(status, "True");
    for part in
        ["is not in spec.network.subnets any more", "AWSMachine default/worker-0", "list the subnet again"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert!(said(&fleet, &mut world, READY).1.contains("worker-0"));
    fleet.add_machine("worker-1", false, json!({}));
    look(&mut fleet, &mut world, 5);
    let subnet_of = |world: &World, name: &str| {
        let instance = world.truth.instances.iter().find(|it| it.tags["Name"] == name).expect("an instance");
        world
            .truth
            .subnets
            .iter()
            .find(|it| Some(&it.id) == instance.subnet_id.as_ref())
            .expect("a subnet")
            .zone
            .clone()
    };
    assert_eq!(subnet_of(&world, "worker-1"), "us-east-1a", "nothing new is put in it");
    let decision = fleet.decide(&mut world);
    let snapshot = fleet.snapshot(&mut world);
    let domains = fleet.said(world.now, &snapshot, &decision, &[], None).failure_domains;
    assert_eq!(domains.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["us-east-1a"]);

    fleet.delete_machine("worker-0");
    world.log.clear();
    look(&mut fleet, &mut world, 40);
    let all = calls(&world);
    let at = |text: &str| {
        all.iter().position(|it| it.starts_with(text)).unwrap_or_else(|| panic!("no {text} in {all:#?}"))
    };
    assert!(at("update load-balancer") < at("delete route-table"), "{all:#?}");
    assert!(
        at("delete route-table") < at("delete nat-gateway")
            && at("delete nat-gateway") < at("delete subnet/public"),
        "{all:#?}"
    );
    assert_eq!(world.truth.load_balancers[0].subnets.len(), 1);
    assert_eq!(world.counts()["subnet"], 2);
    assert_eq!(
        (world.counts()["nat-gateway"], world.counts()["elastic-ip"], world.counts()["route-table"]),
        (1, 1, 2)
    );
    assert_eq!(said(&fleet, &mut world, SUBNETS_READY), ("True".to_owned(), String::new()));
}

#[test]
fn a_zone_is_added_by_additions_alone() {
    let (mut fleet, mut world) = living(&[0]);
    set_subnets(&mut fleet, &in_zones(&[1, 0]));
    look(&mut fleet, &mut world, 30);
    let others: Vec<String> = calls(&world)
        .into_iter()
        .filter(|it| !it.starts_with("create") && !it.contains("us-east-1b"))
        .collect();
    assert_eq!(
        others.iter().collect::<BTreeSet<_>>(),
        BTreeSet::from([&"update load-balancer/apiserver".to_owned()]),
        "{others:#?}"
    );
    assert_eq!(world.truth.load_balancers[0].subnets.len(), 2);
    assert_eq!(world.counts()["nat-gateway"], 2);
}

#[test]
fn a_zone_that_is_taken_back_while_it_is_made_is_made_when_it_is_listed_again() {
    for looks in 1..16 {
        let (mut fleet, mut world) = living(&[0]);
        set_subnets(&mut fleet, &in_zones(&[0, 1]));
        look(&mut fleet, &mut world, looks);
        set_subnets(&mut fleet, &in_zones(&[0]));
        look(&mut fleet, &mut world, 40);
        assert_eq!(world.counts()["subnet"], 2, "{looks}");
        set_subnets(&mut fleet, &in_zones(&[0, 1]));
        look(&mut fleet, &mut world, 40);
        assert_eq!((world.counts()["subnet"], world.counts()["route-table"]), (4, 4), "{looks}");
        let plan = fleet.decide(&mut world).plan;
        assert!(plan.actions.is_empty() && plan.waiting.is_empty(), "{looks}: {plan}");
    }
}

#[test]
fn listing_a_new_zone_alone_leaves_the_old_ones_their_way_out() {
    let mut world = World::new(7, Faults::default());
    let mut fleet = Fleet::new(
        "prod",
        json!({"network": {"vpc": {"cidrBlock": "10.0.0.0/16", "availabilityZoneUsageLimit": 2}}}),
    );
    fleet.settle(&mut world);
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    world.log.clear();
    let free = json!([
        {"id": "public-c", "cidrBlock": "10.0.192.0/24", "availabilityZone": "us-east-1c", "isPublic": true},
        {"id": "private-c", "cidrBlock": "10.0.193.0/24", "availabilityZone": "us-east-1c"},
    ]);
    set_subnets(&mut fleet, free.as_array().expect("a list"));
    look(&mut fleet, &mut world, 40);
    let instance = world.truth.instances[0].subnet_id.clone().expect("a subnet");
    let table = world
        .truth
        .route_tables
        .iter()
        .find(|it| it.associations.contains_key(&instance))
        .expect("its table");
    let gateway = table.default_route.clone().expect("a way out");
    assert!(world.truth.nat_gateways.iter().any(|it| it.id == gateway && it.state == State::Ready));
    assert!(world.truth.subnets.iter().any(|it| it.zone == "us-east-1c"));
    assert!(
        !world.truth.subnets.iter().any(|it| it.zone == "us-east-1b"),
        "nothing was in it: {:#?}",
        world.inventory()
    );
}

/// `{id: a, isPublic: true}` as JSON.
fn element(line: &str) -> Value {
    let fields = line.trim().trim_start_matches("- {").trim_end_matches('}').split(", ");
    let value = |text: &str| if text == "true" { json!(true) } else { json!(text) };
    fields
        .map(|it| it.split_once(": ").expect("a field"))
        .map(|(name, text)| (name.to_owned(), value(text)))
        .collect()
}

#[test]
fn the_example_in_the_docs_adds_a_zone_to_a_network_that_was_not_listed() {
    let text = include_str!("../../../../docs/changing-a-cluster.md");
    let example = text.lines().skip_while(|it| it.trim() != "subnets:").take_while(|it| !it.is_empty());
    let subnets: Vec<Value> = example.filter(|it| it.trim().starts_with("- {")).map(element).collect();
    assert_eq!(subnets.len(), 6);
    let mut world = World::new(7, Faults::default());
    let mut fleet = Fleet::new("prod", json!({"network": {"vpc": {"availabilityZoneUsageLimit": 2}}}));
    fleet.settle(&mut world);
    let before: BTreeSet<String> = world.truth.subnets.iter().map(|it| it.id.clone()).collect();
    world.log.clear();
    set_subnets(&mut fleet, &subnets);
    look(&mut fleet, &mut world, 30);
    assert!(!calls(&world).iter().any(|it| it.starts_with("delete")), "{:#?}", calls(&world));
    let made: BTreeSet<String> =
        world.truth.subnets.iter().filter(|it| !before.contains(&it.id)).map(|it| it.cidr.clone()).collect();
    assert_eq!(made, BTreeSet::from(["10.0.192.0/20".to_owned(), "10.0.224.0/19".to_owned()]));
    assert_eq!(
        (
            world.counts()["subnet"],
            world.counts()["nat-gateway"],
            world.truth.load_balancers[0].subnets.len()
        ),
        (6, 3, 3)
    );
    assert_eq!(said(&fleet, &mut world, READY), ("True".to_owned(), String::new()));
}

#[test]
fn what_stays_for_the_load_balancer_keeps_its_way_out() {
    let mut world = World::new(7, Faults::default());
    let spec = json!({"network": {"subnets": in_zones(&[0, 1])}, "controlPlaneLoadBalancer": {"scheme": "internal"}});
    let mut fleet = Fleet::new("prod", spec);
    fleet.settle(&mut world);
    let before = world.inventory();
    let other =
        json!({"id": "other", "cidrBlock": "10.0.40.0/24", "availabilityZone": ZONES[1], "isPublic": true});
    let mut listed = in_zones(&[0]);
    listed.push(other);
    set_subnets(&mut fleet, &listed);
    look(&mut fleet, &mut world, 20);
    let lost: Vec<String> = before.iter().filter(|it| !world.inventory().contains(it)).cloned().collect();
    assert_eq!(lost, Vec::<String>::new());
    // AWS lists them in any order.
    let mut snapshot = fleet.snapshot(&mut world);
    let reversed: Vec<_> = snapshot.subnets.iter().rev().cloned().collect();
    for subnets in [snapshot.subnets.to_vec(), reversed] {
        snapshot.subnets = subnets.into();
        let plan = fleet.decide_with(&mut world, &snapshot).plan;
        assert!(plan.blocked.is_empty() && plan.actions.is_empty(), "{plan}");
    }
}

#[test]
fn a_subnet_is_the_same_wherever_it_is_listed() {
    let second = json!({"id": "private-0-2", "cidrBlock": "10.0.30.0/24", "availabilityZone": ZONES[0]});
    let mut world = World::new(7, Faults::default());
    let mut fleet =
        Fleet::new("prod", json!({"network": {"subnets": [subnet(0, true), subnet(0, false), second]}}));
    fleet.settle(&mut world);
    // As they were named once, by their places.
    let places = |world: &mut World| {
        let of = |cidr: &str| world.truth.subnets.iter().find(|it| it.cidr == cidr).map(|it| it.id.clone());
        let second = of("10.0.30.0/24").expect("a subnet");
        for table in &mut world.truth.route_tables {
            let role = if table.associations.contains_key(&second) {
                "private-us-east-1a-2"
            } else {
                "private-us-east-1a"
            };
            if table.default_route.as_ref().is_some_and(|it| it.starts_with("nat-")) {
                table.tags.insert("cluster.kurator.dev/role".into(), role.into());
            }
        }
        second
    };
    let second_id = places(&mut world);
    world.log.clear();
    fleet.restart(&mut world);
    look(&mut fleet, &mut world, 20);
    let tags = |it: &String| it.starts_with("tag ") || it == "update load-balancer/apiserver";
    assert!(calls(&world).iter().all(tags), "none is remade: {:#?}", calls(&world));
    world.log.clear();
    set_subnets(&mut fleet, &[second.clone(), subnet(0, true)]);
    look(&mut fleet, &mut world, 20);
    let made: Vec<String> =
        calls(&world).into_iter().filter(|it| it.starts_with("create") || it.starts_with("update")).collect();
    assert_eq!(made, Vec::<String>::new());
    let left: Vec<&str> = world.truth.subnets.iter().map(|it| it.cidr.as_str()).collect();
    assert_eq!(left.into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["10.0.10.0/24", "10.0.30.0/24"]));
    let table = world
        .truth
        .route_tables
        .iter()
        .find(|it| it.associations.contains_key(&second_id))
        .expect("its table");
    assert!(table.default_route.as_ref().is_some_and(|it| it.starts_with("nat-")));
}

#[test]
fn a_subnet_in_use_is_neither_made_public_nor_private() {
    let (mut fleet, mut world) = living(&[0]);
    let mut turned = in_zones(&[0]);
    turned[1]["isPublic"] = json!(true);
    set_subnets(&mut fleet, &turned);
    look(&mut fleet, &mut world, 10);
    assert_eq!(calls(&world), Vec::<String>::new());
    let (_, message) = said(&fleet, &mut world, SUBNETS_READY);
    assert!(message.contains("isPublic of") && message.contains("instance i-"), "{message}");
}

#[test]
fn a_subnet_becomes_public_when_it_is_certain_that_nothing_is_in_it() {
    let more = |public: bool| json!({"id": "more", "cidrBlock": "10.0.30.0/24", "availabilityZone": ZONES[0], "isPublic": public});
    let listed = |public: bool| [in_zones(&[0]), vec![more(public)]].concat();
    let (mut fleet, mut world) = living(&[0]);
    set_subnets(&mut fleet, &listed(false));
    look(&mut fleet, &mut world, 20);
    let subnet =
        world.truth.subnets.iter().find(|it| it.cidr == "10.0.30.0/24").cloned().expect("it was made");
    // As a mount target of a file system is: nothing but its interface shows it.
    let mut interface = world.truth.network_interfaces[0].clone();
    (interface.id, interface.subnet_id, interface.attached_instance) =
        ("eni-of-mount-target".into(), subnet.id.clone(), None);
    (interface.description, interface.interface_type) = ("EFS mount target for fs-1".into(), "efs".into());
    world.truth.network_interfaces.push(interface);
    set_subnets(&mut fleet, &listed(true));
    look(&mut fleet, &mut world, 20);
    let is_public = |world: &World| world.truth.subnets.iter().any(|it| it.id == subnet.id && it.public);
    let (_, message) = said(&fleet, &mut world, SUBNETS_READY);
    assert!(!is_public(&world) && message.contains("eni-of-mount-target"), "{message}");
    world.truth.network_interfaces.retain(|it| it.id != "eni-of-mount-target");
    // What the process before this one made last may be hidden from reads for a while.
    fleet.restart(&mut world);
    let restarted = world.now;
    while !is_public(&world) {
        look(&mut fleet, &mut world, 1);
        assert!(world.now < restarted + 200.0, "{:?}", said(&fleet, &mut world, SUBNETS_READY));
    }
    assert!(
        world.now > restarted + model::READ_LAG,
        "it became public {} s after the start",
        world.now - restarted
    );
}

#[test]
fn a_machine_starts_when_its_subnet_has_its_way_out() {
    let more = |public: bool| json!({"id": "more", "cidrBlock": "10.0.30.0/24", "availabilityZone": ZONES[1], "isPublic": public});
    let new_zone = (vec![], in_zones(&[1]));
    let once_public = (vec![subnet(1, true), more(true)], vec![subnet(1, true), more(false)]);
    for (before, after) in [new_zone, once_public] {
        let listed = |more: &[Value]| [in_zones(&[0]), more.to_vec()].concat();
        let mut world = World::new(7, Faults::default());
        let mut fleet = Fleet::new("prod", json!({"network": {"subnets": listed(&before)}}));
        fleet.settle(&mut world);
        set_subnets(&mut fleet, &listed(&after));
        fleet.add_machine("worker-0", false, json!({}));
        fleet.machines.get_mut("worker-0").expect("a machine").0.spec.failure_domain = Some(ZONES[1].into());
        let mut waited = BTreeSet::new();
        while world.truth.instances.is_empty() {
            look(&mut fleet, &mut world, 1);
            waited.extend(
                fleet.decide_machine(&mut world, "worker-0").plan.waiting.into_iter().map(|(_, why)| why),
            );
        }
        assert!(
            waited.contains("after route-table/private-us-east-1b leads to nat-gateway/us-east-1b"),
            "{waited:#?}"
        );
        let subnet_id = world.truth.instances[0].subnet_id.clone().expect("a subnet");
        let table = world
            .truth
            .route_tables
            .iter()
            .find(|it| it.associations.contains_key(&subnet_id))
            .expect("its table");
        let leads_to = |it: &&model::FoundNatGateway| Some(&it.id) == table.default_route.as_ref();
        let gateway = world.truth.nat_gateways.iter().find(leads_to).expect("a way out");
        assert_eq!(gateway.state, State::Ready);
    }
}

#[test]
fn what_cannot_be_carried_out_is_held_and_said() {
    let edits: [(&str, Value, &str); 5] = [
        (SUBNETS_READY, json!({"vpc": {"availabilityZoneUsageLimit": 3}}), "availabilityZoneUsageLimit is 3"),
        (SUBNETS_READY, json!({"vpc": {"availabilityZoneUsageLimit": 1}}), "availabilityZoneUsageLimit is 1"),
        (
            READY,
            json!({"vpc": {"id": "vpc-of-another"}}),
            "spec.network.vpc.id is vpc-of-another, and the cluster lives in vpc-",
        ),
        (READY, json!({"vpc": {"cidrBlock": "10.1.0.0/16"}}), "cidrBlock of vpc-"),
        (SUBNETS_READY, json!({"subnets": in_zones(&[2])}), "is not in spec.network.subnets any more"),
    ];
    for (condition, edit, expected) in edits {
        let mut world = World::new(7, Faults::default());
        let mut fleet = Fleet::new("prod", json!({"network": {"vpc": {"availabilityZoneUsageLimit": 2}}}));
        fleet.settle(&mut world);
        for (name, zone) in [("worker-0", ZONES[0]), ("worker-1", ZONES[1])] {
            fleet.add_machine(name, false, json!({}));
            fleet.machines.get_mut(name).expect("a machine").0.spec.failure_domain = Some(zone.into());
        }
        fleet.settle(&mut world);
        let before = world.inventory();
        let mut spec = serde_json::to_value(&fleet.aws_cluster.spec).expect("a spec");
        crate::world::objects::merge(&mut spec["network"], &edit);
        fleet.aws_cluster.spec = serde_json::from_value(spec).expect("a spec");
        look(&mut fleet, &mut world, 20);
        let lost: Vec<&String> = before.iter().filter(|it| !world.inventory().contains(it)).collect();
        assert_eq!(lost, Vec::<&String>::new(), "{edit}");
        let (_, message) = said(&fleet, &mut world, condition);
        assert!(message.contains(expected), "{edit}: {message}");
    }
}

/// Ports at which anybody outside reaches the load balancer's group, and those that it listens at.
fn ports(world: &World) -> (BTreeSet<i32>, BTreeSet<u16>) {
    let group = world
        .truth
        .security_groups
        .iter()
        .find(|it| it.group_name == "prod-apiserver-lb")
        .expect("the group");
    let listeners = world.truth.load_balancers[0].listeners.iter().map(|it| it.port).collect();
    (group.rules.iter().map(|it| it.from_port).collect(), listeners)
}

#[test]
fn the_api_stays_at_the_port_that_everybody_knows() {
    for kind in ["classic", "nlb"] {
        let mut world = World::new(7, Faults::default());
        let mut fleet = Fleet::new("prod", json!({"controlPlaneLoadBalancer": {"loadBalancerType": kind}}));
        fleet.settle(&mut world);
        fleet.cluster.spec.cluster_network.api_server_port = Some(443);
        look(&mut fleet, &mut world, 10);
        assert_eq!(ports(&world), (BTreeSet::from([6443]), BTreeSet::from([6443])), "{kind}");
        for condition in [LOAD_BALANCER_READY, READY] {
            let message = "Cluster spec.clusterNetwork.apiServerPort is 443, and the API is reached at 6443: it stays there; set it back";
            assert_eq!(
                said(&fleet, &mut world, condition),
                ("True".to_owned(), message.to_owned()),
                "{kind}"
            );
        }
        // While reads do not show the load balancer, nothing is concluded.
        let shown = world.truth.load_balancers.clone();
        world.truth.load_balancers.clear();
        let decision = fleet.decide(&mut world);
        let rules = &decision.desired[&model::SecurityGroupRules::key("apiserver-lb")].is;
        assert!(matches!(rules, Resource::SecurityGroupRules(it) if it.keep_unknown), "{kind}: {rules:?}");
        world.truth.load_balancers = shown;
    }
}

#[test]
fn zones_that_somebody_wrote_over_take_no_subnet_away() {
    for zones in [None, Some("us-east-1c,us-east-1d"), Some("us-east-1a")] {
        let mut world = World::new(7, Faults::default());
        let mut fleet = Fleet::new("prod", json!({"network": {"vpc": {"availabilityZoneUsageLimit": 2}}}));
        fleet.settle(&mut world);
        let before = world.inventory();
        fleet.aws_cluster.spec.network.vpc.availability_zone_usage_limit = 3;
        let annotations = fleet.aws_cluster.metadata.annotations.as_mut().expect("annotations");
        annotations.remove(infra::ZONES_ANNOTATION);
        annotations.extend(zones.map(|it| (infra::ZONES_ANNOTATION.to_owned(), it.to_owned())));
        look(&mut fleet, &mut world, 20);
        assert_eq!(world.inventory(), before, "{zones:?}");
    }
}

#[test]
fn a_zone_that_is_not_available_stops_only_what_would_be_made_in_it() {
    let (mut fleet, mut world) = living(&[0, 1]);
    world.truth.zones = vec![ZONES[0].into(), ZONES[2].into()];
    set_subnets(&mut fleet, &in_zones(&[0, 1, 2]));
    fleet.add_machine("worker-1", false, json!({}));
    look(&mut fleet, &mut world, 30);
    assert_eq!((world.counts()["subnet"], world.counts()["instance"]), (6, 3));
    world.truth.zones = vec![ZONES[1].into(), ZONES[2].into()];
    let mut four = in_zones(&[0, 1, 2]);
    four.extend([
        json!({"id": "new", "cidrBlock": "10.0.40.0/24", "availabilityZone": "us-east-1d", "isPublic": true}),
        json!({"id": "other", "cidrBlock": "10.0.41.0/24", "availabilityZone": "us-east-1b"}),
    ]);
    set_subnets(&mut fleet, &four);
    look(&mut fleet, &mut world, 30);
    assert_eq!(world.counts()["subnet"], 7);
    let (status, message) = said(&fleet, &mut world, SUBNETS_READY);
    assert!(status == "False" && message.contains("us-east-1d"), "{message}");
}

/// Somebody edits any field of the network to anything.
fn edit(fleet: &mut Fleet, random: &mut impl FnMut() -> u64) -> String {
    let value = (random() >> 8) as usize;
    let network = &mut fleet.aws_cluster.spec.network;
    match random() % 12 {
        0..=5 => {
            let mut subnets: Vec<Value> =
                (0..3).filter(|zone| value >> zone & 1 == 1).flat_map(|zone| in_zones(&[zone])).collect();
            if value & 8 != 0 {
                subnets.push(
                    json!({"id": "more", "cidrBlock": "10.0.30.0/24", "availabilityZone": ZONES[value % 3], "isPublic": value & 16 != 0}),
                );
            }
            if value & 32 != 0 {
                subnets.reverse();
            }
            if value & 192 == 0 && !subnets.is_empty() {
                let which = value % subnets.len();
                subnets.remove(which);
            }
            if value & 0x700 == 0 && !subnets.is_empty() {
                let which = value % subnets.len();
                subnets[which]["isPublic"] = json!(value & 0x800 != 0);
            }
            network.subnets = serde_json::from_value(Value::Array(subnets)).expect("subnets");
        }
        6 => network.vpc.availability_zone_usage_limit = (1 + value % 4) as _,
        7 => network.vpc.cidr_block = ["", "10.0.0.0/16", "10.1.0.0/16", "10.0.0.0/20"][value % 4].into(),
        8 => network.vpc.id = ["", "vpc-of-another"][value % 2].into(),
        9 => {
            let zones = ["us-east-1c", "us-east-1d,us-east-1a", "nonsense"][value % 3];
            let annotations = fleet.aws_cluster.metadata.annotations.get_or_insert_default();
            match value & 64 {
                0 => drop(annotations.remove(infra::ZONES_ANNOTATION)),
                _ => drop(annotations.insert(infra::ZONES_ANNOTATION.into(), zones.into())),
            }
        }
        10 => fleet.aws_cluster.spec.control_plane_load_balancer.cross_zone_load_balancing = value & 1 == 1,
        _ => drop(fleet.aws_cluster.spec.additional_tags.insert("team".into(), value.to_string())),
    }
    serde_json::to_string(&fleet.aws_cluster.spec.network).expect("a network")
}

/// Seeds of the lives that are tried: `EDITED_LIVES` has how many, or `FROM..TO`.
fn lives() -> std::ops::Range<u64> {
    let chosen = std::env::var("EDITED_LIVES").unwrap_or_else(|_| "100".into());
    let (from, to) = chosen.split_once("..").unwrap_or(("0", &chosen));
    from.parse().expect("a number")..to.parse().expect("a number")
}

#[test]
fn no_edit_takes_anything_from_a_machine_that_lives() {
    for seed in lives() {
        let mut random = numbers(seed + 1);
        let faults = Faults {
            throttled: 5,
            lost_request: 4,
            lost_reply: 6,
            crash: 4,
            failed_start: 5,
            lag: 2,
            swing: true,
        };
        let mut world = World::new(seed, Faults::default());
        let network = if seed % 3 == 0 { json!({}) } else { json!({"subnets": in_zones(&[0, 1])}) };
        let kind = if seed % 2 == 0 { "classic" } else { "nlb" };
        let mut fleet = Fleet::new(
            "prod",
            json!({"network": network, "controlPlaneLoadBalancer": {"loadBalancerType": kind}}),
        );
        fleet.any_spec = true;
        fleet.add_machine("control-plane-0", true, json!({}));
        fleet.add_machine("worker-0", false, json!({}));
        fleet.settle(&mut world);
        world.faults = faults;
        let mut edits = Vec::new();
        for n in 0..2 + random() % 8 {
            edits.push(edit(&mut fleet, &mut random));
            if random().is_multiple_of(4) {
                fleet.add_machine(&format!("worker-{}", n + 1), false, json!({}));
            }
            if random().is_multiple_of(6) {
                let name = fleet.machines.keys().next().cloned();
                name.iter().for_each(|it| fleet.delete_machine(it));
            }
            for _ in 0..random() % 12 {
                fleet.look_unchecked(&mut world);
                fleet.look_at_machines(&mut world);
                world.tick();
            }
            assert_eq!(world.cut_off, Vec::<String>::new(), "seed {seed}: {edits:#?}");
        }
        world.faults = Faults::default();
        for _ in 0..150 {
            fleet.look_unchecked(&mut world);
            fleet.look_at_machines(&mut world);
            world.tick();
        }
        // After a death between a deletion and its record, AWS answers the old token for as long as it knows
        // it.
        let mut looks = 0;
        while !fleet.decide(&mut world).plan.actions.is_empty() && looks < 100 {
            looks += 1;
            fleet.look_unchecked(&mut world);
            fleet.look_at_machines(&mut world);
            world.tick();
        }
        assert_eq!(world.cut_off, Vec::<String>::new(), "seed {seed}: {edits:#?}");
        let decision = fleet.decide(&mut world);
        let plan = &decision.plan;
        let says = decision.invalid.is_some() || !plan.blocked.is_empty() || !plan.waiting.is_empty();
        assert!(
            says || plan.actions.is_empty(),
            "seed {seed}: nobody says for whom it waits: {plan}\n{edits:#?}"
        );
        let there: BTreeSet<&str> = world.truth.subnets.iter().map(|it| it.cidr.as_str()).collect();
        let listed = &fleet.aws_cluster.spec.network.subnets;
        let has_all = listed.iter().all(|it| there.contains(it.cidr_block.as_str()));
        assert!(says || has_all, "seed {seed}: {edits:#?}");
        let strangers = decision
            .observed
            .iter()
            .filter(|(key, it)| key.kind == Kind::Subnet && it.owner == model::Owner::Mine);
        for (key, seen) in strangers.filter(|_| !listed.is_empty() && decision.invalid.is_none()) {
            let Resource::Subnet(Subnet { cidr, .. }) = &seen.is else { continue };
            let is_listed = listed.iter().any(|it| it.cidr_block == *cidr);
            let is_said = !decision.held.is_empty() || says;
            assert!(is_listed || is_said, "seed {seed}: {key} stays and nobody says why: {plan}\n{edits:#?}");
        }
        fleet.any_spec = true;
        fleet.delete(&world);
        for _ in 0..400 {
            fleet.look_unchecked(&mut world);
            fleet.look_at_machines(&mut world);
            world.tick();
            if fleet.finished {
                break;
            }
        }
        assert_eq!(world.inventory(), Vec::<String>::new(), "seed {seed}: {edits:#?}");
    }
}
