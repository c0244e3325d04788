//! Which instance is whose.

use crate::world::driver::{Fleet, settled};
use crate::world::{Faults, World};
use model::Tags;
use serde_json::json;

#[test]
fn an_instance_terminated_behind_our_back_is_not_made_again() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("control-plane-0", true, json!({}));
    fleet.settle(&mut world);
    let id = world.truth.instances[0].id.clone();
    world.terminate(&id);
    let (code, message) =
        ("Server.SpotInstanceTermination".to_owned(), "Spot instance termination".to_owned());
    world.truth.instances[0].status.reason = Some(model::StateReason { code, message });
    for _ in 0..8 {
        fleet.reconcile_machines(&mut world);
        world.tick();
    }
    let decision = fleet.decide_machine(&mut world, "control-plane-0");
    let (_, message) = decision.failed.clone().expect("it is to be replaced");
    assert!(
        message.starts_with(&format!(
            "{id} is terminated (Server.SpotInstanceTermination: Spot instance termination), "
        )),
        "{message}"
    );
    assert!(decision.plan.actions.is_empty(), "{}", decision.plan);
    assert_eq!(world.truth.instances.len(), 1);
    assert!(world.secrets.is_empty(), "bootstrap data does not stay");
    world.truth.instances.clear();
    for _ in 0..3 {
        fleet.reconcile_machines(&mut world);
        world.tick();
    }
    assert!(world.truth.instances.is_empty());
    assert!(fleet.decide_machine(&mut world, "control-plane-0").failed.is_some());
}

#[test]
fn bootstrap_data_goes_once_the_node_is_up() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    assert_eq!(world.secrets.len(), 1);
    let status = json!({"nodeRef": {"name": "worker-0"}});
    fleet.machines.get_mut("worker-0").expect("a machine").0.status =
        serde_json::from_value(status).expect("a status");
    fleet.settle(&mut world);
    assert!(world.secrets.is_empty());
    assert_eq!(fleet.machines["worker-0"].1.spec.cloud_init.secret_prefix, "");
    assert_eq!(world.truth.instances.len(), 1);
}

#[test]
fn a_stopped_instance_is_left_as_it_is() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    world.truth.instances[0].status.state = "stopped".into();
    assert!(fleet.reconcile_machines(&mut world));
    assert_eq!(world.truth.instances[0].status.state, "stopped");
}

/// What a machine is told, and what its object is made to say.
pub(super) fn refused(fleet: &Fleet, world: &mut World, name: &str) -> String {
    let decision = fleet.decide_machine(world, name);
    assert!(decision.plan.actions.is_empty(), "{}", decision.plan);
    assert!(
        decision.instance.is_none() && decision.failed.is_none(),
        "nothing follows from what is another's"
    );
    let waits = decision.waits.expect("it is said");
    assert_eq!(waits.reason, "NotOwned");
    waits.message
}

/// Deletes a machine, and reconciles until it is gone.
fn delete_machine(fleet: &mut Fleet, world: &mut World, name: &str) -> Option<String> {
    fleet.delete_machine(name);
    for _ in 0..100 {
        let decision = fleet.decide_machine(world, name);
        fleet.reconcile_machines(world);
        if !fleet.machines.contains_key(name) {
            return decision.foreign;
        }
        world.tick();
    }
    panic!("{name} is never gone");
}

