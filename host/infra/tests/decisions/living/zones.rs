//! Zones that are added to and taken from a cluster that lives.

use super::{ZONES, calls, condition_of, in_zones, living, reconcile, set_subnets};
use crate::world::World;
use crate::world::driver::settled;
use crds::conditions::READY;
use crds::conditions::cluster::SUBNETS_READY;
use model::State;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn an_unlisted_zone_stays_as_long_as_a_machine_is_in_it() {
    let (mut fleet, mut world) = living(&[0, 1]);
    set_subnets(&mut fleet, &in_zones(&[0]));
    reconcile(&mut fleet, &mut world, 20);
    assert_eq!(calls(&world), Vec::<String>::new());
    let (status, message) = condition_of(&fleet, &mut world, SUBNETS_READY);
    assert_eq!(status, "True");
    for part in
        ["is not in spec.network.subnets any more", "AWSMachine default/worker-0", "list the subnet again"]
    {
        assert!(message.contains(part), "{message}");
    }
    assert!(condition_of(&fleet, &mut world, READY).1.contains("worker-0"));
    fleet.add_machine("worker-1", false, json!({}));
    reconcile(&mut fleet, &mut world, 5);
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
    let domains = fleet.status(world.now, &snapshot, &decision, &[], None).failure_domains;
    assert_eq!(domains.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["us-east-1a"]);

    fleet.delete_machine("worker-0");
    world.log.clear();
    reconcile(&mut fleet, &mut world, 40);
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
    assert_eq!(condition_of(&fleet, &mut world, SUBNETS_READY), ("True".to_owned(), String::new()));
}

#[test]
fn a_zone_is_added_by_additions_alone() {
    let (mut fleet, mut world) = living(&[0]);
    set_subnets(&mut fleet, &in_zones(&[1, 0]));
    reconcile(&mut fleet, &mut world, 30);
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
fn a_zone_unlisted_while_it_is_made_is_made_when_listed_again() {
    for rounds in 1..16 {
        let (mut fleet, mut world) = living(&[0]);
        set_subnets(&mut fleet, &in_zones(&[0, 1]));
        reconcile(&mut fleet, &mut world, rounds);
        set_subnets(&mut fleet, &in_zones(&[0]));
        reconcile(&mut fleet, &mut world, 40);
        assert_eq!(world.counts()["subnet"], 2, "{rounds}");
        set_subnets(&mut fleet, &in_zones(&[0, 1]));
        reconcile(&mut fleet, &mut world, 40);
        assert_eq!((world.counts()["subnet"], world.counts()["route-table"]), (4, 4), "{rounds}");
        let plan = fleet.decide(&mut world).plan;
        assert!(plan.actions.is_empty() && plan.waiting.is_empty(), "{rounds}: {plan}");
    }
}

#[test]
fn listing_a_new_zone_alone_leaves_the_old_ones_their_way_out() {
    let (mut world, mut fleet) =
        settled(json!({"network": {"vpc": {"cidrBlock": "10.0.0.0/16", "availabilityZoneUsageLimit": 2}}}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    world.log.clear();
    let free = json!([
        {"id": "public-c", "cidrBlock": "10.0.192.0/24", "availabilityZone": "us-east-1c", "isPublic": true},
        {"id": "private-c", "cidrBlock": "10.0.193.0/24", "availabilityZone": "us-east-1c"},
    ]);
    set_subnets(&mut fleet, free.as_array().expect("a list"));
    reconcile(&mut fleet, &mut world, 40);
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
fn the_example_in_the_docs_adds_a_zone_to_an_unlisted_network() {
    let text = include_str!("../../../../../docs/changing-a-cluster.md");
    let example = text.lines().skip_while(|it| it.trim() != "subnets:").take_while(|it| !it.is_empty());
    let subnets: Vec<Value> = example.filter(|it| it.trim().starts_with("- {")).map(element).collect();
    assert_eq!(subnets.len(), 6);
    let (mut world, mut fleet) = settled(json!({"network": {"vpc": {"availabilityZoneUsageLimit": 2}}}));
    let before: BTreeSet<String> = world.truth.subnets.iter().map(|it| it.id.clone()).collect();
    world.log.clear();
    set_subnets(&mut fleet, &subnets);
    reconcile(&mut fleet, &mut world, 30);
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
    assert_eq!(condition_of(&fleet, &mut world, READY), ("True".to_owned(), String::new()));
}

#[test]
fn zones_that_somebody_wrote_over_take_no_subnet_away() {
    for zones in [None, Some("us-east-1c,us-east-1d"), Some("us-east-1a")] {
        let (mut world, mut fleet) = settled(json!({"network": {"vpc": {"availabilityZoneUsageLimit": 2}}}));
        let before = world.inventory();
        fleet.aws_cluster.spec.network.vpc.availability_zone_usage_limit = 3;
        let annotations = fleet.aws_cluster.metadata.annotations.as_mut().expect("annotations");
        annotations.remove(infra::ZONES_ANNOTATION);
        annotations.extend(zones.map(|it| (infra::ZONES_ANNOTATION.to_owned(), it.to_owned())));
        reconcile(&mut fleet, &mut world, 20);
        assert_eq!(world.inventory(), before, "{zones:?}");
    }
}

#[test]
fn a_zone_that_is_not_available_stops_only_what_would_be_made_in_it() {
    let (mut fleet, mut world) = living(&[0, 1]);
    world.truth.zones = vec![ZONES[0].into(), ZONES[2].into()];
    set_subnets(&mut fleet, &in_zones(&[0, 1, 2]));
    fleet.add_machine("worker-1", false, json!({}));
    reconcile(&mut fleet, &mut world, 30);
    assert_eq!((world.counts()["subnet"], world.counts()["instance"]), (6, 3));
    world.truth.zones = vec![ZONES[1].into(), ZONES[2].into()];
    let mut four = in_zones(&[0, 1, 2]);
    four.extend([
        json!({"id": "new", "cidrBlock": "10.0.40.0/24", "availabilityZone": "us-east-1d", "isPublic": true}),
        json!({"id": "other", "cidrBlock": "10.0.41.0/24", "availabilityZone": "us-east-1b"}),
    ]);
    set_subnets(&mut fleet, &four);
    reconcile(&mut fleet, &mut world, 30);
    assert_eq!(world.counts()["subnet"], 7);
    let (status, message) = condition_of(&fleet, &mut world, SUBNETS_READY);
    assert!(status == "False" && message.contains("us-east-1d"), "{message}");
}
