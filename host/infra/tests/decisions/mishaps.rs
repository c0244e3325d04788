//! The answer to one write is lost, and then one kind of read fails or is behind: each write that a cluster's
//! life consists of, with each kind of read in turn. Faults that are drawn for each call hardly ever meet
//! like this. Nothing is made twice on the way, nobody has to help, and it ends where it should.

use std::collections::{BTreeMap, BTreeSet};

use crate::simulation::{NO_FAULTS, counts, network, spec};
use crate::world::driver::Fleet;
use crate::world::{Hindrance, Mishap, World};
use crds::names::INTENT_ANNOTATION;
use model::{FoundInternetGateway, Outcome, Read, State};
use serde_json::json;

const ZONES: usize = 2;
/// Looks by which a read is behind: less than what AWS takes at most.
const BEHIND: Hindrance = Hindrance::IsBehind(5);

/// One cluster from its beginning to its end.
#[derive(Clone)]
struct Life {
    world: World,
    fleet: Fleet,
    expected: BTreeMap<String, usize>,
}

impl Life {
    fn new(balancer: &str) -> Life {
        let world = World::new(7, NO_FAULTS);
        let mut fleet = Fleet::new("prod", spec(ZONES, balancer, "internet-facing"));
        fleet.add_machine("control-plane-0", true, json!({}));
        let mut expected = network(ZONES, balancer);
        expected.extend(counts(&[("instance", 1), ("secret", 1)]));
        Life { world, fleet, expected }
    }

    /// Looks until `is_over`; there is never too much of anything.
    fn go_on(&mut self, is_over: impl Fn(&Fleet, bool) -> bool) {
        for _ in 0..600 {
            let settled =
                self.fleet.reconcile(&mut self.world) & self.fleet.reconcile_machines(&mut self.world);
            for (kind, count) in self.world.counts() {
                let most = self.expected[&kind];
                assert!(
                    count <= most,
                    "{count} of {kind}, {:?}: {:#?}\n{:#?}",
                    self.world.mishap,
                    self.world.inventory(),
                    self.world.log
                );
            }
            if is_over(&self.fleet, settled) {
                return;
            }
            self.world.tick();
        }
        let plan = self.fleet.decide(&mut self.world).plan;
        panic!("it never ends, {:?}: {plan}\n{:#?}", self.world.mishap, self.world.inventory());
    }

    fn begin(&mut self) {
        self.go_on(|_, settled| settled);
        assert_eq!(
            self.world.counts(),
            self.expected,
            "{:?}: {:#?}",
            self.world.mishap,
            self.world.inventory()
        );
        // Tags are written too.
        self.fleet.aws_cluster.spec.additional_tags.insert("team".into(), "a".into());
        self.go_on(|_, settled| settled);
    }

    fn end(&mut self) {
        self.fleet.delete(&self.world);
        self.go_on(|fleet, _| fleet.finished);
        assert_eq!(self.world.inventory(), Vec::<String>::new(), "{:?}", self.world.mishap);
    }
}

/// How the writes of one half of a life begin, up to the kind: `create  vpc/`.
fn writes(half: &Life) -> BTreeSet<String> {
    let of = |(what, _): &(String, Outcome)| what.split_once('/').map(|(begin, _)| format!("{begin}/"));
    half.world.log.iter().filter_map(of).filter(|it| !it.starts_with("confirm")).collect()
}

/// One half of a life with a mishap that happens in it.
fn meet(mut life: Life, mishap: &Mishap, half: fn(&mut Life)) {
    life.world.mishap = Some(mishap.clone());
    half(&mut life);
    assert!(life.world.mishap.as_ref().is_some_and(|it| it.left.is_some()), "it never happened: {mishap:?}");
}

/// The kind of balancer whose reads these are.
fn balancer_of(read: Read) -> &'static str {
    if read == Read::ClassicLoadBalancers { "classic" } else { "nlb" }
}

#[test]
fn a_lost_answer_and_then_any_failing_read_make_nothing_twice() {
    for balancer in ["classic", "nlb"] {
        let young = Life::new(balancer);
        let mut old = young.clone();
        old.begin();
        let makes = writes(&old);
        old.world.log.clear();
        let mut gone = old.clone();
        gone.end();
        let removes = writes(&gone);
        assert!(makes.len() > 17 && removes.len() > 10, "{makes:?} {removes:?}");
        for read in Read::ALL.into_iter().filter(|it| balancer_of(*it) == balancer) {
            // A process that lives remembers what it saw and wrote; one that has just started decides nothing
            // before a read succeeds.
            for (hindrance, rounds, kills) in [(Hindrance::Fails, 10, false), (BEHIND, 12, true)] {
                let mishap = |write: &String| Mishap {
                    write: write.clone(),
                    read,
                    hindrance,
                    rounds,
                    kills,
                    left: None,
                };
                makes.iter().for_each(|it| meet(young.clone(), &mishap(it), Life::begin));
                removes.iter().for_each(|it| meet(old.clone(), &mishap(it), Life::end));
            }
        }
    }
}

