//! Whole lives of clusters against a pretend AWS that has rules of its own, with everything that can go wrong
//! on the way: it ends where it should, nothing is made twice, nothing is left, and what is not ours stays.

use std::collections::BTreeMap;

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use model::{Kind, Outcome, State, Tags};
use serde_json::json;

pub const NO_FAULTS: Faults =
    Faults { throttled: 0, lost_request: 0, lost_reply: 0, crash: 0, failed_start: 0, lag: 0, swing: false };
const ALL_FAULTS: Faults = Faults {
    throttled: 10,
    lost_request: 8,
    lost_reply: 10,
    crash: 8,
    failed_start: 15,
    lag: 3,
    swing: true,
};

pub fn counts(list: &[(&str, usize)]) -> BTreeMap<String, usize> {
    list.iter().map(|(kind, count)| (kind.to_string(), *count)).collect()
}

pub fn network(zones: usize, kind: &str) -> BTreeMap<String, usize> {
    let mut res = counts(&[
        ("vpc", 1),
        ("subnet", 2 * zones),
        ("internet-gateway", 1),
        ("nat-gateway", zones),
        ("elastic-ip", zones),
        ("route-table", 2 * zones),
        ("security-group", 4),
        ("load-balancer", 1),
    ]);
    res.extend(counts(&[("target-group", 1)]).into_iter().filter(|_| kind == "nlb"));
    res
}

pub fn spec(zones: usize, kind: &str, scheme: &str) -> serde_json::Value {
    json!({
        "network": {"vpc": {"availabilityZoneUsageLimit": zones}},
        "controlPlaneLoadBalancer": {"loadBalancerType": kind, "scheme": scheme},
    })
}

fn assert_never_refused(world: &World) {
    let refused: Vec<_> = world.log.iter().filter(|(_, outcome)| !matches!(outcome, Outcome::Done)).collect();
    assert!(refused.is_empty(), "AWS refused what the plan asked for: {refused:#?}");
}

#[test]
fn a_cluster_comes_and_goes_without_one_refused_call() {
    for (zones, kind, scheme) in [
        (1, "classic", "internet-facing"),
        (3, "classic", "internal"),
        (2, "nlb", "internet-facing"),
        (1, "nlb", "internal"),
    ] {
        let mut world = World::new(1, NO_FAULTS);
        let mut fleet = Fleet::new("prod", spec(zones, kind, scheme));
        fleet.settle(&mut world);
        assert_eq!(world.counts(), network(zones, kind), "{kind} {scheme}");
        let calls = world.log.len();
        for _ in 0..3 {
            fleet.reconcile(&mut world);
            world.tick();
        }
        assert_eq!(world.log.len(), calls, "a settled cluster makes no calls");
        fleet.delete(&world);
        fleet.settle(&mut world);
        assert_eq!(world.inventory(), Vec::<String>::new());
        assert_never_refused(&world);
    }
}

#[test]
fn an_operator_that_starts_anew_reads_and_writes_nothing_in_aws() {
    for kind in ["classic", "nlb"] {
        let mut world = World::new(1, NO_FAULTS);
        let mut fleet = Fleet::new("prod", spec(2, kind, "internet-facing"));
        fleet.add_machine("control-plane-0", true, json!({}));
        fleet.settle(&mut world);
        let before = world.log.len();
        fleet.restart(&mut world);
        fleet.settle(&mut world);
        let calls: Vec<_> = world.log.drain(before..).map(|it| it.0).collect();
        assert!(
            matches!(&calls[..], [it] if it.starts_with("confirm load-balancer/apiserver ")),
            "{calls:?}"
        );

        // What somebody else set meanwhile is set back.
        let set = world.attributes.clone();
        world.attributes.values_mut().for_each(|it| it.cross_zone = !it.cross_zone);
        fleet.restart(&mut world);
        fleet.settle(&mut world);
        let calls: Vec<_> = world.log.drain(before..).map(|it| it.0).collect();
        assert!(
            matches!(&calls[..], [_, it] if it.starts_with("update  load-balancer/apiserver ")),
            "{calls:?}"
        );
        assert_eq!(world.attributes, set);
    }
}