#[test]
fn an_instance_that_an_awsmachine_merely_names_is_never_touched() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    let mine = world.truth.instances[0].clone();
    // Of somebody else: without tags, of the same cluster tag and name, and another cluster's with all tags
    // that one can copy.
    let owned = ("sigs.k8s.io/cluster-api-provider-aws/cluster/prod".to_owned(), "owned".to_owned());
    let id = ("cluster.kurator.dev/id".to_owned(), "00000000000000000000000000000000".to_owned());
    let named = |name: &str| ("MachineName".to_owned(), name.to_owned());
    let foreign = [
        ("i-none", Tags::new(), "has no tag MachineName: default/thief"),
        ("i-sibling", mine.tags.clone(), "its tag MachineName is not default/thief"),
        (
            "i-namespace",
            Tags::from([owned.clone(), named("other/thief")]),
            "its tag MachineName is not default/thief",
        ),
        (
            "i-cluster",
            Tags::from([owned, named("default/thief"), id]),
            "its tag cluster.kurator.dev/id is that of another cluster",
        ),
        (
            "i-unowned",
            Tags::from([named("default/thief")]),
            "it has neither the tag cluster.kurator.dev/id of its cluster nor",
        ),
    ];
    for (instance, tags, _) in &foreign {
        world.truth.instances.push(model::FoundInstance {
            id: (*instance).into(),
            tags: tags.clone(),
            client_token: None,
            ..mine.clone()
        });
    }
    let before = world.truth.instances.clone();
    for (instance, _, why) in foreign {
        for (control_plane, spec) in [
            (false, json!({"providerID": format!("aws:///us-east-1a/{instance}")})),
            (true, json!({"instanceID": instance})),
        ] {
            fleet.add_machine("thief", control_plane, spec);
            let message = refused(&fleet, &mut world, "thief");
            assert!(message.contains(instance) && message.contains(why), "{message}");
            assert_eq!(instance_of(&fleet, &mut world, "thief"), None, "add-ons are told of it");
            fleet.reconcile_machines(&mut world);
            let left = delete_machine(&mut fleet, &mut world, "thief").expect("it is said that it stays");
            assert!(left.contains(why), "{left}");
        }
    }
    assert_eq!(world.truth.instances, before);
    assert_eq!(instance_of(&fleet, &mut world, "worker-0"), Some(mine.id));
}

/// Which instance is a machine's to those that only look at it.
fn instance_of(fleet: &Fleet, world: &mut World, name: &str) -> Option<String> {
    let (machine, aws_machine) = &fleet.machines[name];
    let snapshot = fleet.snapshot(world);
    infra::machine::instance_of(&fleet.cluster, &fleet.aws_cluster, Some(machine), aws_machine, &snapshot)
        .map(|found| found.id.clone())
}

#[test]
fn a_manifest_copied_to_another_namespace_takes_no_instance_along() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    let before = world.truth.instances.clone();
    // With all its annotations, and the AWSCluster's too.
    for (machine, aws_machine) in fleet.machines.values_mut() {
        machine.metadata.namespace = Some("other".into());
        aws_machine.metadata.namespace = Some("other".into());
    }
    let message = refused(&fleet, &mut world, "worker-0");
    assert!(message.contains("its tag MachineName is not other/worker-0"), "{message}");
    delete_machine(&mut fleet, &mut world, "worker-0");
    assert_eq!(world.truth.instances, before);
}

#[test]
fn an_instance_without_its_tags_stays_until_it_has_them_again() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("control-0", true, json!({}));
    fleet.settle(&mut world);
    let tags = std::mem::take(&mut world.truth.instances[0].tags);
    let before = (world.truth.instances.clone(), world.truth.load_balancers.clone());
    for _ in 0..5 {
        world.tick();
    }
    refused(&fleet, &mut world, "control-0");
    fleet.reconcile_machines(&mut world);
    assert_eq!(
        (world.truth.instances.clone(), world.truth.load_balancers.clone()),
        before,
        "it stays behind the load balancer"
    );
    world.truth.instances[0].tags = tags;
    for _ in 0..5 {
        world.tick();
    }
    assert!(fleet.decide_machine(&mut world, "control-0").instance.is_some());
    assert_eq!(delete_machine(&mut fleet, &mut world, "control-0"), None);
    assert!(world.truth.instances.iter().all(|it| it.status.state == "terminated"));
}

#[test]
fn an_instance_with_the_token_of_an_attempt_is_the_machines() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    while world.truth.instances.is_empty() {
        // The secret is made; of the instance, the reply is lost.
        world.faults.lost_reply = if world.secrets.is_empty() { 0 } else { 100 };
        fleet.reconcile_machines(&mut world);
        world.tick();
    }
    world.faults = Faults::default();
    let it = &fleet.machines["worker-0"].1;
    assert!(it.spec.provider_id.is_none() && world.truth.instances.len() == 1);
    world.truth.instances[0].tags = Tags::new();
    delete_machine(&mut fleet, &mut world, "worker-0");
    assert!(["shutting-down", "terminated"].contains(&world.truth.instances[0].status.state.as_str()));
}

#[test]
fn a_machine_that_outlives_its_awscluster_still_knows_its_instance() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    fleet.aws_cluster.metadata.annotations = None;
    assert_eq!(delete_machine(&mut fleet, &mut world, "worker-0"), None);
    assert_eq!(world.truth.instances[0].status.state, "terminated");
}
