//! Reads from a workload cluster what decides whether an add-on may leave: what has load balancers, and what
//! uses volumes. It is asked only when something is to be removed, and decides nothing.

use addons::{ExposureSeen, StorageSeen, claims_to_delete};
use crds::cluster_plugin::Volumes;
use serde_json::Value;

use crate::workload::{Lists, WorkloadError};

const STORAGE: &str = "storage.k8s.io/v1";
const NETWORKING: &str = "networking.k8s.io/v1";
const GATEWAY: &str = "gateway.networking.k8s.io/v1";
/// Which object it is, and whether it is about to go.
const NAMED: [&str; 3] = ["/metadata/namespace", "/metadata/name", "/metadata/deletionTimestamp"];

/// What of objects of a kind decides; the rest is not even read.
fn parts<'a>(more: &[&'a str]) -> Vec<&'a str> {
    NAMED.iter().chain(more).copied().collect()
}

/// What has, or may get, a load balancer.
pub(super) async fn exposure(lists: &mut Lists<'_>) -> Result<ExposureSeen, WorkloadError> {
    let finalizers = "/metadata/finalizers";
    let gateways = lists.all(GATEWAY, "Gateway", &parts(&[finalizers, "/spec/gatewayClassName"])).await?;
    let of_ingresses =
        parts(&[finalizers, "/metadata/annotations/kubernetes.io~1ingress.class", "/spec/ingressClassName"]);
    let ingresses = lists.all(NETWORKING, "Ingress", &of_ingresses).await?;
    let services =
        lists.all("v1", "Service", &parts(&[finalizers, "/spec/type", "/spec/loadBalancerClass"])).await?;
    let target_group_bindings = lists.all("elbv2.k8s.aws/v1beta1", "TargetGroupBinding", &NAMED).await?;
    // Classes only say whose the others are.
    let gateway_classes = match gateways.is_empty() {
        true => Vec::new(),
        false => lists.all(GATEWAY, "GatewayClass", &parts(&["/spec/controllerName"])).await?,
    };
    let ingress_classes = match ingresses.is_empty() {
        true => Vec::new(),
        false => lists.all(NETWORKING, "IngressClass", &parts(&["/spec/controller"])).await?,
    };
    Ok(ExposureSeen {
        gateways,
        gateway_classes,
        ingresses,
        ingress_classes,
        services,
        target_group_bindings,
    })
}

/// What uses a storage driver.
pub(super) async fn storage(lists: &mut Lists<'_>) -> Result<StorageSeen, WorkloadError> {
    let volumes = volumes_alone(lists).await?;
    let of_attachments = parts(&["/spec/attacher", "/spec/source/persistentVolumeName"]);
    let attachments = lists.all(STORAGE, "VolumeAttachment", &of_attachments).await?;
    let (claims, classes) = (claims(lists).await?, classes(lists).await?);
    Ok(StorageSeen { volumes, attachments, claims, classes, ..StorageSeen::default() })
}

/// What decides about the volumes of a cluster that is being deleted: claims, and who holds them, only where
/// they are to go.
pub(super) async fn volumes(lists: &mut Lists<'_>, policy: Volumes) -> Result<StorageSeen, WorkloadError> {
    let volumes = volumes_alone(lists).await?;
    let mut seen = StorageSeen { volumes, ..StorageSeen::default() };
    if policy == Volumes::Retain {
        return Ok(seen);
    }
    (seen.claims, seen.classes) = (claims(lists).await?, classes(lists).await?);
    if !claims_to_delete(policy, &seen).is_empty() {
        let owner = "/metadata/ownerReferences";
        seen.pods = lists.all("v1", "Pod", &parts(&[owner, "/spec/volumes", "/status/phase"])).await?;
        seen.replica_sets = lists.all("apps/v1", "ReplicaSet", &parts(&[owner])).await?;
    }
    Ok(seen)
}

async fn volumes_alone(lists: &mut Lists<'_>) -> Result<Vec<Value>, WorkloadError> {
    let drivers = ["/spec/csi/driver", "/spec/csi/volumeHandle", "/spec/awsElasticBlockStore/volumeID"];
    let rest = ["/spec/persistentVolumeReclaimPolicy", "/spec/claimRef/name"];
    lists.all("v1", "PersistentVolume", &parts(&[drivers.as_slice(), &rest].concat())).await
}

async fn claims(lists: &mut Lists<'_>) -> Result<Vec<Value>, WorkloadError> {
    let provisioner = "/metadata/annotations/volume.kubernetes.io~1storage-provisioner";
    let of_claims = parts(&[provisioner, "/spec/volumeName", "/spec/storageClassName", "/status/phase"]);
    lists.all("v1", "PersistentVolumeClaim", &of_claims).await
}

async fn classes(lists: &mut Lists<'_>) -> Result<Vec<Value>, WorkloadError> {
    lists.all(STORAGE, "StorageClass", &parts(&["/provisioner"])).await
}
