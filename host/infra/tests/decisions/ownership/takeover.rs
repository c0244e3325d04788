//! Networks that users brought, and clusters that another provider or another object made: what is taken
//! over, and what is not.

use super::instances::refused;
use crate::world::driver::{Fleet, settled};
use crate::world::{Faults, World};
use model::Tags;
use serde_json::json;

const PUBLIC: &str = "subnet-0a0a0a0a";

const PRIVATE: &str = "subnet-0b0b0b0b";

/// A VPC that a user made, with one public and one private subnet.
fn users_network(world: &mut World) {
    let vpc = model::FoundVpc {
        id: "vpc-user".into(),
        cidr: "10.9.0.0/16".into(),
        state: model::State::Ready,
        dns_hostnames: None,
        tags: Tags::new(),
    };
    world.truth.vpcs.push(vpc);
    for (id, cidr, public) in [(PUBLIC, "10.9.0.0/24", true), (PRIVATE, "10.9.1.0/24", false)] {
        world.truth.subnets.push(model::FoundSubnet {
            id: id.into(),
            vpc_id: "vpc-user".into(),
            zone: "us-east-1a".into(),
            cidr: cidr.into(),
            public,
            state: model::State::Ready,
            tags: Tags::new(),
        });
    }
    let gateway = model::FoundInternetGateway {
        id: "igw-user".into(),
        vpc_id: Some("vpc-user".into()),
        tags: Tags::new(),
    };
    world.truth.internet_gateways.push(gateway);
    world.route_table_of_user("vpc-user", true, &[], None);
    world.route_table_of_user("vpc-user", false, &[PUBLIC], Some("igw-user"));
}

fn in_users_network() -> serde_json::Value {
    json!({"network": {"vpc": {"id": "vpc-user"}, "subnets": [{"id": PUBLIC}, {"id": PRIVATE}]}})
}

#[test]
fn of_a_users_network_nothing_is_made_changed_or_deleted() {
    let mut world = World::new(7, Faults::default());
    users_network(&mut world);
    let brought = |world: &World| {
        let it = &world.truth;
        (it.vpcs.clone(), it.subnets.clone(), it.internet_gateways.clone(), it.route_tables.clone())
    };
    let before = brought(&world);
    let mut fleet = Fleet::new("prod", in_users_network());
    fleet.settle(&mut world);
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    assert_eq!(world.truth.load_balancers[0].subnets, [PUBLIC.to_owned()].into());
    assert_eq!(world.truth.instances[0].subnet_id.as_deref(), Some(PRIVATE));
    assert_eq!(world.truth.security_groups.len(), 4);
    assert!(world.truth.nat_gateways.is_empty() && world.truth.addresses.is_empty());
    assert_eq!(brought(&world), before);
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(brought(&world), before);
    assert!(world.truth.security_groups.is_empty() && world.truth.load_balancers.is_empty());
}

#[test]
fn a_subnet_that_does_not_exist_is_named() {
    let mut world = World::new(7, Faults::default());
    users_network(&mut world);
    world.truth.subnets.retain(|it| it.id != PRIVATE);
    let mut fleet = Fleet::new("prod", in_users_network());
    let mut blocked = Vec::new();
    for _ in 0..3 {
        let decision = fleet.decide(&mut world);
        blocked = decision.plan.blocked.clone();
        if !blocked.is_empty() {
            break;
        }
        fleet.reconcile(&mut world);
        world.tick();
    }
    assert!(blocked.iter().any(|(_, why)| why.contains(PRIVATE)), "{blocked:?}");
}

#[test]
fn a_cluster_of_capa_is_taken_over_only_when_its_author_says_so() {
    let (mut world, old) = settled(json!({}));
    // As the other provider leaves it: no id of ours, and no tag of ours.
    let truth = &mut world.truth;
    let tags =
        truth.vpcs.iter_mut().map(|it| &mut it.tags).chain(truth.subnets.iter_mut().map(|it| &mut it.tags));
    let tags = tags
        .chain(truth.internet_gateways.iter_mut().map(|it| &mut it.tags))
        .chain(truth.nat_gateways.iter_mut().map(|it| &mut it.tags));
    let tags = tags
        .chain(truth.addresses.iter_mut().map(|it| &mut it.tags))
        .chain(truth.route_tables.iter_mut().map(|it| &mut it.tags));
    let tags = tags.chain(truth.load_balancers.iter_mut().filter_map(|it| it.tags.as_mut()));
    for tags in tags.chain(truth.security_groups.iter_mut().map(|it| &mut it.tags)) {
        tags.retain(|name, _| !name.starts_with("cluster.kurator.dev/"));
    }
    let before = world.inventory();
    let mut unnamed = Fleet::new("prod", json!({}));
    let plan = unnamed.decide(&mut world).plan;
    assert!(
        plan.actions.is_empty() && plan.blocked.iter().any(|(_, why)| why.contains("spec.network.vpc.id")),
        "{plan}"
    );
    let vpc_id = world.truth.vpcs[0].id.clone();
    let mut spec = json!({"network": {"vpc": {"id": vpc_id, "cidrBlock": "10.0.0.0/16"}, "subnets": []}});
    spec["network"]["subnets"] = world.truth.subnets.iter().map(|it| {
        json!({"id": it.tags["Name"], "resourceID": it.id, "cidrBlock": it.cidr, "availabilityZone": it.zone, "isPublic": it.public})
    }).collect();
    spec["controlPlaneEndpoint"] =
        json!({"host": old.aws_cluster.spec.control_plane_endpoint.host, "port": 6443});
    let mut named = Fleet::new("prod", spec.clone());
    for _ in 0..5 {
        let plan = named.reconcile_unchecked(&mut world);
        let how = "annotate the AWSCluster with cluster.kurator.dev/adopt-from: cluster-api-provider-aws";
        assert!(plan.actions.is_empty() && plan.blocked.iter().any(|(_, why)| why.contains(how)), "{plan}");
    }
    named.delete(&world);
    named.settle(&mut world);
    assert_eq!(world.inventory(), before, "what was not taken over stays");
    unnamed = Fleet::new("prod", spec);
    adopt_from(&mut unnamed, "cluster-api-provider-aws");
    world.log.clear();
    unnamed.settle(&mut world);
    assert_eq!(world.inventory(), before, "everything is taken over, nothing is made anew");
    assert!(
        world.log.iter().all(|(what, _)| what.starts_with("tag ")
            || what.contains("vpc/main")
            || what.contains("load-balancer")),
        "{:#?}",
        world.log
    );
    // The tags say it from now on.
    unnamed
        .aws_cluster
        .metadata
        .annotations
        .as_mut()
        .expect("annotations")
        .remove("cluster.kurator.dev/adopt-from");
    (0..3).for_each(|_| assert!(unnamed.reconcile(&mut world)));
    unnamed.delete(&world);
    unnamed.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}

