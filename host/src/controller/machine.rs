//! Drives one AWSMachine: read, decide, act, say. What should exist and what is done about it is decided in
//! `plan`; AWS is touched only through `aws`, and the management API only through `management`. Bootstrap
//! data is read when it is needed and never kept.

mod ask;
mod hold;
mod pause;

use std::sync::Arc;

use crds::cluster_api::{Cluster, Machine};
use crds::{AWSCluster, AWSMachine, names};
use infra::PersistedState;
use infra::machine::{Decision, Input, ObservedCluster};
use kube::ResourceExt;
use model::{Action, Answers, Image, Snapshot};
use tokio::time::Instant;

use super::owner::{cluster_of_name, owner};
use super::queue::Trigger;
use super::reconcile::{Controller, Memory, ReconcileResult, ended, is_ours};
use super::refusals::Refusals;
use super::regions::{Regions, Subscription};
use super::wave::Wave;
use crate::context::Context;
use crate::management::{Cached, Error, Note, Watched};
use crate::object_name::ObjectName;
use crate::system::{now, random};

/// Waves of calls in one look; more are only needed when something changes back and forth.
const WAVES: usize = 16;

/// The controller of AWSMachines.
pub struct Machines {
    context: Context,
    regions: Regions,
    memory: Memory<Remembered>,
}

#[derive(Default)]
struct Remembered {
    refusals: Refusals,
    /// Since when it is known to be paused.
    paused: Option<model::Timestamp>,
}

/// Everything that a decision is made of.
struct Seen {
    /// Of the Cluster.
    name: ObjectName,
    cluster: Cluster,
    aws_cluster: AWSCluster,
    machine: Machine,
    object: Arc<Cached<AWSMachine>>,
    /// Why nothing of it may be removed.
    hold: Option<String>,
    bootstrap: Option<Bootstrap>,
    image: Option<Image>,
    answers: Answers,
    region: aws::Region,
    who: String,
}

/// What the machine boots with. It is never printed.
struct Bootstrap {
    data: Vec<u8>,
    format: Option<String>,
}

/// One decision and what it was made of.
struct Reconciliation {
    object: Arc<Cached<AWSMachine>>,
    record: PersistedState,
    cluster_record: PersistedState,
    snapshot: Arc<Snapshot>,
    /// The cluster in this snapshot: observed once, however often the decision is made anew.
    cluster: ObservedCluster,
    view: Arc<aws::View>,
    now: model::Timestamp,
    decision: Decision,
    /// The actions that may be tried now.
    due: Vec<Action>,
}

impl Controller for Machines {
    const NAME: &'static str = "awsmachine";

    fn context(&self) -> &Context {
        &self.context
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<ReconcileResult, Error> {
        let Some(object) = self.context.management.get::<AWSMachine>(name) else {
            self.forget(name);
            return Ok(ReconcileResult::Settled);
        };
        if !is_ours(&self.context, &object) {
            self.leave(name);
            return Ok(ReconcileResult::Settled);
        }
        let mut memory = self.memory.take(name);
        memory.refusals.begin(object.metadata.generation);
        let ended = self.drive(object, &mut memory).await;
        memory.refusals.end();
        self.memory.put(name, memory);
        ended
    }
}

impl Machines {
    pub fn new(context: Context, waker: Trigger) -> Self {
        let regions = Regions::new(context.aws.clone(), waker);
        Self { context, regions, memory: Memory::default() }
    }

    async fn drive(
        &self,
        object: Arc<Cached<AWSMachine>>,
        memory: &mut Remembered,
    ) -> Result<ReconcileResult, Error> {
        let Some(mut seen) = self.read(object, memory).await? else { return Ok(ReconcileResult::Settled) };
        let refusals = &mut memory.refusals;
        let mut last = None;
        for _ in 0..WAVES {
            let management = &self.context.management;
            if management
                .get::<AWSMachine>(&seen.object.object_name())
                .is_some_and(|it| management.is_paused(&it))
            {
                return Ok(ReconcileResult::Unfinished);
            }
            let pass = match self.decide(&mut seen, refusals).await? {
                Ok(pass) => pass,
                Err(invalid) => return self.say_invalid(&seen, &invalid).await,
            };
            let more = self.act(&mut seen, &pass, refusals).await?;
            last = Some(pass);
            if !more {
                break;
            }
        }
        match last {
            Some(pass) => self.say(&seen, &pass, refusals).await,
            None => Ok(ReconcileResult::Unfinished),
        }
    }

