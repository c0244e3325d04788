//! Drives one AWSCluster: read, decide, act, say. What should exist and what is done about it is decided in
//! `plan`; AWS is touched only through `aws`, and the management API only through `management`.

mod pause;
mod read;
mod say;

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
use super::regions::{Regions, Subscription};
use super::wave::Wave;
use crate::context::Context;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;
use crate::system::{now, random};

use read::Seen;

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

impl Clusters {
    pub fn new(context: Context, waker: Trigger) -> Self {
        let regions = Regions::new(context.aws.clone(), waker);
        Self { context, regions, memory: Memory::default() }
    }

    async fn drive(
        &self,
        object: Arc<Cached<AWSCluster>>,
        memory: &mut Remembered,
    ) -> Result<ReconcileResult, Error> {
        let Some(mut seen) = self.read(object, memory).await? else { return Ok(ReconcileResult::Settled) };
        if let Some(original) = &seen.copied_from {
            return self.say_copied(&seen, original).await;
        }
        let mut last = None;
        for _ in 0..WAVES {
            let management = &self.context.management;
            if management
                .get::<AWSCluster>(&seen.object.object_name())
                .is_some_and(|it| management.is_paused(&it))
            {
                return Ok(ReconcileResult::Unfinished);
            }
            if seen.is_swept() {
                gc::look(
                    &self.context.management,
                    &seen.region,
                    &seen.object,
                    &seen.name.name,
                    &mut memory.sweep,
                )
                .await;
            }
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
            None => Ok(ReconcileResult::Unfinished),
        }
    }

    /// Writes down what was decided, then carries it out. True: there is more to decide.
    async fn act(
        &self,
        seen: &mut Seen,
        pass: &Reconciliation,
        memory: &mut Remembered,
    ) -> Result<bool, Error> {
        let Decision { plan, record, interest, .. } = &pass.decision;
        seen.region.interest(&seen.who, interest.clone());
        let seat = Subscription {
            region: seen.object.spec.region.clone(),
            interest: interest.clone(),
            instance: None,
        };
        self.regions.subscribe(&seen.object.object_name(), seat);
        let wave = Wave { who: &seen.who, region: &seen.region, plan, record, due: &pass.due };
        let acted = wave
            .carry_out(
                &self.context.management,
                &mut seen.object,
                &mut memory.refusals,
                PersistedState::cluster_patch,
            )
            .await?;
        if seen.is_swept() && gc::is_held_up(&acted.outcomes) {
            memory.sweep.asked_for(now());
        }
        Ok(acted.more)
    }

    fn forget(&self, name: &ObjectName) {
        drop(self.memory.take(name));
        self.leave(name);
    }

    /// Nothing is read of AWS for it any more.
    fn leave(&self, name: &ObjectName) {
        if let Some(seat) = self.regions.leave(name) {
            self.context.aws.region(&seat.region).forget(&format!("cluster/{name}"));
        }
    }
}

impl Reconciliation {
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
fn decide(seen: &Seen, memory: &mut Remembered) -> Result<Reconciliation, model::Invalid> {
    let record = PersistedState::of_cluster(&seen.object)?;
    let view = seen.region.view().borrow().clone();
    let snapshot = view.snapshot.clone().unwrap_or_default();
    let random = random();
    let (object, now) = (seen.object.clone(), now());
    let mut decision = infra::cluster::decide(&Input {
        cluster: &seen.cluster,
        aws_cluster: &object,
        machines: &seen.machines,
        rules: seen.rules.as_deref(),
        snapshot: &snapshot,
        record: &record,
        now,
        random: &random,
    });
    let problem = view.problem(&decision.interest).cloned();
    let mut due = memory.refusals.due(&mut decision.plan, &mut decision.record, Instant::now());
    if seen.is_swept() {
        gc::hold(&memory.sweep, seen.is_forced(), &mut decision, &mut due);
    }
    Ok(Reconciliation { object, record, snapshot, problem, now, decision, due })
}
