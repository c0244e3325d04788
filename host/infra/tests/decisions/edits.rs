//! Random lives: whatever users, add-ons and accidents do in whatever order, a cluster ends as its spec says,
//! and deleting it leaves nothing but what others put there.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::driver::{Fleet, fresh};
use crate::world::{Faults, World, numbers};
use model::AddOnRule;
use model::{FoundSource, Rule, Source};
use serde_json::json;

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Tag(u8),
    CrossZone(bool),
    NodePorts(u8),
    Ingress(bool),
    /// `None`: the add-ons are not known, as after a start.
    AddOns(Option<u16>),
    Machine {
        control_plane: bool,
    },
    /// Cluster API replaces a machine.
    Remove(usize),
    /// Somebody terminates an instance.
    Terminate(usize),
    /// The cloud provider opens a port for a load balancer of its own.
    ForeignRule(u16),
    Crash,
}

fn event(random: &mut impl FnMut() -> u64) -> Event {
    let value = random() >> 8;
    match random() % 10 {
        0 => Event::Tag(value as u8),
        1 => Event::CrossZone(value.is_multiple_of(2)),
        2 => Event::NodePorts(value as u8),
        3 => Event::Ingress(value.is_multiple_of(2)),
        4 => Event::AddOns((!value.is_multiple_of(3)).then_some((value >> 4) as u16)),
        5 => Event::Machine { control_plane: value.is_multiple_of(2) },
        6 => Event::Remove(value as usize),
        7 => Event::Terminate(value as usize),
        8 => Event::ForeignRule(value as u16),
        _ => Event::Crash,
    }
}

fn happen(event: &Event, fleet: &mut Fleet, world: &mut World) {
    let spec = &mut fleet.aws_cluster.spec;
    match event {
        Event::Tag(value) => drop(spec.additional_tags.insert("team".into(), value.to_string())),
        Event::CrossZone(value) => spec.control_plane_load_balancer.cross_zone_load_balancing = *value,
        Event::NodePorts(value) => {
            spec.network.node_port_ingress_rule_cidr_blocks = vec![format!("10.{value}.0.0/16")]
        }
        Event::Ingress(true) => {
            let rule = json!({"description": "office", "protocol": "tcp", "fromPort": 6443, "toPort": 6443, "cidrBlocks": ["203.0.113.0/24"]});
            spec.control_plane_load_balancer.ingress_rules =
                vec![serde_json::from_value(rule).expect("a rule")];
        }
        Event::Ingress(false) => spec.control_plane_load_balancer.ingress_rules.clear(),
        Event::AddOns(port) => fleet.rules = port.map(|port| vec![add_on(port)]),
        Event::Machine { control_plane } => {
            fleet.add_machine(&format!("machine-{}", world.now), *control_plane, json!({}))
        }
        Event::Remove(which) => {
            let name = fleet.machines.keys().nth(which % fleet.machines.len().max(1)).cloned();
            if let Some(name) = name {
                fleet.delete_machine(&name);
            }
        }
        Event::Terminate(which) => {
            let id = world
                .truth
                .instances
                .iter()
                .map(|it| it.id.clone())
                .nth(which % world.truth.instances.len().max(1));
            id.iter().for_each(|id| world.terminate(id));
        }
        Event::ForeignRule(port) => {
            let source = FoundSource::Cidr("0.0.0.0/0".into());
            let (from_port, to_port) = (i32::from(*port), i32::from(*port));
            let rule = model::FoundRule {
                protocol: "tcp".into(),
                from_port,
                to_port,
                source,
                description: String::new(),
            };
            let group = world.truth.security_groups.iter_mut().find(|it| it.group_name == "prod-lb");
            group.into_iter().for_each(|it| it.rules.push(rule.clone()));
        }
        Event::Crash => world.crash(),
    }
}

fn add_on(port: u16) -> AddOnRule {
    let (from_port, to_port) = (i32::from(port), i32::from(port));
    let rule = Rule {
        protocol: "udp".into(),
        from_port,
        to_port,
        source: Source::Group("node".into()),
        description: "add-on".into(),
    };
    AddOnRule { group: "node".into(), rule }
}

