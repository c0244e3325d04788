//! Reconciles one AWSMachine: read, decide, act, report. What should exist and what is done about it is
//! decided in `infra`; AWS is touched only through `aws`, and the management API only through `management`.
//! Bootstrap data is read when it is needed and not stored.

mod hold;
mod lookup;
mod pause;
mod report;

use std::sync::Arc;

use crds::cluster_api::{Cluster, Machine};
use crds::{AWSCluster, AWSMachine, names};
use infra::PersistedState;
use infra::machine::{Decision, Input, ObservedCluster};
use kube::ResourceExt;
use model::{Action, Answers, Image, Snapshot};
use tokio::time::Instant;

use super::infrastructure::{Infrastructure, Read};
use super::owner::{cluster_of_name, owner};
use super::queue::Trigger;
use super::reconcile::{Memory, ReconcileResult};
use super::refusals::Refusals;
use super::subscriptions::{Subscription, Subscriptions};
use super::wave::Wave;
use crate::context::Context;
use crate::management::{Cached, Error, Watched};
use crate::object_name::ObjectName;
use crate::system::{now, random};

/// The controller of AWSMachines.
pub struct Machines {
    context: Context,
    subscriptions: Subscriptions,
    memory: Memory<MachineMemory>,
}

#[derive(Default)]
pub struct MachineMemory {
    refusals: Refusals,
    /// Since when it is known to be paused.
    paused: Option<model::Timestamp>,
}

/// Everything that a decision is made of.
pub struct MachineScope {
    /// The name of the Cluster.
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

/// What the machine boots with. It has no `Debug`: bootstrap data reaches no log.
struct Bootstrap {
    data: Vec<u8>,
    format: Option<String>,
}

/// One decision and what it was made of.
pub struct Reconciliation {
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

impl AsMut<Refusals> for MachineMemory {
    fn as_mut(&mut self) -> &mut Refusals {
        &mut self.refusals
    }
}

impl Infrastructure for Machines {
    const NAME: &'static str = "awsmachine";
    const SUBSCRIBER: &'static str = "machine";
    const WAVES: usize = 16;

    type Object = AWSMachine;
    type Memory = MachineMemory;
    type Scope = MachineScope;
    type Reconciliation = Reconciliation;

    fn parts(&self) -> (&Context, &Subscriptions, &Memory<MachineMemory>) {
        (&self.context, &self.subscriptions, &self.memory)
    }