    /// Reads everything, and sees to it that the object cannot vanish before what is made for it. `None`:
    /// nothing is to be done.
    async fn read(
        &self,
        object: Arc<Cached<AWSMachine>>,
        memory: &mut Remembered,
    ) -> Result<Option<Seen>, Error> {
        let management = &self.context.management;
        let deleting = object.is_deleting();
        let machine = owner(&object, "Machine").and_then(|it| management.get::<Machine>(&it));
        let name = machine.as_ref().and_then(|it| it.cluster()).or_else(|| Watched::cluster(&**object));
        let cluster = name.as_ref().and_then(|it| management.get::<Cluster>(it));
        if management.is_paused(&object) || cluster.as_ref().is_some_and(|it| it.spec.paused == Some(true)) {
            let cluster = cluster.as_deref().map(|it| Cluster::clone(it));
            self.pause(&object, machine.as_deref().map(|it| Machine::clone(it)), name, cluster, memory)
                .await?;
            return Ok(None);
        }
        memory.paused = None;
        if deleting && !object.has_finalizer(names::MACHINE_FINALIZER) {
            return Ok(None);
        }
        let name = match (name, &machine, &cluster) {
            (Some(name), Some(_), Some(_)) => name,
            (name, ..) if deleting => name.unwrap_or_else(|| object.object_name()),
            _ => {
                self.say_not_owned(&object, machine.is_some()).await?;
                return Ok(None);
            }
        };
        // While it is deleted, its Machine and Cluster may be gone already: only names matter then.
        let cluster = cluster.map_or_else(|| cluster_of_name(&name), |it| Cluster::clone(&it));
        let Some(aws_cluster) = self.aws_cluster(&name, &cluster, &object) else {
            self.without_region(&object).await?;
            return Ok(None);
        };
        let machine = machine
            .map_or_else(|| Machine::new(&object.name_any(), Default::default()), |it| Machine::clone(&it));
        let object = if deleting {
            object
        } else {
            management.add_finalizer(&object, names::MACHINE_FINALIZER).await?
        };
        let hold = if deleting { hold::cached(management, &name, &cluster, &object) } else { None };
        let region = self.context.aws.region(&aws_cluster.spec.region);
        let who = format!("machine/{}", object.object_name());
        Ok(Some(Seen {
            name,
            cluster,
            aws_cluster,
            machine,
            object,
            hold,
            bootstrap: None,
            image: None,
            answers: Answers::default(),
            region,
            who,
        }))
    }

    /// The AWSCluster of a Cluster. When that is gone before a machine of it is, the region is known from the
    /// instance's zone.
    fn aws_cluster(
        &self,
        name: &ObjectName,
        cluster: &Cluster,
        object: &Cached<AWSMachine>,
    ) -> Option<AWSCluster> {
        let management = &self.context.management;
        let named = cluster
            .spec
            .infrastructure_ref
            .as_ref()
            .and_then(|it| management.get::<AWSCluster>(&name.sibling(&it.name)));
        let found = named.or_else(|| management.of_cluster::<AWSCluster>(name).into_iter().next());
        match found {
            Some(found) => Some(AWSCluster::clone(&found)),
            None if object.is_deleting() => {
                let zone = object.spec.provider_id.as_deref()?.strip_prefix("aws:///")?.split('/').next()?;
                let region = zone.trim_end_matches(|it: char| it.is_ascii_lowercase()).to_owned();
                let mut res =
                    AWSCluster::new(&name.name, crds::AWSClusterSpec { region, ..Default::default() });
                res.metadata.namespace = Some(name.namespace.clone());
                Some(res)
            }
            None => None,
        }
    }

