//! Edits that are not carried out, and what is said of them.

use super::{ZONES, condition_of, in_zones, reconcile};
use crate::world::World;
use crate::world::driver::settled;
use crds::conditions::READY;
use crds::conditions::cluster::{LOAD_BALANCER_READY, SUBNETS_READY};
use model::Resource;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[test]
fn what_cannot_be_carried_out_is_held_and_said() {
    let edits: [(&str, Value, &str); 5] = [
        (SUBNETS_READY, json!({"vpc": {"availabilityZoneUsageLimit": 3}}), "availabilityZoneUsageLimit is 3"),
        (SUBNETS_READY, json!({"vpc": {"availabilityZoneUsageLimit": 1}}), "availabilityZoneUsageLimit is 1"),
        (
            READY,
            json!({"vpc": {"id": "vpc-of-another"}}),
            "spec.network.vpc.id is vpc-of-another, and the cluster lives in vpc-",
        ),
        (READY, json!({"vpc": {"cidrBlock": "10.1.0.0/16"}}), "cidrBlock of vpc-"),
        (SUBNETS_READY, json!({"subnets": in_zones(&[2])}), "is not in spec.network.subnets any more"),
    ];
    for (condition, edit, expected) in edits {
        let (mut world, mut fleet) = settled(json!({"network": {"vpc": {"availabilityZoneUsageLimit": 2}}}));
        for (name, zone) in [("worker-0", ZONES[0]), ("worker-1", ZONES[1])] {
            fleet.add_machine(name, false, json!({}));
            fleet.machines.get_mut(name).expect("a machine").0.spec.failure_domain = Some(zone.into());
        }
        fleet.settle(&mut world);
        let before = world.inventory();
        let mut spec = serde_json::to_value(&fleet.aws_cluster.spec).expect("a spec");
        crate::world::objects::merge(&mut spec["network"], &edit);
        fleet.aws_cluster.spec = serde_json::from_value(spec).expect("a spec");
        reconcile(&mut fleet, &mut world, 20);
        let lost: Vec<&String> = before.iter().filter(|it| !world.inventory().contains(it)).collect();
        assert_eq!(lost, Vec::<&String>::new(), "{edit}");
        let (_, message) = condition_of(&fleet, &mut world, condition);
        assert!(message.contains(expected), "{edit}: {message}");
    }
}

/// Ports at which anybody outside reaches the load balancer's group, and those that it listens at.
fn ports(world: &World) -> (BTreeSet<i32>, BTreeSet<u16>) {
    let group = world
        .truth
        .security_groups
        .iter()
        .find(|it| it.group_name == "prod-apiserver-lb")
        .expect("the group");
    let listeners = world.truth.load_balancers[0].listeners.iter().map(|it| it.port).collect();
    (group.rules.iter().map(|it| it.from_port).collect(), listeners)
}

#[test]
fn the_api_stays_at_the_port_that_everybody_knows() {
    for kind in ["classic", "nlb"] {
        let (mut world, mut fleet) = settled(json!({"controlPlaneLoadBalancer": {"loadBalancerType": kind}}));
        fleet.cluster.spec.cluster_network.api_server_port = Some(443);
        reconcile(&mut fleet, &mut world, 10);
        assert_eq!(ports(&world), (BTreeSet::from([6443]), BTreeSet::from([6443])), "{kind}");
        for condition in [LOAD_BALANCER_READY, READY] {
            let message = "Cluster spec.clusterNetwork.apiServerPort is 443, and the API is reached at 6443: it stays there; set it back";
            assert_eq!(
                condition_of(&fleet, &mut world, condition),
                ("True".to_owned(), message.to_owned()),
                "{kind}"
            );
        }
        // While reads do not show the load balancer, nothing is concluded.
        let shown = world.truth.load_balancers.clone();
        world.truth.load_balancers.clear();
        let decision = fleet.decide(&mut world);
        let rules = &decision.desired[&model::SecurityGroupRules::key("apiserver-lb")].is;
        assert!(matches!(rules, Resource::SecurityGroupRules(it) if it.keep_unknown), "{kind}: {rules:?}");
        world.truth.load_balancers = shown;
    }
}
