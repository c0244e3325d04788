//! Drives one AWSCluster: read, decide, act, say. What should exist and what is done about it is decided in `plan`; AWS is touched
//! only through `aws`, and the management API only through `management`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crds::cluster_api::{Cluster, Machine};
use crds::load_balancer::DnsResolutionCheck;
use crds::{AWSCluster, AWSMachine, ClusterPlugin, names};
use kube::ResourceExt;
use plan::cluster::{AddOnRule, Decision, Input};
use plan::leftover::Sweep;
use plan::{Action, Problem, Record, Snapshot};
use tokio::time::Instant;

use super::issuer;
use super::looks::{Controller, Ended, Memory, ended, is_ours, owner};
use super::notes::notes;
use super::queue::Waker;
use super::refusals::Refusals;
use super::regions::{Regions, Seat};
use super::{now, random, sweep};
use crate::context::{Context, ObjectName, RequestedRules};
use crate::management::{Error, Known};

/// Waves of calls in one look; more are only needed when something changes back and forth.
const WAVES: usize = 32;

/// The controller of AWSClusters.
pub struct Clusters {
    context: Context,
    regions: Regions,
    memory: Memory<Remembered>,
}

#[derive(Default)]
struct Remembered {
    refusals: Refusals,
    /// The API itself said, since the deletion began, that no AWSMachine is left.
    no_machines: bool,
    issuer: issuer::Remembered,
    /// What the cluster's own controllers left in AWS.
    sweep: Sweep,
}

/// Everything that a decision is made of.
struct Seen {
    /// Of the Cluster.
    name: ObjectName,
    cluster: Cluster,
    object: Arc<Known<AWSCluster>>,
    machines: Vec<String>,
    requested: Option<RequestedRules>,
    rules: Option<Vec<AddOnRule>>,
    region: aws::Region,
    who: String,
}

/// One decision and what it was made of.
struct Pass {
    object: Arc<Known<AWSCluster>>,
    record: Record,
    snapshot: Arc<Snapshot>,
    problem: Option<Problem>,
    now: plan::Timestamp,
    decision: Decision,
    /// The actions that may be tried now.
    due: Vec<Action>,
}

impl Controller for Clusters {
    const NAME: &'static str = "awscluster";

    fn context(&self) -> &Context {
        &self.context
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<Ended, Error> {
        let Some(object) = self.context.management.get::<AWSCluster>(name) else {
            self.forget(name);
            return Ok(Ended::Settled);
        };
        if !is_ours(&self.context, &object) {
            return Ok(Ended::Settled);
        }
        let mut memory = self.memory.take(name);
        memory.refusals.begin(object.metadata.generation);
        let ended = self.drive(object, &mut memory).await;
        self.memory.put(name, memory);
        ended
    }
}

impl Clusters {
    pub fn new(context: Context, waker: Waker) -> Self {
        let regions = Regions::new(context.aws.clone(), waker);
        Self { context, regions, memory: Memory::default() }
    }

    async fn drive(&self, object: Arc<Known<AWSCluster>>, memory: &mut Remembered) -> Result<Ended, Error> {
        let Some(mut seen) = self.read(object, memory).await? else { return Ok(Ended::Settled) };
        if seen.is_swept() {
            sweep::look(&self.context.management, &seen.region, &seen.object, &seen.name.name, &mut memory.sweep).await;
        }
        let mut last = None;
        for _ in 0..WAVES {
            let pass = match decide(&seen, memory) {
                Ok(pass) => pass,
                Err(invalid) => return self.say_invalid(&seen, &invalid).await,
            };
            let more = self.act(&mut seen, &pass, memory).await?;
            last = Some(pass);
            if !more {
                break;
            }
        }
        match last {
            Some(pass) => self.say(&seen, &pass, memory).await,
            None => Ok(Ended::Unfinished),
        }
    }

    /// Reads everything, and sees to it that the object cannot vanish before what is made for it. `None`: nothing is to be done.
    async fn read(&self, object: Arc<Known<AWSCluster>>, memory: &mut Remembered) -> Result<Option<Seen>, Error> {
        let management = &self.context.management;
        let owner = owner(&object, "Cluster");
        let cluster = owner.as_ref().and_then(|it| management.get::<Cluster>(it)).map(|it| Cluster::clone(&it));
        if management.is_paused(&object) {
            self.say_paused(&object).await?;
            return Ok(None);
        }
        let object = match object.is_deleting() {
            true if !object.has_finalizer(names::CLUSTER_FINALIZER) => return Ok(None),
            true => object,
            false if cluster.is_none() => {
                self.say_not_owned(&object).await?;
                return Ok(None);
            }
            false => management.add_finalizer(&object, names::CLUSTER_FINALIZER).await?,
        };
        let name = owner.unwrap_or_else(|| object.object_name());
        // While it is deleted, its Cluster may be gone already: only the name matters then.
        let cluster = cluster.unwrap_or_else(|| gone(&name));
        let machines = match object.is_deleting() {
            true => self.machines_left(&name, memory).await?,
            false => Vec::new(),
        };
        let requested = self.requested(&name);
        let rules = requested.as_ref().map(add_on_rules);
        let region = self.context.aws.region(&object.spec.region);
        let who = format!("cluster/{}", object.object_name());
        Ok(Some(Seen { name, cluster, object, machines, requested, rules, region, who }))
    }