/// Rules by group, sources by group name. Those of `lb` are others' too.
fn rules(world: &World) -> BTreeMap<String, BTreeSet<String>> {
    let names: BTreeMap<&String, &String> =
        world.truth.security_groups.iter().map(|it| (&it.id, &it.group_name)).collect();
    let text = |it: &model::FoundRule| match &it.source {
        FoundSource::GroupId(id) => format!("{} {}-{} {}", it.protocol, it.from_port, it.to_port, names[id]),
        // Which address AWS gives to a NAT gateway is its own affair.
        FoundSource::Cidr(cidr) if cidr.starts_with("198.51.100.") => {
            format!("{} {}-{} NAT", it.protocol, it.from_port, it.to_port)
        }
        other => format!("{} {}-{} {other:?}", it.protocol, it.from_port, it.to_port),
    };
    let groups = world
        .truth
        .security_groups
        .iter()
        .filter(|it| !["default", "prod-lb"].contains(&it.group_name.as_str()));
    groups.map(|it| (it.group_name.clone(), it.rules.iter().map(text).collect())).collect()
}

#[test]
fn rules_of_add_ons_that_somebody_edits_by_hand_are_corrected() {
    let (mut world, mut fleet) = fresh(json!({}));
    fleet.rules = Some(vec![add_on(4789), add_on(179)]);
    fleet.settle(&mut world);
    let before = rules(&world);
    let node =
        world.truth.security_groups.iter_mut().find(|it| it.group_name == "prod-node").expect("a group");
    node.rules.retain(|it| it.from_port != 179);
    let wider = node.rules.iter_mut().find(|it| it.from_port == 4789).expect("a rule of an add-on");
    (wider.from_port, wider.to_port) = (1, 65535);
    assert_ne!(rules(&world), before);
    fleet.settle(&mut world);
    assert_eq!(rules(&world), before);
}

/// A cluster that was made as another one is now.
fn made_at_once(other: &Fleet) -> World {
    let (mut world, mut fleet) = fresh(json!({}));
    fleet.aws_cluster.spec =
        crds::AWSClusterSpec { control_plane_endpoint: Default::default(), ..other.aws_cluster.spec.clone() };
    fleet.rules = other.rules.clone();
    fleet.settle(&mut world);
    world
}

#[test]
fn a_cluster_ends_as_its_spec_says() {
    for seed in 0..64 {
        live(seed);
    }
}

fn live(seed: u64) {
    let mut random = numbers(seed + 1);
    let faults = Faults {
        throttled: 5,
        lost_request: 4,
        lost_reply: 6,
        crash: 4,
        failed_start: 10,
        lag: 2,
        swing: true,
    };
    let mut world = World::new(seed, faults);
    let mut fleet = Fleet::new("prod", json!({}));
    let mut events = Vec::new();
    for _ in 0..1 + random() % 11 {
        for _ in 0..random() % 4 {
            fleet.reconcile(&mut world);
            fleet.reconcile_machines(&mut world);
            world.tick();
        }
        let event = event(&mut random);
        happen(&event, &mut fleet, &mut world);
        events.push(event);
    }
    world.faults = Faults::default();
    fleet.rules.get_or_insert_default();
    fleet.replace_failed(&mut world);
    let expected = made_at_once(&fleet);
    assert_eq!(rules(&world), rules(&expected), "seed {seed}: {events:?}");
    let mut counts = expected.counts();
    if !fleet.machines.is_empty() {
        counts.insert("instance".into(), fleet.machines.len());
        counts.insert("secret".into(), fleet.machines.len());
    }
    assert_eq!(world.counts(), counts, "seed {seed}: {events:?}");
    let balancer = &world.truth.load_balancers[0];
    let cross_zone = fleet.aws_cluster.spec.control_plane_load_balancer.cross_zone_load_balancing;
    // What no read shows is known by the process that set it.
    assert!(
        balancer.attributes.as_ref().is_none_or(|it| it.cross_zone == cross_zone),
        "seed {seed}: {events:?}"
    );
    let calls = world.log.len();
    fleet.reconcile(&mut world);
    fleet.reconcile_machines(&mut world);
    assert_eq!(world.log.len(), calls, "a settled cluster makes no calls; seed {seed}: {events:?}");
    fleet.delete(&world);
    fleet.settle(&mut world);
    assert_eq!(world.inventory(), Vec::<String>::new(), "seed {seed}: {events:?}");
}
