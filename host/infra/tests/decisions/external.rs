//! Machines of clusters whose infrastructure somebody else looks after: they are made of what the
//! AWSCluster's spec says and the AWSMachine names, and nothing else of the cluster is touched.

use std::collections::BTreeSet;

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use crds::AWSCluster;
use crds::names::MANAGED_BY_ANNOTATION;
use model::{
    Action, FoundLoadBalancer, FoundSecurityGroup, FoundSubnet, FoundVpc, LoadBalancerKind, Resource, State,
    Tags,
};
use serde_json::{Value, json};

/// A VPC that no sweep shows, and a cluster in it that carries the annotation.
fn external(spec: Value) -> (World, Fleet) {
    let mut world = World::new(5, Faults::default());
    let (id, cidr, tags) = ("vpc-ext".to_owned(), "10.7.0.0/16".into(), Tags::new());
    world.truth.vpcs.push(FoundVpc { id: id.clone(), cidr, state: State::Ready, dns_hostnames: None, tags });
    for (n, (subnet, zone, public)) in [
        ("subnet-0000000a", "us-east-1a", false),
        ("subnet-0000000b", "us-east-1b", false),
        ("subnet-0000000e", "us-east-1b", true),
    ]
    .into_iter()
    .enumerate()
    {
        let (zone, cidr, tags) =
            (zone.to_owned(), format!("10.7.{n}.0/24"), Tags::from([("Name".into(), format!("ext-{n}"))]));
        world.truth.subnets.push(FoundSubnet {
            id: subnet.into(),
            vpc_id: id.clone(),
            zone,
            cidr,
            public,
            state: State::Ready,
            tags,
        });
        world.unlisted.insert(subnet.into());
    }
    let (group_name, description, rules) = ("nodes".to_owned(), String::new(), Vec::new());
    let tags = Tags::from([("Name".into(), "ext-nodes".into())]);
    world.truth.security_groups.push(FoundSecurityGroup {
        id: "sg-ext".into(),
        vpc_id: id,
        group_name,
        description,
        rules,
        tags,
    });
    world.unlisted.insert("sg-ext".into());
    let mut fleet = Fleet::new("prod", spec);
    fleet.aws_cluster.metadata.annotations = Some([(MANAGED_BY_ANNOTATION.to_owned(), String::new())].into());
    fleet.aws_cluster.spec.control_plane_endpoint =
        serde_json::from_value(json!({"host": "api.example.com", "port": 6443})).expect("an endpoint");
    (world, fleet)
}

/// By their ids, as whoever looks after them writes them down.
fn listed() -> Value {
    json!({"network": {"vpc": {"id": "vpc-ext"}, "subnets": [{"id": "subnet-0000000e", "isPublic": true}, {"id": "subnet-0000000b"}, {"id": "subnet-0000000a"}]}})
}

/// Looks at the machines alone, as nobody here looks at the AWSCluster.
fn settle(fleet: &mut Fleet, world: &mut World) {
    let before: AWSCluster = fleet.aws_cluster.clone();
    for _ in 0..100 {
        let done = fleet.reconcile_machines(world);
        world.tick();
        if done {
            assert_eq!(fleet.aws_cluster, before, "the AWSCluster is somebody else's to write to");
            return;
        }
    }
    panic!(
        "never settles: {:#?}",
        fleet.machines.keys().map(|it| fleet.decide_machine(world, it).plan.to_string()).collect::<Vec<_>>()
    );
}