fn adopt_from(fleet: &mut Fleet, whose: &str) {
    let annotations = fleet.aws_cluster.metadata.annotations.get_or_insert_default();
    annotations.insert("cluster.kurator.dev/adopt-from".into(), whose.into());
}

#[test]
fn things_of_capa_in_a_users_vpc_are_taken_over_only_when_asked() {
    let mut world = World::new(7, Faults::default());
    users_network(&mut world);
    let mut first = Fleet::new("prod", in_users_network());
    first.settle(&mut world);
    for tags in world.truth.security_groups.iter_mut().map(|it| &mut it.tags) {
        tags.retain(|name, _| !name.starts_with("cluster.kurator.dev/"));
    }
    for balancer in &mut world.truth.load_balancers {
        balancer.tags = None;
    }
    let before = (world.truth.security_groups.clone(), world.truth.load_balancers.clone());
    (0..5).for_each(|_| world.tick());
    let mut second = Fleet::new("prod", in_users_network());
    for _ in 0..5 {
        let plan = second.reconcile_unchecked(&mut world);
        let is_said = |key: &str| {
            plan.blocked.iter().any(|(it, why)| it.to_string() == key && why.contains("adopt-from"))
        };
        assert!(plan.actions.is_empty() && is_said("security-group/node"), "{plan}");
        assert!(plan.blocked.iter().any(|(key, _)| key.to_string() == "load-balancer/apiserver"), "{plan}");
    }
    assert_eq!((world.truth.security_groups.clone(), world.truth.load_balancers.clone()), before);
    adopt_from(&mut second, "cluster-api-provider-aws");
    second.settle(&mut world);
    second.delete(&world);
    second.settle(&mut world);
    assert_eq!(world.counts().get("security-group"), None, "{:#?}", world.inventory());
}

#[test]
fn a_cluster_restored_under_another_namespace_keeps_what_it_had() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("control-0", true, json!({}));
    fleet.settle(&mut world);
    let before = world.inventory();
    let namespace = |fleet: &mut Fleet| {
        fleet.cluster.metadata.namespace = Some("restored".into());
        fleet.aws_cluster.metadata.namespace = Some("restored".into());
        for (machine, aws_machine) in fleet.machines.values_mut() {
            machine.metadata.namespace = Some("restored".into());
            aws_machine.metadata.namespace = Some("restored".into());
        }
    };
    namespace(&mut fleet);
    world.log.clear();
    for whose in ["", "other/prod", "cluster-api-provider-aws"] {
        adopt_from(&mut fleet, whose);
        (0..3).for_each(|_| drop(fleet.reconcile_unchecked(&mut world)));
        refused(&fleet, &mut world, "control-0");
        assert!(world.log.iter().all(|(what, _)| what.starts_with("confirm")), "{:#?}", world.log);
    }
    adopt_from(&mut fleet, "default/prod");
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), before);
    assert_eq!(world.truth.instances[0].tags["MachineName"], "restored/control-0");
    assert_eq!(world.truth.vpcs[0].tags["cluster.kurator.dev/owner"], "restored/prod");
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}

#[test]
fn subnets_whose_names_begin_like_ids_are_known_by_their_ranges() {
    let mut world = World::new(7, Faults::default());
    let subnets = json!([
        {"id": "subnet-zone-1-apps", "availabilityZone": "us-east-1a", "cidrBlock": "10.0.0.0/24"},
        {"id": "subnet-zone-1-data", "availabilityZone": "us-east-1a", "cidrBlock": "10.0.1.0/24"},
        {"id": "subnet-zone-1-public", "availabilityZone": "us-east-1a", "cidrBlock": "10.0.2.0/24", "isPublic": true},
        {"id": "subnet-decade00", "availabilityZone": "us-east-1a", "cidrBlock": "10.0.3.0/24", "isPublic": true},
    ]);
    let mut fleet = Fleet::new("prod", json!({"network": {"subnets": subnets}}));
    fleet.settle(&mut world);
    assert_eq!(world.truth.subnets.len(), 4);
    let names: Vec<&str> = world.truth.subnets.iter().map(|it| it.tags["Name"].as_str()).collect();
    assert!(
        names.iter().all(|it| it.starts_with("prod-subnet-")),
        "as Cluster API Provider AWS names them: {names:?}"
    );
    let asked_for: Vec<String> = fleet.decide(&mut world).interest.ids.into_iter().collect();
    assert_eq!(asked_for, ["subnet-decade00"], "a filter for what is no id finds nothing");
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}
