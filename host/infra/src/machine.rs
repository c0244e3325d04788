//! The instance of one machine: what its AWSMachine asks for, as resources, and what can be done about it
//! now. A machine is never changed in place, and an instance that was there once is never made again: Cluster
//! API replaces machines.

mod additions;
mod desired;
mod hold;
mod identity;
mod observed_cluster;
mod pause;
mod placement;
mod user_data;

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_api::{Cluster, Machine};
use crds::conditions::reason;
use crds::names::CONTROL_PLANE_LABEL;
use crds::{AWSCluster, AWSClusterStatus, AWSMachine};

use crate::cluster::{Layout, is_external, load_balancer_reads, unmanaged};
use crate::observe::{Identity, Named};
use crate::token::derive;
use crate::{PersistedState, PlanInput, is_gone, observe, plan, proven_from, trusted_from};
use model::{
    Action, Answers, Desired, FoundInstance, Image, ImageQuery, Instance, Interest, Invalid, LoadBalancer,
    Lookup, Observed, Part, Plan, READ_LAG, Read, Resource, Secret, Snapshot, Subnet, Target, Timestamp,
};

pub use hold::{Hold, hold};
pub use identity::instance_of;
pub use observed_cluster::ObservedCluster;
pub(crate) use pause::open_outcomes;
pub use user_data::{LARGEST_USER_DATA, PART_SIZE};

/// What a machine is decided from.
pub struct Input<'a> {
    pub cluster: &'a Cluster,
    pub machine: &'a Machine,
    pub aws_cluster: &'a AWSCluster,
    pub aws_machine: &'a AWSMachine,
    /// [`PersistedState::of_cluster`] of the AWSCluster.
    pub cluster_record: &'a PersistedState,
    /// The bootstrap data, once it was asked for.
    pub bootstrap: Option<Bootstrap<'a>>,
    /// The image, once it was asked for.
    pub image: Option<&'a Image>,
    /// Which things the user means by filters, as far as it was asked for.
    pub answers: &'a Answers,
    pub snapshot: &'a Snapshot,
    pub record: &'a PersistedState,
    /// Why nothing of it is removed yet, by [`hold`].
    pub hold: Option<String>,
    pub now: Timestamp,
    /// At least 128 random bits, fresh for every pass.
    pub random: &'a str,
}

/// What a machine boots with, as the Secret of its bootstrap provider says.
#[derive(Clone, Copy)]
pub struct Bootstrap<'a> {
    pub data: &'a [u8],
    /// What is to read it: `cloud-config`, which is meant too where nothing is said, or `ignition`.
    pub format: Option<&'a str>,
}

impl Input<'_> {
    /// What was never read and has to be before anything can be said.
    pub(crate) fn unread(&self) -> BTreeSet<Part> {
        let mut reads =
            vec![Read::Vpcs, Read::Subnets, Read::InternetGateways, Read::SecurityGroups, Read::Instances];
        if is_control_plane(self.machine, self.aws_machine) {
            reads.extend(load_balancer_reads(self.aws_cluster));
        }
        self.snapshot.lacks(reads)
    }

    /// Observes the cluster of the machine.
    pub(crate) fn observe_cluster(&self) -> ObservedCluster {
        ObservedCluster::new(self.cluster, self.aws_cluster, self.cluster_record, self.snapshot, self.random)
    }
}

/// Why nothing can be done yet, which nobody has to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// A condition's reason.
    pub reason: &'static str,
    pub message: String,
}

/// What is to be done for a machine.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub plan: Plan,
    /// To be on the object before the plan is carried out.
    pub record: PersistedState,
    pub observed: Observed,
    pub desired: Desired,
    /// The spec cannot be carried out.
    pub invalid: Option<Invalid>,
    pub interest: Interest,
    /// It is being deleted, and nothing of it is left.
    pub finished: bool,
    /// Bootstrap data is needed before more can be said.
    pub needs_bootstrap: bool,
    /// An image is needed before more can be said.
    pub needs_image: Option<ImageQuery>,
    /// Answers are needed before more can be said.
    pub lookups: BTreeSet<Lookup>,
    pub waits: Option<Wait>,
    /// The instance as AWS shows it, terminated ones included.
    pub instance: Option<FoundInstance>,
    /// The instance is gone or going, without this operator's doing: reason and message. The machine has to
    /// be replaced.
    pub failed: Option<(&'static str, String)>,
    /// The object names an instance that is not this machine's: nothing is done with it, and it stays. What
    /// to say of it.
    pub foreign: Option<String>,
}