#[test]
fn a_machine_gets_a_listed_subnet_and_only_the_groups_it_names() {
    let (mut world, mut fleet) = external(listed());
    let groups =
        json!({"additionalSecurityGroups": [{"filters": [{"name": "group-name", "values": ["nod*"]}]}]});
    fleet.add_machine("worker-b", false, groups.clone());
    fleet.add_machine("worker-a", false, groups.clone());
    fleet.machines.get_mut("worker-a").expect("a machine").0.spec.failure_domain = Some("us-east-1a".into());
    fleet.add_machine(
        "edge",
        false,
        json!({"publicIP": true, "additionalSecurityGroups": [{"id": "sg-ext"}]}),
    );
    settle(&mut fleet, &mut world);
    let made: Vec<_> = world
        .truth
        .instances
        .iter()
        .map(|it| (it.tags["Name"].as_str(), it.subnet_id.as_deref(), it.groups.clone()))
        .collect();
    let only = BTreeSet::from(["sg-ext".to_owned()]);
    let expected = [
        ("edge", Some("subnet-0000000e"), only.clone()),
        ("worker-a", Some("subnet-0000000a"), only.clone()),
        ("worker-b", Some("subnet-0000000b"), only.clone()),
    ];
    assert_eq!(made, expected);
    for instance in &world.truth.instances {
        let annotations = fleet.machines[&instance.tags["Name"]]
            .1
            .metadata
            .annotations
            .as_ref()
            .expect("the id is written down");
        let (tag, own) = (&instance.tags["cluster.kurator.dev/id"], &annotations["cluster.kurator.dev/id"]);
        assert!(
            tag == own && own.len() == 32,
            "the cluster has no id of ours: each machine has one of its own"
        );
    }
    let others = ["vpc", "subnet", "security-group", "instance", "secret"];
    assert!(
        world.counts().keys().all(|it| others.contains(&it.as_str())),
        "nothing else is made: {:?}",
        world.counts()
    );
    for name in ["worker-a", "worker-b", "edge"] {
        fleet.delete_machine(name);
    }
    settle(&mut fleet, &mut world);
    assert_eq!(
        world.counts().keys().map(String::as_str).collect::<Vec<_>>(),
        ["security-group", "subnet", "vpc"]
    );
}

#[test]
fn a_machine_needs_no_network_in_the_spec_when_it_names_its_subnet() {
    let (mut world, mut fleet) = external(json!({}));
    fleet.add_machine("worker-0", false, json!({}));
    let said = fleet.decide_machine(&mut world, "worker-0").invalid.expect("nobody says where").to_string();
    assert!(said.starts_with("spec.subnet: is needed"), "{said}");
    fleet.machines.clear();
    let spec = json!({
        "subnet": {"filters": [{"name": "tag:Name", "values": ["ext-1"]}]},
        "additionalSecurityGroups": [{"filters": [{"name": "tag:Name", "values": ["ext-nodes"]}]}],
    });
    fleet.add_machine("worker-0", false, spec);
    settle(&mut fleet, &mut world);
    assert_eq!(world.truth.instances[0].subnet_id.as_deref(), Some("subnet-0000000b"));
    assert_eq!(world.truth.instances[0].groups, BTreeSet::from(["sg-ext".to_owned()]));
}

#[test]
fn no_key_is_given_that_nobody_named() {
    let (mut world, mut fleet) =
        external(json!({"network": {"vpc": {"id": "vpc-ext"}, "subnets": [{"id": "subnet-0000000a"}]}}));
    let key = |world: &mut World, fleet: &Fleet| {
        let desired = fleet.decide_machine(world, "worker-0").desired;
        desired
            .into_values()
            .find_map(|it| if let Resource::Instance(it) = it.is { it.launch } else { None })
            .expect("an instance")
            .key_name
    };
    fleet.add_machine("worker-0", false, json!({}));
    assert_eq!(key(&mut world, &fleet), None);
    fleet.aws_cluster.spec.ssh_key_name = Some("ops".into());
    assert_eq!(key(&mut world, &fleet), Some("ops".into()));
}

