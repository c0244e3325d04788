//! What is done for paused objects: nothing but that they can be moved, once reads tell what became of each
//! attempt to make something.

use crate::simulation::{NO_FAULTS, network, spec};
use crate::world::driver::Fleet;
use crate::world::objects::patched;
use crate::world::{Faults, Hindrance, Mishap, World};
use crds::names::{BLOCK_MOVE_ANNOTATION, INTENT_ANNOTATION};
use infra::{machine, pause};
use model::{Interest, Read, Timestamp};
use serde_json::json;

fn of_cluster(fleet: &Fleet, world: &mut World, stopped: Timestamp) -> Option<Interest> {
    let snapshot = fleet.snapshot(world);
    fleet.with_input(world.now, &snapshot, |input| pause::of_cluster(&input, stopped))
}

fn of_machine(fleet: &Fleet, world: &mut World, name: &str, stopped: Timestamp) -> Option<Interest> {
    let snapshot = fleet.snapshot(world);
    fleet.with_machine_input(name, world.now, &snapshot, |input| {
        pause::of_machine(&machine::Input { bootstrap: None, ..input }, stopped)
    })
}

fn annotations(fleet: &Fleet) -> (bool, bool) {
    let all = fleet.aws_cluster.metadata.annotations.clone().unwrap_or_default();
    (all.contains_key(INTENT_ANNOTATION), all.contains_key(BLOCK_MOVE_ANNOTATION))
}

/// A cluster of which the answer to a write was lost this moment, after which a kind of read fails for as
/// many rounds.
fn lost(write: &str, read: Read, rounds: u32) -> (World, Fleet) {
    let mut world = World::new(3, NO_FAULTS);
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    fleet.add_machine("worker-0", false, json!({}));
    world.mishap = Some(Mishap {
        write: write.into(),
        read,
        hindrance: Hindrance::Fails,
        rounds,
        kills: false,
        left: None,
    });
    while world.mishap.as_ref().is_some_and(|it| it.left.is_none()) {
        world.tick();
        fleet.reconcile(&mut world);
        fleet.reconcile_machines(&mut world);
    }
    (world, fleet)
}

#[test]
fn a_paused_cluster_can_be_moved_once_a_read_shows_what_was_made() {
    let (mut world, mut fleet) = lost("create  nat-gateway/", Read::NatGateways, 3);
    let (stopped, calls) = (world.now, world.log.len());
    assert_eq!(annotations(&fleet), (true, true));
    for _ in 0..3 {
        let awaited = of_cluster(&fleet, &mut world, stopped).expect("nobody knows yet");
        assert!(awaited.reads.contains(&Read::NatGateways), "{awaited:?}");
        world.tick();
    }
    assert_eq!(of_cluster(&fleet, &mut world, stopped), None, "it is on its way, and it is there");
    let patch = pause::unblock_move(&fleet.aws_cluster.metadata).expect("it can be moved");
    fleet.aws_cluster = patched(&fleet.aws_cluster, &patch);
    assert_eq!(
        annotations(&fleet),
        (true, false),
        "where it is moved to, it is known with what it was begun"
    );
    assert_eq!(pause::unblock_move(&fleet.aws_cluster.metadata), None);
    assert_eq!(world.log.len(), calls);
    fleet.settle(&mut world);
    let mut expected = network(1, "classic");
    expected.extend(crate::simulation::counts(&[("instance", 1), ("secret", 1)]));
    assert_eq!(world.counts(), expected);
    assert_eq!(annotations(&fleet), (false, false));
}

#[test]
fn a_paused_cluster_can_be_moved_once_reads_show_every_attempt() {
    let mut world = World::new(3, Faults { lost_request: 100, ..NO_FAULTS });
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    fleet.reconcile(&mut world);
    assert!(annotations(&fleet).1 && world.truth.vpcs.is_empty());
    let stopped = world.now;
    while world.now < stopped + 30.0 {
        let awaited = of_cluster(&fleet, &mut world, stopped).expect("a read may lack it");
        assert!(awaited.reads.contains(&Read::Vpcs), "{awaited:?}");
        world.tick();
    }
    assert_eq!(of_cluster(&fleet, &mut world, stopped), None);
}

#[test]
fn a_paused_machine_can_be_moved_once_a_read_shows_its_instance() {
    let (mut world, fleet) = lost("create  instance/", Read::Instances, 3);
    let stopped = world.now;
    for _ in 0..3 {
        let awaited = of_machine(&fleet, &mut world, "worker-0", stopped).expect("nobody knows yet");
        assert!(awaited.reads.contains(&Read::Instances), "{awaited:?}");
        world.tick();
    }
    assert_eq!(of_machine(&fleet, &mut world, "worker-0", stopped), None);
    let metadata = &fleet.machines["worker-0"].1.metadata;
    assert!(pause::blocks_move(metadata) && pause::unblock_move(metadata).is_some());
}

#[test]
fn a_paused_object_without_attempts_needs_no_reads() {
    let mut world = World::new(3, NO_FAULTS);
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    fleet.settle(&mut world);
    let stopped = world.now;
    assert_eq!(of_cluster(&fleet, &mut world, stopped), None);
    fleet
        .aws_cluster
        .metadata
        .annotations
        .get_or_insert_default()
        .insert(BLOCK_MOVE_ANNOTATION.into(), "by hand".into());
    assert!(!pause::blocks_move(&fleet.aws_cluster.metadata));
    assert_eq!(pause::unblock_move(&fleet.aws_cluster.metadata), None);
}
