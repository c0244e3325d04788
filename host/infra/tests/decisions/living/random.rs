//! Random edits of the network, with everything that can go wrong meanwhile.

use super::{ZONES, in_zones};
use crate::world::driver::Fleet;
use crate::world::{Faults, World, numbers};
use model::{Kind, Resource, Subnet};
use serde_json::{Value, json};
use std::collections::BTreeSet;

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

/// What is not carried out of the last edit is reported.
fn check_reported(fleet: &Fleet, world: &mut World, life: &str) {
    let decision = fleet.decide(world);
    let plan = &decision.plan;
    let says = decision.invalid.is_some() || !plan.blocked.is_empty() || !plan.waiting.is_empty();
    assert!(says || plan.actions.is_empty(), "{life}: nobody says for whom it waits: {plan}");
    let there: BTreeSet<&str> = world.truth.subnets.iter().map(|it| it.cidr.as_str()).collect();
    let listed = &fleet.aws_cluster.spec.network.subnets;
    let has_all = listed.iter().all(|it| there.contains(it.cidr_block.as_str()));
    assert!(says || has_all, "{life}");
    let strangers = decision
        .observed
        .iter()
        .filter(|(key, it)| key.kind == Kind::Subnet && it.owner == model::Owner::Mine);
    for (key, observed) in strangers.filter(|_| !listed.is_empty() && decision.invalid.is_none()) {
        let Resource::Subnet(Subnet { cidr, .. }) = &observed.is else { continue };
        let is_listed = listed.iter().any(|it| it.cidr_block == *cidr);
        let is_said = !decision.held.is_empty() || says;
        assert!(is_listed || is_said, "{life}: {key} stays and nobody says why: {plan}");
    }
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
                fleet.reconcile_unchecked(&mut world);
                fleet.reconcile_machines(&mut world);
                world.tick();
            }
            assert_eq!(world.cut_off, Vec::<String>::new(), "seed {seed}: {edits:#?}");
        }
        world.faults = Faults::default();
        for _ in 0..150 {
            fleet.reconcile_unchecked(&mut world);
            fleet.reconcile_machines(&mut world);
            world.tick();
        }
        // After a death between a deletion and its record, AWS answers the old token for as long as it knows
        // it.
        let mut rounds = 0;
        while !fleet.decide(&mut world).plan.actions.is_empty() && rounds < 100 {
            rounds += 1;
            fleet.reconcile_unchecked(&mut world);
            fleet.reconcile_machines(&mut world);
            world.tick();
        }
        assert_eq!(world.cut_off, Vec::<String>::new(), "seed {seed}: {edits:#?}");
        check_reported(&fleet, &mut world, &format!("seed {seed}: {edits:#?}"));
        fleet.any_spec = true;
        fleet.delete(&world);
        for _ in 0..400 {
            fleet.reconcile_unchecked(&mut world);
            fleet.reconcile_machines(&mut world);
            world.tick();
            if fleet.finished {
                break;
            }
        }
        assert_eq!(world.inventory(), Vec::<String>::new(), "seed {seed}: {edits:#?}");
    }
}
