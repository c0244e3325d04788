//! The reconciliation of what stands for something in AWS, a cluster or a machine: read, then wave by wave
//! decide and act, then report.

use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

use crds::conditions::reason;
use kube::Resource as _;

use super::conditions::{HasConditions, report_not_ready};
use super::reconcile::{Controller, Memory, ReconcileResult, is_ours};
use super::refusals::Refusals;
use super::subscriptions::Subscriptions;
use crate::context::Context;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;

/// The result of reading: what is decided from, or how the reconciliation ends without a decision.
pub type Read<S> = ControlFlow<ReconcileResult, S>;

/// A controller of clusters or machines.
pub trait Infrastructure: Send + Sync + 'static {
    /// The kind's word in logs and metrics.
    const NAME: &'static str;
    /// The kind's word in the names of subscribers of a region.
    const SUBSCRIBER: &'static str;
    /// Waves of calls in one reconciliation; more are only needed when something changes back and forth.
    const WAVES: usize;

    type Object: HasConditions;
    /// What is remembered of an object between two reconciliations.
    type Memory: AsMut<Refusals> + Default + Send + Sync;
    /// Everything that a decision is made of.
    type Scope: Send + Sync;
    /// One decision and what it was made of.
    type Reconciliation: Send + Sync;

    fn parts(&self) -> (&Context, &Subscriptions, &Memory<Self::Memory>);

    /// Reads everything, and sees to it that the object cannot vanish before what is made for it.
    fn read(
        &self,
        object: Arc<Cached<Self::Object>>,
        memory: &mut Self::Memory,
    ) -> impl Future<Output = Result<Read<Self::Scope>, Error>> + Send;

    /// Decides what to do now. The inner error: the spec cannot be carried out.
    fn decide(
        &self,
        scope: &mut Self::Scope,
        memory: &mut Self::Memory,
    ) -> impl Future<Output = Result<Result<Self::Reconciliation, model::Invalid>, Error>> + Send;

    /// Writes down what was decided, then executes it. True: there is more to decide.
    fn act(
        &self,
        scope: &mut Self::Scope,
        reconciliation: &Self::Reconciliation,
        memory: &mut Self::Memory,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Reports how the object stands after the last decision.
    fn report(
        &self,
        scope: &Self::Scope,
        reconciliation: &Self::Reconciliation,
        memory: &mut Self::Memory,
    ) -> impl Future<Output = Result<ReconcileResult, Error>> + Send;

    /// The object that a scope is about.
    fn object(scope: &Self::Scope) -> &Arc<Cached<Self::Object>>;

    /// Reports why the spec cannot be carried out.
    fn report_invalid(
        &self,
        scope: &Self::Scope,
        invalid: &model::Invalid,
    ) -> impl Future<Output = Result<ReconcileResult, Error>> + Send {
        async move {
            let (management, message) = (&self.parts().0.management, invalid.to_string());
            report_not_ready(management, Self::object(scope), reason::INVALID_SPEC, &message).await?;
            Ok(ReconcileResult::Settled)
        }
    }

    /// Drops what is remembered of an object that is gone.
    fn evict(&self, name: &ObjectName) {
        drop(self.parts().2.take(name));
        self.unsubscribe(name);
    }

    /// Nothing is read of AWS for the object any more.
    fn unsubscribe(&self, name: &ObjectName) {
        let (context, subscriptions, _) = self.parts();
        if let Some(subscription) = subscriptions.unsubscribe(name) {
            context.aws.region(&subscription.region).forget(&format!("{}/{name}", Self::SUBSCRIBER));
        }
    }
}

impl<I: Infrastructure> Controller for I {
    const NAME: &'static str = I::NAME;

    fn context(&self) -> &Context {
        self.parts().0
    }

    async fn reconcile(&self, name: &ObjectName) -> Result<ReconcileResult, Error> {
        let (context, _, memories) = self.parts();
        let Some(object) = context.management.get::<I::Object>(name) else {
            self.evict(name);
            return Ok(ReconcileResult::Settled);
        };
        if !is_ours(context, &object) {
            self.unsubscribe(name);
            return Ok(ReconcileResult::Settled);
        }
        let mut memory = memories.take(name);
        memory.as_mut().begin(object.meta().generation);
        let result = drive(self, object, &mut memory).await;
        memory.as_mut().end();
        memories.put(name, memory);
        result
    }
}

async fn drive<I: Infrastructure>(
    controller: &I,
    object: Arc<Cached<I::Object>>,
    memory: &mut I::Memory,
) -> Result<ReconcileResult, Error> {
    let name = object.object_name();
    let management = &controller.parts().0.management;
    let mut scope = match controller.read(object, memory).await? {
        ControlFlow::Continue(scope) => scope,
        ControlFlow::Break(result) => return Ok(result),
    };
    let mut last = None;
    for _ in 0..I::WAVES {
        if management.get::<I::Object>(&name).is_some_and(|it| management.is_paused(&it)) {
            return Ok(ReconcileResult::Unfinished);
        }
        let reconciliation = match controller.decide(&mut scope, memory).await? {
            Ok(reconciliation) => reconciliation,
            Err(invalid) => return controller.report_invalid(&scope, &invalid).await,
        };
        let more = controller.act(&mut scope, &reconciliation, memory).await?;
        last = Some(reconciliation);
        if !more {
            break;
        }
    }
    match last {
        Some(reconciliation) => controller.report(&scope, &reconciliation, memory).await,
        None => Ok(ReconcileResult::Unfinished),
    }
}
