//! What is done for an object that is paused: nothing, but that it can be moved. `clusterctl move` waits as
//! long as something was begun whose outcome nobody knows; reads alone tell it. Nothing is made, changed or
//! removed, and nothing of what is written down is given up.

use crds::names::BLOCK_MOVE_ANNOTATION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use crate::persisted_state::{BLOCKED, patch};
use crate::{cluster, machine};
use model::{Interest, Timestamp};

/// What has to be read of a paused AWSCluster before the outcome of each attempt is known; `None`: all are.
/// `stopped`: since when it is known to be paused.
pub fn of_cluster(input: &cluster::Input<'_>, stopped: Timestamp) -> Option<Interest> {
    if input.record.intents.is_empty() { None } else { cluster::open_outcomes(input, stopped) }
}

/// Likewise of a paused AWSMachine.
pub fn of_machine(input: &machine::Input<'_>, stopped: Timestamp) -> Option<Interest> {
    if input.record.intents.is_empty() { None } else { machine::open_outcomes(input, stopped) }
}

/// Whether this operator keeps an object from being moved. What somebody else wrote there is his.
pub fn blocks_move(metadata: &ObjectMeta) -> bool {
    metadata.annotations.as_ref().and_then(|it| it.get(BLOCK_MOVE_ANNOTATION)).is_some_and(|it| it == BLOCKED)
}

/// The merge patch that lets an object be moved: the only thing that is written on one that is paused.
pub fn unblock_move(metadata: &ObjectMeta) -> Option<Value> {
    if !blocks_move(metadata) {
        return None;
    }
    let current = metadata.annotations.clone().unwrap_or_default();
    let desired = [(BLOCK_MOVE_ANNOTATION, None)].into();
    patch(&current, desired, Map::new(), metadata.resource_version.as_deref())
}
