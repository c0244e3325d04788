//! What is said of a cluster that somebody has to help: who, and with which field.

use super::{ready, status_of};
use crate::world::driver::{Fleet, fresh};
use crate::world::{Faults, World};
use crds::conditions::reason;
use expect_test::expect;
use model::{ActionNeeded, Key, Outcome};
use serde_json::json;

#[test]
fn a_refusal_says_who_has_to_act() {
    let (mut world, fleet) = fresh(json!({}));
    let vpc = Key::new(model::Kind::Vpc, "main");
    let cases = [
        (
            "UnauthorizedOperation",
            "You are not authorized. Encoded authorization failure message: a1b2",
            ActionNeeded::CloudAdmin,
            reason::ACCESS_DENIED,
        ),
        (
            "VpcLimitExceeded",
            "The maximum number of VPCs has been reached.",
            ActionNeeded::CloudAdmin,
            reason::QUOTA_EXCEEDED,
        ),
        ("InvalidVpc.Range", "The CIDR is invalid.", ActionNeeded::SpecAuthor, reason::AWS_ERROR),
    ];
    let mut res = String::new();
    for (code, message, who, expected) in cases {
        let refused = Outcome::Refused { code: code.into(), message: message.into(), retry: false, who };
        let status = status_of(&fleet, &mut world, &[(vpc.clone(), refused)], None);
        let ready = ready(&status.conditions);
        assert_eq!(ready.reason, expected);
        res += &format!("{}\n", ready.message);
    }
    expect![[r#"
        vpc/main: UnauthorizedOperation: You are not authorized (an administrator of the AWS account has to act); elastic-ip/us-east-1a: creating; internet-gateway/main: after vpc/main; load-balancer/apiserver: after internet-gateway/main, security-group/apiserver-lb, subnet/public-us-east-1a; nat-gateway/us-east-1a: after subnet/public-us-east-1a, elastic-ip/us-east-1a, internet-gateway/main; route-table/private-us-east-1a: after vpc/main; route-table/public-us-east-1a: after vpc/main; security-group-rules/apiserver-lb: after security-group/apiserver-lb; and 9 more
        vpc/main: VpcLimitExceeded: The maximum number of VPCs has been reached (an administrator of the AWS account has to act); elastic-ip/us-east-1a: creating; internet-gateway/main: after vpc/main; load-balancer/apiserver: after internet-gateway/main, security-group/apiserver-lb, subnet/public-us-east-1a; nat-gateway/us-east-1a: after subnet/public-us-east-1a, elastic-ip/us-east-1a, internet-gateway/main; route-table/private-us-east-1a: after vpc/main; route-table/public-us-east-1a: after vpc/main; security-group-rules/apiserver-lb: after security-group/apiserver-lb; and 9 more
        vpc/main: InvalidVpc.Range: The CIDR is invalid (whoever wrote this object has to correct it); elastic-ip/us-east-1a: creating; internet-gateway/main: after vpc/main; load-balancer/apiserver: after internet-gateway/main, security-group/apiserver-lb, subnet/public-us-east-1a; nat-gateway/us-east-1a: after subnet/public-us-east-1a, elastic-ip/us-east-1a, internet-gateway/main; route-table/private-us-east-1a: after vpc/main; route-table/public-us-east-1a: after vpc/main; security-group-rules/apiserver-lb: after security-group/apiserver-lb; and 9 more
    "#]].assert_eq(&res);
}

#[test]
fn a_restricted_api_says_which_nodes_need_a_rule() {
    let remark = |subnets: serde_json::Value, range: &str, port: i32| {
        let rules = json!([{"description": "office", "protocol": "tcp", "fromPort": port, "toPort": port, "cidrBlocks": [range]}]);
        let spec =
            json!({"network": {"subnets": subnets}, "controlPlaneLoadBalancer": {"ingressRules": rules}});
        let (mut world, mut fleet) = (World::new(1, Faults::default()), Fleet::new("prod", spec));
        fleet.settle(&mut world);
        let conditions = status_of(&fleet, &mut world, &[], None).conditions;
        let groups = conditions
            .iter()
            .find(|it| it.type_ == "ClusterSecurityGroupsReady")
            .expect("a condition of the groups");
        assert_eq!((groups.status.as_str(), ready(&conditions).status.as_str()), ("True", "True"));
        groups.message.clone()
    };
    let public = || json!([{"id": "edge", "availabilityZone": "us-east-1a", "cidrBlock": "10.0.0.0/24", "isPublic": true}]);
    for (range, port) in [("203.0.113.0/24", 6443), ("0.0.0.0/0", 22)] {
        let message = remark(public(), range, port);
        assert!(
            message.contains("a rule of spec.controlPlaneLoadBalancer.ingressRules lets in the range"),
            "{range} {port}: {message:?}"
        );
    }
    for range in ["0.0.0.0/0", "10.0.0.0/8"] {
        assert_eq!(remark(public(), range, 6443), "", "{range}");
    }
    assert_eq!(remark(json!([]), "203.0.113.0/24", 6443), "", "its NAT gateway is let in");
}

#[test]
fn a_load_balancer_of_another_is_reported_with_the_field() {
    let mut world = World::new(1, Faults::default());
    Fleet::new("corp", json!({"controlPlaneLoadBalancer": {"name": "prod-apiserver"}})).settle(&mut world);
    let mut message = |spec: serde_json::Value| {
        let conditions = status_of(&Fleet::new("prod", spec), &mut world, &[], None).conditions;
        let balancer = conditions
            .iter()
            .find(|it| it.type_ == "LoadBalancerReady")
            .expect("a condition of the load balancer");
        assert_eq!(
            (&balancer.message, balancer.reason.as_str()),
            (&ready(&conditions).message, reason::NOT_OWNED)
        );
        balancer.message.clone()
    };
    expect![[r#"
        load-balancer/apiserver: prod-apiserver has its place and belongs to somebody else (a load balancer named "prod-apiserver" in vpc-0001); rename or remove one of the two"#]].assert_eq(&message(json!({})));
    expect![[r#"
        load-balancer/apiserver: spec.controlPlaneLoadBalancer.name: prod-apiserver has its place and belongs to somebody else (a load balancer named "prod-apiserver" in vpc-0001); using an existing load balancer is not supported: create the cluster again with another name, or with loadBalancerType: disabled and spec.controlPlaneEndpoint"#]].assert_eq(&message(json!({"controlPlaneLoadBalancer": {"name": "prod-apiserver"}})));
}

#[test]
fn wrong_fields_are_named() {
    let mut world = World::new(1, Faults::default());
    let subnets = |second: &str| {
        json!([
            {"id": "a", "availabilityZone": "us-east-1a", "cidrBlock": "10.0.0.0/24", "isPublic": true},
            {"id": "b", "availabilityZone": "us-east-1a", "cidrBlock": second},
        ])
    };
    let cases = [
        json!({"network": {"vpc": {"cidrBlock": "10.0.0.0/27", "availabilityZoneUsageLimit": 3}}}),
        json!({"network": {"vpc": {"cidrBlock": "10.0.0.7/16"}}}),
        json!({"network": {"vpc": {"cidrBlock": "10.0.0.0/8"}}}),
        json!({"network": {"vpc": {"cidrBlock": "ten"}}}),
        json!({"network": {"subnets": subnets("10.0.0.128/25")}}),
        json!({"network": {"subnets": subnets("192.168.0.0/24")}}),
        json!({"network": {"subnets": [{"id": "a", "cidrBlock": "10.0.0.0/24"}]}}),
        json!({"network": {"subnets": [{"id": "a", "cidrBlock": "10.0.0.0/24", "availabilityZone": "eu-west-1a"}]}}),
        json!({"network": {"subnets": [{"id": "a", "cidrBlock": "10.0.0.0/24", "availabilityZone": "us-east-1a"}]}}),
        json!({"network": {"subnets": [
            {"id": "a", "cidrBlock": "10.0.0.0/24", "availabilityZone": "us-east-1a", "isPublic": true},
            {"id": "b", "cidrBlock": "10.0.1.0/24", "availabilityZone": "us-east-1a"},
            {"id": "c", "cidrBlock": "10.0.2.0/24", "availabilityZone": "us-east-1b"},
        ]}}),
        json!({"network": {"vpc": {"id": "vpc-1"}}}),
        json!({"controlPlaneLoadBalancer": {"loadBalancerType": "alb"}}),
        json!({"controlPlaneLoadBalancer": {"loadBalancerType": "nlb", "healthCheckProtocol": "UDP"}}),
    ];
    let mut res = String::new();
    for spec in cases {
        let fleet = Fleet::new("prod", spec);
        let status = status_of(&fleet, &mut world, &[], None);
        let ready = ready(&status.conditions);
        assert_eq!(ready.reason, reason::INVALID_SPEC);
        res += &format!("{}\n", ready.message);
    }
    world.truth.zones.clear();
    res += &ready(&status_of(&Fleet::new("prod", json!({})), &mut world, &[], None).conditions).message;
    expect![[r#"
        spec.network.vpc.cidrBlock: 10.0.0.0/27 is too small for public and private subnets in 3 zones; AWS takes none below /28
        spec.network.vpc.cidrBlock: 10.0.0.7/16 is not the beginning of its range; write 10.0.0.0/16
        spec.network.vpc.cidrBlock: 10.0.0.0/8: AWS takes networks of /16 to /28
        spec.network.vpc.cidrBlock: "ten" is no IPv4 range such as 10.0.0.0/16
        spec.network.subnets[1].cidrBlock: 10.0.0.128/25 overlaps that of spec.network.subnets[0]
        spec.network.subnets[1].cidrBlock: 192.168.0.0/24 does not lie in the VPC's range 10.0.0.0/16
        spec.network.subnets[0].availabilityZone: is needed for a subnet that is to be made
        spec.network.subnets[0].availabilityZone: "eu-west-1a" is none of us-east-1a, us-east-1b, us-east-1c, us-east-1d
        spec.network.subnets: at least one public subnet is needed, for NAT gateways and load balancers
        spec.network.subnets[2]: us-east-1b has no public subnet for the NAT gateway of this private one; add one, or leave the zone out
        spec.network.subnets: list the subnets of vpc-1 that the cluster may use
        spec.controlPlaneLoadBalancer.loadBalancerType: alb is not supported by cluster-operator: it does not forward TCP; use nlb or classic
        spec.controlPlaneLoadBalancer.healthCheckProtocol: UDP is no health check of a load balancer of this type
        vpc/main: reading AWS"#]].assert_eq(&res);
}
