//! What users read in status, in typical situations. Messages stay the same from one look to the next as long
//! as nothing changed.

use crate::world::driver::Fleet;
use crate::world::{Faults, START, World};
use crds::conditions::{READY, reason};
use expect_test::{Expect, expect};
use infra::{PersistedState, cluster, machine, status};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use model::{ActionNeeded, Answers, Key, Outcome, Problem, Snapshot};
use serde_json::json;

/// The status of a cluster after a decision, with how actions ended.
fn said(
    fleet: &Fleet,
    world: &mut World,
    outcomes: &[(Key, Outcome)],
    problem: Option<&Problem>,
) -> crds::AWSClusterStatus {
    let snapshot = fleet.snapshot(world);
    let decision = fleet.decide_with(world, &snapshot);
    fleet.said(world.now, &snapshot, &decision, outcomes, problem)
}

fn text(conditions: &[Condition]) -> String {
    let line = |it: &Condition| {
        format!("{} {} {}: {}", it.type_, it.status, it.reason, it.message)
            .trim_end_matches([':', ' '])
            .to_owned()
            + "\n"
    };
    conditions.iter().map(line).collect()
}

fn check(status: &crds::AWSClusterStatus, expected: Expect) {
    expected.assert_eq(&text(&status.conditions));
}

fn ready(conditions: &[Condition]) -> &Condition {
    conditions.iter().find(|it| it.type_ == READY).expect("a condition Ready")
}

