//! Clusters of the same name, and AWSClusters that were copied.

use crate::world::World;
use crate::world::driver::{Fleet, settled};
use model::Vpc;
use serde_json::json;

#[test]
fn a_second_cluster_of_the_same_name_is_blocked_and_touches_nothing() {
    let (mut world, _first) = settled(json!({}));
    let before = world.inventory();
    let calls = world.log.len();
    let mut second = Fleet::new("prod", json!({}));
    let decision = second.decide(&mut world);
    assert!(
        decision
            .plan
            .blocked
            .iter()
            .any(|(key, why)| *key == Vpc::key("main") && why.contains("another cluster named \"prod\""))
    );
    assert!(decision.plan.actions.is_empty(), "{}", decision.plan);
    second.aws_cluster.metadata.deletion_timestamp =
        serde_json::from_value(json!("2027-01-15T08:00:00Z")).expect("a time");
    assert!(second.decide(&mut world).finished, "there is nothing of it to delete");
    assert_eq!((world.inventory(), world.log.len()), (before, calls));
}

#[test]
fn a_second_cluster_of_another_name_lives_beside_the_first() {
    let (mut world, mut first) = settled(json!({}));
    let before = world.inventory();
    let mut second = Fleet::new("test", json!({}));
    second.settle(&mut world);
    second.delete(&world);
    second.settle(&mut world);
    assert_eq!(world.inventory(), before);
    assert!(first.reconcile(&mut world));
}

#[test]
fn a_copied_manifest_takes_nothing_of_the_original() {
    for (namespace, name) in [("other", "prod"), ("default", "copy"), ("other", "copy")] {
        let (mut world, mut original) = settled(json!({}));
        original.add_machine("control-0", true, json!({}));
        original.settle(&mut world);
        let before = world.inventory();
        // As `kubectl get -o yaml`, renamed and applied, makes it: with all annotations and all that was
        // recorded in the spec.
        let mut copy = Fleet::new(name, json!({}));
        copy.rules = Some(Vec::new());
        copy.aws_cluster.spec = original.aws_cluster.spec.clone();
        copy.aws_cluster.metadata.annotations = original.aws_cluster.metadata.annotations.clone();
        copy.aws_cluster.metadata.namespace = Some(namespace.into());
        copy.cluster.metadata.namespace = Some(namespace.into());
        let reconcile = |copy: &mut Fleet, world: &mut World| {
            let plan = copy.reconcile_unchecked(world);
            assert!(
                plan.actions.iter().all(|it| matches!(it, model::Action::Confirm { .. })),
                "{namespace}/{name}: {plan}"
            );
            world.tick();
        };
        (0..10).for_each(|_| reconcile(&mut copy, &mut world));
        let decision = copy.decide(&mut world);
        let text = decision.plan.to_string();
        assert!(text.contains("belongs to the AWSCluster that this one was copied from"), "{text}");
        let id = &original.aws_cluster.metadata.annotations.as_ref().expect("annotations")["cluster.kurator.dev/id"];
        assert!(!text.contains(id.as_str()), "the id is nobody's to read");
        copy.delete(&world);
        (0..20).for_each(|_| reconcile(&mut copy, &mut world));
        // Of another name, the recorded load balancer is looked for as long as it is there: a controller that
        // sees the original lets it go.
        assert!(copy.finished || name == "copy", "{namespace}/{name}: {}", copy.decide(&mut world).plan);
        assert_eq!(world.inventory(), before, "{namespace}/{name}");
        assert!(original.reconcile(&mut world) && original.reconcile_machines(&mut world));
    }
}

#[test]
fn what_was_made_before_owners_were_written_gets_one() {
    let (mut world, mut fleet) = settled(json!({}));
    let owner = "cluster.kurator.dev/owner";
    let it = &mut world.truth;
    let mut stripped = 0;
    for tags in
        it.vpcs.iter_mut().map(|it| &mut it.tags).chain(it.security_groups.iter_mut().map(|it| &mut it.tags))
    {
        stripped += usize::from(tags.remove(owner).as_deref() == Some("default/prod"));
    }
    assert_eq!(stripped, 5, "the VPC and four groups");
    (0..5).for_each(|_| world.tick());
    fleet.settle(&mut world);
    let it = &world.truth;
    let tags = it.vpcs.iter().map(|it| &it.tags).chain(it.security_groups.iter().map(|it| &it.tags));
    assert_eq!(tags.filter(|it| it.get(owner).map(String::as_str) == Some("default/prod")).count(), 5);
}
