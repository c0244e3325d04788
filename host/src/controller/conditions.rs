//! The conditions of an AWSCluster or AWSMachine for which nothing is decided: it is paused, or nothing can
//! be done for it yet.

use std::sync::Arc;

use crds::{AWSCluster, AWSMachine};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::object::HasStatus;
use serde::Serialize;

use crate::management::{Cached, Error, Management, Watched};
use crate::system::now;

/// A kind whose status has conditions.
pub trait HasConditions: Watched + HasStatus<Status: Clone + Default + Serialize + Send + Sync> {
    fn conditions(status: &mut Self::Status) -> &mut Vec<Condition>;
}

impl HasConditions for AWSCluster {
    fn conditions(status: &mut Self::Status) -> &mut Vec<Condition> {
        &mut status.conditions
    }
}

impl HasConditions for AWSMachine {
    fn conditions(status: &mut Self::Status) -> &mut Vec<Condition> {
        &mut status.conditions
    }
}

/// Reports that an object is paused.
///
/// # Errors
/// The API refused or did not answer.
pub async fn report_paused<K: HasConditions>(
    management: &Management,
    object: &Arc<Cached<K>>,
) -> Result<(), Error> {
    patch(management, object, |previous| {
        infra::status::paused(previous, true, now(), object.meta().generation)
    })
    .await
}

/// Reports why nothing can be done for an object yet.
///
/// # Errors
/// The API refused or did not answer.
pub async fn report_not_ready<K: HasConditions>(
    management: &Management,
    object: &Arc<Cached<K>>,
    reason: &'static str,
    message: &str,
) -> Result<(), Error> {
    patch(management, object, |previous| {
        infra::status::not_ready(previous, reason, message, now(), object.meta().generation)
    })
    .await
}

async fn patch<K: HasConditions>(
    management: &Management,
    object: &Arc<Cached<K>>,
    merged: impl FnOnce(&[Condition]) -> Vec<Condition>,
) -> Result<(), Error> {
    let mut status = object.status().cloned().unwrap_or_default();
    let conditions = K::conditions(&mut status);
    *conditions = merged(conditions);
    management.patch_status(object, &status).await.map(drop)
}