    async fn read(
        &self,
        object: Arc<Cached<AWSMachine>>,
        memory: &mut MachineMemory,
    ) -> Result<Read<MachineScope>, Error> {
        let management = &self.context.management;
        let deleting = object.is_deleting();
        let machine = owner(&object, "Machine").and_then(|it| management.get::<Machine>(&it));
        let name = machine.as_ref().and_then(|it| it.cluster()).or_else(|| Watched::cluster(&**object));
        let cluster = name.as_ref().and_then(|it| management.get::<Cluster>(it));
        if management.is_paused(&object) || cluster.as_ref().is_some_and(|it| it.spec.paused == Some(true)) {
            let cluster = cluster.as_deref().map(|it| Cluster::clone(it));
            self.pause(&object, machine.as_deref().map(|it| Machine::clone(it)), name, cluster, memory)
                .await?;
            return Ok(Read::Break(ReconcileResult::Settled));
        }
        memory.paused = None;
        if deleting && !object.has_finalizer(names::MACHINE_FINALIZER) {
            return Ok(Read::Break(ReconcileResult::Settled));
        }
        let name = match (name, &machine, &cluster) {
            (Some(name), Some(_), Some(_)) => name,
            (name, ..) if deleting => name.unwrap_or_else(|| object.object_name()),
            _ => {
                self.report_not_owned(&object, machine.is_some()).await?;
                return Ok(Read::Break(ReconcileResult::Settled));
            }
        };
        // While it is deleted, its Machine and Cluster may be gone already: only names matter then.
        let cluster = cluster.map_or_else(|| cluster_of_name(&name), |it| Cluster::clone(&it));
        let Some(aws_cluster) = self.aws_cluster(&name, &cluster, &object) else {
            self.report_no_region(&object).await?;
            return Ok(Read::Break(ReconcileResult::Settled));
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
        Ok(Read::Continue(MachineScope {
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

    /// Decides; fetches what the decision asks for, and decides again. Before anything is removed, the API
    /// itself is asked whether it has to be held: a cold cache looks like "no add-on".
    async fn decide(
        &self,
        scope: &mut MachineScope,
        memory: &mut MachineMemory,
    ) -> Result<Result<Reconciliation, model::Invalid>, Error> {
        let refusals = &mut memory.refusals;
        let view = scope.region.view().borrow().clone();
        let mut reconciliation = match Reconciliation::new(scope, view) {
            Ok(reconciliation) => reconciliation,
            Err(invalid) => return Ok(Err(invalid)),
        };
        if reconciliation.decision.needs_bootstrap && scope.bootstrap.is_none() {
            scope.bootstrap = self.bootstrap(scope).await?;
            reconciliation.decide(scope);
        }
        if reconciliation.decision.asks() {
            lookup::look_up(scope, &reconciliation.decision, refusals).await;
            reconciliation.decide(scope);
        } else {
            refusals.record_lookup(Ok(()), Instant::now());
        }
        if scope.object.is_deleting()
            && scope.hold.is_none()
            && reconciliation.decision.plan.actions.iter().any(|it| matches!(it, Action::Delete { .. }))
        {
            scope.hold = hold::live(&self.context.management, &scope.name, &scope.object).await?;
            if scope.hold.is_some() {
                reconciliation.decide(scope);
            }
        }
        reconciliation.due = refusals.due(
            &mut reconciliation.decision.plan,
            &mut reconciliation.decision.record,
            Instant::now(),
        );
        Ok(Ok(reconciliation))
    }

    async fn act(
        &self,
        scope: &mut MachineScope,
        reconciliation: &Reconciliation,
        memory: &mut MachineMemory,
    ) -> Result<bool, Error> {
        let Decision { plan, record, interest, instance, .. } = &reconciliation.decision;
        scope.region.interest(&scope.who, interest.clone());
        let instance = instance.as_ref().map(|it| it.id.clone());
        let subscription = Subscription {
            region: scope.aws_cluster.spec.region.clone(),
            interest: interest.clone(),
            instance,
        };
        self.subscriptions.subscribe(&scope.object.object_name(), subscription);
        let wave = Wave { who: &scope.who, region: &scope.region, plan, record, due: &reconciliation.due };
        let acted = wave
            .execute(
                &self.context.management,
                &mut scope.object,
                &mut memory.refusals,
                PersistedState::machine_patch,
            )
            .await?;
        Ok(acted.more)
    }

    fn object(scope: &MachineScope) -> &Arc<Cached<AWSMachine>> {
        &scope.object
    }

    async fn report(
        &self,
        scope: &MachineScope,
        reconciliation: &Reconciliation,
        memory: &mut MachineMemory,
    ) -> Result<ReconcileResult, Error> {
        self.report_decision(scope, reconciliation, &memory.refusals).await
    }
}

impl Machines {
    pub fn new(context: Context, trigger: Trigger) -> Self {
        let subscriptions = Subscriptions::new(context.aws.clone(), trigger);
        Self { context, subscriptions, memory: Memory::default() }
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

    /// What the machine boots with. `None`: not there (yet).
    async fn bootstrap(&self, scope: &MachineScope) -> Result<Option<Bootstrap>, Error> {
        let Some(name) = &scope.machine.spec.bootstrap.data_secret_name else { return Ok(None) };
        let secret = self.context.management.secret(&scope.object.object_name().sibling(name)).await?;
        let Some(mut data) = secret.and_then(|it| it.data) else { return Ok(None) };
        let format = data.remove("format").map(|it| String::from_utf8_lossy(&it.0).into_owned());
        Ok(data.remove("value").map(|it| Bootstrap { data: it.0, format }))
    }
}

impl Reconciliation {
    fn new(scope: &MachineScope, view: Arc<aws::View>) -> Result<Self, model::Invalid> {
        let record = PersistedState::of_machine(&scope.object)?;
        let cluster_record = PersistedState::of_cluster(&scope.aws_cluster)?;
        let snapshot = view.snapshot.clone().unwrap_or_default();
        let cluster =
            ObservedCluster::new(&scope.cluster, &scope.aws_cluster, &cluster_record, &snapshot, &random());
        let mut reconciliation = Reconciliation {
            object: scope.object.clone(),
            record,
            cluster_record,
            snapshot,
            cluster,
            view,
            now: now(),
            decision: Decision::default(),
            due: Vec::new(),
        };
        reconciliation.decide(scope);
        Ok(reconciliation)
    }

    fn decide(&mut self, scope: &MachineScope) {
        self.decision = infra::machine::decide_in(&self.input(scope, &random()), &self.cluster);
    }

    fn input<'a>(&'a self, scope: &'a MachineScope, random: &'a str) -> Input<'a> {
        Input {
            cluster: &scope.cluster,
            machine: &scope.machine,
            aws_cluster: &scope.aws_cluster,
            aws_machine: &self.object,
            cluster_record: &self.cluster_record,
            bootstrap: scope
                .bootstrap
                .as_ref()
                .map(|it| infra::machine::Bootstrap { data: &it.data, format: it.format.as_deref() }),
            image: scope.image.as_ref(),
            answers: &scope.answers,
            snapshot: &self.snapshot,
            record: &self.record,
            hold: scope.hold.clone(),
            now: self.now,
            random,
        }
    }
}
