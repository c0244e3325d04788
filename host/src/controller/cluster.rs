//! Reconciles one AWSCluster: read, decide, act, report. What should exist and what is done about it is
//! decided in `infra`; AWS is touched only through `aws`, and the management API only through `management`.

mod pause;
mod read;
mod report;

use std::sync::Arc;

use crds::AWSCluster;
use infra::PersistedState;
use infra::cluster::{Decision, Input};
use infra::gc::Sweep;
use model::{Action, Problem, Snapshot};
use tokio::time::Instant;

use super::gc;
use super::infrastructure::{Infrastructure, Read};
use super::issuer;
use super::queue::Trigger;
use super::reconcile::{Memory, ReconcileResult};
use super::refusals::Refusals;
use super::subscriptions::{Subscription, Subscriptions};
use super::wave::Wave;
use crate::context::Context;
use crate::management::{Cached, Error};
use crate::system::{now, random};

use read::ClusterScope;
pub use read::requested;

/// The controller of AWSClusters.
pub struct Clusters {
    context: Context,
    subscriptions: Subscriptions,
    memory: Memory<ClusterMemory>,
}

#[derive(Default)]
pub struct ClusterMemory {
    refusals: Refusals,
    /// The API itself answered, since the deletion began, that no AWSMachine is left.
    no_machines: bool,
    issuer: issuer::IssuerMemory,
    /// What the cluster's own controllers left in AWS.
    sweep: Sweep,
    /// Since when it is known to be paused.
    paused: Option<model::Timestamp>,
}

/// One decision and what it was made of.
pub struct Reconciliation {
    object: Arc<Cached<AWSCluster>>,
    record: PersistedState,
    snapshot: Arc<Snapshot>,
    problem: Option<Problem>,
    now: model::Timestamp,
    decision: Decision,
    /// The actions that may be tried now.
    due: Vec<Action>,
}

impl AsMut<Refusals> for ClusterMemory {
    fn as_mut(&mut self) -> &mut Refusals {
        &mut self.refusals
    }
}

impl Infrastructure for Clusters {
    const NAME: &'static str = "awscluster";
    const SUBSCRIBER: &'static str = "cluster";
    const WAVES: usize = 32;

    type Object = AWSCluster;
    type Memory = ClusterMemory;
    type Scope = ClusterScope;
    type Reconciliation = Reconciliation;

    fn parts(&self) -> (&Context, &Subscriptions, &Memory<ClusterMemory>) {
        (&self.context, &self.subscriptions, &self.memory)
    }

    async fn read(
        &self,
        object: Arc<Cached<AWSCluster>>,
        memory: &mut ClusterMemory,
    ) -> Result<Read<ClusterScope>, Error> {
        let Some(scope) = self.read_scope(object, memory).await? else {
            return Ok(Read::Break(ReconcileResult::Settled));
        };
        match &scope.copied_from {
            Some(original) => self.report_copied(&scope, original).await.map(Read::Break),
            None => Ok(Read::Continue(scope)),
        }
    }

    async fn decide(
        &self,
        scope: &mut ClusterScope,
        memory: &mut ClusterMemory,
    ) -> Result<Result<Reconciliation, model::Invalid>, Error> {
        if scope.is_swept() {
            let management = &self.context.management;
            gc::collect(management, &scope.region, &scope.object, &scope.name.name, &mut memory.sweep).await;
        }
        Ok(decide(scope, memory))
    }

    async fn act(
        &self,
        scope: &mut ClusterScope,
        reconciliation: &Reconciliation,
        memory: &mut ClusterMemory,
    ) -> Result<bool, Error> {
        let Decision { plan, record, interest, .. } = &reconciliation.decision;
        scope.region.interest(&scope.who, interest.clone());
        let subscription = Subscription {
            region: scope.object.spec.region.clone(),
            interest: interest.clone(),
            instance: None,
        };
        self.subscriptions.subscribe(&scope.object.object_name(), subscription);
        let wave = Wave { who: &scope.who, region: &scope.region, plan, record, due: &reconciliation.due };
        let acted = wave
            .execute(
                &self.context.management,
                &mut scope.object,
                &mut memory.refusals,
                PersistedState::cluster_patch,
            )
            .await?;
        if scope.is_swept() && gc::has_dependency(&acted.outcomes) {
            memory.sweep.asked_for(now());
        }
        Ok(acted.more)
    }

    fn object(scope: &ClusterScope) -> &Arc<Cached<AWSCluster>> {
        &scope.object
    }

    async fn report(
        &self,
        scope: &ClusterScope,
        reconciliation: &Reconciliation,
        memory: &mut ClusterMemory,
    ) -> Result<ReconcileResult, Error> {
        self.report_decision(scope, reconciliation, memory).await
    }
}

impl Clusters {
    pub fn new(context: Context, trigger: Trigger) -> Self {
        let subscriptions = Subscriptions::new(context.aws.clone(), trigger);
        Self { context, subscriptions, memory: Memory::default() }
    }
}

impl Reconciliation {
    fn input<'a>(&'a self, scope: &'a ClusterScope, random: &'a str) -> Input<'a> {
        Input {
            cluster: &scope.cluster,
            aws_cluster: &self.object,
            machines: &scope.machines,
            rules: scope.rules.as_deref(),
            snapshot: &self.snapshot,
            record: &self.record,
            now: self.now,
            random,
        }
    }
}

/// Decides, and leaves out what was refused a moment ago.
fn decide(scope: &ClusterScope, memory: &mut ClusterMemory) -> Result<Reconciliation, model::Invalid> {
    let record = PersistedState::of_cluster(&scope.object)?;
    let view = scope.region.view().borrow().clone();
    let snapshot = view.snapshot.clone().unwrap_or_default();
    let random = random();
    let (object, now) = (scope.object.clone(), now());
    let mut decision = infra::cluster::decide(&Input {
        cluster: &scope.cluster,
        aws_cluster: &object,
        machines: &scope.machines,
        rules: scope.rules.as_deref(),
        snapshot: &snapshot,
        record: &record,
        now,
        random: &random,
    });
    let problem = view.problem(&decision.interest).cloned();
    let mut due = memory.refusals.due(&mut decision.plan, &mut decision.record, Instant::now());
    if scope.is_swept() {
        gc::hold(&memory.sweep, scope.is_forced(), &mut decision, &mut due);
    }
    Ok(Reconciliation { object, record, snapshot, problem, now, decision, due })
}
