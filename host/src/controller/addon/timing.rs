//! How often add-ons are reconciled, and how long that may take.

use std::time::Duration;

use addons::{ClusterState, Progress};
use crds::cluster_plugin::PluginPhase;
use crds::conditions::reason;
use tokio::time::Instant;

use crate::controller::reconcile::ReconcileResult;

/// How soon to reconcile again while a workload cluster is awaited: its API is not watched.
pub const SOON: Duration = Duration::from_secs(2);
/// How soon when nothing has changed for a while.
const PATIENT: Duration = Duration::from_secs(10);
/// How often to check whether what is installed still works.
pub const SETTLED: Duration = Duration::from_secs(600);
/// How soon when somebody has to act.
pub const BLOCKED: Duration = Duration::from_secs(60);
/// How long one reconciliation may take. Steps may be repeated, so that what was cut off is done again.
pub const TIMEOUT: Duration = Duration::from_secs(300);
/// After how long a reconciliation begins no further request: what was done by then is remembered and
/// reported.
pub const BUDGET: Duration = Duration::from_secs(120);

/// How soon to reconcile what is awaited when nothing has changed for so long.
pub fn patience(unchanged: Duration) -> Duration {
    (unchanged / 4).clamp(SOON, PATIENT)
}

/// When a cluster's add-ons are reconciled next: by how they fare, and no later than `next`.
pub fn requeue(
    progress: &[Progress],
    state: &ClusterState,
    unchanged: Duration,
    next: Option<Instant>,
) -> ReconcileResult {
    let result = by_progress(progress, state, patience(unchanged));
    let Some(next) = next.map(|next| next.saturating_duration_since(Instant::now()).max(SOON)) else {
        return result;
    };
    match result {
        ReconcileResult::RequeueAfter(delay) => ReconcileResult::RequeueAfter(delay.min(next)),
        ReconcileResult::SettledFor(delay) => ReconcileResult::SettledFor(delay.min(next)),
        other => other,
    }
}

fn by_progress(progress: &[Progress], state: &ClusterState, patience: Duration) -> ReconcileResult {
    if progress.iter().all(|it| it.phase == PluginPhase::Running) {
        return ReconcileResult::SettledFor(SETTLED);
    }
    let is_moving = |it: &Progress| {
        !matches!(it.phase, PluginPhase::Running | PluginPhase::Failed)
            && it.reason != reason::APPROVAL_REQUIRED
    };
    match (state.initialized, progress.iter().any(is_moving)) {
        (true, true) => ReconcileResult::RequeueAfter(patience),
        (_, false) => ReconcileResult::RequeueAfter(BLOCKED),
        (false, true) => ReconcileResult::Settled,
    }
}
