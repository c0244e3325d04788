//! What belongs to whom: clusters of the same name, users' networks, clusters made by another provider,
//! things that were lost.

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use model::{Outcome, Part, Read, Tags, Vpc};
use serde_json::json;

fn settled(name: &str) -> (World, Fleet) {
    let mut world = World::new(7, Faults::default());
    let mut fleet = Fleet::new(name, json!({}));
    fleet.settle(&mut world);
    (world, fleet)
}

#[test]
fn a_second_cluster_of_the_same_name_is_blocked_and_touches_nothing() {
    let (mut world, _first) = settled("prod");
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
    let (mut world, mut first) = settled("prod");
    let before = world.inventory();
    let mut second = Fleet::new("test", json!({}));
    second.settle(&mut world);
    second.delete(&world);
    second.settle(&mut world);
    assert_eq!(world.inventory(), before);
    assert!(first.look(&mut world));
}

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
        fleet.look(&mut world);
        world.tick();
    }
    assert!(blocked.iter().any(|(_, why)| why.contains(PRIVATE)), "{blocked:?}");
}

#[test]
fn a_cluster_of_another_provider_is_taken_over_when_its_author_says_so_and_not_before() {
    let (mut world, old) = settled("prod");
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
        let plan = named.look_unchecked(&mut world);
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
    (0..3).for_each(|_| assert!(unnamed.look(&mut world)));
    unnamed.delete(&world);
    unnamed.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}

fn adopt_from(fleet: &mut Fleet, whose: &str) {
    let annotations = fleet.aws_cluster.metadata.annotations.get_or_insert_default();
    annotations.insert("cluster.kurator.dev/adopt-from".into(), whose.into());
}