#[test]
fn machines_come_and_go_with_their_cluster() {
    let mut world = World::new(2, NO_FAULTS);
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    fleet.settle(&mut world);
    fleet.add_machine("control-plane-0", true, json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    let instances: Vec<_> =
        world.truth.instances.iter().map(|it| (it.tags["Name"].clone(), it.status.state.clone())).collect();
    assert_eq!(
        instances,
        [("control-plane-0".into(), "running".into()), ("worker-0".to_string(), "running".to_string())]
    );
    assert_eq!(world.truth.load_balancers[0].targets.len(), 1);
    assert_eq!(world.secrets.len(), 2);
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
    assert_never_refused(&world);
}

#[test]
fn everything_that_can_go_wrong_leaves_the_exact_set() {
    for seed in 0..60 {
        let mut world = World::new(seed, ALL_FAULTS);
        let zones = 1 + seed as usize % 3;
        let kind = if seed % 2 == 0 { "classic" } else { "nlb" };
        let mut fleet = Fleet::new("prod", spec(zones, kind, "internet-facing"));
        fleet.add_machine("control-plane-0", true, json!({}));
        fleet.add_machine("worker-0", false, json!({}));
        fleet.settle(&mut world);
        settle_after_faults(&mut world, &mut fleet);
        let mut expected = network(zones, kind);
        expected.extend(counts(&[("instance", 2), ("secret", 2)]));
        assert_eq!(world.counts(), expected, "seed {seed}: {:#?}", world.inventory());
        world.faults = ALL_FAULTS;
        fleet.delete(&world);
        fleet.settle(&mut world);
        assert_eq!(world.inventory(), Vec::<String>::new(), "seed {seed}");
    }
}

#[test]
fn a_cluster_deleted_in_the_middle_of_its_creation_leaves_nothing() {
    for seed in 0..60 {
        let mut world = World::new(seed, ALL_FAULTS);
        let mut fleet = Fleet::new("prod", spec(1 + seed as usize % 2, "classic", "internet-facing"));
        fleet.add_machine("worker-0", false, json!({}));
        for _ in 0..seed % 20 {
            fleet.reconcile(&mut world);
            fleet.reconcile_machines(&mut world);
            world.tick();
        }
        fleet.delete(&world);
        fleet.settle(&mut world);
        assert_eq!(world.inventory(), Vec::<String>::new(), "seed {seed}");
    }
}

/// A fleet whose only machine was made this moment, and of which reads show nothing yet to a process that has
/// just started.
fn restarted_behind_reads() -> (World, Fleet) {
    let mut world = World::new(4, NO_FAULTS);
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    fleet.settle(&mut world);
    (0..12).for_each(|_| world.tick());
    fleet.add_machine("worker-0", false, json!({}));
    while fleet.machines["worker-0"].1.spec.provider_id.is_none() {
        fleet.reconcile_machines(&mut world);
    }
    world.faults.lag = 3;
    fleet.restart(&mut world);
    assert!(fleet.snapshot(&mut world).instances.is_empty());
    (world, fleet)
}

#[test]
fn an_instance_not_shown_yet_is_not_lost_and_keeps_its_secret() {
    let (mut world, mut fleet) = restarted_behind_reads();
    for _ in 0..20 {
        fleet.reconcile_machines(&mut world);
        assert_eq!(fleet.decide_machine(&mut world, "worker-0").failed, None);
        assert_eq!(world.secrets.len(), 1);
        world.tick();
    }
    assert!(fleet.reconcile_machines(&mut world));
    assert_eq!(world.truth.instances.len(), 1);
}

#[test]
fn a_machine_deleted_before_reads_show_its_instance_leaves_nothing() {
    let (mut world, mut fleet) = restarted_behind_reads();
    fleet.delete_machine("worker-0");
    fleet.settle(&mut world);
    assert!(fleet.machines.is_empty() && world.secrets.is_empty());
    assert!(
        world.truth.instances.iter().all(|it| it.status.state == "terminated"),
        "{:#?}",
        world.inventory()
    );
}

#[test]
fn an_instance_that_is_lost_is_found_to_be_so_also_after_a_restart() {
    let (mut world, mut fleet) = restarted_behind_reads();
    world.truth.instances.clear();
    world.truth.network_interfaces.retain(|it| it.attached_instance.is_none());
    for _ in 0..20 {
        fleet.reconcile_machines(&mut world);
        assert_eq!(
            fleet.decide_machine(&mut world, "worker-0").failed,
            None,
            "EC2 may take minutes to show what is there"
        );
        world.tick();
    }
    for _ in 0..50 {
        fleet.reconcile_machines(&mut world);
        world.tick();
    }
    assert!(fleet.decide_machine(&mut world, "worker-0").failed.is_some());
    assert!(world.secrets.is_empty());
}

#[test]
fn a_cluster_deleted_before_reads_show_it_leaves_nothing() {
    for rounds in 1..8 {
        let mut world = World::new(5, NO_FAULTS);
        let mut fleet = Fleet::new("prod", spec(2, "classic", "internet-facing"));
        (0..12).for_each(|_| world.tick());
        for _ in 0..rounds {
            fleet.reconcile(&mut world);
        }
        world.faults.lag = 3;
        fleet.restart(&mut world);
        fleet.delete(&world);
        fleet.settle(&mut world);
        assert_eq!(world.inventory(), Vec::<String>::new(), "after {rounds} looks");
    }
}

#[test]
fn what_was_seen_once_is_not_made_again_when_reads_hide_it() {
    for seed in 0..100 {
        // Answers are lost, so that only reads say what was made, and each comes from another server.
        let mut world = World::new(seed, Faults { lost_reply: 60, lag: 3, swing: true, ..NO_FAULTS });
        let mut fleet = Fleet::new("prod", spec(2, "classic", "internet-facing"));
        fleet.settle(&mut world);
        settle_after_faults(&mut world, &mut fleet);
        assert_eq!(world.counts(), network(2, "classic"), "seed {seed}: {:#?}", world.inventory());
    }
}

#[test]
fn what_waited_too_long_to_be_sent_is_decided_anew_and_made_once() {
    for seed in 0..40 {
        let mut world = World::new(seed, Faults { lost_reply: 60, lag: 3, swing: true, ..NO_FAULTS });
        let mut fleet = Fleet::new("prod", spec(2, "classic", "internet-facing"));
        for _ in 0..40 {
            world.queue = if world.chance(50) { 12 } else { 0 };
            fleet.reconcile(&mut world);
            world.tick();
        }
        world.queue = 0;
        fleet.settle(&mut world);
        settle_after_faults(&mut world, &mut fleet);
        assert_eq!(world.counts(), network(2, "classic"), "seed {seed}: {:#?}", world.inventory());
    }
}

#[test]
fn a_deletion_ends_though_the_operator_is_killed_again_and_again() {
    for seed in 0..20 {
        let mut world = World::new(seed, NO_FAULTS);
        let mut fleet = Fleet::new("prod", spec(1, "nlb", "internet-facing"));
        fleet.add_machine("worker-0", false, json!({}));
        fleet.settle(&mut world);
        fleet.delete(&world);
        world.faults.lost_reply = 50;
        for reconcile in 0..100 {
            fleet.reconcile(&mut world);
            if fleet.finished {
                break;
            }
            fleet.reconcile_machines(&mut world);
            // No process lives for as long as reads may be behind.
            if reconcile as u64 % 4 == seed % 4 {
                fleet.restart(&mut world);
            }
            world.tick();
        }
        assert!(fleet.finished, "seed {seed}: {}", fleet.decide(&mut world).plan);
        assert_eq!(world.inventory(), Vec::<String>::new(), "seed {seed}");
    }
}

fn created(world: &World, kind: &str) -> usize {
    world.log.iter().filter(|(what, _)| what.starts_with(&format!("create  {kind}/"))).count()
}

#[test]
fn a_nat_gateway_that_fails_is_replaced_at_once() {
    let mut world = World::new(6, Faults { failed_start: 100, ..NO_FAULTS });
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    while world.truth.nat_gateways.iter().all(|it| it.state != State::Failed) {
        fleet.reconcile(&mut world);
        world.tick();
    }
    world.faults.failed_start = 0;
    let begun = world.now;
    fleet.settle(&mut world);
    assert!(world.now - begun < 90.0, "it took {} s", world.now - begun);
    assert_eq!((created(&world, "nat-gateway"), world.counts()), (2, network(1, "classic")));
}

#[test]
fn a_nat_gateway_deleted_before_anybody_saw_it_is_replaced_at_once() {
    let mut world = World::new(6, NO_FAULTS);
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    while world.truth.nat_gateways.is_empty() {
        let creates = |plan: &model::Plan| plan.actions.iter().any(|it| it.key().kind == Kind::NatGateway);
        world.faults.lost_reply = if creates(&fleet.decide(&mut world).plan) { 100 } else { 0 };
        fleet.reconcile(&mut world);
    }
    world.faults.lost_reply = 0;
    world.truth.nat_gateways.clear();
    world.truth.addresses.iter_mut().for_each(|it| it.association_id = None);
    let begun = world.now;
    fleet.settle(&mut world);
    assert!(world.now - begun < 90.0, "it took {} s", world.now - begun);
    assert_eq!((created(&world, "nat-gateway"), world.counts()), (3, network(1, "classic")));
}

/// The faults stop, and what they left is put in order.
fn settle_after_faults(world: &mut World, fleet: &mut Fleet) {
    world.faults = NO_FAULTS;
    for _ in 0..20 {
        fleet.reconcile(world);
        fleet.reconcile_machines(world);
        world.tick();
    }
    fleet.settle(world);
}

#[test]
fn leftovers_of_cloud_provider_and_cni_go_with_the_cluster() {
    let mut world = World::new(3, NO_FAULTS);
    let mut fleet = Fleet::new("prod", spec(1, "classic", "internet-facing"));
    fleet.settle(&mut world);
    let vpc_id = world.truth.vpcs[0].id.clone();
    let subnet_id = world.truth.subnets[0].id.clone();
    let node = world
        .truth
        .security_groups
        .iter()
        .find(|it| it.group_name == "prod-node")
        .expect("a group")
        .id
        .clone();
    let owned = Tags::from([("kubernetes.io/cluster/prod".into(), "owned".into())]);
    let left = model::FoundSecurityGroup {
        id: "sg-left".into(),
        vpc_id: vpc_id.clone(),
        group_name: "k8s-elb-a1".into(),
        description: String::new(),
        rules: Vec::new(),
        tags: owned.clone(),
    };
    world.truth.security_groups.push(left);
    let rule = model::FoundRule {
        protocol: "-1".into(),
        from_port: -1,
        to_port: -1,
        source: model::FoundSource::GroupId("sg-left".into()),
        description: String::new(),
    };
    let lb = world.truth.security_groups.iter_mut().find(|it| it.group_name == "prod-lb").expect("a group");
    lb.rules.push(rule);
    assert!(fleet.reconcile(&mut world), "rules that the cloud provider adds are left alone");
    world.interfaces_of("x", &[subnet_id].into(), &[node].into(), &vpc_id, "aws-K8S-i-0123");
    for it in world.truth.network_interfaces.iter_mut().filter(|it| it.description.starts_with("aws-K8S")) {
        it.status = "available".into();
        it.tags.insert("node.k8s.amazonaws.com/instance_id".into(), "i-0123".into());
    }
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
    assert_never_refused(&world);
}
