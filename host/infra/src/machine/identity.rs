//! What the instance of a machine has to say of itself, and which one says it. What an AWSMachine merely
//! names is nobody's here.

use crds::cluster_api::{Cluster, Machine};
use crds::{AWSCluster, AWSMachine};
use model::{FoundInstance, Snapshot};

use crate::PersistedState;
use crate::cluster::adopted::adopted_from;
use crate::observe::{Identity, Named};

/// The instance of an AWSMachine, if one was seen that is its own.
pub fn instance_of<'a>(
    cluster: &Cluster,
    aws_cluster: &AWSCluster,
    machine: Option<&Machine>,
    aws_machine: &AWSMachine,
    snapshot: &'a Snapshot,
) -> Option<&'a FoundInstance> {
    let record = PersistedState::of_machine(aws_machine).ok()?;
    let of_cluster = PersistedState::of_cluster(aws_cluster).ok()?;
    let ids = [of_cluster.id, record.id.clone()].into_iter().filter(|id| !id.is_empty()).collect();
    match identity(cluster, aws_cluster, machine, aws_machine, ids).instance(snapshot, &record) {
        Named::Mine(found) => Some(found),
        Named::Nothing | Named::Foreign(..) => None,
    }
}

/// What the instance has to say of itself; `ids` are the random ids that it may carry.
pub(super) fn identity(
    cluster: &Cluster,
    aws_cluster: &AWSCluster,
    machine: Option<&Machine>,
    aws_machine: &AWSMachine,
    ids: Vec<String>,
) -> Identity {
    let namespace = aws_machine.metadata.namespace.as_deref().unwrap_or_default();
    let name = super::name(aws_machine);
    let of_machine = machine.and_then(|machine| machine.metadata.name.as_deref()).unwrap_or(&name);
    let names_in = |namespace: &str| [name.as_str(), of_machine].map(|name| format!("{namespace}/{name}"));
    let former =
        adopted_from(aws_cluster).and_then(|from| from.split_once('/')).map(|(namespace, _)| namespace);
    Identity {
        cluster: crate::cluster::cluster_name(cluster),
        machine_names: names_in(namespace),
        former_names: former.into_iter().flat_map(names_in).collect(),
        ids,
        name,
    }
}