#[test]
fn what_another_provider_made_in_a_users_vpc_is_taken_over_when_the_author_says_so_and_not_before() {
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
        let plan = second.look_unchecked(&mut world);
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
fn a_cluster_restored_under_another_namespace_has_what_it_had_when_its_author_says_so() {
    let (mut world, mut fleet) = settled("prod");
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
        (0..3).for_each(|_| drop(fleet.look_unchecked(&mut world)));
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

#[test]
fn a_lost_load_balancer_and_a_lost_vpc_are_never_replaced() {
    let (mut world, mut fleet) = settled("prod");
    // Longer than reads may lag.
    (0..7).for_each(|_| world.tick());
    world.truth.load_balancers.clear();
    world.truth.network_interfaces.clear();
    let calls = world.log.iter().filter(|(_, it)| matches!(it, Outcome::Done)).count();
    let decision = fleet.decide(&mut world);
    assert!(decision.plan.blocked.is_empty(), "it is asked for by its name first");
    fleet.look(&mut world);
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
fn the_target_group_of_a_load_balancer_that_somebody_removed_goes_with_the_cluster() {
    let mut world = World::new(7, Faults::default());
    let mut fleet = Fleet::new("prod", json!({"controlPlaneLoadBalancer": {"loadBalancerType": "nlb"}}));
    fleet.settle(&mut world);
    assert_eq!(world.target_groups.len(), 1);
    world.truth.load_balancers.clear();
    world.truth.network_interfaces.clear();
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
    assert_eq!(world.log.iter().filter(|(what, _)| what.starts_with("delete  load-balancer/")).count(), 1);
}

#[test]
fn two_things_with_one_role_are_named_and_left_alone() {
    let (mut world, fleet) = settled("prod");
    let mut copy = world.truth.route_tables[0].clone();
    copy.id = "rtb-copy".into();
    world.truth.route_tables.push(copy);
    let plan = fleet.decide(&mut world).plan;
    assert!(plan.blocked.iter().any(|(_, why)| why.contains("rtb-copy")), "{plan}");
    assert!(plan.actions.is_empty(), "{plan}");
}

#[test]
fn what_users_put_into_the_vpc_stands_in_the_way_and_is_named() {
    let (mut world, mut fleet) = settled("prod");
    let subnet = world.truth.subnets[0].clone();
    world.interfaces_of(
        "x",
        &[subnet.id.clone()].into(),
        &Default::default(),
        &subnet.vpc_id,
        "RDSNetworkInterface",
    );
    fleet.delete(&world);
    let mut blocked = Vec::new();
    for _ in 0..20 {
        let decision = fleet.decide(&mut world);
        blocked = decision.plan.blocked.clone();
        if !blocked.is_empty()
            && decision.plan.actions.is_empty()
            && decision.plan.waiting.iter().all(|(_, why)| why.starts_with("used by"))
        {
            break;
        }
        fleet.look_unchecked(&mut world);
        world.tick();
    }
    assert_eq!(blocked.len(), 1, "{blocked:?}");
    assert!(
        blocked[0].1.contains("RDSNetworkInterface")
            && blocked[0].1.contains("was not made by this operator"),
        "{blocked:?}"
    );
    assert!(
        world.truth.vpcs.len() == 1 && world.truth.subnets.len() == 1,
        "everything else is gone: {:#?}",
        world.inventory()
    );
}

#[test]
fn a_nat_gateway_that_a_user_put_into_our_vpc_is_named_until_it_is_removed() {
    let (mut world, mut fleet) = settled("prod");
    let subnet = world.truth.subnets[0].clone();
    let gateway = model::FoundNatGateway {
        id: "nat-users".into(),
        vpc_id: subnet.vpc_id.clone(),
        subnet_id: subnet.id.clone(),
        allocation_id: None,
        public_ips: Vec::new(),
        state: model::State::Ready,
        failure: None,
        tags: Tags::new(),
    };
    world.truth.nat_gateways.push(gateway);
    world.interfaces_of(
        "",
        &[subnet.id].into(),
        &Default::default(),
        &subnet.vpc_id,
        "Interface for NAT Gateway nat-users",
    );
    world.truth.network_interfaces.iter_mut().filter(|it| it.description.ends_with("nat-users")).for_each(
        |it| {
            it.interface_type = "nat_gateway".into();
            it.requester_managed = true;
        },
    );
    fleet.delete(&world);
    for _ in 0..40 {
        fleet.look_unchecked(&mut world);
        world.tick();
    }
    let blocked = fleet.decide(&mut world).plan.blocked;
    let expected = "used by nat-gateway/nat-users, which was not made by this operator; remove it";
    assert!(blocked.iter().any(|(_, why)| why == expected), "{blocked:?}");
    world.truth.nat_gateways.clear();
    assert!(!fleet.look(&mut world), "its interface goes by itself");
    world.truth.network_interfaces.clear();
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}

/// What the cloud provider made for a Service.
fn load_balancer_of_a_service(world: &mut World) {
    let subnet = world.truth.subnets[0].clone();
    let tags = Tags::from([("kubernetes.io/cluster/prod".to_owned(), "owned".to_owned())]);
    let (name, subnets) = ("a0123".to_owned(), [subnet.id].into());
    world.interfaces_of(&name, &subnets, &Default::default(), &subnet.vpc_id, "load balancer");
    let apiserver = world.truth.load_balancers[0].clone();
    let (id, groups, tags) = (name.clone(), Default::default(), Some(tags));
    world.truth.load_balancers.push(model::FoundLoadBalancer {
        id,
        name,
        subnets,
        groups,
        tags,
        ..apiserver
    });
}

#[test]
fn what_controllers_left_stays_when_an_annotation_says_so_and_goes_when_it_does_not() {
    let (mut world, mut fleet) = settled("prod");
    load_balancer_of_a_service(&mut world);
    let annotation = "aws.cluster.x-k8s.io/external-resource-gc".to_owned();
    let annotate = |fleet: &mut Fleet, value: &str| {
        let annotations = fleet.aws_cluster.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation.clone(), value.to_owned());
    };
    annotate(&mut fleet, "false");
    fleet.delete(&world);
    for _ in 0..40 {
        fleet.look_unchecked(&mut world);
        world.tick();
    }
    assert_eq!(world.truth.load_balancers.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["a0123"]);
    let blocked = fleet.decide(&mut world).plan.blocked;
    assert!(
        blocked.iter().any(|(_, why)| why.contains("load-balancer/a0123") && why.contains("remove it")),
        "{blocked:?}"
    );

    annotate(&mut fleet, "nein");
    let decision = fleet.decide(&mut world);
    assert!(decision.plan.actions.is_empty() && !decision.finished, "{}", decision.plan);
    assert!(decision.invalid.is_some_and(|it| it.field.contains(&annotation)));

    annotate(&mut fleet, "true");
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new());
}

#[test]
fn an_instance_terminated_behind_our_back_is_not_made_again() {
    let (mut world, mut fleet) = settled("prod");
    fleet.add_machine("control-plane-0", true, json!({}));
    fleet.settle(&mut world);
    let id = world.truth.instances[0].id.clone();
    world.terminate(&id);
    let (code, message) =
        ("Server.SpotInstanceTermination".to_owned(), "Spot instance termination".to_owned());
    world.truth.instances[0].status.reason = Some(model::StateReason { code, message });
    for _ in 0..8 {
        fleet.look_at_machines(&mut world);
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
        fleet.look_at_machines(&mut world);
        world.tick();
    }
    assert!(world.truth.instances.is_empty());
    assert!(fleet.decide_machine(&mut world, "control-plane-0").failed.is_some());
}

#[test]
fn bootstrap_data_goes_once_the_node_is_up() {
    let (mut world, mut fleet) = settled("prod");
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
    let (mut world, mut fleet) = settled("prod");
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    world.truth.instances[0].status.state = "stopped".into();
    assert!(fleet.look_at_machines(&mut world));
    assert_eq!(world.truth.instances[0].status.state, "stopped");
}

#[test]
fn a_cluster_is_not_gone_before_reads_show_what_an_earlier_process_made() {
    let mut world = World::new(7, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
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
fn nothing_is_concluded_from_what_was_never_read_and_who_does_not_need_it_goes_on() {
    let (mut world, mut fleet) = settled("prod");
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
fn a_deleted_cluster_is_not_gone_while_its_addresses_were_never_read() {
    let (mut world, mut fleet) = settled("prod");
    fleet.delete(&world);
    while !fleet.finished && world.truth.vpcs.len() == 1 {
        fleet.look(&mut world);
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
fn a_vpc_without_its_cluster_tag_is_tagged_again_and_nothing_is_made_anew() {
    for changed in [None, Some("shared")] {
        let (mut world, mut fleet) = settled("prod");
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
fn a_vpc_without_any_tag_of_ours_blocks_everything_until_it_has_them_again() {
    let (mut world, mut fleet) = settled("prod");
    let before = world.inventory();
    let tags = std::mem::take(&mut world.truth.vpcs[0].tags);
    for deleting in [false, true] {
        if deleting {
            fleet.delete(&world);
        }
        for _ in 0..10 {
            fleet.look_unchecked(&mut world);
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

/// What a machine is told, and what its object is made to say.
fn refused(fleet: &Fleet, world: &mut World, name: &str) -> String {
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

/// Deletes a machine, and looks until it is gone.
fn delete_machine(fleet: &mut Fleet, world: &mut World, name: &str) -> Option<String> {
    fleet.delete_machine(name);
    for _ in 0..100 {
        let decision = fleet.decide_machine(world, name);
        fleet.look_at_machines(world);
        if !fleet.machines.contains_key(name) {
            return decision.foreign;
        }
        world.tick();
    }
    panic!("{name} is never gone");
}

#[test]
fn an_instance_that_an_awsmachine_merely_names_is_never_touched() {
    let (mut world, mut fleet) = settled("prod");
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
            fleet.look_at_machines(&mut world);
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
    let (mut world, mut fleet) = settled("prod");
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
fn an_instance_whose_tags_were_stripped_stays_where_it_is_until_it_has_them_again() {
    let (mut world, mut fleet) = settled("prod");
    fleet.add_machine("control-0", true, json!({}));
    fleet.settle(&mut world);
    let tags = std::mem::take(&mut world.truth.instances[0].tags);
    let before = (world.truth.instances.clone(), world.truth.load_balancers.clone());
    for _ in 0..5 {
        world.tick();
    }
    refused(&fleet, &mut world, "control-0");
    fleet.look_at_machines(&mut world);
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
fn an_instance_that_only_the_token_of_an_open_attempt_names_is_the_machines_also_without_tags() {
    let (mut world, mut fleet) = settled("prod");
    fleet.add_machine("worker-0", false, json!({}));
    while world.truth.instances.is_empty() {
        // The secret is made; of the instance, the reply is lost.
        world.faults.lost_reply = if world.secrets.is_empty() { 0 } else { 100 };
        fleet.look_at_machines(&mut world);
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
    let (mut world, mut fleet) = settled("prod");
    fleet.add_machine("worker-0", false, json!({}));
    fleet.settle(&mut world);
    fleet.aws_cluster.metadata.annotations = None;
    assert_eq!(delete_machine(&mut fleet, &mut world, "worker-0"), None);
    assert_eq!(world.truth.instances[0].status.state, "terminated");
}

#[test]
fn a_copied_manifest_takes_nothing_of_the_original() {
    for (namespace, name) in [("other", "prod"), ("default", "copy"), ("other", "copy")] {
        let (mut world, mut original) = settled("prod");
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
        let look = |copy: &mut Fleet, world: &mut World| {
            let plan = copy.look_unchecked(world);
            assert!(
                plan.actions.iter().all(|it| matches!(it, model::Action::Confirm { .. })),
                "{namespace}/{name}: {plan}"
            );
            world.tick();
        };
        (0..10).for_each(|_| look(&mut copy, &mut world));
        let decision = copy.decide(&mut world);
        let text = decision.plan.to_string();
        assert!(text.contains("belongs to the AWSCluster that this one was copied from"), "{text}");
        let id = &original.aws_cluster.metadata.annotations.as_ref().expect("annotations")["cluster.kurator.dev/id"];
        assert!(!text.contains(id.as_str()), "the id is nobody's to read");
        copy.delete(&world);
        (0..20).for_each(|_| look(&mut copy, &mut world));
        // Of another name, the recorded load balancer is looked for as long as it is there: a controller that
        // sees the original lets it go.
        assert!(copy.finished || name == "copy", "{namespace}/{name}: {}", copy.decide(&mut world).plan);
        assert_eq!(world.inventory(), before, "{namespace}/{name}");
        assert!(original.look(&mut world) && original.look_at_machines(&mut world));
    }
}

#[test]
fn what_was_made_before_owners_were_written_gets_one() {
    let (mut world, mut fleet) = settled("prod");
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
