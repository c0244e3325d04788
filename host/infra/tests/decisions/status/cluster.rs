//! What is said of a cluster, from the first plan to its deletion.

use super::{check, ready, status_of, text};
use crate::world::driver::{Fleet, fresh, settled};
use crate::world::{Faults, World};
use crds::conditions::reason;
use expect_test::expect;
use infra::{cluster, status};
use model::{ActionNeeded, Problem, Snapshot};
use serde_json::json;

#[test]
fn a_cluster_that_is_being_made_says_what_it_waits_for() {
    let (mut world, mut fleet) = fresh(json!({}));
    check(
        &status_of(&fleet, &mut world, &[], None),
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
        fleet.reconcile(&mut world);
        world.tick();
    }
    let status = status_of(&fleet, &mut world, &[], None);
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
    let again = status_of(&fleet, &mut world, &[], None);
    assert_eq!(text(&status.conditions), text(&again.conditions));
}

#[test]
fn all_conditions_of_a_finished_cluster_are_true() {
    let (mut world, fleet) = settled(json!({}));
    let status = status_of(&fleet, &mut world, &[], None);
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
}

#[test]
fn a_finished_cluster_says_what_there_is() {
    let (mut world, fleet) = settled(json!({}));
    let status = status_of(&fleet, &mut world, &[], None);
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
    let (mut world, mut fleet) = fresh(json!({}));
    fleet.aws_cluster.status = Some(status_of(&fleet, &mut world, &[], None));
    let first = fleet.aws_cluster.status.clone().expect("a status");
    fleet.reconcile(&mut world);
    world.tick();
    fleet.aws_cluster.status = Some(status_of(&fleet, &mut world, &[], None));
    let second = fleet.aws_cluster.status.clone().expect("a status");
    assert_eq!(ready(&first.conditions).last_transition_time, ready(&second.conditions).last_transition_time);
    assert_ne!(ready(&first.conditions).message, ready(&second.conditions).message);
    fleet.settle(&mut world);
    let third = status_of(&fleet, &mut world, &[], None);
    assert_ne!(ready(&first.conditions).last_transition_time, ready(&third.conditions).last_transition_time);
    fleet.aws_cluster.status = Some(third.clone());
    world.tick();
    assert_eq!(status_of(&fleet, &mut world, &[], None), third, "a settled cluster has nothing new to say");
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
        status_of(&fleet, &mut world, &[], None).network_status.nat_gateways_ips,
        ["203.0.113.10", "203.0.113.11"]
    );
}

#[test]
fn a_failing_sweep_is_said_and_forgets_nothing() {
    let (mut world, mut fleet) = settled(json!({}));
    let before = status_of(&fleet, &mut world, &[], None);
    fleet.aws_cluster.status = Some(before.clone());
    let problem =
        Problem { code: "AccessDenied".into(), message: "no".into(), who: ActionNeeded::CloudAdmin };
    let snapshot = Snapshot::default();
    let decision = fleet.decide_with(&mut world, &snapshot);
    assert!(decision.plan.actions.is_empty());
    let after = status_from(&fleet, &world, &snapshot, Some(&problem));
    assert_eq!(ready(&after.conditions).reason, reason::ACCESS_DENIED);
    assert_eq!(
        (&after.network_status, &after.failure_domains),
        (&before.network_status, &before.failure_domains)
    );
    assert_eq!(after.initialization, before.initialization);
    assert_eq!(
        status_from(&fleet, &world, &snapshot, None),
        before,
        "before AWS was read, nothing new is known"
    );
}

/// What is said of a snapshot.
fn status_from(
    fleet: &Fleet,
    world: &World,
    snapshot: &Snapshot,
    problem: Option<&Problem>,
) -> crds::AWSClusterStatus {
    let decision = fleet.decide_with(&mut World::new(1, Faults::default()), snapshot);
    fleet.status(world.now, snapshot, &decision, &[], problem)
}

#[test]
fn deleting_says_what_is_left() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    fleet.delete(&world);
    check(
        &status_of(&fleet, &mut world, &[], None),
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
        fleet.reconcile(&mut world);
        world.tick();
    }
    check(
        &status_of(&fleet, &mut world, &[], None),
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

#[test]
fn the_load_balancer_has_to_resolve_until_provisioned() {
    for (check, expected) in [
        (json!({}), true),
        (json!({"dnsResolutionCheck": "Enabled"}), true),
        (json!({"dnsResolutionCheck": "None"}), false),
    ] {
        let (mut world, mut fleet) = fresh(json!({"controlPlaneLoadBalancer": check}));
        let asked = |fleet: &Fleet, world: &mut World| {
            let snapshot = fleet.snapshot(world);
            let decision = fleet.decide_with(world, &snapshot);
            fleet.with_input(world.now, &snapshot, |input| {
                let name = cluster::must_resolve(&input, &decision).map(str::to_owned);
                let status = status::cluster(&status::Cluster {
                    input: &input,
                    decision: &decision,
                    outcomes: &[],
                    problem: None,
                    unresolved: name.as_deref(),
                    issuer: None,
                });
                (name, status)
            })
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
