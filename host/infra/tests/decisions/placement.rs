//! Where machines go and which groups they get when users mean things of their own, by id or by EC2's
//! filters, that no sweep shows.

use std::collections::BTreeSet;

use crate::world::driver::Fleet;
use crate::world::{Faults, World};
use model::{Filter, FoundSecurityGroup, FoundSubnet, Lookup, State, Tags};
use serde_json::{Value, json};

/// A cluster in a VPC of its own, in which a user made two subnets and two groups by hand.
fn with_things_of_users() -> (World, Fleet) {
    let mut world = World::new(11, Faults::default());
    let mut fleet = Fleet::new("prod", json!({}));
    fleet.settle(&mut world);
    let vpc_id = world.truth.vpcs[0].id.clone();
    for (id, zone, public, name) in
        [("subnet-data", "us-east-1a", false, "corp-data"), ("subnet-edge", "us-east-1b", true, "corp-edge")]
    {
        let (vpc_id, zone, cidr) =
            (vpc_id.clone(), zone.into(), format!("10.0.{}.0/24", world.truth.subnets.len() + 240));
        world.truth.subnets.push(FoundSubnet {
            id: id.into(),
            vpc_id,
            zone,
            cidr,
            public,
            state: State::Ready,
            tags: named(name),
        });
    }
    for (id, vpc_id, name) in [
        ("sg-web", vpc_id.clone(), "web-servers"),
        ("sg-db", vpc_id, "databases"),
        ("sg-far", "vpc-far".into(), "web-far"),
    ] {
        let (group_name, description, rules) = (name.into(), String::new(), Vec::new());
        world.truth.security_groups.push(FoundSecurityGroup {
            id: id.into(),
            vpc_id,
            group_name,
            description,
            rules,
            tags: named(name),
        });
    }
    world.unlisted = ["subnet-data", "subnet-edge", "sg-web", "sg-db", "sg-far"].map(str::to_owned).into();
    (world, fleet)
}

fn named(name: &str) -> Tags {
    Tags::from([("Name".into(), name.into())])
}

fn filters(name: &str, values: &[&str]) -> Value {
    json!([{"name": name, "values": values}])
}

fn invalid(world: &mut World, fleet: &mut Fleet, machine: &str, spec: Value) -> String {
    fleet.add_machine(machine, false, spec);
    let decision = fleet.decide_machine(world, machine);
    fleet.machines.remove(machine);
    assert!(decision.plan.actions.is_empty());
    decision.invalid.map(|it| it.to_string()).unwrap_or_default()
}

#[test]
fn filters_reach_aws_as_they_were_written_and_within_the_vpc() {
    let (mut world, mut fleet) = with_things_of_users();
    let spec = json!({
        "subnet": {"filters": filters("tag:Name", &["corp-d*", "x?"])},
        "additionalSecurityGroups": [{"id": "sg-db"}, {"filters": filters("group-name", &["web-*"])}],
    });
    fleet.add_machine("worker-0", false, spec);
    let decision = fleet.decide_machine_at_first(&mut world, "worker-0");
    let in_vpc = Filter::new("vpc-id", &world.truth.vpcs[0].id);
    let tag = Filter { name: "tag:Name".into(), values: vec!["corp-d*".into(), "x?".into()] };
    let expected = [
        Lookup::Subnets(vec![tag, in_vpc.clone()]),
        Lookup::SecurityGroups(vec![Filter::new("group-name", "web-*"), in_vpc]),
    ];
    assert_eq!(decision.lookups, BTreeSet::from(expected));
    assert!(decision.asks() && !decision.desired.keys().any(|it| it.kind == model::Kind::Instance));
    fleet.settle(&mut world);
    let instance = &world.truth.instances[0];
    assert_eq!(instance.subnet_id.as_deref(), Some("subnet-data"));
    assert!(
        instance.groups.is_superset(&["sg-db".to_owned(), "sg-web".to_owned()].into()),
        "{:?}",
        instance.groups
    );
    assert!(!instance.groups.contains("sg-far"), "a group of another VPC");
}

#[test]
fn a_machine_without_references_asks_nothing() {
    let (mut world, mut fleet) = with_things_of_users();
    fleet.add_machine("worker-0", false, json!({"additionalSecurityGroups": [{"id": "sg-db"}]}));
    assert!(!fleet.decide_machine_at_first(&mut world, "worker-0").asks());
}

#[test]
fn a_subnet_that_the_cluster_does_not_list_is_taken_by_its_id() {
    let (mut world, mut fleet) = with_things_of_users();
    fleet.add_machine("worker-0", false, json!({"subnet": {"id": "subnet-data"}}));
    fleet.settle(&mut world);
    assert_eq!(world.truth.instances[0].subnet_id.as_deref(), Some("subnet-data"));
    // What changes later does not wait for a subnet that no sweep shows.
    fleet.machines.get_mut("worker-0").expect("a machine").1.spec.additional_security_groups =
        serde_json::from_value(json!([{"filters": filters("tag:Name", &["web-servers"])}]))
            .expect("references");
    fleet.settle(&mut world);
    assert!(world.truth.instances[0].groups.contains("sg-web"));
}

#[test]
fn a_listed_subnet_is_taken_by_its_id_without_a_question() {
    let (mut world, mut fleet) = with_things_of_users();
    let listed = world.truth.subnets.iter().find(|it| !it.public).expect("a subnet").id.clone();
    fleet.add_machine("worker-0", false, json!({"subnet": {"id": listed}}));
    assert!(!fleet.decide_machine_at_first(&mut world, "worker-0").asks());
    fleet.settle(&mut world);
    assert_eq!(world.truth.instances[0].subnet_id, Some(listed));
}

