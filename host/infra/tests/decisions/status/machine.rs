//! What is said of a machine.

use super::text;
use crate::world::driver::{Fleet, settled};
use crate::world::{START, World};
use expect_test::expect;
use infra::{machine, status};
use serde_json::json;

/// The status of a machine.
fn status_of_machine(fleet: &Fleet, world: &mut World, hold: Option<String>) -> crds::AWSMachineStatus {
    let snapshot = fleet.snapshot(world);
    fleet.with_machine_input("control-plane-0", world.now, &snapshot, |input| {
        let input = machine::Input { hold, ..input };
        let decision = machine::decide(&input);
        status::machine(&status::Machine { input: &input, decision: &decision, outcomes: &[], problem: None })
    })
}

#[test]
fn a_machine_from_waiting_to_gone() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("control-plane-0", true, json!({}));
    let mut res = String::new();
    let mut note = |what: &str, fleet: &Fleet, world: &mut World, hold: Option<String>| {
        let status = status_of_machine(fleet, world, hold);
        let provisioned = status.initialization.and_then(|it| it.provisioned).unwrap_or_default();
        res += &format!(
            "-- {what}: state {:?}, provisioned {provisioned}\n{}",
            status.instance_state,
            text(&status.conditions)
        );
    };
    let provisioned = fleet.cluster.status.take();
    note("no infrastructure", &fleet, &mut world, None);
    fleet.cluster.status = provisioned;
    note("new", &fleet, &mut world, None);
    for _ in 0..2 {
        fleet.reconcile_machines(&mut world);
    }
    note("started", &fleet, &mut world, None);
    fleet.settle(&mut world);
    note("running", &fleet, &mut world, None);
    fleet.delete(&world);
    note("held", &fleet, &mut world, Some("kept until the cluster's add-ons are removed".into()));
    fleet.reconcile_machines(&mut world);
    fleet.reconcile_machines(&mut world);
    note("terminating", &fleet, &mut world, None);
    expect![[r#"
        -- no infrastructure: state None, provisioned false
        InstanceReady False WaitingForClusterInfrastructure: the infrastructure of the cluster is not provisioned yet
        Paused False NotPaused
        Ready False WaitingForClusterInfrastructure: the infrastructure of the cluster is not provisioned yet
        -- new: state None, provisioned false
        InstanceReady False Creating: secret/control-plane-0: creating; instance/control-plane-0: after secret/control-plane-0; target/control-plane-0: after instance/control-plane-0
        Paused False NotPaused
        Ready False Creating: secret/control-plane-0: creating; instance/control-plane-0: after secret/control-plane-0; target/control-plane-0: after instance/control-plane-0
        -- started: state Some("pending"), provisioned false
        ELBAttached False NotReady: target/control-plane-0: after instance/control-plane-0
        InstanceReady False InstanceNotReady: i-0015 is pending
        Paused False NotPaused
        Ready False InstanceNotReady: i-0015 is pending
        SecurityGroupsReady True Ready
        -- running: state Some("running"), provisioned true
        ELBAttached True Ready
        InstanceReady True Ready
        Paused False NotPaused
        Ready True Ready
        SecurityGroupsReady True Ready
        -- held: state Some("running"), provisioned true
        Deleting True WaitingForPlugins: kept until the cluster's add-ons are removed
        InstanceReady True Ready
        Paused False NotPaused
        Ready False WaitingForPlugins: kept until the cluster's add-ons are removed
        -- terminating: state Some("shutting-down"), provisioned false
        Deleting True Deleting: instance/control-plane-0: deleting
        InstanceReady False InstanceTerminated: i-0015 is shutting-down
        Paused False NotPaused
        Ready False Deleting: instance/control-plane-0: deleting
    "#]].assert_eq(&res);
}

#[test]
fn a_paused_object_says_so_and_keeps_the_rest() {
    let before = status::paused(&[], false, START, Some(1));
    let after = status::paused(&before, true, START + 60.0, Some(1));
    expect![[r#"
        Paused True Paused
    "#]]
    .assert_eq(&text(&after));
    assert_ne!(before[0].last_transition_time, after[0].last_transition_time);
}

#[test]
fn the_instance_of_an_unhealthy_node_is_read_once_more() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker", false, json!({}));
    fleet.settle(&mut world);
    let awaited = |fleet: &Fleet, world: &mut World| {
        fleet.decide_machine(world, "worker").interest.reads.contains(&model::Read::Instances)
    };
    let status = |healthy: &str, world: &World| {
        let time = k8s_openapi::jiff::Timestamp::from_second(world.now as i64).expect("a time");
        let condition = json!({"type": "NodeHealthy", "status": healthy, "reason": "", "message": "", "lastTransitionTime": time.to_string()});
        serde_json::from_value(json!({"nodeRef": {"name": "worker"}, "conditions": [condition]}))
            .expect("a status")
    };
    fleet.machines.get_mut("worker").expect("there").0.status = Some(status("True", &world));
    assert!(!awaited(&fleet, &mut world));
    fleet.machines.get_mut("worker").expect("there").0.status = Some(status("Unknown", &world));
    assert!(awaited(&fleet, &mut world));
    (0..10).for_each(|_| world.tick());
    assert!(!awaited(&fleet, &mut world), "it was read since, and nothing is awaited for ever");
}
