//! Whether a machine's instance is lost, or may be.

use crds::conditions::reason;
use model::condition::timestamp;
use model::{FoundInstance, Instance, READ_LAG, Read};

use super::Input;
use crate::{PersistedState, is_gone};

/// Whether Cluster API saw its Node.
pub(super) fn has_node(input: &Input<'_>) -> bool {
    input.machine.status.as_ref().is_some_and(|it| it.node_ref.is_some())
}

/// Whether the Node stopped being healthy after the instances were read: the instance may be gone, and
/// Cluster API waits for that word.
pub(super) fn is_suspect(input: &Input<'_>) -> bool {
    let Some(status) = input.machine.status.as_ref().filter(|it| it.node_ref.is_some()) else { return false };
    let Some(unhealthy) =
        status.conditions.iter().find(|it| it.type_ == "NodeHealthy" && it.status != "True")
    else {
        return false;
    };
    let since = timestamp(&unhealthy.last_transition_time);
    input.snapshot.read_at.get(&Read::Instances).is_none_or(|read| *read < since + READ_LAG)
}

/// Why the machine has to be replaced.
pub(super) fn failure(
    input: &Input<'_>,
    record: &PersistedState,
    name: &str,
    found: Option<&FoundInstance>,
) -> Option<(&'static str, String)> {
    if let Some(found) =
        found.filter(|it| ["shutting-down", "terminated"].contains(&it.status.state.as_str()))
    {
        let message = format!("{}, and is not made again; delete the Machine to replace it", found.stands());
        return Some((reason::INSTANCE_TERMINATED, message));
    }
    let id = record
        .ids
        .get(&Instance::key(name))
        .filter(|id| found.is_none() && is_gone(input.snapshot, record, id))?;
    Some((
        reason::INSTANCE_NOT_FOUND,
        format!("{id} does not exist any more, and is not made again; delete the Machine to replace it"),
    ))
}
