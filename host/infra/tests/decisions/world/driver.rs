//! Drives a cluster and its machines against the pretend AWS as the controllers do: decide, write down, act,
//! write down.

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_api::{Cluster, Machine};
use crds::names::CLUSTER_TAG_PREFIX;
use crds::{AWSCluster, AWSMachine};
use infra::*;
use model::AddOnRule;
use model::*;

use super::objects::{self, patched};
use super::{Faults, Mishap, World};

/// One cluster with its machines, as their objects say.
#[derive(Clone)]
pub struct Fleet {
    pub cluster: Cluster,
    pub aws_cluster: AWSCluster,
    pub rules: Option<Vec<AddOnRule>>,
    pub machines: BTreeMap<String, (Machine, AWSMachine)>,
    pub bootstrap: Vec<u8>,
    /// What is said to run it, if anything is.
    pub bootstrap_format: Option<String>,
    /// What was asked for by its id and not found.
    absent: BTreeMap<String, Timestamp>,
    /// What was asked for by its id and found.
    found: BTreeSet<String>,
    deleting_vpcs: BTreeSet<String>,
    /// VPCs whose NAT gateways sweeps show though they carry no tag.
    pub nat_gateways_of: BTreeSet<String>,
    /// VPCs whose route tables sweeps show though they carry no tag: at first, where the spec names one.
    pub route_tables_of: BTreeSet<String>,
    pub finished: bool,
    /// Whether a spec that cannot be carried out is no fault of the test.
    pub any_spec: bool,
}

/// A pretend AWS without faults, and a cluster of which nothing is made yet.
pub fn fresh(spec: serde_json::Value) -> (World, Fleet) {
    (World::new(1, Faults::default()), Fleet::new("prod", spec))
}

/// Likewise, once all of it is made.
pub fn settled(spec: serde_json::Value) -> (World, Fleet) {
    let (mut world, mut fleet) = fresh(spec);
    fleet.settle(&mut world);
    (world, fleet)
}

impl Fleet {
    pub fn new(name: &str, spec: serde_json::Value) -> Fleet {
        let aws_cluster = objects::aws_cluster(name, spec);
        let vpc = &aws_cluster.spec.network.vpc.id;
        let route_tables_of = (!vpc.is_empty()).then(|| vpc.clone()).into_iter().collect();
        Fleet {
            cluster: objects::cluster(name),
            aws_cluster,
            rules: Some(Vec::new()),
            machines: BTreeMap::new(),
            bootstrap: b"## template: jinja\n#cloud-config\n".to_vec(),
            bootstrap_format: None,
            absent: BTreeMap::new(),
            found: BTreeSet::new(),
            deleting_vpcs: BTreeSet::new(),
            nat_gateways_of: BTreeSet::new(),
            route_tables_of,
            finished: false,
            any_spec: false,
        }
    }

    pub fn add_machine(&mut self, name: &str, control_plane: bool, spec: serde_json::Value) {
        let machine = objects::machine(name, control_plane);
        self.machines.insert(name.to_owned(), (machine, objects::aws_machine(name, spec)));
    }

    /// The user deletes everything of the cluster at once.
    pub fn delete(&mut self, world: &World) {
        let time = serde_json::json!("2027-01-15T08:00:00Z");
        assert!(world.now >= 1_800_000_000.0);
        self.aws_cluster.metadata.deletion_timestamp = serde_json::from_value(time.clone()).expect("a time");
        for (_, aws_machine) in self.machines.values_mut() {
            aws_machine.metadata.deletion_timestamp = serde_json::from_value(time.clone()).expect("a time");
        }
    }

    /// Cluster API deletes one machine.
    pub fn delete_machine(&mut self, name: &str) {
        let time = serde_json::json!("2027-01-15T08:00:00Z");
        let Some((_, aws_machine)) = self.machines.get_mut(name) else { return };
        aws_machine.metadata.deletion_timestamp = serde_json::from_value(time).expect("a time");
    }

    /// Settles, with machines that failed removed as a MachineHealthCheck would.
    pub fn replace_failed(&mut self, world: &mut World) {
        for _ in 0..200 {
            self.reconcile(world);
            self.reconcile_machines(world);
            let names: Vec<String> = self.machines.keys().cloned().collect();
            let failed: Vec<String> =
                names.into_iter().filter(|name| self.decide_machine(world, name).failed.is_some()).collect();
            failed.iter().for_each(|name| self.delete_machine(name));
            world.tick();
        }
        self.settle(world);
    }

    pub fn snapshot(&self, world: &mut World) -> Snapshot {
        let mut res = world.snapshot(&self.deleting_vpcs, &self.absent);
        // A sweep finds VPCs by the tag's key; others are only read by their id.
        let tagged = |it: &FoundVpc| it.tags.keys().any(|key| key.starts_with(CLUSTER_TAG_PREFIX));
        let given = &self.aws_cluster.spec.network.vpc.id;
        res.vpcs.retain(|it| tagged(it) || it.id == *given || self.found.contains(&it.id));
        res.nat_gateways.retain(|it| !it.tags.is_empty() || self.nat_gateways_of.contains(&it.vpc_id));
        res.nat_gateways_read = self.nat_gateways_of.clone();
        res.route_tables.retain(|it| !it.tags.is_empty() || self.route_tables_of.contains(&it.vpc_id));
        res.route_tables_read = self.route_tables_of.clone();
        res
    }