    /// Decides; fetches what the decision asks for, and decides again. Before anything is removed, the API
    /// itself is asked whether it has to be held: a cold cache looks like "no add-on".
    async fn decide(
        &self,
        seen: &mut Seen,
        refusals: &mut Refusals,
    ) -> Result<Result<Reconciliation, model::Invalid>, Error> {
        let view = seen.region.view().borrow().clone();
        let mut pass = match Reconciliation::new(seen, view) {
            Ok(pass) => pass,
            Err(invalid) => return Ok(Err(invalid)),
        };
        if pass.decision.needs_bootstrap && seen.bootstrap.is_none() {
            seen.bootstrap = self.bootstrap(seen).await?;
            pass.decide(seen);
        }
        match pass.decision.asks() {
            true => {
                ask::look_up(seen, &pass.decision, refusals).await;
                pass.decide(seen);
            }
            false => refusals.learn_lookup(Ok(()), Instant::now()),
        }
        if seen.object.is_deleting()
            && seen.hold.is_none()
            && pass.decision.plan.actions.iter().any(|it| matches!(it, Action::Delete { .. }))
        {
            seen.hold = hold::live(&self.context.management, &seen.name, &seen.object).await?;
            if seen.hold.is_some() {
                pass.decide(seen);
            }
        }
        pass.due = refusals.due(&mut pass.decision.plan, &mut pass.decision.record, Instant::now());
        Ok(Ok(pass))
    }

    /// What the machine boots with. `None`: not there (yet).
    async fn bootstrap(&self, seen: &Seen) -> Result<Option<Bootstrap>, Error> {
        let Some(name) = &seen.machine.spec.bootstrap.data_secret_name else { return Ok(None) };
        let secret = self.context.management.secret(&seen.object.object_name().sibling(name)).await?;
        let Some(mut data) = secret.and_then(|it| it.data) else { return Ok(None) };
        let format = data.remove("format").map(|it| String::from_utf8_lossy(&it.0).into_owned());
        Ok(data.remove("value").map(|it| Bootstrap { data: it.0, format }))
    }

    /// Writes down what was decided, then carries it out. True: there is more to decide.
    async fn act(
        &self,
        seen: &mut Seen,
        pass: &Reconciliation,
        refusals: &mut Refusals,
    ) -> Result<bool, Error> {
        let Decision { plan, record, interest, instance, .. } = &pass.decision;
        seen.region.interest(&seen.who, interest.clone());
        let instance = instance.as_ref().map(|it| it.id.clone());
        let seat = Subscription {
            region: seen.aws_cluster.spec.region.clone(),
            interest: interest.clone(),
            instance,
        };
        self.regions.subscribe(&seen.object.object_name(), seat);
        let wave = Wave { who: &seen.who, region: &seen.region, plan, record, due: &pass.due };
        let acted = wave
            .carry_out(&self.context.management, &mut seen.object, refusals, PersistedState::machine_patch)
            .await?;
        Ok(acted.more)
    }

    async fn say(
        &self,
        seen: &Seen,
        pass: &Reconciliation,
        refusals: &Refusals,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        let decision = &pass.decision;
        if seen.object.is_deleting() && decision.finished {
            if let Some(message) = &decision.foreign {
                let message = format!("{message}; it stays, and nothing was done with it");
                let reason = crds::conditions::reason::NOT_OWNED.to_owned();
                management.note(
                    &seen.object,
                    Note { warning: true, reason, action: "Leave instance".to_owned(), message },
                );
            }
            management.remove_finalizer(&seen.object, names::MACHINE_FINALIZER).await?;
            self.forget(&seen.object.object_name());
            return Ok(ReconcileResult::Settled);
        }
        let outcomes = refusals.outcomes();
        let input = pass.input(seen, "");
        let problem =
            pass.view.problem(&decision.interest).or(refusals.lookup_problem().filter(|_| decision.asks()));
        let status = infra::status::machine(&infra::status::Machine {
            input: &input,
            decision,
            outcomes: &outcomes,
            problem,
        });
        management.say(&seen.object, &status).await?;
        let knows = !decision.needs_bootstrap && !decision.asks();
        let settled =
            decision.plan.is_settled() && decision.waits.is_none() && decision.invalid.is_none() && knows;
        Ok(ended(settled && problem.is_none(), refusals))
    }

    async fn say_paused(&self, object: &Arc<Cached<AWSMachine>>) -> Result<(), Error> {
        let mut status = object.status.clone().unwrap_or_default();
        status.conditions =
            infra::status::paused(&status.conditions, true, now(), object.metadata.generation);
        self.context.management.say(object, &status).await.map(|_| ())
    }

