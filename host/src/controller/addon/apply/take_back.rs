//! Takes back what somebody took of an object of ours since it was last applied.

use addons::{Change, Compared, ObjectRef, Writers, compare, drift, without};
use serde_json::Value;

use crate::controller::addon::options::ApplyOptions;
use crate::controller::addon::progress::StepProgress;
use crate::workload::{WorkloadCluster, WorkloadError};

/// Applies an object of ours again that is in conflict because somebody took fields since it was last
/// applied; what an autoscaler took is left to it. `false`: the conflict is about what was never ours.
pub(super) async fn take_back(
    cluster: &WorkloadCluster,
    object: &Value,
    options: &ApplyOptions<'_>,
) -> Result<bool, StepProgress> {
    let manager = options.field_manager;
    let Some(reference) = ObjectRef::of(object) else { return Ok(false) };
    let Some(mark) = options.objects.to_take_back(&reference) else { return Ok(false) };
    let Some(observed) = cluster.writers(&reference).await? else { return Ok(false) };
    if compare(mark, Some(&observed), manager) != Compared::Different {
        return Ok(false);
    }
    let would_be = dry_run(cluster, object, manager).await?;
    let drift = drift(mark, Some(&observed), would_be.as_ref(), manager);
    let force = drift.change != Change::Scaled;
    let writers = match cluster.apply(&without(object, &drift.left), manager, force).await {
        Err(WorkloadError::Conflict { .. }) => return Ok(false),
        other => other?,
    };
    options.objects.insert(object, &writers, manager);
    Ok(true)
}

/// Who would have what if the object were applied; `None` when the API server does not say, as where a
/// webhook takes no dry runs.
pub async fn dry_run(
    cluster: &WorkloadCluster,
    object: &Value,
    manager: &str,
) -> Result<Option<Writers>, StepProgress> {
    match cluster.would_apply(object, manager).await {
        Ok(would_be) => Ok(Some(would_be)),
        Err(error @ (WorkloadError::Unreachable(_) | WorkloadError::NotAsked(_))) => Err(error.into()),
        Err(_) => Ok(None),
    }
}
