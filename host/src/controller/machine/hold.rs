//! Reads what decides whether a machine is held while its cluster is deleted: nodes keep running pods until
//! add-ons are removed. The rule itself is in `infra`.

use crds::cluster_api::{Cluster, ContractVersionedObjectReference, KubeadmControlPlane};
use crds::{AWSMachine, ClusterPlugin, names};
use infra::machine::{Hold, hold};
use kube::ResourceExt;

use crate::management::{Cached, Error, Management};
use crate::object_name::ObjectName;

/// As far as the caches know. `Some`: why nothing of the machine may be removed.
pub fn cached(
    management: &Management,
    name: &ObjectName,
    cluster: &Cluster,
    machine: &Cached<AWSMachine>,
) -> Option<String> {
    let plugins = management.of_cluster::<ClusterPlugin>(name);
    let reference = cluster.spec.control_plane_ref.as_ref();
    let control_plane_deleting = match reference.filter(|it| is_kubeadm(it)) {
        Some(it) => {
            management.get::<KubeadmControlPlane>(&name.sibling(&it.name)).is_none_or(|it| it.is_deleting())
        }
        // Another kind is not cached: the API is asked before anything is removed.
        None => reference.is_none(),
    };
    hold(&Hold {
        cluster_deleting: cluster.metadata.deletion_timestamp.is_some(),
        plugin_finalizer: plugins.iter().any(|it| it.has_finalizer(names::PLUGIN_FINALIZER)),
        control_plane: is_control_plane(machine),
        control_plane_deleting,
        forced: is_forced(cluster),
    })
}

/// As the API says now: asked before anything is removed.
///
/// # Errors
/// The API did not answer: nothing may be removed then.
pub async fn live(
    management: &Management,
    name: &ObjectName,
    machine: &Cached<AWSMachine>,
) -> Result<Option<String>, Error> {
    let Some(cluster) = management.live::<Cluster>(name).await? else { return Ok(None) };
    let plugins = management.live_list::<ClusterPlugin>(&name.namespace).await?;
    let of_cluster = |it: &&Cached<ClusterPlugin>| it.spec.cluster_name == name.name;
    let it = Hold {
        cluster_deleting: cluster.is_deleting(),
        plugin_finalizer: plugins
            .iter()
            .filter(of_cluster)
            .any(|it| it.has_finalizer(names::PLUGIN_FINALIZER)),
        control_plane: is_control_plane(machine),
        control_plane_deleting: true,
        forced: is_forced(&cluster),
    };
    match &cluster.spec.control_plane_ref {
        Some(reference) if it.depends_on_control_plane() => {
            match control_plane_is_deleting(management, name, reference).await? {
                Ok(control_plane_deleting) => Ok(hold(&Hold { control_plane_deleting, ..it })),
                Err(forbidden) => Ok(Some(forbidden)),
            }
        }
        _ => Ok(hold(&it)),
    }
}

/// Whether the control plane goes too. The inner error: this operator may not read it, which somebody has to
/// change.
async fn control_plane_is_deleting(
    management: &Management,
    name: &ObjectName,
    reference: &ContractVersionedObjectReference,
) -> Result<Result<bool, String>, Error> {
    let name = name.sibling(&reference.name);
    if is_kubeadm(reference) {
        return Ok(Ok(management
            .live::<KubeadmControlPlane>(&name)
            .await?
            .is_none_or(|it| it.is_deleting())));
    }
    match management.live_dynamic(&reference.api_group, &reference.kind, &name).await {
        Ok(object) => Ok(Ok(object.is_none_or(|it| it.metadata.deletion_timestamp.is_some()))),
        Err(error) if error.is_forbidden() => Ok(Err(unreadable(reference))),
        Err(error) => Err(error),
    }
}

fn unreadable(reference: &ContractVersionedObjectReference) -> String {
    let ContractVersionedObjectReference { api_group, kind, name } = reference;
    format!(
        "kept, because this operator may not read {kind} {name}, which says whether the control \
         plane goes too: add a ClusterRole with the label {}: \"true\" that allows to get {kind} of \
         {api_group}",
        names::AGGREGATE_LABEL
    )
}

fn is_kubeadm(reference: &ContractVersionedObjectReference) -> bool {
    reference.kind == "KubeadmControlPlane" && reference.api_group == "controlplane.cluster.x-k8s.io"
}

fn is_control_plane(machine: &Cached<AWSMachine>) -> bool {
    machine.labels().contains_key(names::CONTROL_PLANE_LABEL)
}

fn is_forced(cluster: &Cluster) -> bool {
    cluster.annotations().contains_key(names::FORCE_DELETE_ANNOTATION)
}

#[cfg(test)]
mod tests;