    /// Nobody knows any more in which region to look: a machine of which nothing was made may go, another has
    /// to wait for the AWSCluster.
    async fn without_region(&self, object: &Arc<Cached<AWSMachine>>) -> Result<(), Error> {
        let management = &self.context.management;
        let is_made = |it: &PersistedState| {
            *it != PersistedState {
                id: it.id.clone(),
                applied: it.applied.clone(),
                ..PersistedState::default()
            }
        };
        if object.is_deleting() && PersistedState::of_machine(object).is_ok_and(|it| !is_made(&it)) {
            return management.remove_finalizer(object, names::MACHINE_FINALIZER).await.map(drop);
        }
        let message = "there is no AWSCluster that says in which region its things are: create it again, or, once they are deleted, remove \
                       the finalizer of this object";
        let mut status = object.status.clone().unwrap_or_default();
        let reason = crds::conditions::reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE;
        status.conditions =
            infra::status::not_ready(&status.conditions, reason, message, now(), object.metadata.generation);
        management.say(object, &status).await.map(drop)
    }

    async fn say_not_owned(&self, object: &Arc<Cached<AWSMachine>>, has_machine: bool) -> Result<(), Error> {
        use crds::conditions::reason;
        let (reason, message) = match has_machine {
            true => (reason::WAITING_FOR_CLUSTER, "the Cluster of its Machine is not there yet"),
            false => (
                reason::WAITING_FOR_MACHINE,
                "no Machine owns this AWSMachine yet: create one whose spec.infrastructureRef names it",
            ),
        };
        let mut status = object.status.clone().unwrap_or_default();
        status.conditions =
            infra::status::not_ready(&status.conditions, reason, message, now(), object.metadata.generation);
        self.context.management.say(object, &status).await.map(|_| ())
    }

    async fn say_invalid(&self, seen: &Seen, invalid: &model::Invalid) -> Result<ReconcileResult, Error> {
        let object = &seen.object;
        let mut status = object.status.clone().unwrap_or_default();
        let reason = crds::conditions::reason::INVALID_SPEC;
        status.conditions = infra::status::not_ready(
            &status.conditions,
            reason,
            &invalid.to_string(),
            now(),
            object.metadata.generation,
        );
        self.context.management.say(object, &status).await?;
        Ok(ReconcileResult::Settled)
    }

    fn forget(&self, name: &ObjectName) {
        drop(self.memory.take(name));
        self.leave(name);
    }

    /// Nothing is read of AWS for it any more.
    fn leave(&self, name: &ObjectName) {
        if let Some(seat) = self.regions.leave(name) {
            self.context.aws.region(&seat.region).forget(&format!("machine/{name}"));
        }
    }
}

impl Reconciliation {
    fn new(seen: &Seen, view: Arc<aws::View>) -> Result<Self, model::Invalid> {
        let record = PersistedState::of_machine(&seen.object)?;
        let cluster_record = PersistedState::of_cluster(&seen.aws_cluster)?;
        let snapshot = view.snapshot.clone().unwrap_or_default();
        let cluster =
            ObservedCluster::new(&seen.cluster, &seen.aws_cluster, &cluster_record, &snapshot, &random());
        let mut pass = Reconciliation {
            object: seen.object.clone(),
            record,
            cluster_record,
            snapshot,
            cluster,
            view,
            now: now(),
            decision: Decision::default(),
            due: Vec::new(),
        };
        pass.decide(seen);
        Ok(pass)
    }

    fn decide(&mut self, seen: &Seen) {
        self.decision = infra::machine::decide_in(&self.input(seen, &random()), &self.cluster);
    }

    fn input<'a>(&'a self, seen: &'a Seen, random: &'a str) -> Input<'a> {
        Input {
            cluster: &seen.cluster,
            machine: &seen.machine,
            aws_cluster: &seen.aws_cluster,
            aws_machine: &self.object,
            cluster_record: &self.cluster_record,
            bootstrap: seen
                .bootstrap
                .as_ref()
                .map(|it| infra::machine::Bootstrap { data: &it.data, format: it.format.as_deref() }),
            image: seen.image.as_ref(),
            answers: &seen.answers,
            snapshot: &self.snapshot,
            record: &self.record,
            hold: seen.hold.clone(),
            now: self.now,
            random,
        }
    }
}
