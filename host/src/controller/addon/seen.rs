//! Reads from a workload cluster what decides whether an add-on may leave: what has load balancers, and what uses volumes. It is asked only
//! when something is to be removed, and decides nothing.

use crds::cluster_plugin::Volumes;
use futures::try_join;
use plan::addon::{ExposureSeen, StorageSeen, claims_to_delete};

use crate::workload::{WorkloadCluster, WorkloadError};

const STORAGE: &str = "storage.k8s.io/v1";
const NETWORKING: &str = "networking.k8s.io/v1";
const GATEWAY: &str = "gateway.networking.k8s.io/v1";
/// Whose an object is, and whether it is about to go.
const OWNED: [&str; 4] = ["/metadata/namespace", "/metadata/name", "/metadata/ownerReferences", "/metadata/deletionTimestamp"];
/// What of a Pod says which volumes it holds, and for how long.
const POD: [&str; 6] = [OWNED[0], OWNED[1], OWNED[2], OWNED[3], "/spec/volumes", "/status/phase"];

/// What has, or may get, a load balancer.
pub(super) async fn exposure(cluster: &WorkloadCluster) -> Result<ExposureSeen, WorkloadError> {
    let (gateways, ingresses, services, target_group_bindings) = try_join!(
        cluster.list(GATEWAY, "Gateway"),
        cluster.list(NETWORKING, "Ingress"),
        cluster.list("v1", "Service"),
        cluster.list("elbv2.k8s.aws/v1beta1", "TargetGroupBinding"),
    )?;
    // Classes only say whose the others are.
    let gateway_classes = match gateways.is_empty() {
        true => Vec::new(),
        false => cluster.list(GATEWAY, "GatewayClass").await?,
    };
    let ingress_classes = match ingresses.is_empty() {
        true => Vec::new(),
        false => cluster.list(NETWORKING, "IngressClass").await?,
    };
    Ok(ExposureSeen { gateways, gateway_classes, ingresses, ingress_classes, services, target_group_bindings })
}

/// What uses a storage driver.
pub(super) async fn storage(cluster: &WorkloadCluster) -> Result<StorageSeen, WorkloadError> {
    let (volumes, attachments, claims, classes) = try_join!(
        cluster.list("v1", "PersistentVolume"),
        cluster.list(STORAGE, "VolumeAttachment"),
        cluster.list("v1", "PersistentVolumeClaim"),
        cluster.list(STORAGE, "StorageClass"),
    )?;
    Ok(StorageSeen { volumes, attachments, claims, classes, ..StorageSeen::default() })
}

/// What decides about the volumes of a cluster that is being deleted: claims, and who holds them, only where they are to go.
pub(super) async fn volumes(cluster: &WorkloadCluster, policy: Volumes) -> Result<StorageSeen, WorkloadError> {
    let volumes = cluster.list("v1", "PersistentVolume").await?;
    let mut seen = StorageSeen { volumes, ..StorageSeen::default() };
    if policy == Volumes::Retain {
        return Ok(seen);
    }
    (seen.claims, seen.classes) = try_join!(cluster.list("v1", "PersistentVolumeClaim"), cluster.list(STORAGE, "StorageClass"))?;
    if !claims_to_delete(policy, &seen).is_empty() {
        (seen.pods, seen.replica_sets) =
            try_join!(cluster.list_only("v1", "Pod", &POD), cluster.list_only("apps/v1", "ReplicaSet", &OWNED))?;
    }
    Ok(seen)
}
