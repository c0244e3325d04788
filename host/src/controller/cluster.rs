//! Reconciles one AWSCluster: read, decide, act, report. What should exist and what is done about it is
//! decided in `plan`; AWS is touched only through `aws`, and the management API only through `management`.

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
use super::issuer;
use super::queue::Trigger;
use super::reconcile::{Controller, Memory, ReconcileResult, is_ours};
use super::refusals::Refusals;
use super::subscriptions::{Subscription, Subscriptions};
use super::wave::Wave;
use crate::context::Context;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;
use crate::system::{now, random};

use read::ClusterScope;

/// Waves of calls in one reconciliation; more are only needed when something changes back and forth.
const WAVES: usize = 32;

/// The controller of AWSClusters.
pub struct Clusters {
    context: Context,
    subscriptions: Subscriptions,
    memory: Memory<ClusterMemory>,
}

#[derive(Default)]
struct ClusterMemory {
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
struct Reconciliation {
    object: Arc<Cached<AWSCluster>>,
    record: PersistedState,
    snapshot: Arc<Snapshot>,
    problem: Option<Problem>,
    now: model::Timestamp,
    decision: Decision,
    /// The actions that may be tried now.
    due: Vec<Action>,
}

impl Controller for Clusters {
    const NAME: &'static str = "awscluster";

    fn context(&self) -> &Context {
        &self.context
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<ReconcileResult, Error> {
        let Some(object) = self.context.management.get::<AWSCluster>(name) else {
            self.evict(name);
            return Ok(ReconcileResult::Settled);
        };
        if !is_ours(&self.context, &object) {
            self.unsubscribe(name);
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

impl Clusters {
    pub fn new(context: Context, trigger: Trigger) -> Self {
        let subscriptions = Subscriptions::new(context.aws.clone(), trigger);
        Self { context, subscriptions, memory: Memory::default() }
    }

    async fn drive(
        &self,
        object: Arc<Cached<AWSCluster>>,
        memory: &mut ClusterMemory,
    ) -> Result<ReconcileResult, Error> {
        let Some(mut scope) = self.read(object, memory).await? else { return Ok(ReconcileResult::Settled) };
        if let Some(original) = &scope.copied_from {
            return self.report_copied(&scope, original).await;
        }
        let mut last = None;
        for _ in 0..WAVES {
            let management = &self.context.management;
            if management
                .get::<AWSCluster>(&scope.object.object_name())
                .is_some_and(|it| management.is_paused(&it))
            {
                return Ok(ReconcileResult::Unfinished);
            }
            if scope.is_swept() {
                gc::collect(
                    &self.context.management,
                    &scope.region,
                    &scope.object,
                    &scope.name.name,
                    &mut memory.sweep,
                )
                .await;
            }
            let reconciliation = match decide(&scope, memory) {
                Ok(reconciliation) => reconciliation,
                Err(invalid) => return self.report_invalid(&scope, &invalid).await,
            };
            let more = self.act(&mut scope, &reconciliation, memory).await?;
            last = Some(reconciliation);
            if !more {
                break;
            }
        }
        match last {
            Some(reconciliation) => self.report(&scope, &reconciliation, memory).await,
            None => Ok(ReconcileResult::Unfinished),
        }
    }

    /// Writes down what was decided, then carries it out. True: there is more to decide.
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

    fn evict(&self, name: &ObjectName) {
        drop(self.memory.take(name));
        self.unsubscribe(name);
    }

    /// Nothing is read of AWS for it any more.
    fn unsubscribe(&self, name: &ObjectName) {
        if let Some(subscription) = self.subscriptions.unsubscribe(name) {
            self.context.aws.region(&subscription.region).forget(&format!("cluster/{name}"));
        }
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
