//! Subnets of a cluster that lives: their names, whether they are public, and their way out.

use super::{ZONES, calls, condition_of, in_zones, living, reconcile, set_subnets, subnet};
use crate::world::driver::{Fleet, settled};
use crate::world::{Faults, World};
use crds::conditions::cluster::SUBNETS_READY;
use model::State;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
    reconcile(&mut fleet, &mut world, 20);
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
    reconcile(&mut fleet, &mut world, 20);
    let tags = |it: &String| it.starts_with("tag ") || it == "confirm load-balancer/apiserver";
    assert!(calls(&world).iter().all(tags), "none is remade: {:#?}", calls(&world));
    world.log.clear();
    set_subnets(&mut fleet, &[second.clone(), subnet(0, true)]);
    reconcile(&mut fleet, &mut world, 20);
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
    reconcile(&mut fleet, &mut world, 10);
    assert_eq!(calls(&world), Vec::<String>::new());
    let (_, message) = condition_of(&fleet, &mut world, SUBNETS_READY);
    assert!(message.contains("isPublic of") && message.contains("instance i-"), "{message}");
}

#[test]
fn a_subnet_becomes_public_when_it_is_certain_that_nothing_is_in_it() {
    let more = |public: bool| json!({"id": "more", "cidrBlock": "10.0.30.0/24", "availabilityZone": ZONES[0], "isPublic": public});
    let listed = |public: bool| [in_zones(&[0]), vec![more(public)]].concat();
    let (mut fleet, mut world) = living(&[0]);
    set_subnets(&mut fleet, &listed(false));
    reconcile(&mut fleet, &mut world, 20);
    let subnet =
        world.truth.subnets.iter().find(|it| it.cidr == "10.0.30.0/24").cloned().expect("it was made");
    // As a mount target of a file system is: nothing but its interface shows it.
    let mut interface = world.truth.network_interfaces[0].clone();
    (interface.id, interface.subnet_id, interface.attached_instance) =
        ("eni-of-mount-target".into(), subnet.id.clone(), None);
    (interface.description, interface.interface_type) = ("EFS mount target for fs-1".into(), "efs".into());
    world.truth.network_interfaces.push(interface);
    set_subnets(&mut fleet, &listed(true));
    reconcile(&mut fleet, &mut world, 20);
    let is_public = |world: &World| world.truth.subnets.iter().any(|it| it.id == subnet.id && it.public);
    let (_, message) = condition_of(&fleet, &mut world, SUBNETS_READY);
    assert!(!is_public(&world) && message.contains("eni-of-mount-target"), "{message}");
    world.truth.network_interfaces.retain(|it| it.id != "eni-of-mount-target");
    // What the process before this one made last may be hidden from reads for a while.
    fleet.restart(&mut world);
    let restarted = world.now;
    while !is_public(&world) {
        reconcile(&mut fleet, &mut world, 1);
        assert!(world.now < restarted + 200.0, "{:?}", condition_of(&fleet, &mut world, SUBNETS_READY));
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
        let (mut world, mut fleet) = settled(json!({"network": {"subnets": listed(&before)}}));
        set_subnets(&mut fleet, &listed(&after));
        fleet.add_machine("worker-0", false, json!({}));
        fleet.machines.get_mut("worker-0").expect("a machine").0.spec.failure_domain = Some(ZONES[1].into());
        let mut waited = BTreeSet::new();
        while world.truth.instances.is_empty() {
            reconcile(&mut fleet, &mut world, 1);
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
