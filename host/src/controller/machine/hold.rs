//! Reads what decides whether a machine is held while its cluster is deleted: nodes keep running pods until add-ons are removed.
//! The rule itself is in `plan`.

use crds::cluster_api::{Cluster, ContractVersionedObjectReference, KubeadmControlPlane};
use crds::{AWSMachine, ClusterPlugin, names};
use kube::ResourceExt;
use kube::core::{ApiResource, GroupVersionKind};
use plan::machine::{Hold, hold};

use crate::context::ObjectName;
use crate::management::{Error, Known, Management};

/// As far as the caches know. `Some`: why nothing of the machine may be removed.
pub fn cached(management: &Management, name: &ObjectName, cluster: &Cluster, machine: &Known<AWSMachine>) -> Option<String> {
    let plugins = management.of_cluster::<ClusterPlugin>(name);
    let control_plane =
        cluster.spec.control_plane_ref.as_ref().and_then(|it| management.get::<KubeadmControlPlane>(&name.sibling(&it.name)));
    hold(&Hold {
        cluster_deleting: cluster.metadata.deletion_timestamp.is_some(),
        plugin_finalizer: plugins.iter().any(|it| it.has_finalizer(names::PLUGIN_FINALIZER)),
        control_plane: is_control_plane(machine),
        control_plane_deleting: control_plane.is_none_or(|it| it.is_deleting()),
        forced: is_forced(cluster),
    })
}

/// As the API says now: asked before anything is removed.
///
/// # Errors
/// The API did not answer: nothing may be removed then.
pub async fn live(management: &Management, name: &ObjectName, machine: &Known<AWSMachine>) -> Result<Option<String>, Error> {
    let Some(cluster) = management.live::<Cluster>(name).await? else { return Ok(None) };
    let plugins = management.live_list::<ClusterPlugin>(&name.namespace).await?;
    let of_cluster = |it: &&Known<ClusterPlugin>| it.spec.cluster_name == name.name;
    let control_plane_deleting = match (&cluster.spec.control_plane_ref, is_control_plane(machine)) {
        (Some(reference), true) => control_plane_is_deleting(management, name, reference).await?,
        _ => true,
    };
    Ok(hold(&Hold {
        cluster_deleting: cluster.is_deleting(),
        plugin_finalizer: plugins.iter().filter(of_cluster).any(|it| it.has_finalizer(names::PLUGIN_FINALIZER)),
        control_plane: is_control_plane(machine),
        control_plane_deleting,
        forced: is_forced(&cluster),
    }))
}

async fn control_plane_is_deleting(
    management: &Management,
    name: &ObjectName,
    reference: &ContractVersionedObjectReference,
) -> Result<bool, Error> {
    let name = name.sibling(&reference.name);
    if reference.kind == "KubeadmControlPlane" {
        return Ok(management.live::<KubeadmControlPlane>(&name).await?.is_none_or(|it| it.is_deleting()));
    }
    // Another kind of control plane: by the version of the contract that all of them follow.
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(&reference.api_group, "v1beta2", &reference.kind));
    let object = management.live_dynamic(&resource, &name).await?;
    Ok(object.is_none_or(|it| it.metadata.deletion_timestamp.is_some()))
}

fn is_control_plane(machine: &Known<AWSMachine>) -> bool {
    machine.labels().contains_key(names::CONTROL_PLANE_LABEL)
}

fn is_forced(cluster: &Cluster) -> bool {
    cluster.annotations().contains_key(names::FORCE_DELETE_ANNOTATION)
}
