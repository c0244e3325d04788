//! Groups and tags that users add to machines and take away again, whatever happens meanwhile; what others
//! put there stays.

use std::collections::BTreeSet;

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use model::{APPLIED_GROUPS_ANNOTATION, APPLIED_TAGS_ANNOTATION, FoundSecurityGroup, Tags};
use serde_json::json;

const USERS: [&str; 4] = ["sg-a", "sg-b", "sg-c", "sg-hand"];

/// A cluster with one machine, and groups of the user's.
fn one_machine(spec: serde_json::Value) -> (World, Fleet) {
    let mut world = World::new(3, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
    let vpc_id = world.truth.vpcs[0].id.clone();
    for id in USERS {
        let (group_name, description, rules) = (id.replace("sg-", "user-"), String::new(), Vec::new());
        let vpc_id = vpc_id.clone();
        world.truth.security_groups.push(FoundSecurityGroup {
            id: id.into(),
            vpc_id,
            group_name,
            description,
            rules,
            tags: Tags::new(),
        });
    }
    fleet.add_machine("worker-0", false, spec);
    (world, fleet)
}

fn of_users(world: &World) -> BTreeSet<&str> {
    world.truth.instances[0].groups.iter().map(String::as_str).filter(|it| USERS.contains(it)).collect()
}

fn set_groups(fleet: &mut Fleet, groups: &[&str]) {
    let references = groups.iter().map(|it| json!({"id": it})).collect::<Vec<_>>();
    let machine = &mut fleet.machines.get_mut("worker-0").expect("a machine").1;
    machine.spec.additional_security_groups = serde_json::from_value(json!(references)).expect("references");
}

fn set_tags(fleet: &mut Fleet, tags: &[(&str, &str)]) {
    let machine = &mut fleet.machines.get_mut("worker-0").expect("a machine").1;
    machine.spec.additional_tags =
        tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
}

fn annotation(fleet: &Fleet, name: &str) -> Option<String> {
    fleet.machines["worker-0"].1.metadata.annotations.as_ref()?.get(name).cloned()
}

/// The values of a tag on the instance and on its volume.
fn tag<'a>(world: &'a World, key: &str) -> (Option<&'a str>, Option<&'a str>) {
    let volume = world.parts.values().next().expect("a volume");
    (world.truth.instances[0].tags.get(key).map(String::as_str), volume.get(key).map(String::as_str))
}