impl Decision {
    /// Whether AWS has to be asked something before more can be said.
    pub fn asks(&self) -> bool {
        self.needs_image.is_some() || !self.lookups.is_empty()
    }
}

/// Name of an AWSMachine, which names its resources.
pub(crate) fn name(aws_machine: &AWSMachine) -> String {
    aws_machine.metadata.name.clone().unwrap_or_default()
}

/// Whether a machine belongs to the control plane.
pub(crate) fn is_control_plane(machine: &Machine, aws_machine: &AWSMachine) -> bool {
    let labelled = |labels: &Option<std::collections::BTreeMap<String, String>>| {
        labels.as_ref().is_some_and(|it| it.contains_key(CONTROL_PLANE_LABEL))
    };
    labelled(&machine.metadata.labels) || labelled(&aws_machine.metadata.labels)
}

/// Namespace and name of an AWSMachine.
pub(crate) fn full_name(aws_machine: &AWSMachine) -> String {
    format!("{}/{}", aws_machine.metadata.namespace.as_deref().unwrap_or_default(), name(aws_machine))
}

/// Decides what to do for a machine now.
pub fn decide(input: &Input<'_>) -> Decision {
    decide_in(input, &input.observe_cluster())
}

/// Decides what to do for a machine now. `cluster`: its own, as the input's snapshot shows it.
pub fn decide_in(input: &Input<'_>, cluster: &ObservedCluster) -> Decision {
    let identity = identity(input);
    let names = || identity.machine_names.iter().chain(&identity.former_names);
    let is_own = |prefix: &str| {
        identity.ids.iter().any(|id| names().any(|name| user_data::is_prefix_of(prefix, id, name)))
    };
    match &input.record.secret {
        Some((prefix, _)) if !is_own(prefix) => {
            // Somebody wrote it there, or an operator or provider before: neither read nor removed. An
            // instance that boots removes its own.
            let record = PersistedState { secret: None, ..input.record.clone() };
            let mut res = decide_known(&Input { record: &record, ..clone(input) }, cluster);
            if res.record.secret.is_none() {
                res.record.secret.clone_from(&input.record.secret);
            }
            res
        }
        _ => decide_known(input, cluster),
    }
}

/// Decides for a machine whose record names nothing of another one.
fn decide_known(input: &Input<'_>, cluster: &ObservedCluster) -> Decision {
    let deleting = input.aws_machine.metadata.deletion_timestamp.is_some();
    let unread = input.unread();
    if !unread.is_empty() {
        return Decision {
            interest: Interest { unread, ..Interest::default() },
            ..wait(input, reason::NOT_READY, "reading AWS")
        };
    }
    let name = name(input.aws_machine);
    let mut record = input.record.clone();
    record.id = id(input);
    let (found, foreign) = match identity(input).instance(input.snapshot, &record) {
        Named::Nothing => (None, None),
        Named::Mine(found) => (Some(found.clone()), None),
        Named::Foreign(found, why) => (None, Some(format!("{} is not this machine's: {why}", found.id))),
    };
    match (&found, &foreign) {
        (Some(found), _) => adopt(&mut record, &name, found, input),
        // Nothing follows from it, neither that the machine was there nor that it is lost.
        (None, Some(_)) => drop(record.ids.remove(&Instance::key(&name))),
        (None, None) => (),
    }
    let lost = failure(input, &record, &name, found.as_ref());
    let up_or_gone = has_node(input) || deleting || lost.is_some();
    let mut observed =
        observe::machine(input.snapshot, &cluster.observed, &record, &name, found.as_ref(), !up_or_gone);
    observe::looked_up(&mut observed, input.answers);
    let base = Decision {
        observed: own(&observed),
        instance: found.clone(),
        foreign,
        ..settled(input, record.clone())
    };
    if deleting {
        return delete(input, base, &record, &observed);
    }
    if let Some(message) = &base.foreign {
        let message = format!(
            "{message}; nothing is done with it, and it stays. Give it back the tags that it had, or delete the Machine to replace it"
        );
        return Decision { waits: Some(Wait { reason: reason::NOT_OWNED, message }), ..base };
    }
    if let Some(failed) = lost {
        let plan = ask(input, &Desired::new(), &observed, &record, found.as_ref(), None);
        return conclude(Decision { failed: Some(failed), ..base }, plan, &record, Desired::new(), input);
    }
    let begun = found.is_some()
        || record.ids.contains_key(&Instance::key(&name))
        || record.intents.contains_key(&Instance::key(&name));
    let interest =
        unmanaged::interest(input.cluster, input.aws_cluster, input.cluster_record, input.snapshot);
    let base = if begun { base } else { Decision { interest, ..base } };
    match preconditions(input).filter(|_| !begun) {
        Some(waits) => Decision { waits: Some(waits), ..base },
        None => carry_on(input, base, cluster.layout.clone(), record, &observed, begun),
    }
}