    /// Names of AWSMachines of the Cluster. Before the answer is "none", the API itself is asked: a cache may be behind.
    async fn machines_left(&self, cluster: &ObjectName, memory: &mut Remembered) -> Result<Vec<String>, Error> {
        let management = &self.context.management;
        let belongs = |it: &Known<AWSMachine>| {
            let machine = owner(it, "Machine").and_then(|it| management.get::<Machine>(&it));
            let by_machine = machine.is_some_and(|it| it.spec.cluster_name == cluster.name);
            it.namespace().as_deref() == Some(&cluster.namespace)
                && (by_machine || crate::management::Kept::cluster(&**it).as_ref() == Some(cluster))
        };
        let unreadable = management.unreadable::<AWSMachine>().into_iter().map(|(name, _)| name);
        let mut left: Vec<String> = unreadable.filter(|it| it.namespace == cluster.namespace).map(|it| it.name).collect();
        left.extend(management.list::<AWSMachine>().iter().filter(|it| belongs(it)).map(|it| it.name_any()));
        if left.is_empty() && !memory.no_machines {
            let live = management.live_list::<AWSMachine>(&cluster.namespace).await?;
            left.extend(live.iter().filter(|it| belongs(it)).map(|it| it.name_any()));
            memory.no_machines = left.is_empty();
        }
        Ok(left)
    }

    /// What add-ons ask for. A Cluster without any ClusterPlugin asks for nothing, which is known at once.
    fn requested(&self, cluster: &ObjectName) -> Option<RequestedRules> {
        let requested = self.context.rules.get(cluster);
        match requested.is_none() && self.context.management.of_cluster::<ClusterPlugin>(cluster).is_empty() {
            true => Some(RequestedRules::new()),
            false => requested,
        }
    }

    /// Writes down what was decided, then carries it out. True: there is more to decide.
    async fn act(&self, seen: &mut Seen, pass: &Pass, memory: &mut Remembered) -> Result<bool, Error> {
        let Decision { plan, record, interest, .. } = &pass.decision;
        let management = &self.context.management;
        seen.region.interest(&seen.who, interest.clone());
        let seat = Seat { region: seen.object.spec.region.clone(), interest: interest.clone(), instance: None };
        self.regions.sit(&seen.object.object_name(), seat);
        let patch = record.cluster_patch(&seen.object);
        let written = patch.is_some();
        if let Some(patch) = patch {
            seen.object = management.patch(&seen.object, patch).await?;
        }
        if pass.due.is_empty() {
            return Ok(written);
        }
        let outcomes = seen.region.act(&seen.who, pass.due.clone()).await;
        for note in notes(&pass.due, &outcomes, &memory.refusals) {
            tracing::info!(object = %seen.object.object_name(), reason = note.reason, "{}", note.message);
            management.note(&seen.object, note);
        }
        memory.refusals.learn(&outcomes, Instant::now());
        if seen.is_swept() && sweep::is_held_up(&outcomes) {
            memory.sweep.asked_for(now());
        }
        if let Some(patch) = record.after(plan, &outcomes).cluster_patch(&seen.object) {
            seen.object = management.patch(&seen.object, patch).await?;
        }
        Ok(true)
    }

    async fn say(&self, seen: &Seen, pass: &Pass, memory: &mut Remembered) -> Result<Ended, Error> {
        let management = &self.context.management;
        let decision = &pass.decision;
        if seen.object.is_deleting() && decision.finished {
            if let Some(note) = issuer::retract(&seen.object, &seen.name, &seen.region).await {
                management.note(&seen.object, note);
            }
            management.remove_finalizer(&seen.object, names::CLUSTER_FINALIZER).await?;
            self.forget(&seen.object.object_name());
            self.context.rules.forget(&seen.name);
            return Ok(Ended::Settled);
        }
        if let Some(rules) = seen.rules.as_deref() {
            self.context.rules.set_done(&seen.name, seen.requested.as_ref(), plan::cluster::groups_have_rules(decision, rules));
        }
        let resolves = resolves(&seen.object).await;
        let issuer = issuer::look(&self.context, &seen.object, &seen.name, &seen.region, &mut memory.issuer).await?;
        let outcomes = memory.refusals.outcomes();
        let input = pass.input(seen, "");
        let status = plan::status::cluster(&plan::status::Cluster {
            input: &input,
            decision,
            outcomes: &outcomes,
            problem: pass.problem.as_ref(),
            resolves,
            issuer: issuer.as_ref(),
        });
        management.say(&seen.object, &status).await?;
        let settled = decision.plan.is_settled() && decision.invalid.is_none() && resolves != Some(false) && pass.problem.is_none();
        match (ended(settled, &memory.refusals), memory.issuer.next()) {
            (ended, _) if seen.is_swept() => Ok(sweep::sooner(ended, &memory.sweep)),
            (Ended::Settled, Some(next)) => Ok(Ended::Waiting { until: Some(next) }),
            (ended, _) => Ok(ended),
        }
    }

