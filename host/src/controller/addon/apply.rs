//! Applies one object; one that cannot be changed in place is deleted and made anew where `plan::addon` says that this is safe, and fields that
//! others hold are taken over where it says so. It deletes and forces for no other reason.

use plan::addon::{self, ObjectRef, Recreate, recreate};
use plan::grant;
use serde_json::Value;

use super::carry_out::{Carried, Manner, carried, waiting};
use crate::workload::{Dependents, WorkloadCluster, WorkloadError};

/// Applies `object`, once more if it had to be deleted before.
pub(super) async fn apply(cluster: &WorkloadCluster, object: &Value, manner: &Manner<'_>) -> Result<(), Carried> {
    match cluster.apply(object, manner.field_manager, manner.force).await {
        Ok(()) => Ok(()),
        Err(WorkloadError::Conflict { object: reference, message, causes }) => {
            let managers = grant::taken_over(manner.taken_over, &reference);
            match addon::may_take_over(&causes, &managers) {
                true => take_over(cluster, object, &reference, &managers, manner).await,
                false => Err(carried(WorkloadError::Conflict { object: reference, message, causes })),
            }
        }
        Err(WorkloadError::Refused { code: 422, object: reference, message, fields }) => {
            let refused = WorkloadError::Refused { code: 422, object: reference.clone(), message, fields: fields.clone() };
            let Some(live) = cluster.get(&reference).await.map_err(carried)? else { return Err(carried(refused)) };
            if live.pointer("/metadata/deletionTimestamp").is_some() {
                return Err(waiting(&format!("{reference} is being deleted, and is made anew then")));
            }
            let decided = recreate(object, &live, manner.field_manager, &fields);
            // It may be large, and what follows takes its time.
            let uid = live.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
            drop(live);
            match decided {
                Recreate::No => Err(carried(refused)),
                Recreate::Refused(why) => Err(Carried::Refused(crds::conditions::reason::IMMUTABLE, why)),
                Recreate::Safe => anew(cluster, object, &reference, uid.as_deref(), manner).await,
            }
        }
        Err(error) => Err(carried(error)),
    }
}

/// Applies an object and takes the fields in conflict, if they are held by these managers alone. The version is pinned before that is looked at,
/// so that nobody comes in between whose fields are not to be taken.
async fn take_over(
    cluster: &WorkloadCluster,
    object: &Value,
    reference: &ObjectRef,
    managers: &[&str],
    manner: &Manner<'_>,
) -> Result<(), Carried> {
    let being_changed = || waiting(&format!("{reference} is being changed by somebody else"));
    let live = cluster.get_only(reference, &["/metadata/resourceVersion"]).await.map_err(carried)?;
    let version = live.as_ref().and_then(|it| it.pointer("/metadata/resourceVersion")?.as_str()).ok_or_else(being_changed)?;
    let mut pinned = object.clone();
    pinned["metadata"]["resourceVersion"] = version.into();
    match cluster.apply(&pinned, manner.field_manager, false).await {
        Err(WorkloadError::Conflict { causes, .. }) if addon::may_take_over(&causes, managers) => (),
        // Nobody holds them any more, or somebody else does.
        other => return other.map_err(carried),
    }
    tracing::info!(object = %reference, managers = managers.join(", "), "taking over fields that were filled in");
    match cluster.apply(&pinned, manner.field_manager, true).await {
        Err(WorkloadError::Conflict { .. }) => Err(being_changed()),
        other => other.map_err(carried),
    }
}

async fn anew(
    cluster: &WorkloadCluster,
    object: &Value,
    reference: &ObjectRef,
    uid: Option<&str>,
    manner: &Manner<'_>,
) -> Result<(), Carried> {
    // Pods of a workload go with it: those of the old one must not count for the new one.
    let dependents = match reference.kind.as_str() {
        "Deployment" | "DaemonSet" | "Job" => Dependents::First,
        _ => Dependents::Later,
    };
    let being_deleted = || waiting(&format!("{reference} is being deleted, and is made anew then"));
    tracing::info!(object = %reference, "cannot be changed in place: deleting it to make it anew");
    match cluster.delete_exactly(reference, uid, dependents).await {
        // It was made anew by somebody else in between: the next look sees what it is now.
        Err(WorkloadError::Conflict { .. }) => return Err(being_deleted()),
        other => drop(other.map_err(carried)?),
    }
    // Without dependents and finalizers it is gone by now, whatever the answer looked like.
    match cluster.get_only(reference, &["/metadata/uid"]).await.map_err(carried)? {
        Some(_) => Err(being_deleted()),
        None => cluster.apply(object, manner.field_manager, manner.force).await.map_err(carried),
    }
}