#[test]
fn references_that_mean_nothing_or_nothing_that_fits_are_named() {
    let (mut world, mut fleet) = with_things_of_users();
    let mut said = |spec: Value| invalid(&mut world, &mut fleet, "worker-0", spec);
    let nothing = [
        said(json!({"subnet": {"id": "subnet-none"}})),
        said(json!({"subnet": {"filters": filters("tag:Name", &["none"])}})),
        said(
            json!({"additionalSecurityGroups": [{"id": "sg-db"}, {"filters": filters("group-name", &["WEB-*"])}]}),
        ),
        said(json!({"additionalSecurityGroups": [{"filters": filters("group-name", &["web-far"])}]})),
        said(json!({"publicIP": true, "subnet": {"id": "subnet-data"}})),
    ];
    let vpc_id = &world.truth.vpcs[0].id;
    assert_eq!(
        nothing,
        [
            format!("spec.subnet.id: there is no such subnet in {vpc_id}"),
            format!("spec.subnet.filters: there is no such subnet in {vpc_id}"),
            format!("spec.additionalSecurityGroups[1].filters: there is no such security group in {vpc_id}"),
            format!("spec.additionalSecurityGroups[0].filters: there is no such security group in {vpc_id}"),
            "spec.subnet.id: subnet-data is private, and spec.publicIP asks for a public one".into(),
        ]
    );
}

#[test]
fn a_vpc_in_filters_is_asked_for_alone_and_must_be_the_clusters() {
    let (mut world, mut fleet) = with_things_of_users();
    let spec = json!({"additionalSecurityGroups": [{"filters": filters("vpc-id", &["vpc-far"])}]});
    fleet.add_machine("worker-0", false, spec.clone());
    let asked = fleet.decide_machine_at_first(&mut world, "worker-0").lookups;
    assert_eq!(asked, BTreeSet::from([Lookup::SecurityGroups(vec![Filter::new("vpc-id", "vpc-far")])]));
    fleet.machines.clear();
    let said = invalid(&mut world, &mut fleet, "worker-0", spec);
    assert_eq!(
        said,
        format!(
            "spec.additionalSecurityGroups[0].filters: there is no such security group in {}",
            world.truth.vpcs[0].id
        )
    );
    world
        .truth
        .subnets
        .iter_mut()
        .filter(|it| it.id == "subnet-data")
        .for_each(|it| it.vpc_id = "vpc-far".into());
    let said = invalid(
        &mut world,
        &mut fleet,
        "worker-0",
        json!({"subnet": {"filters": filters("vpc-id", &["vpc-far"])}}),
    );
    assert_eq!(
        said,
        format!(
            "spec.subnet.filters: subnet-data lies in vpc-far, and the cluster in {}",
            world.truth.vpcs[0].id
        )
    );
}

#[test]
fn of_several_subnets_the_one_in_the_failure_domain_is_taken() {
    let (mut world, mut fleet) = with_things_of_users();
    for (machine, zone, subnet) in
        [("worker-a", "us-east-1a", "subnet-data"), ("worker-b", "us-east-1b", "subnet-edge")]
    {
        fleet.add_machine(machine, false, json!({"subnet": {"filters": filters("tag:Name", &["corp-*"])}}));
        fleet.machines.get_mut(machine).expect("a machine").0.spec.failure_domain = Some(zone.into());
        fleet.settle(&mut world);
        assert_eq!(world.truth.instances.last().expect("an instance").subnet_id.as_deref(), Some(subnet));
    }
    fleet.add_machine("worker-c", false, json!({"subnet": {"filters": filters("tag:Name", &["corp-*"])}}));
    fleet.machines.get_mut("worker-c").expect("a machine").0.spec.failure_domain = Some("us-east-1c".into());
    let said = fleet.decide_machine(&mut world, "worker-c").invalid.expect("nothing fits").to_string();
    assert_eq!(
        said,
        "spec.subnet.filters: subnet-data lies in us-east-1a, and the machine's failure domain is us-east-1c; \
         subnet-edge lies in us-east-1b, and the machine's failure domain is us-east-1c"
    );
}

#[test]
fn a_subnet_that_is_kept_for_pods_is_not_taken() {
    let (mut world, mut fleet) = with_things_of_users();
    let tags = &mut world.truth.subnets.iter_mut().find(|it| it.id == "subnet-data").expect("a subnet").tags;
    tags.insert("sigs.k8s.io/cluster-api-provider-aws/association".into(), "secondary".into());
    fleet.add_machine("worker-0", false, json!({"subnet": {"filters": filters("tag:Name", &["corp-*"])}}));
    fleet.settle(&mut world);
    assert_eq!(world.truth.instances[0].subnet_id.as_deref(), Some("subnet-edge"));
}

#[test]
fn whatever_goes_wrong_one_instance_is_in_the_subnet_meant() {
    for seed in 0..40 {
        let (mut world, mut fleet) = with_things_of_users();
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
        let spec = json!({
            "subnet": {"filters": filters("tag:Name", &["corp-data"])},
            "additionalSecurityGroups": [{"filters": filters("tag:Name", &["web-*"])}],
        });
        fleet.add_machine("worker-0", false, spec);
        for _ in 0..30 {
            fleet.reconcile_machines(&mut world);
            world.tick();
        }
        world.faults = Faults::default();
        fleet.settle(&mut world);
        let instances: Vec<_> = world.truth.instances.iter().map(|it| it.subnet_id.as_deref()).collect();
        assert_eq!(instances, [Some("subnet-data")], "seed {seed}");
    }
}