    async fn say_paused(&self, object: &Arc<Known<AWSCluster>>) -> Result<(), Error> {
        let mut status = object.status.clone().unwrap_or_default();
        status.conditions = plan::status::paused(&status.conditions, true, now(), object.metadata.generation);
        self.context.management.say(object, &status).await.map(|_| ())
    }

    async fn say_not_owned(&self, object: &Arc<Known<AWSCluster>>) -> Result<(), Error> {
        let message = "no Cluster owns this AWSCluster yet: create one whose spec.infrastructureRef names it";
        let mut status = object.status.clone().unwrap_or_default();
        let reason = crds::conditions::reason::WAITING_FOR_CLUSTER;
        status.conditions = plan::status::not_ready(&status.conditions, reason, message, now(), object.metadata.generation);
        self.context.management.say(object, &status).await.map(|_| ())
    }

    async fn say_invalid(&self, seen: &Seen, invalid: &plan::Invalid) -> Result<Ended, Error> {
        let object = &seen.object;
        let mut status = object.status.clone().unwrap_or_default();
        let reason = crds::conditions::reason::INVALID_SPEC;
        status.conditions = plan::status::not_ready(&status.conditions, reason, &invalid.to_string(), now(), object.metadata.generation);
        self.context.management.say(object, &status).await?;
        Ok(Ended::Settled)
    }

    fn forget(&self, name: &ObjectName) {
        drop(self.memory.take(name));
        if let Some(seat) = self.regions.leave(name) {
            self.context.aws.region(&seat.region).forget(&format!("cluster/{name}"));
        }
    }
}

impl Seen {
    /// Whether nobody is left in the cluster who would remove what its controllers made.
    fn is_swept(&self) -> bool {
        self.object.is_deleting() && self.machines.is_empty()
    }
}

impl Pass {
    fn input<'a>(&'a self, seen: &'a Seen, random: &'a str) -> Input<'a> {
        Input {
            cluster: &seen.cluster,
            aws_cluster: &self.object,
            machines: &seen.machines,
            rules: seen.rules.as_deref(),
            snapshot: &self.snapshot,
            record: &self.record,
            now: self.now,
            random,
        }
    }
}

/// Decides, and leaves out what was refused a moment ago.
fn decide(seen: &Seen, memory: &mut Remembered) -> Result<Pass, plan::Invalid> {
    let record = Record::of_cluster(&seen.object)?;
    let view = seen.region.view().borrow().clone();
    let snapshot = view.snapshot.clone().unwrap_or_default();
    let random = random();
    let (object, now, problem) = (seen.object.clone(), now(), view.problem.clone());
    let mut decision = plan::cluster::decide(&Input {
        cluster: &seen.cluster,
        aws_cluster: &object,
        machines: &seen.machines,
        rules: seen.rules.as_deref(),
        snapshot: &snapshot,
        record: &record,
        now,
        random: &random,
    });
    let mut due = memory.refusals.due(&mut decision.plan, &mut decision.record, Instant::now());
    if seen.is_swept() {
        sweep::hold(&memory.sweep, &mut decision, &mut due);
    }
    Ok(Pass { object, record, snapshot, problem, now, decision, due })
}

fn add_on_rules(requested: &RequestedRules) -> Vec<AddOnRule> {
    let of_group = |(group, rules): (&String, &BTreeSet<plan::Rule>)| -> Vec<AddOnRule> {
        rules.iter().map(|rule| AddOnRule { group: group.clone(), rule: rule.clone() }).collect()
    };
    requested.iter().flat_map(of_group).collect()
}

/// A Cluster of which nothing but the name is left.
pub(super) fn gone(name: &ObjectName) -> Cluster {
    let mut cluster = Cluster::new(&name.name, Default::default());
    cluster.metadata.namespace = Some(name.namespace.clone());
    cluster
}

/// Whether the endpoint's name resolves here, where that was asked for and matters: until it is provisioned.
async fn resolves(object: &AWSCluster) -> Option<bool> {
    let asked = object.spec.control_plane_load_balancer.dns_resolution_check == Some(DnsResolutionCheck::Enabled);
    let provisioned = object.status.as_ref().and_then(|it| it.initialization.as_ref()).and_then(|it| it.provisioned) == Some(true);
    let endpoint = &object.spec.control_plane_endpoint;
    if !asked || provisioned || endpoint.is_unset() {
        return None;
    }
    let port = u16::try_from(endpoint.port).unwrap_or_default();
    Some(tokio::net::lookup_host((endpoint.host.as_str(), port)).await.is_ok_and(|mut it| it.next().is_some()))
}
