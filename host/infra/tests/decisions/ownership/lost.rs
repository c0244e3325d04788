//! Things that were lost, that reads do not show, or whose tags somebody removed: nothing is made twice.

use crate::world::driver::{fresh, settled};
use model::{Outcome, Part, Read, Tags};
use serde_json::json;

#[test]
fn a_lost_load_balancer_and_a_lost_vpc_are_never_replaced() {
    let (mut world, mut fleet) = settled(json!({}));
    // Longer than reads may lag.
    (0..7).for_each(|_| world.tick());
    world.truth.load_balancers.clear();
    world.truth.network_interfaces.clear();
    let calls = world.log.iter().filter(|(_, it)| matches!(it, Outcome::Done)).count();
    let decision = fleet.decide(&mut world);
    assert!(decision.plan.blocked.is_empty(), "it is asked for by its name first");
    fleet.reconcile(&mut world);
    let decision = fleet.decide(&mut world);
    assert!(
        decision
            .plan
            .blocked
            .iter()
            .any(|(key, why)| key.to_string() == "load-balancer/apiserver" && why.starts_with("lost: "))
    );
    assert!(decision.plan.actions.is_empty(), "{}", decision.plan);
    assert_eq!(world.log.len(), calls + 1, "nothing but one question was asked");
}

#[test]
fn a_target_group_without_load_balancer_goes_with_the_cluster() {
    let (mut world, mut fleet) = settled(json!({"controlPlaneLoadBalancer": {"loadBalancerType": "nlb"}}));
    assert_eq!(world.target_groups.len(), 1);
    world.truth.load_balancers.clear();
    world.truth.network_interfaces.clear();
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
    assert_eq!(world.log.iter().filter(|(what, _)| what.starts_with("delete  load-balancer/")).count(), 1);
}

#[test]
fn a_cluster_is_not_gone_before_reads_show_earlier_writes() {
    let (mut world, mut fleet) = fresh(json!({}));
    let created = format!("{:.0} {:.3}", world.now, world.now - 100.0);
    fleet
        .aws_cluster
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(infra::CREATED_ANNOTATION.into(), created);
    fleet.delete(&world);
    assert!(!fleet.decide(&mut world).finished);
    (0..7).for_each(|_| world.tick());
    assert!(fleet.decide(&mut world).finished);
}

#[test]
fn nothing_is_concluded_from_what_was_never_read() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.add_machine("control-plane-0", true, json!({}));
    let mut snapshot = fleet.snapshot(&mut world);
    for read in [Read::LoadBalancers, Read::TargetGroups] {
        snapshot.read_at.remove(&read);
    }
    assert!(fleet.decide_with(&mut world, &snapshot).plan.is_settled(), "its load balancer is a classic one");
    assert!(!fleet.decide_machine_with(&mut world, "control-plane-0", &snapshot).plan.actions.is_empty());
    for (read, machines) in [
        (Read::Addresses, [true, true]),
        (Read::ClassicLoadBalancers, [true, false]),
        (Read::Vpcs, [false, false]),
    ] {
        let mut snapshot = fleet.snapshot(&mut world);
        snapshot.read_at.remove(&read);
        let decision = fleet.decide_with(&mut world, &snapshot);
        assert!(
            decision.plan.actions.is_empty() && decision.interest.needs(&Part::Kind(read)),
            "{read:?}: {}",
            decision.plan
        );
        for (name, goes_on) in ["worker-0", "control-plane-0"].into_iter().zip(machines) {
            let decision = fleet.decide_machine_with(&mut world, name, &snapshot);
            assert_eq!(
                (!decision.plan.actions.is_empty(), decision.waits.is_none()),
                (goes_on, goes_on),
                "{read:?} {name}"
            );
        }
    }
}

#[test]
fn a_cluster_is_not_gone_while_its_addresses_were_never_read() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.delete(&world);
    while !fleet.finished && world.truth.vpcs.len() == 1 {
        fleet.reconcile(&mut world);
        world.tick();
    }
    let address = model::FoundAddress {
        id: "eipalloc-left".into(),
        public_ip: "198.51.100.9".into(),
        association_id: None,
        network_interface_id: None,
        tags: Tags::new(),
    };
    world.truth.addresses.push(address);
    let mut snapshot = fleet.snapshot(&mut world);
    snapshot.read_at.remove(&Read::Addresses);
    snapshot.addresses = Default::default();
    assert!(!fleet.decide_with(&mut world, &snapshot).finished);
    assert!(fleet.decide(&mut world).finished, "that one is somebody else's");
}

const CLUSTER_TAG: &str = "sigs.k8s.io/cluster-api-provider-aws/cluster/prod";

#[test]
fn a_vpc_without_its_cluster_tag_is_tagged_again_and_kept() {
    for changed in [None, Some("shared")] {
        let (mut world, mut fleet) = settled(json!({}));
        let before = world.inventory();
        let tags = &mut world.truth.vpcs[0].tags;
        tags.remove(CLUSTER_TAG);
        tags.extend(changed.map(|it| (CLUSTER_TAG.to_owned(), it.to_owned())));
        let calls = world.log.len();
        fleet.settle(&mut world);
        assert_eq!(world.truth.vpcs[0].tags[CLUSTER_TAG], "owned");
        assert_eq!(world.inventory(), before);
        assert!(
            world.log[calls..]
                .iter()
                .all(|(what, _)| what.starts_with("confirm ") || what.starts_with("tag ")),
            "{:?}",
            world.log
        );
        fleet.delete(&world);
        fleet.settle(&mut world);
        assert_eq!(world.inventory(), Vec::<String>::new());
    }
}

#[test]
fn a_vpc_without_tags_of_ours_blocks_all_until_it_has_them_again() {
    let (mut world, mut fleet) = settled(json!({}));
    let before = world.inventory();
    let tags = std::mem::take(&mut world.truth.vpcs[0].tags);
    for deleting in [false, true] {
        if deleting {
            fleet.delete(&world);
        }
        for _ in 0..10 {
            fleet.reconcile_unchecked(&mut world);
            world.tick();
        }
        let decision = fleet.decide(&mut world);
        assert_eq!((decision.plan.actions.len(), decision.finished), (0, false), "{}", decision.plan);
        let why = &decision.plan.blocked[0].1;
        assert!(
            why.contains(CLUSTER_TAG) && why.contains("cluster.kurator.dev/id with the value of"),
            "{why}"
        );
        assert_eq!(world.inventory(), before);
    }
    world.truth.vpcs[0].tags = tags;
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}