#[test]
fn a_control_plane_machine_uses_only_a_load_balancer_that_is_there() {
    let (mut world, mut fleet) = external(listed());
    fleet.add_machine("control-plane-0", true, json!({"additionalSecurityGroups": [{"id": "sg-ext"}]}));
    settle(&mut fleet, &mut world);
    assert_eq!(world.truth.instances[0].status.state, "running");
    world.truth.load_balancers.push(FoundLoadBalancer {
        id: "prod-apiserver".into(),
        name: "prod-apiserver".into(),
        kind: LoadBalancerKind::Classic,
        dns_name: "api.example.com".into(),
        vpc_id: "vpc-ext".into(),
        internal: false,
        state: State::Ready,
        subnets: BTreeSet::from(["subnet-0000000e".to_owned()]),
        groups: BTreeSet::new(),
        listeners: Vec::new(),
        targets: BTreeSet::new(),
        attributes: None,
        target_groups: Vec::new(),
        tags: None,
    });
    settle(&mut fleet, &mut world);
    assert_eq!(world.truth.load_balancers[0].targets, BTreeSet::from([world.truth.instances[0].id.clone()]));
    fleet.delete_machine("control-plane-0");
    settle(&mut fleet, &mut world);
    assert!(world.truth.load_balancers[0].targets.is_empty());
    assert_eq!(world.truth.load_balancers.len(), 1);
}

#[test]
fn whatever_goes_wrong_every_machine_has_one_instance() {
    for seed in 0..40 {
        let (mut world, mut fleet) = external(listed());
        for _ in 0..seed {
            world.random();
        }
        world.faults = Faults {
            throttled: 15,
            lost_request: 15,
            lost_reply: 20,
            crash: 20,
            failed_start: 0,
            lag: 3,
            swing: true,
        };
        for name in ["worker-0", "worker-1"] {
            fleet.add_machine(name, false, json!({"additionalSecurityGroups": [{"id": "sg-ext"}]}));
        }
        for _ in 0..30 {
            fleet.reconcile_machines(&mut world);
            world.tick();
        }
        world.faults = Faults::default();
        settle(&mut fleet, &mut world);
        let names: BTreeSet<_> = world.truth.instances.iter().map(|it| it.tags["Name"].clone()).collect();
        assert_eq!((names.len(), world.truth.instances.len()), (2, 2), "seed {seed}");
    }
}

#[test]
fn status_ready_alone_is_answered_with_what_is_missing() {
    let (mut world, mut fleet) = external(listed());
    fleet.add_machine("worker-0", false, json!({"additionalSecurityGroups": [{"id": "sg-ext"}]}));
    fleet.cluster.status = None;
    let awaited = |world: &mut World, fleet: &Fleet| {
        fleet.decide_machine(world, "worker-0").waits.expect("it waits").message
    };
    let plain = "the infrastructure of the cluster is not provisioned yet";
    assert_eq!(awaited(&mut world, &fleet), plain);
    for status in [json!({"ready": false}), json!({"ready": true, "initialization": {"provisioned": true}})] {
        fleet.aws_cluster.status = serde_json::from_value(status).expect("a status");
        assert_eq!(awaited(&mut world, &fleet), plain);
    }
    fleet.aws_cluster.status = serde_json::from_value(json!({"ready": true})).expect("a status");
    let expected = "the infrastructure of the cluster is not provisioned yet: AWSCluster prod says status.ready alone; whoever manages it \
                    has to set status.initialization.provisioned: true, which this version of Cluster API asks for";
    assert_eq!(awaited(&mut world, &fleet), expected);
    fleet.aws_cluster.metadata.annotations = None;
    assert_eq!(awaited(&mut world, &fleet), plain, "this operator sets both");
}

#[test]
fn only_machines_are_looked_at() {
    let (mut world, mut fleet) = external(listed());
    fleet.add_machine("worker-0", false, json!({}));
    let plan = fleet.decide_machine(&mut world, "worker-0").plan;
    let kinds: BTreeSet<_> = plan.actions.iter().map(Action::key).map(|it| it.kind).collect();
    assert!(kinds.iter().all(|it| [model::Kind::Secret, model::Kind::Instance].contains(it)), "{plan}");
}