#[test]
fn a_removed_group_goes_and_one_added_by_hand_stays() {
    let (mut world, mut fleet) =
        one_machine(json!({"additionalSecurityGroups": [{"id": "sg-a"}, {"id": "sg-b"}]}));
    fleet.settle(&mut world);
    assert_eq!(annotation(&fleet, APPLIED_GROUPS_ANNOTATION).as_deref(), Some(r#"{"sg-a":{},"sg-b":{}}"#));
    world.truth.instances[0].groups.insert("sg-hand".into());
    set_groups(&mut fleet, &["sg-b", "sg-c"]);
    fleet.settle(&mut world);
    assert_eq!(of_users(&world), BTreeSet::from(["sg-b", "sg-c", "sg-hand"]));
    assert_eq!(annotation(&fleet, APPLIED_GROUPS_ANNOTATION).as_deref(), Some(r#"{"sg-b":{},"sg-c":{}}"#));
    set_groups(&mut fleet, &[]);
    fleet.settle(&mut world);
    assert_eq!(of_users(&world), BTreeSet::from(["sg-hand"]));
    assert_eq!(annotation(&fleet, APPLIED_GROUPS_ANNOTATION), None);
    let has = |it: &&FoundSecurityGroup| world.truth.instances[0].groups.contains(&it.id);
    let names: BTreeSet<_> =
        world.truth.security_groups.iter().filter(has).map(|it| it.group_name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["prod-lb", "prod-node", "user-hand"]), "its own groups stay");
}

#[test]
fn groups_of_the_cluster_can_be_added_but_core_groups_not_removed() {
    let (mut world, mut fleet) = one_machine(json!({}));
    fleet.settle(&mut world);
    let id = |role: &str| {
        world
            .truth
            .security_groups
            .iter()
            .find(|it| it.group_name == format!("prod-{role}"))
            .expect("a group")
            .id
            .clone()
    };
    let (control_plane, node) = (id("controlplane"), id("node"));
    set_groups(&mut fleet, &[&control_plane, &node]);
    fleet.settle(&mut world);
    assert!(world.truth.instances[0].groups.contains(&control_plane));
    set_groups(&mut fleet, &[]);
    fleet.settle(&mut world);
    assert!(!world.truth.instances[0].groups.contains(&control_plane));
    assert!(world.truth.instances[0].groups.contains(&node));
}

#[test]
fn tags_that_are_changed_or_taken_away_are_so_on_the_volume_too() {
    let (mut world, mut fleet) = one_machine(json!({"additionalTags": {"team": "a", "stage": "test"}}));
    fleet.aws_cluster.spec.additional_tags.insert("owner".into(), "ops".into());
    fleet.settle(&mut world);
    assert_eq!(
        annotation(&fleet, APPLIED_TAGS_ANNOTATION).as_deref(),
        Some(r#"{"owner":"ops","stage":"test","team":"a"}"#)
    );
    world.truth.instances[0].tags.insert("by".into(), "hand".into());
    set_tags(&mut fleet, &[("team", "b")]);
    fleet.settle(&mut world);
    assert_eq!((tag(&world, "team"), tag(&world, "stage")), ((Some("b"), Some("b")), (None, None)));
    assert_eq!(annotation(&fleet, APPLIED_TAGS_ANNOTATION).as_deref(), Some(r#"{"owner":"ops","team":"b"}"#));
    fleet.aws_cluster.spec.additional_tags.clear();
    set_tags(&mut fleet, &[]);
    fleet.settle(&mut world);
    assert_eq!((tag(&world, "team"), tag(&world, "owner")), ((None, None), (None, None)));
    assert_eq!(tag(&world, "Name"), (Some("worker-0"), Some("worker-0")));
    assert_eq!(world.truth.instances[0].tags.get("by").map(String::as_str), Some("hand"), "somebody else's");
    assert_eq!(annotation(&fleet, APPLIED_TAGS_ANNOTATION), None);
}

#[test]
fn a_tag_that_this_operator_needs_is_not_taken_away_with_the_users() {
    let (mut world, mut fleet) =
        one_machine(json!({"additionalTags": {"Name": "worker-0", "MachineName": "default/worker-0"}}));
    fleet.settle(&mut world);
    set_tags(&mut fleet, &[]);
    fleet.settle(&mut world);
    assert_eq!(
        (tag(&world, "Name").0, tag(&world, "MachineName").0),
        (Some("worker-0"), Some("default/worker-0"))
    );
}

#[test]
fn a_machine_of_capa_is_taken_over_with_what_it_applied() {
    let (mut world, mut fleet) = one_machine(json!({}));
    fleet.settle(&mut world);
    let instance = &mut world.truth.instances[0];
    instance.groups.extend(["sg-a".to_owned(), "sg-hand".to_owned()]);
    instance.tags.extend([("team".into(), "a".into())]);
    let volume = world.parts.values_mut().next().expect("a volume");
    volume.insert("team".into(), "a".into());
    let annotations =
        fleet.machines.get_mut("worker-0").expect("a machine").1.metadata.annotations.get_or_insert_default();
    annotations.insert(APPLIED_GROUPS_ANNOTATION.into(), r#"{ "sg-a": {} }"#.into());
    annotations.insert(APPLIED_TAGS_ANNOTATION.into(), r#"{ "team": "a" }"#.into());
    fleet.settle(&mut world);
    assert_eq!(of_users(&world), BTreeSet::from(["sg-hand"]));
    assert_eq!(tag(&world, "team"), (None, None));
}

#[test]
fn without_additions_there_is_no_annotation_and_no_write() {
    let (mut world, mut fleet) =
        one_machine(json!({"additionalSecurityGroups": [{"id": "sg-a"}], "additionalTags": {"team": "a"}}));
    fleet.settle(&mut world);
    let (calls, version) = (world.log.len(), fleet.machines["worker-0"].1.metadata.resource_version.clone());
    for _ in 0..3 {
        fleet.reconcile_machines(&mut world);
        world.tick();
    }
    assert_eq!((world.log.len(), &fleet.machines["worker-0"].1.metadata.resource_version), (calls, &version));
    let (mut world, mut fleet) = one_machine(json!({}));
    fleet.settle(&mut world);
    assert_eq!(
        (annotation(&fleet, APPLIED_GROUPS_ANNOTATION), annotation(&fleet, APPLIED_TAGS_ANNOTATION)),
        (None, None)
    );
}

#[test]
fn whatever_goes_wrong_an_instance_ends_with_what_its_spec_says() {
    for seed in 0..80 {
        let (mut world, mut fleet) = one_machine(json!({}));
        for _ in 0..seed {
            world.random();
        }
        world.faults = Faults {
            throttled: 10,
            lost_request: 10,
            lost_reply: 15,
            crash: 15,
            failed_start: 0,
            lag: 2,
            swing: true,
        };
        let mut events = Vec::new();
        for _ in 0..8 {
            let (groups, tags) = (world.random() % 8, world.random() % 9);
            let chosen: Vec<&str> = USERS[..3]
                .iter()
                .enumerate()
                .filter(|(n, _)| (groups >> n) & 1 == 1)
                .map(|(_, it)| *it)
                .collect();
            let values = ["1", "2"];
            let chosen_tags: Vec<(&str, &str)> = [("one", tags % 3), ("two", tags / 3)]
                .into_iter()
                .filter_map(|(key, value)| Some((key, *values.get(usize::try_from(value).ok()?)?)))
                .collect();
            set_groups(&mut fleet, &chosen);
            set_tags(&mut fleet, &chosen_tags);
            events.push(format!("{chosen:?} {chosen_tags:?}"));
            for _ in 0..world.random() % 6 {
                fleet.reconcile_machines(&mut world);
                world.tick();
            }
        }
        world.faults = Faults::default();
        fleet.settle(&mut world);
        let machine = &fleet.machines["worker-0"].1.spec;
        let wanted: BTreeSet<&str> =
            machine.additional_security_groups.iter().filter_map(|it| it.id.as_deref()).collect();
        assert_eq!(of_users(&world), wanted, "seed {seed}: {events:#?}");
        for key in ["one", "two"] {
            let value = machine.additional_tags.get(key).map(String::as_str);
            assert_eq!(tag(&world, key), (value, value), "seed {seed}: {key} {events:#?}");
        }
    }
}