/// Decides what to do for a machine that is to be there. `begun`: something of it was made or tried already.
fn carry_on(
    input: &Input<'_>,
    base: Decision,
    layout: Result<Layout, Invalid>,
    mut record: PersistedState,
    observed: &Observed,
    begun: bool,
) -> Decision {
    let (name, found) = (name(input.aws_machine), base.instance.clone());
    let with_record = Input { record: &record, ..clone(input) };
    let found_here = desired::Found { status: found.as_ref().map(|it| &it.status), node: has_node(input) };
    let wanted = layout
        .and_then(|layout| Ok((desired::desired(&with_record, &layout, observed, &found_here)?, layout)));
    let (wanted, layout) = match wanted {
        Ok(it) => it,
        Err(invalid) => return Decision { invalid: Some(invalid), ..base },
    };
    let mut plan = ask(input, &wanted.desired, observed, &record, found.as_ref(), None);
    placement::wait_for_way_out(&mut plan, &Instance::key(&name), &layout, observed);
    // Of the load balancer of somebody else, not all subnets may be known.
    if !is_external(input.aws_cluster) {
        uncovered(&mut plan, &name, observed, found.as_ref());
    }
    if plan.open.contains_key(&Secret::key(&name)) || wanted.secret.is_some() {
        record.secret = wanted.secret;
    }
    if let Some(applied) = wanted.applied.filter(|_| begun || plan.open.contains_key(&Instance::key(&name))) {
        record.applied = applied;
    }
    let base = Decision {
        needs_bootstrap: wanted.needs_bootstrap,
        needs_image: wanted.needs_image,
        lookups: wanted.lookups,
        ..base
    };
    let mut res = conclude(base, plan, &record, wanted.desired, input);
    if is_suspect(input) {
        res.interest.reads.insert(Read::Instances);
    }
    res
}

/// Whether Cluster API saw its Node.
fn has_node(input: &Input<'_>) -> bool {
    input.machine.status.as_ref().is_some_and(|it| it.node_ref.is_some())
}

/// Whether the Node stopped being healthy after the instances were read: the instance may be gone, and
/// Cluster API waits for that word.
fn is_suspect(input: &Input<'_>) -> bool {
    let Some(status) = input.machine.status.as_ref().filter(|it| it.node_ref.is_some()) else { return false };
    let Some(healthy) = status.conditions.iter().find(|it| it.type_ == "NodeHealthy" && it.status != "True")
    else {
        return false;
    };
    let since = healthy.last_transition_time.0.as_second() as f64;
    input.snapshot.read_at.get(&Read::Instances).is_none_or(|read| *read < since + READ_LAG)
}

fn clone<'a>(input: &Input<'a>) -> Input<'a> {
    Input { hold: input.hold.clone(), ..*input }
}

