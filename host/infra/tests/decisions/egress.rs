//! Nodes in a VPC that a user brought reach the API through its NAT gateways, whose addresses rules let in
//! though nobody here made them.

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use model::{
    FoundInternetGateway, FoundNatGateway, FoundSource, FoundSubnet, FoundVpc, Interest, Read, State, Tags,
};
use serde_json::{Value, json};

/// A VPC with a public and a private subnet and NAT gateways, one of which is on its way out.
fn users_vpc() -> World {
    let mut world = World::new(9, Faults::default());
    let (id, cidr, tags) = ("vpc-user".to_owned(), "10.9.0.0/16".into(), Tags::new());
    world.truth.vpcs.push(FoundVpc { id: id.clone(), cidr, state: State::Ready, dns_hostnames: None, tags });
    for (n, (subnet, public)) in
        [("subnet-0000000a", true), ("subnet-0000000b", false)].into_iter().enumerate()
    {
        let (zone, cidr, tags) = ("us-east-1a".to_owned(), format!("10.9.{n}.0/24"), Tags::new());
        world.truth.subnets.push(FoundSubnet {
            id: subnet.into(),
            vpc_id: id.clone(),
            zone,
            cidr,
            public,
            state: State::Ready,
            tags,
        });
    }
    let gateway = FoundInternetGateway { id: "igw-user".into(), vpc_id: Some(id), tags: Tags::new() };
    world.truth.internet_gateways.push(gateway);
    world.route_table_of_user("vpc-user", true, &[], None);
    world.route_table_of_user("vpc-user", false, &["subnet-0000000a"], Some("igw-user"));
    for (gateway, vpc_id, ip, state) in [
        ("nat-1", "vpc-user", "203.0.113.10", State::Ready),
        ("nat-2", "vpc-user", "203.0.113.20", State::Deleting),
        ("nat-3", "vpc-other", "203.0.113.30", State::Ready),
    ] {
        world.truth.nat_gateways.push(FoundNatGateway {
            id: gateway.into(),
            vpc_id: vpc_id.into(),
            subnet_id: "subnet-0000000a".into(),
            allocation_id: Some(format!("eipalloc-{gateway}")),
            public_ips: vec![ip.into()],
            state,
            failure: None,
            tags: Tags::new(),
        });
    }
    world
}

fn brought(mut spec: Value) -> Fleet {
    spec["network"]["vpc"] = json!({"id": "vpc-user"});
    spec["network"]["subnets"] = json!([{"id": "subnet-0000000a"}, {"id": "subnet-0000000b"}]);
    Fleet::new("prod", spec)
}

fn office() -> Value {
    json!([{"description": "office", "protocol": "tcp", "fromPort": 6443, "toPort": 6443, "cidrBlocks": ["198.18.0.0/24"]}])
}

/// Ranges that a group lets in.
fn let_in(world: &World, group: &str) -> Vec<String> {
    let group = world.truth.security_groups.iter().find(|it| it.group_name == group).expect("a group");
    let ranges = group
        .rules
        .iter()
        .filter_map(|it| if let FoundSource::Cidr(range) = &it.source { Some(range.clone()) } else { None });
    let mut ranges: Vec<String> = ranges.collect();
    ranges.sort();
    ranges
}

#[test]
fn a_restricted_api_lets_in_the_nat_gateways_of_a_users_vpc() {
    let mut world = users_vpc();
    let mut fleet = brought(json!({"controlPlaneLoadBalancer": {"ingressRules": office()}}));
    fleet.settle(&mut world);
    assert_eq!(let_in(&world, "prod-apiserver-lb"), ["198.18.0.0/24", "203.0.113.10/32"]);
    assert_eq!(world.truth.nat_gateways.len(), 3);
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.truth.nat_gateways.len(), 3, "they are the user's");
}

#[test]
fn rules_for_nat_gateways_let_in_those_of_a_users_vpc() {
    let mut world = users_vpc();
    let rule = json!([{"description": "nodes", "protocol": "tcp", "fromPort": 9100, "toPort": 9100, "natGatewaysIPsSource": true}]);
    let mut fleet = brought(json!({"network": {"additionalNodeIngressRules": rule}}));
    fleet.settle(&mut world);
    assert!(
        let_in(&world, "prod-node").contains(&"203.0.113.10/32".to_owned()),
        "{:?}",
        let_in(&world, "prod-node")
    );
}

#[test]
fn nat_gateways_of_a_users_vpc_are_read_only_for_rules_that_need() {
    for spec in [
        json!({}),
        json!({"controlPlaneLoadBalancer": {"scheme": "internal", "ingressRules": office()}}),
        json!({"controlPlaneLoadBalancer": {"loadBalancerType": "disabled"}, "network": {"additionalNodeIngressRules": office()}}),
    ] {
        let mut world = users_vpc();
        let mut fleet = brought(spec);
        fleet.settle(&mut world);
        let interest = fleet.decide(&mut world).interest;
        let route_tables_of = ["vpc-user".to_owned()].into();
        assert_eq!(interest, Interest { ids: interest.ids.clone(), route_tables_of, ..Interest::default() });
    }
    let mut world = users_vpc();
    let mut fleet = Fleet::new("prod", json!({"controlPlaneLoadBalancer": {"ingressRules": office()}}));
    fleet.settle(&mut world);
    assert_eq!(fleet.decide(&mut world).interest, Interest::default(), "a VPC of its own");
}

#[test]
fn as_long_as_they_were_not_read_it_waits_and_revokes_nothing() {
    let mut world = users_vpc();
    let mut fleet = brought(json!({"controlPlaneLoadBalancer": {"ingressRules": office()}}));
    fleet.settle(&mut world);
    // A new process begins with a sweep that knows of no such wish.
    fleet.nat_gateways_of.clear();
    let decision = fleet.decide(&mut world);
    assert!(decision.plan.actions.is_empty(), "{}", decision.plan);
    let waiting: Vec<String> =
        decision.plan.waiting.iter().map(|(key, why)| format!("{key}: {why}")).collect();
    assert_eq!(waiting, ["security-group-rules/apiserver-lb: reading the NAT gateways of vpc-user"]);
    assert!(
        decision.interest.reads.contains(&Read::NatGateways)
            && decision.interest.nat_gateways_of.contains("vpc-user")
    );
    fleet.settle(&mut world);
    // What is gone is let in no more; what was seen for the first time this moment, reads may only hide.
    (0..12).for_each(|_| world.tick());
    world.truth.nat_gateways.retain(|it| it.id != "nat-1");
    fleet.settle(&mut world);
    assert_eq!(let_in(&world, "prod-apiserver-lb"), ["198.18.0.0/24"]);
}
