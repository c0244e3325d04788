//! Applies one object; one that cannot be changed in place is deleted and made anew where `plan::addon` says that this is safe. It deletes
//! for no other reason.

use plan::addon::{ObjectRef, Recreate, recreate};
use serde_json::Value;

use super::carry_out::{Carried, Manner, carried, waiting};
use super::drift::taken_back;
use crate::workload::{Dependents, WorkloadCluster, WorkloadError};

/// Applies `object`, once more if it had to be deleted before.
pub(super) async fn apply(cluster: &WorkloadCluster, object: &Value, manner: &Manner<'_>) -> Result<(), Carried> {
    match cluster.apply(object, manner.field_manager, manner.force).await {
        Ok(writers) => {
            manner.ledger.applied(object, &writers, manner.field_manager);
            Ok(())
        }
        Err(WorkloadError::Refused { code: 422, object: reference, message, fields }) => {
            let refused = WorkloadError::Refused { code: 422, object: reference.clone(), message, fields: fields.clone() };
            let Some(live) = cluster.get(&reference).await.map_err(carried)? else { return Err(carried(refused)) };
            if live.pointer("/metadata/deletionTimestamp").is_some() {
                return Err(waiting(&format!("{reference} is being deleted, and is made anew then")));
            }
            let decided = recreate(object, &live, manner.field_manager, &fields, manner.is_repair);
            // It may be large, and what follows takes its time.
            let uid = live.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
            drop(live);
            match decided {
                Recreate::No => Err(carried(refused)),
                Recreate::Refused(why) => Err(Carried::Refused(crds::conditions::reason::IMMUTABLE, why)),
                Recreate::Safe => anew(cluster, object, &reference, uid.as_deref(), manner).await,
            }
        }
        Err(error @ WorkloadError::Conflict { .. }) => match taken_back(cluster, object, manner).await? {
            true => Ok(()),
            false => Err(carried(error)),
        },
        Err(error) => Err(carried(error)),
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
        None => {
            let writers = cluster.apply(object, manner.field_manager, manner.force).await.map_err(carried)?;
            manner.ledger.applied(object, &writers, manner.field_manager);
            Ok(())
        }
    }
}