/// The random id that the machine's instance carries: the AWSCluster's, what was written down while that was
/// there, or, where somebody else looks after the cluster, one of the machine's own. What was begun without
/// one goes on without.
fn id(input: &Input<'_>) -> String {
    let is_new = input.record.intents.is_empty() && input.record.ids.is_empty();
    match (&input.cluster_record.id, &input.record.id) {
        (cluster, _) if !cluster.is_empty() => cluster.clone(),
        (_, own) if !own.is_empty() || !is_new => own.clone(),
        _ => derive(input.random, "machine"),
    }
}

/// What the machine's instance has to say of itself.
fn identity(input: &Input<'_>) -> Identity {
    let ids = vec![id(input), input.record.id.clone()];
    identity::identity(input.cluster, input.aws_cluster, Some(input.machine), input.aws_machine, ids)
}

/// A decision with what is to be on the object: an id only once there is something that carries it.
fn settled(input: &Input<'_>, mut record: PersistedState) -> Decision {
    if record.ids.is_empty() && record.intents.is_empty() && record.secret.is_none() {
        record.id.clone_from(&input.record.id);
    }
    Decision { record, ..Decision::default() }
}

/// The instance was made: it is this machine's for good.
fn adopt(record: &mut PersistedState, name: &str, found: &FoundInstance, input: &Input<'_>) {
    record.intents.remove(&Instance::key(name));
    record.remember(Instance::key(name), &found.id, input.now, input.snapshot.since);
    if record.provider_id.is_none() && !found.status.zone.is_empty() {
        record.provider_id = Some(format!("aws:///{}/{}", found.status.zone, found.id));
    }
}

/// Why the machine has to be replaced.
fn failure(
    input: &Input<'_>,
    record: &PersistedState,
    name: &str,
    found: Option<&FoundInstance>,
) -> Option<(&'static str, String)> {
    if let Some(found) =
        found.filter(|it| ["shutting-down", "terminated"].contains(&it.status.state.as_str()))
    {
        let message = format!("{}, and is not made again; delete the Machine to replace it", found.stands());
        return Some((reason::INSTANCE_TERMINATED, message));
    }
    let id = record
        .ids
        .get(&Instance::key(name))
        .filter(|id| found.is_none() && is_gone(input.snapshot, record, id))?;
    Some((
        reason::INSTANCE_NOT_FOUND,
        format!("{id} does not exist any more, and is not made again; delete the Machine to replace it"),
    ))
}

fn preconditions(input: &Input<'_>) -> Option<Wait> {
    let provisioned = input
        .cluster
        .status
        .as_ref()
        .and_then(|it| it.initialization.infrastructure_provisioned)
        .unwrap_or_default();
    if !provisioned {
        let message = format!(
            "the infrastructure of the cluster is not provisioned yet{}",
            half_said(input.aws_cluster)
        );
        return Some(Wait { reason: reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE, message });
    }
    if input.machine.spec.bootstrap.data_secret_name.is_none() {
        return Some(Wait {
            reason: reason::WAITING_FOR_BOOTSTRAP_DATA,
            message: "bootstrap data is not there yet".into(),
        });
    }
    let unread = unmanaged::unread(input.cluster, input.aws_cluster, input.cluster_record, input.snapshot);
    unread
        .map(|vpc| Wait { reason: reason::NOT_READY, message: format!("reading the route tables of {vpc}") })
}

/// What is to be added when somebody else looks after the infrastructure and says by the older contract alone
/// that it is there.
fn half_said(aws_cluster: &AWSCluster) -> String {
    let initialized =
        |it: &AWSClusterStatus| it.initialization.as_ref().and_then(|it| it.provisioned) == Some(true);
    let is_half = |it: &AWSClusterStatus| it.ready && !initialized(it);
    if !is_external(aws_cluster) || !aws_cluster.status.as_ref().is_some_and(is_half) {
        return String::new();
    }
    let name = aws_cluster.metadata.name.as_deref().unwrap_or_default();
    let missing = "status.initialization.provisioned: true, which this version of Cluster API asks for";
    format!(": AWSCluster {name} says status.ready alone; whoever manages it has to set {missing}")
}

