//! Edits of a cluster that lives: whatever somebody writes into its spec, nothing that a machine uses is
//! taken from it, and what is not carried out is said.

mod held;
mod random;
mod subnets;
mod zones;

use crate::world::World;
use crate::world::driver::{Fleet, settled};
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
    let (mut world, mut fleet) = settled(json!({"network": {"subnets": in_zones(zones)}}));
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

fn reconcile(fleet: &mut Fleet, world: &mut World, rounds: usize) {
    for _ in 0..rounds {
        fleet.reconcile_unchecked(world);
        fleet.reconcile_machines(world);
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

fn condition_of(fleet: &Fleet, world: &mut World, condition: &str) -> (String, String) {
    let snapshot = fleet.snapshot(world);
    let decision = fleet.decide_with(world, &snapshot);
    let status = fleet.status(world.now, &snapshot, &decision, &[], None);
    let found = status.conditions.into_iter().find(|it| it.type_ == condition).expect("the condition");
    (found.status, found.message)
}
