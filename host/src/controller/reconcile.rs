//! What the reconciliations of all kinds have in common: how they end, what is remembered between two of
//! them, and whether an object is to be reconciled at all.

use std::collections::HashMap;
use std::error::Error as _;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crds::names;
use kube::ResourceExt;
use tokio::time::Instant;

use super::queue::Requeue;
use super::refusals::Refusals;
use crate::context::Context;
use crate::management::{Cached, Error, Watched};
use crate::object_name::ObjectName;

/// How soon to try again after somebody else was first to change an object.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);
/// How soon to reconcile again what waits, if nothing triggers it before. It costs no call.
const WHILE_WAITING: Duration = Duration::from_secs(30);

/// A controller of one kind of object.
pub trait Controller: Send + Sync + 'static {
    /// The kind's word in logs and metrics.
    const NAME: &'static str;
    /// How long one reconciliation may take; what takes longer is given up and tried again.
    const TIMEOUT: Duration = Duration::MAX;

    fn context(&self) -> &Context;

    /// Reconciles one object once.
    fn reconcile(&self, name: &ObjectName) -> impl Future<Output = Result<ReconcileResult, Error>> + Send;
}

/// How a reconciliation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// Everything is as it should be, or somebody else manages the object.
    Settled,
    /// The same, and it is reconciled again when so much time has passed.
    SettledFor(Duration),
    /// Something is awaited that triggers nothing; the object is reconciled again after so much time.
    RequeueAfter(Duration),
    /// Something is awaited or refused; `until`: when a refused call may be tried again.
    Waiting { until: Option<Instant> },
    /// There is more to do at once.
    Unfinished,
}

/// Reconciles one object; returns when to do so again.
pub async fn run<C: Controller>(controller: Arc<C>, name: ObjectName) -> Requeue {
    let begun = Instant::now();
    let Ok(result) = tokio::time::timeout(C::TIMEOUT, controller.reconcile(&name)).await else {
        let seconds = C::TIMEOUT.as_secs();
        tracing::warn!(controller = C::NAME, object = %name, "not finished in {seconds} s, trying again");
        controller.context().metrics.reconciled(C::NAME, "failed", begun.elapsed());
        return Requeue::Failed;
    };
    let (again, result) = match result {
        Ok(ReconcileResult::SettledFor(delay)) => (Requeue::After(delay), "settled"),
        Ok(ReconcileResult::RequeueAfter(delay)) => (Requeue::After(delay), "waiting"),
        Ok(ReconcileResult::Settled) => (Requeue::OnChange, "settled"),
        Ok(ReconcileResult::Waiting { until }) => (Requeue::After(delay(until)), "waiting"),
        Ok(ReconcileResult::Unfinished) => (Requeue::After(Duration::from_secs(1)), "unfinished"),
        Err(error) if error.is_conflict() || error.is_not_found() => {
            (Requeue::After(AFTER_CONFLICT), "conflict")
        }
        Err(error) => {
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            let controller = C::NAME;
            tracing::warn!(controller, object = %name, %error, cause, "cannot reconcile, trying again");
            (Requeue::Failed, "failed")
        }
    };
    controller.context().metrics.reconciled(C::NAME, result, begun.elapsed());
    again
}

fn delay(until: Option<Instant>) -> Duration {
    let delay = until.map_or(WHILE_WAITING, |it| it.saturating_duration_since(Instant::now()));
    delay.clamp(AFTER_CONFLICT, WHILE_WAITING)
}

/// What is remembered of each object between two reconciliations, of which only one runs at a time.
pub struct Memory<T>(Mutex<HashMap<ObjectName, T>>);

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Default> Memory<T> {
    /// Takes what is remembered out; [`put`](Self::put) brings it back.
    pub fn take(&self, name: &ObjectName) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name).unwrap_or_default()
    }

    pub fn put(&self, name: &ObjectName, memory: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), memory);
    }
}

/// Whether this process manages the object: it carries the label asked for, nobody else manages it, and
/// it is not being deleted here only because it lives on in another management cluster.
pub fn is_ours<K: Watched>(context: &Context, object: &Cached<K>) -> bool {
    let annotations = object.annotations();
    let elsewhere = [names::MANAGED_BY_ANNOTATION, names::DELETE_FOR_MOVE_ANNOTATION];
    is_watched(context, object) && !elsewhere.iter().any(|it| annotations.contains_key(*it))
}

/// Whether the object carries the label that `--watch-filter` asks for.
pub fn is_watched<K: Watched>(context: &Context, object: &Cached<K>) -> bool {
    let filter = context.watch_filter.as_deref();
    filter.is_none_or(|it| object.labels().get(names::WATCH_FILTER_LABEL).is_some_and(|label| label == it))
}

/// How a reconciliation ended, by what is left to do.
pub fn ended(settled: bool, refusals: &Refusals) -> ReconcileResult {
    match (settled, refusals.next()) {
        (true, None) => ReconcileResult::Settled,
        (_, until) => ReconcileResult::Waiting { until },
    }
}