fn delete(input: &Input<'_>, base: Decision, record: &PersistedState, observed: &Observed) -> Decision {
    if let Some(message) = &input.hold {
        return Decision {
            waits: Some(Wait { reason: reason::WAITING_FOR_PLUGINS, message: message.clone() }),
            ..base
        };
    }
    let stopped = input.aws_machine.metadata.deletion_timestamp.as_ref().map(|it| it.0.as_second() as f64);
    let plan = ask(input, &Desired::new(), observed, record, base.instance.as_ref(), stopped);
    let finished = plan.actions.is_empty() && plan.waiting.is_empty() && plan.blocked.is_empty();
    Decision { finished, ..conclude(base, plan, record, Desired::new(), input) }
}

fn ask(
    input: &Input<'_>,
    desired: &Desired,
    observed: &Observed,
    record: &PersistedState,
    found: Option<&FoundInstance>,
    stopped: Option<Timestamp>,
) -> Plan {
    let absent = absent(input, found);
    plan(&question(input, desired, observed, record, &absent, stopped))
}

/// Ids that were read one by one and were not found.
fn absent(input: &Input<'_>, found: Option<&FoundInstance>) -> BTreeMap<String, Timestamp> {
    let mut absent = input.snapshot.absent.clone();
    // It is still shown for an hour, and there is nothing left to ask about it.
    absent
        .extend(found.filter(|it| it.status.state == "terminated").map(|it| (it.id.clone(), f64::INFINITY)));
    absent
}

fn question<'a>(
    input: &'a Input<'_>,
    desired: &'a Desired,
    observed: &'a Observed,
    record: &'a PersistedState,
    absent: &'a BTreeMap<String, Timestamp>,
    stopped: Option<Timestamp>,
) -> PlanInput<'a> {
    let read_at = &input.snapshot.read_at;
    let (trusted_from, proven_from) =
        (trusted_from(input.snapshot, record), proven_from(input.snapshot, record));
    let (now, since, random) = (input.now, input.snapshot.since, input.random);
    PlanInput {
        desired,
        observed,
        record,
        absent,
        read_at,
        now,
        stopped,
        since,
        trusted_from,
        proven_from,
        random,
    }
}

fn conclude(
    base: Decision,
    plan: Plan,
    record: &PersistedState,
    desired: Desired,
    input: &Input<'_>,
) -> Decision {
    let interest = Interest { reads: plan.awaits.clone(), ..base.interest };
    let record = settled(input, record.before(&plan, input.now, input.snapshot.since)).record;
    Decision { record, plan, desired, interest, ..base }
}

/// A load balancer forwards only to zones that it has a subnet in.
fn uncovered(plan: &mut Plan, name: &str, observed: &Observed, found: Option<&FoundInstance>) {
    let Some(Resource::LoadBalancer(balancer)) =
        observed.get(&LoadBalancer::key(observe::API_SERVER)).map(|it| &it.is)
    else {
        return;
    };
    let zone_of = |subnet: &String| match observed.get(&Subnet::key(subnet)).map(|it| &it.is) {
        Some(Resource::Subnet(it)) => Some(it.zone.clone()),
        _ => None,
    };
    // Of a subnet that is not seen, the zone is not known.
    let Some(zones) = balancer.subnets.iter().map(zone_of).collect::<Option<BTreeSet<String>>>() else {
        return;
    };
    let Some(zone) = found
        .map(|it| &it.status.zone)
        .filter(|zone| !zones.is_empty() && !zone.is_empty() && !zones.contains(*zone))
    else {
        return;
    };
    let key = Target::key(name);
    let wanted = plan.actions.iter().any(|it| matches!(it, Action::Create { is, .. } if is.key() == key));
    if wanted {
        plan.actions.retain(|it| it.key() != key);
        plan.blocked.push((
            key,
            format!("the load balancer has no subnet in {zone}; add a subnet of that zone to the cluster"),
        ));
    }
}

/// What a machine shows of what it sees: its own.
fn own(observed: &Observed) -> Observed {
    observed
        .iter()
        .filter(|(key, _)| observe::is_own(key))
        .map(|(key, it)| (key.clone(), it.clone()))
        .collect()
}

fn wait(input: &Input<'_>, reason: &'static str, message: &str) -> Decision {
    let waits = Some(Wait { reason, message: message.to_owned() });
    Decision { record: input.record.clone(), waits, ..Decision::default() }
}
