//! What others put into a VPC that is to be deleted.

use crate::world::World;
use crate::world::driver::{Fleet, settled};
use model::Tags;
use serde_json::json;

#[test]
fn two_things_with_one_role_are_named_and_left_alone() {
    let (mut world, fleet) = settled(json!({}));
    let mut copy = world.truth.route_tables[0].clone();
    copy.id = "rtb-copy".into();
    world.truth.route_tables.push(copy);
    let plan = fleet.decide(&mut world).plan;
    assert!(plan.blocked.iter().any(|(_, why)| why.contains("rtb-copy")), "{plan}");
    assert!(plan.actions.is_empty(), "{plan}");
}

#[test]
fn what_users_put_into_the_vpc_stands_in_the_way_and_is_named() {
    let (mut world, mut fleet) = settled(json!({}));
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
        fleet.reconcile_unchecked(&mut world);
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
fn a_users_nat_gateway_in_our_vpc_is_named_until_it_is_removed() {
    let (mut world, mut fleet) = settled(json!({}));
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
        fleet.reconcile_unchecked(&mut world);
        world.tick();
    }
    let blocked = fleet.decide(&mut world).plan.blocked;
    let expected = "used by nat-gateway/nat-users, which was not made by this operator; remove it";
    assert!(blocked.iter().any(|(_, why)| why == expected), "{blocked:?}");
    world.truth.nat_gateways.clear();
    assert!(!fleet.reconcile(&mut world), "its interface goes by itself");
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
fn leftovers_stay_when_an_annotation_says_so_and_else_go() {
    let (mut world, mut fleet) = settled(json!({}));
    load_balancer_of_a_service(&mut world);
    let annotation = "aws.cluster.x-k8s.io/external-resource-gc".to_owned();
    let annotate = |fleet: &mut Fleet, value: &str| {
        let annotations = fleet.aws_cluster.metadata.annotations.get_or_insert_default();
        annotations.insert(annotation.clone(), value.to_owned());
    };
    annotate(&mut fleet, "false");
    fleet.delete(&world);
    for _ in 0..40 {
        fleet.reconcile_unchecked(&mut world);
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