#[test]
fn a_cluster_that_is_being_made_says_what_it_waits_for() {
    let mut world = World::new(1, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    check(
        &said(&fleet, &mut world, &[], None),
        expect![[r#"
            ClusterSecurityGroupsReady False NotReady: security-group-rules/apiserver-lb: after security-group/apiserver-lb; security-group-rules/controlplane: after security-group/controlplane, security-group/node, security-group/apiserver-lb; security-group-rules/lb: after security-group/lb; security-group-rules/node: after security-group/node, security-group/controlplane; security-group/apiserver-lb: after vpc/main; security-group/controlplane: after vpc/main; security-group/lb: after vpc/main; security-group/node: after vpc/main
            InternetGatewayReady False NotReady: internet-gateway/main: after vpc/main
            LoadBalancerReady False NotReady: load-balancer/apiserver: after internet-gateway/main, security-group/apiserver-lb, subnet/public-us-east-1a
            NatGatewaysReady False Creating: elastic-ip/us-east-1a: creating; nat-gateway/us-east-1a: after subnet/public-us-east-1a, elastic-ip/us-east-1a, internet-gateway/main
            Paused False NotPaused
            Ready False Creating: elastic-ip/us-east-1a: creating; vpc/main: creating; internet-gateway/main: after vpc/main; load-balancer/apiserver: after internet-gateway/main, security-group/apiserver-lb, subnet/public-us-east-1a; nat-gateway/us-east-1a: after subnet/public-us-east-1a, elastic-ip/us-east-1a, internet-gateway/main; route-table/private-us-east-1a: after vpc/main; route-table/public-us-east-1a: after vpc/main; security-group-rules/apiserver-lb: after security-group/apiserver-lb; and 9 more
            RouteTablesReady False NotReady: route-table/private-us-east-1a: after vpc/main; route-table/public-us-east-1a: after vpc/main
            SubnetsReady False NotReady: subnet/private-us-east-1a: after vpc/main; subnet/public-us-east-1a: after vpc/main
            VpcReady False Creating: vpc/main: creating
        "#]],
    );
    for _ in 0..3 {
        fleet.look(&mut world);
        world.tick();
    }
    let status = said(&fleet, &mut world, &[], None);
    check(
        &status,
        expect![[r#"
            ClusterSecurityGroupsReady True Ready
            InternetGatewayReady True Ready
            LoadBalancerReady False Updating: load-balancer/apiserver: updating
            NatGatewaysReady False Creating: nat-gateway/us-east-1a: creating
            Paused False NotPaused
            Ready False Updating: load-balancer/apiserver: updating; nat-gateway/us-east-1a: creating; route-table/private-us-east-1a: after nat-gateway/us-east-1a
            RouteTablesReady False NotReady: route-table/private-us-east-1a: after nat-gateway/us-east-1a
            SubnetsReady True Ready
            VpcReady True Ready
        "#]],
    );
    assert!(status.initialization.is_none() && status.failure_domains.len() == 1);
    let again = said(&fleet, &mut world, &[], None);
    assert_eq!(text(&status.conditions), text(&again.conditions));
}

#[test]
fn a_finished_cluster_says_what_there_is() {
    let mut world = World::new(1, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
    let status = said(&fleet, &mut world, &[], None);
    check(
        &status,
        expect![[r#"
        ClusterSecurityGroupsReady True Ready
        InternetGatewayReady True Ready
        LoadBalancerReady True Ready
        NatGatewaysReady True Ready
        Paused False NotPaused
        Ready True Ready
        RouteTablesReady True Ready
        SubnetsReady True Ready
        VpcReady True Ready
    "#]],
    );
    let shown = serde_json::to_string_pretty(&(
        &status.initialization,
        &status.failure_domains,
        &status.network_status,
    ))
    .expect("JSON");
    expect![[r#"
        [
          {
            "provisioned": true
          },
          [
            {
              "name": "us-east-1a",
              "controlPlane": true
            }
          ],
          {
            "vpc": {
              "id": "vpc-0001",
              "cidrBlock": "10.0.0.0/16"
            },
            "subnets": [
              {
                "id": "subnet-00000004",
                "availabilityZone": "us-east-1a",
                "cidrBlock": "10.0.128.0/17",
                "isPublic": false
              },
              {
                "id": "subnet-00000005",
                "availabilityZone": "us-east-1a",
                "cidrBlock": "10.0.0.0/17",
                "isPublic": true
              }
            ],
            "securityGroups": {
              "apiserver-lb": {
                "id": "sg-0009",
                "name": "prod-apiserver-lb"
              },
              "controlplane": {
                "id": "sg-0010",
                "name": "prod-controlplane"
              },
              "lb": {
                "id": "sg-0011",
                "name": "prod-lb"
              },
              "node": {
                "id": "sg-0012",
                "name": "prod-node"
              }
            },
            "apiServerElb": {
              "name": "prod-apiserver",
              "dnsName": "prod-apiserver.elb.example"
            },
            "natGatewaysIPs": [
              "198.51.100.3"
            ]
          }
        ]"#]]
    .assert_eq(&shown);
}

#[test]
fn times_change_only_with_the_status_of_a_condition() {
    let mut world = World::new(1, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.aws_cluster.status = Some(said(&fleet, &mut world, &[], None));
    let first = fleet.aws_cluster.status.clone().expect("a status");
    fleet.look(&mut world);
    world.tick();
    fleet.aws_cluster.status = Some(said(&fleet, &mut world, &[], None));
    let second = fleet.aws_cluster.status.clone().expect("a status");
    assert_eq!(ready(&first.conditions).last_transition_time, ready(&second.conditions).last_transition_time);
    assert_ne!(ready(&first.conditions).message, ready(&second.conditions).message);
    fleet.settle(&mut world);
    let third = said(&fleet, &mut world, &[], None);
    assert_ne!(ready(&first.conditions).last_transition_time, ready(&third.conditions).last_transition_time);
    fleet.aws_cluster.status = Some(third.clone());
    world.tick();
    assert_eq!(said(&fleet, &mut world, &[], None), third, "a settled cluster has nothing new to say");
}

#[test]
fn a_refusal_says_who_has_to_act() {
    let mut world = World::new(1, Faults::default());
    let fleet = Fleet::new("prod", json!({}));
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
        let status = said(&fleet, &mut world, &[(vpc.clone(), refused)], None);
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
fn the_status_names_the_nat_gateways_of_a_vpc_that_the_user_brought() {
    let mut world = World::new(1, Faults::default());
    let (cidr, tags) = ("10.9.0.0/16".into(), model::Tags::new());
    world.truth.vpcs.push(model::FoundVpc {
        id: "vpc-user".into(),
        cidr,
        state: model::State::Ready,
        dns_hostnames: None,
        tags,
    });
    world.truth.nat_gateways.push(model::FoundNatGateway {
        id: "nat-1".into(),
        vpc_id: "vpc-user".into(),
        subnet_id: "subnet-00000001".into(),
        allocation_id: None,
        public_ips: vec!["203.0.113.10".into(), "203.0.113.11".into()],
        state: model::State::Ready,
        failure: None,
        tags: model::Tags::new(),
    });
    let mut fleet = Fleet::new(
        "prod",
        json!({"network": {"vpc": {"id": "vpc-user"}, "subnets": [{"id": "subnet-00000001"}]}}),
    );
    fleet.nat_gateways_of.insert("vpc-user".into());
    assert_eq!(
        said(&fleet, &mut world, &[], None).network_status.nat_gateways_ips,
        ["203.0.113.10", "203.0.113.11"]
    );
}

#[test]
fn a_failing_sweep_is_said_and_forgets_nothing() {
    let mut world = World::new(1, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
    let before = said(&fleet, &mut world, &[], None);
    fleet.aws_cluster.status = Some(before.clone());
    let problem =
        Problem { code: "AccessDenied".into(), message: "no".into(), who: ActionNeeded::CloudAdmin };
    let snapshot = Snapshot::default();
    let decision = fleet.decide_with(&mut world, &snapshot);
    assert!(decision.plan.actions.is_empty());
    let after = said_of(&fleet, &world, &snapshot, Some(&problem));
    assert_eq!(ready(&after.conditions).reason, reason::ACCESS_DENIED);
    assert_eq!(
        (&after.network_status, &after.failure_domains),
        (&before.network_status, &before.failure_domains)
    );
    assert_eq!(after.initialization, before.initialization);
    assert_eq!(said_of(&fleet, &world, &snapshot, None), before, "before AWS was read, nothing new is known");
}

/// What is said of a snapshot.
fn said_of(
    fleet: &Fleet,
    world: &World,
    snapshot: &Snapshot,
    problem: Option<&Problem>,
) -> crds::AWSClusterStatus {
    let decision = fleet.decide_with(&mut World::new(1, Faults::default()), snapshot);
    fleet.said(world.now, snapshot, &decision, &[], problem)
}

#[test]
fn a_restricted_api_says_that_nodes_that_no_nat_gateway_leads_to_it_need_a_rule() {
    let remark = |subnets: serde_json::Value, range: &str, port: i32| {
        let rules = json!([{"description": "office", "protocol": "tcp", "fromPort": port, "toPort": port, "cidrBlocks": [range]}]);
        let spec =
            json!({"network": {"subnets": subnets}, "controlPlaneLoadBalancer": {"ingressRules": rules}});
        let (mut world, mut fleet) = (World::new(1, Faults::default()), Fleet::new("prod", spec));
        fleet.settle(&mut world);
        let conditions = said(&fleet, &mut world, &[], None).conditions;
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
fn a_load_balancer_of_somebody_elses_is_said_with_the_field_when_that_names_it() {
    let mut world = World::new(1, Faults::default());
    Fleet::new("corp", json!({"controlPlaneLoadBalancer": {"name": "prod-apiserver"}})).settle(&mut world);
    let mut message = |spec: serde_json::Value| {
        let conditions = said(&Fleet::new("prod", spec), &mut world, &[], None).conditions;
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
        let status = said(&fleet, &mut world, &[], None);
        let ready = ready(&status.conditions);
        assert_eq!(ready.reason, reason::INVALID_SPEC);
        res += &format!("{}\n", ready.message);
    }
    world.truth.zones.clear();
    res += &ready(&said(&Fleet::new("prod", json!({})), &mut world, &[], None).conditions).message;
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

#[test]
fn deleting_says_what_is_left() {
    let mut world = World::new(1, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
    fleet.add_machine("worker-0", false, json!({}));
    fleet.delete(&world);
    check(
        &said(&fleet, &mut world, &[], None),
        expect![[r#"
        ClusterSecurityGroupsReady True Ready
        Deleting True WaitingForMachines: vpc/main: used by AWSMachine worker-0
        InternetGatewayReady True Ready
        LoadBalancerReady True Ready
        NatGatewaysReady True Ready
        Paused False NotPaused
        Ready False WaitingForMachines: vpc/main: used by AWSMachine worker-0
        RouteTablesReady True Ready
        SubnetsReady True Ready
        VpcReady False NotReady: vpc/main: used by AWSMachine worker-0
    "#]],
    );
    fleet.machines.clear();
    for _ in 0..2 {
        fleet.look(&mut world);
        world.tick();
    }
    check(
        &said(&fleet, &mut world, &[], None),
        expect![[r#"
            ClusterSecurityGroupsReady False Deleting: security-group/controlplane: deleting; security-group/node: deleting; security-group/apiserver-lb: used by network-interface/eni-0014
            Deleting True Deleting: nat-gateway/us-east-1a: deleting; security-group/controlplane: deleting; security-group/node: deleting; subnet/private-us-east-1a: deleting; elastic-ip/us-east-1a: used by nat-gateway/us-east-1a; internet-gateway/main: used by nat-gateway/us-east-1a; security-group/apiserver-lb: used by network-interface/eni-0014; subnet/public-us-east-1a: used by nat-gateway/us-east-1a; and 1 more
            InternetGatewayReady False NotReady: internet-gateway/main: used by nat-gateway/us-east-1a
            NatGatewaysReady False Deleting: nat-gateway/us-east-1a: deleting; elastic-ip/us-east-1a: used by nat-gateway/us-east-1a
            Paused False NotPaused
            Ready False Deleting: nat-gateway/us-east-1a: deleting; security-group/controlplane: deleting; security-group/node: deleting; subnet/private-us-east-1a: deleting; elastic-ip/us-east-1a: used by nat-gateway/us-east-1a; internet-gateway/main: used by nat-gateway/us-east-1a; security-group/apiserver-lb: used by network-interface/eni-0014; subnet/public-us-east-1a: used by nat-gateway/us-east-1a; and 1 more
            SubnetsReady False Deleting: subnet/private-us-east-1a: deleting; subnet/public-us-east-1a: used by nat-gateway/us-east-1a
            VpcReady False NotReady: vpc/main: used by subnet/private-us-east-1a
        "#]],
    );
}

/// The status of a machine.
fn said_of_machine(fleet: &Fleet, world: &mut World, hold: Option<String>) -> crds::AWSMachineStatus {
    let snapshot = fleet.snapshot(world);
    let (machine, aws_machine) = &fleet.machines["control-plane-0"];
    let record = PersistedState::of_machine(aws_machine).expect("a record");
    let cluster_record = PersistedState::of_cluster(&fleet.aws_cluster).expect("a record");
    let input = machine::Input {
        cluster: &fleet.cluster,
        machine,
        aws_cluster: &fleet.aws_cluster,
        aws_machine,
        cluster_record: &cluster_record,
        bootstrap: Some(machine::Bootstrap {
            data: &fleet.bootstrap,
            format: fleet.bootstrap_format.as_deref(),
        }),
        image: None,
        answers: &Answers::default(),
        snapshot: &snapshot,
        record: &record,
        hold,
        now: world.now,
        random: "0",
    };
    let decision = machine::decide(&input);
    status::machine(&status::Machine { input: &input, decision: &decision, outcomes: &[], problem: None })
}

#[test]
fn a_machine_from_waiting_to_gone() {
    let mut world = World::new(1, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
    fleet.add_machine("control-plane-0", true, json!({}));
    let mut res = String::new();
    let mut note = |what: &str, fleet: &Fleet, world: &mut World, hold: Option<String>| {
        let status = said_of_machine(fleet, world, hold);
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
        fleet.look_at_machines(&mut world);
    }
    note("started", &fleet, &mut world, None);
    fleet.settle(&mut world);
    note("running", &fleet, &mut world, None);
    fleet.delete(&world);
    note("held", &fleet, &mut world, Some("kept until the cluster's add-ons are removed".into()));
    fleet.look_at_machines(&mut world);
    fleet.look_at_machines(&mut world);
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
fn a_node_that_is_no_longer_healthy_has_its_instance_looked_at_until_a_read_has_shown_it() {
    let mut world = World::new(1, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
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

#[test]
fn the_load_balancers_name_has_to_resolve_until_the_cluster_is_provisioned_unless_the_spec_says_otherwise() {
    for (check, expected) in [
        (json!({}), true),
        (json!({"dnsResolutionCheck": "Enabled"}), true),
        (json!({"dnsResolutionCheck": "None"}), false),
    ] {
        let mut world = World::new(1, Faults::default());
        let mut fleet = Fleet::new("prod", json!({"controlPlaneLoadBalancer": check}));
        let asked = |fleet: &Fleet, world: &mut World| {
            let snapshot = fleet.snapshot(world);
            let decision = fleet.decide_with(world, &snapshot);
            let record = PersistedState::of_cluster(&fleet.aws_cluster).expect("a record");
            let (cluster, aws_cluster, snapshot, record) =
                (&fleet.cluster, &fleet.aws_cluster, &snapshot, &record);
            let input = cluster::Input {
                cluster,
                aws_cluster,
                machines: &[],
                rules: None,
                snapshot,
                record,
                now: world.now,
                random: "",
            };
            let name = cluster::must_resolve(&input, &decision).map(str::to_owned);
            let said = status::cluster(&status::Cluster {
                input: &input,
                decision: &decision,
                outcomes: &[],
                problem: None,
                unresolved: name.as_deref(),
                issuer: None,
            });
            (name, said)
        };
        assert_eq!(asked(&fleet, &mut world).0, None, "there is no name yet");
        fleet.settle(&mut world);
        let (name, said) = asked(&fleet, &mut world);
        assert_eq!(name.is_some(), expected, "{check}");
        assert_eq!(said.ready, !expected);
        assert_eq!(
            text(&said.conditions).contains("Ready False WaitForDNSNameResolve"),
            expected,
            "{}",
            text(&said.conditions)
        );
        fleet.aws_cluster.status = Some(crds::AWSClusterStatus {
            initialization: Some(crds::status::Initialization { provisioned: Some(true) }),
            ..crds::AWSClusterStatus::default()
        });
        assert_eq!(asked(&fleet, &mut world).0, None, "it was provisioned once");
    }
}