#[test]
fn a_read_that_fails_for_long_makes_nothing_twice() {
    for read in Read::ALL {
        let balancer = balancer_of(read);
        for write in ["vpc", "internet-gateway", "elastic-ip", "nat-gateway", "route-table", "instance"] {
            let write = format!("create  {write}/");
            let mishap =
                Mishap { write, read, hindrance: Hindrance::Fails, rounds: 200, kills: false, left: None };
            meet(Life::new(balancer), &mishap, Life::begin);
        }
    }
}

/// A cluster that is settled, and a process that began long ago.
fn settled() -> (World, Fleet) {
    let Life { mut world, mut fleet, .. } = Life::new("classic");
    fleet.settle(&mut world);
    (world, fleet)
}

#[test]
fn what_is_there_twice_and_provably_unused_is_taken_away() {
    let (mut world, mut fleet) = settled();
    let before = world.counts();
    let mut vpc = world.truth.vpcs[0].clone();
    vpc.id = "vpc-spare".into();
    let mut table = world.truth.route_tables[0].clone();
    (table.id, table.associations) = ("rtb-0-spare".into(), BTreeMap::new());
    let gateway = FoundInternetGateway {
        id: "igw-0-spare".into(),
        vpc_id: None,
        tags: world.truth.internet_gateways[0].tags.clone(),
    };
    let mut address = world.truth.addresses[0].clone();
    (address.id, address.association_id) = ("eipalloc-0-spare".into(), None);
    world.truth.vpcs.push(vpc);
    world.truth.route_tables.insert(0, table);
    world.truth.internet_gateways.insert(0, gateway);
    world.truth.addresses.insert(0, address);
    fleet.settle(&mut world);
    assert_eq!(world.counts(), before, "{:#?}", world.inventory());
    assert!(world.inventory().iter().all(|it| !it.contains("spare")), "{:#?}", world.inventory());
}

#[test]
fn an_address_of_another_cluster_in_an_annotation_is_not_used() {
    let (mut world, _) = settled();
    let theirs = world.truth.addresses[0].id.clone();
    world.truth.addresses[0].association_id = None;
    let mut fleet = Fleet::new("other", spec(1, "classic", "internet-facing"));
    fleet.reconcile(&mut world);
    let intent =
        json!({"nat-gateway/us-east-1a": {"nonce": "n", "at": world.now, "inputs": {"address": theirs}}})
            .to_string();
    fleet.aws_cluster.metadata.annotations.get_or_insert_default().insert(INTENT_ANNOTATION.into(), intent);
    for _ in 0..60 {
        let plan = fleet.reconcile_unchecked(&mut world);
        let uses = |it: &model::Action| matches!(it, model::Action::Create { ids, .. } if ids.values().any(|id| *id == theirs));
        assert!(!plan.actions.iter().any(uses), "{plan}");
        world.tick();
    }
    assert!(
        world
            .truth
            .nat_gateways
            .iter()
            .any(|it| it.allocation_id.as_ref() != Some(&theirs) && it.state == State::Ready)
    );
}

#[test]
fn a_second_vpc_in_which_something_lies_is_named_and_left_alone() {
    let (mut world, fleet) = settled();
    let mut vpc = world.truth.vpcs[0].clone();
    vpc.id = "vpc-spare".into();
    let mut subnet = world.truth.subnets[0].clone();
    (subnet.id, subnet.vpc_id) = ("subnet-0a1b2c3d".into(), vpc.id.clone());
    world.truth.vpcs.push(vpc);
    world.truth.subnets.push(subnet);
    let plan = fleet.decide(&mut world).plan;
    assert!(
        plan.blocked.iter().any(|(_, why)| why.contains("vpc-spare")) && plan.actions.is_empty(),
        "{plan}"
    );
}

#[test]
fn a_started_process_removes_nothing_for_what_reads_do_not_show() {
    let (mut world, mut fleet) = settled();
    fleet.restart(&mut world);
    let mut snapshot = fleet.snapshot(&mut world);
    let subnet = snapshot.nat_gateways[0].subnet_id.clone();
    snapshot.subnets.retain(|it| it.id != subnet);
    let plan = fleet.decide_with(&mut world, &snapshot).plan;
    assert!(!plan.actions.iter().any(|it| matches!(it, model::Action::Delete { .. })), "{plan}");
    assert!(plan.awaits.contains(&Read::Subnets), "{plan}");
}