    /// What is decided about the cluster now.
    pub fn decide(&self, world: &mut World) -> cluster::Decision {
        let snapshot = self.snapshot(world);
        self.decide_with(world, &snapshot)
    }

    pub fn decide_with(&self, world: &mut World, snapshot: &Snapshot) -> cluster::Decision {
        let random = format!("{:032x}", world.random());
        self.with_input(world.now, snapshot, |input| {
            cluster::decide(&cluster::Input { random: &random, ..input })
        })
    }

    /// What decisions about the cluster are made from.
    pub fn with_input<R>(
        &self,
        now: Timestamp,
        snapshot: &Snapshot,
        decide: impl FnOnce(cluster::Input<'_>) -> R,
    ) -> R {
        let record = PersistedState::of_cluster(&self.aws_cluster).expect("a record");
        let machines: Vec<String> = self.machines.keys().cloned().collect();
        decide(cluster::Input {
            cluster: &self.cluster,
            aws_cluster: &self.aws_cluster,
            machines: &machines,
            rules: self.rules.as_deref(),
            snapshot,
            record: &record,
            now,
            random: "0",
        })
    }

    /// The status of the cluster after a decision made with this snapshot.
    pub fn status(
        &self,
        now: Timestamp,
        snapshot: &Snapshot,
        decision: &cluster::Decision,
        outcomes: &[(Key, Outcome)],
        problem: Option<&Problem>,
    ) -> crds::AWSClusterStatus {
        self.with_input(now, snapshot, |input| {
            status::cluster(&status::Cluster {
                input: &input,
                decision,
                outcomes,
                problem,
                unresolved: None,
                issuer: None,
            })
        })
    }

    /// What is decided about a machine now.
    pub fn decide_machine(&self, world: &mut World, name: &str) -> machine::Decision {
        let snapshot = self.snapshot(world);
        self.decide_machine_with(world, name, &snapshot)
    }

    /// With everything answered that is asked for.
    pub fn decide_machine_with(
        &self,
        world: &mut World,
        name: &str,
        snapshot: &Snapshot,
    ) -> machine::Decision {
        let mut answers = Answers::default();
        loop {
            let decision = self.decide_machine_knowing(world, name, snapshot, &answers);
            if decision.lookups.is_empty() {
                return decision;
            }
            for lookup in decision.lookups {
                match lookup {
                    Lookup::Subnets(filters) => {
                        drop(answers.subnets.insert(filters.clone(), world.subnets(&filters)))
                    }
                    Lookup::SecurityGroups(filters) => {
                        drop(
                            answers.security_groups.insert(filters.clone(), world.security_groups(&filters)),
                        );
                    }
                }
            }
        }
    }

    /// Before anything is answered.
    pub fn decide_machine_at_first(&self, world: &mut World, name: &str) -> machine::Decision {
        let snapshot = self.snapshot(world);
        self.decide_machine_knowing(world, name, &snapshot, &Answers::default())
    }

    fn decide_machine_knowing(
        &self,
        world: &mut World,
        name: &str,
        snapshot: &Snapshot,
        answers: &Answers,
    ) -> machine::Decision {
        let random = format!("{:032x}", world.random());
        let image = Image { id: "ami-1".into(), root_device: "/dev/sda1".into(), root_size: 8 };
        self.with_machine_input(name, world.now, snapshot, |input| {
            machine::decide(&machine::Input { image: Some(&image), answers, random: &random, ..input })
        })
    }

    /// What decisions about a machine are made from, before AWS was asked for images or by filters.
    pub fn with_machine_input<R>(
        &self,
        name: &str,
        now: Timestamp,
        snapshot: &Snapshot,
        decide: impl FnOnce(machine::Input<'_>) -> R,
    ) -> R {
        let (machine, aws_machine) = &self.machines[name];
        let bootstrap =
            machine::Bootstrap { data: &self.bootstrap, format: self.bootstrap_format.as_deref() };
        decide(machine::Input {
            cluster: &self.cluster,
            machine,
            aws_cluster: &self.aws_cluster,
            aws_machine,
            cluster_record: &PersistedState::of_cluster(&self.aws_cluster).expect("a record"),
            bootstrap: Some(bootstrap),
            image: None,
            answers: &Answers::default(),
            snapshot,
            record: &PersistedState::of_machine(aws_machine).expect("a record"),
            hold: None,
            now,
            random: "0",
        })
    }

    /// One reconciliation of the cluster; whether nothing is left to do.
    pub fn reconcile(&mut self, world: &mut World) -> bool {
        let plan = self.reconcile_unchecked(world);
        assert!(plan.blocked.is_empty(), "{plan}");
        plan.is_settled() && plan.close.is_empty()
    }

    /// One reconciliation of the cluster, whether or not something is blocked.
    pub fn reconcile_unchecked(&mut self, world: &mut World) -> Plan {
        let decision = self.reconcile_whatever(world);
        assert!(self.any_spec || decision.invalid.is_none(), "{:?}", decision.invalid);
        decision.plan
    }

    /// One reconciliation of the cluster, whatever its spec says.
    pub fn reconcile_whatever(&mut self, world: &mut World) -> cluster::Decision {
        let decision = self.decide(world);
        self.deleting_vpcs =
            decision.interest.deleting_vpcs.union(&decision.interest.interfaces_of).cloned().collect();
        self.nat_gateways_of = decision.interest.nat_gateways_of.clone();
        self.route_tables_of = decision.interest.route_tables_of.clone();
        self.patch_cluster(&decision.record);
        if let Some(outcomes) = self.act(world, &decision.plan) {
            self.patch_cluster(&decision.record.after(&decision.plan, &outcomes));
        }
        self.finished = decision.finished;
        decision
    }

    fn patch_cluster(&mut self, record: &PersistedState) {
        if let Some(patch) = record.cluster_patch(&self.aws_cluster) {
            self.aws_cluster = patched(&self.aws_cluster, &patch);
        }
    }

    /// Carries out a plan; `None` when the operator died on the way.
    fn act(&mut self, world: &mut World, plan: &Plan) -> Option<Vec<(Key, Outcome)>> {
        let queue = if plan.actions.is_empty() { 0 } else { world.queue };
        (0..queue).for_each(|_| world.tick());
        let dies = world.chance(world.faults.crash);
        let until =
            if dies { world.random() as usize % (plan.actions.len() + 1) } else { plan.actions.len() };
        let mut outcomes = Vec::new();
        for action in &plan.actions[..until] {
            let outcome = world.act(action);
            if let (Action::Confirm { id, .. }, Outcome::Done) = (action, &outcome) {
                self.confirm(world, id);
            }
            outcomes.push((action.key(), outcome));
            let has_met = |it: &Mishap| it.kills && it.left == Some(it.rounds);
            if world.mishap.as_ref().is_some_and(has_met) {
                world.mishap.iter_mut().for_each(|it| it.kills = false);
                self.restart(world);
                return None;
            }
        }
        if dies {
            self.restart(world);
            return None;
        }
        Some(outcomes)
    }

    /// The operator dies and starts again.
    pub fn restart(&mut self, world: &mut World) {
        world.crash();
        self.absent.clear();
        self.found.clear();
    }

    /// A read by id, which lags as every read does.
    fn confirm(&mut self, world: &World, id: &str) {
        let read = world.read();
        let there = read.vpcs.iter().any(|it| it.id == id)
            || read.load_balancers.iter().any(|it| it.id == id)
            || read.subnets.iter().any(|it| it.id == id)
            || read.instances.iter().any(|it| it.id == id);
        if there {
            self.absent.remove(id);
            self.found.insert(id.to_owned());
        } else {
            self.absent.insert(id.to_owned(), world.now);
        }
    }

    /// One reconciliation of every machine; whether nothing is left to do.
    pub fn reconcile_machines(&mut self, world: &mut World) -> bool {
        let names: Vec<String> = self.machines.keys().cloned().collect();
        let mut settled = true;
        for name in names {
            let decision = self.reconcile_machine(world, &name);
            assert!(self.any_spec || decision.invalid.is_none(), "{:?}", decision.invalid);
            settled &= decision.plan.is_settled() && decision.waits.is_none();
        }
        settled
    }

    /// One reconciliation of a machine, whatever its spec says.
    pub fn reconcile_machine(&mut self, world: &mut World, name: &str) -> machine::Decision {
        let decision = self.decide_machine(world, name);
        self.patch_machine(name, &decision.record);
        if let Some(outcomes) = self.act(world, &decision.plan) {
            self.patch_machine(name, &decision.record.after(&decision.plan, &outcomes));
        }
        if decision.finished {
            self.machines.remove(name);
        }
        decision
    }

    fn patch_machine(&mut self, name: &str, record: &PersistedState) {
        let Some((_, aws_machine)) = self.machines.get_mut(name) else { return };
        if let Some(patch) = record.machine_patch(aws_machine) {
            *aws_machine = patched(aws_machine, &patch);
        }
    }

    /// Looks until nothing is left to do.
    pub fn settle(&mut self, world: &mut World) -> usize {
        for reconcile in 0..2000 {
            let done = self.reconcile(world) & self.reconcile_machines(world);
            let deleting = self.aws_cluster.metadata.deletion_timestamp.is_some();
            if if deleting { self.finished } else { done } {
                return reconcile;
            }
            world.tick();
        }
        panic!("never settles: {}\n{:#?}", self.decide(world).plan, world.inventory());
    }
}
