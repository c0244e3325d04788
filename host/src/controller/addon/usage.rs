//! Reads who uses add-ons in a workload cluster: what has load balancers, and what uses volumes. This is read
//! only when something is to be removed.

use addons::{
    Inventory, ObservedExposure, ObservedStorage, Slot, claims_to_delete, used_by_classes,
    used_by_ingress_controller, used_by_storage,
};
use crds::cluster_plugin::Volumes;
use serde_json::Value;

use crate::workload::{Lists, WorkloadCluster, WorkloadError};

const STORAGE: &str = "storage.k8s.io/v1";
const NETWORKING: &str = "networking.k8s.io/v1";
const GATEWAY: &str = "gateway.networking.k8s.io/v1";
/// Which object it is, and whether it is about to go.
const NAMED: [&str; 3] = ["/metadata/namespace", "/metadata/name", "/metadata/deletionTimestamp"];

/// The parts of objects that decide; the rest is not even read.
fn parts<'a>(more: &[&'a str]) -> Vec<&'a str> {
    NAMED.iter().chain(more).copied().collect()
}

/// What has, or may get, a load balancer.
pub(super) async fn load_balancer_users(lists: &mut Lists<'_>) -> Result<ObservedExposure, WorkloadError> {
    let finalizers = "/metadata/finalizers";
    let gateways = lists.all(GATEWAY, "Gateway", &parts(&[finalizers, "/spec/gatewayClassName"])).await?;
    let of_ingresses =
        parts(&[finalizers, "/metadata/annotations/kubernetes.io~1ingress.class", "/spec/ingressClassName"]);
    let ingresses = lists.all(NETWORKING, "Ingress", &of_ingresses).await?;
    let services =
        lists.all("v1", "Service", &parts(&[finalizers, "/spec/type", "/spec/loadBalancerClass"])).await?;
    let target_group_bindings = lists.all("elbv2.k8s.aws/v1beta1", "TargetGroupBinding", &NAMED).await?;
    // Classes only tell whose the others are.
    let gateway_classes = if gateways.is_empty() {
        Vec::new()
    } else {
        lists.all(GATEWAY, "GatewayClass", &parts(&["/spec/controllerName"])).await?
    };
    let ingress_classes = if ingresses.is_empty() {
        Vec::new()
    } else {
        lists.all(NETWORKING, "IngressClass", &parts(&["/spec/controller"])).await?
    };
    Ok(ObservedExposure {
        gateways,
        gateway_classes,
        ingresses,
        ingress_classes,
        services,
        target_group_bindings,
    })
}

/// What uses a storage driver.
pub(super) async fn storage_users(lists: &mut Lists<'_>) -> Result<ObservedStorage, WorkloadError> {
    let volumes = persistent_volumes(lists).await?;
    let of_attachments = parts(&["/spec/attacher", "/spec/source/persistentVolumeName"]);
    let attachments = lists.all(STORAGE, "VolumeAttachment", &of_attachments).await?;
    let (claims, classes) = (claims(lists).await?, classes(lists).await?);
    Ok(ObservedStorage { volumes, attachments, claims, classes, ..ObservedStorage::default() })
}

/// What decides about the volumes of a cluster that is being deleted: claims, and who holds them, only where
/// they are to go.
pub(super) async fn volumes(
    lists: &mut Lists<'_>,
    policy: Volumes,
) -> Result<ObservedStorage, WorkloadError> {
    let volumes = persistent_volumes(lists).await?;
    let mut usage = ObservedStorage { volumes, ..ObservedStorage::default() };
    if policy == Volumes::Retain {
        return Ok(usage);
    }
    (usage.claims, usage.classes) = (claims(lists).await?, classes(lists).await?);
    if !claims_to_delete(policy, &usage).is_empty() {
        let owner = "/metadata/ownerReferences";
        usage.pods = lists.all("v1", "Pod", &parts(&[owner, "/spec/volumes", "/status/phase"])).await?;
        usage.replica_sets = lists.all("apps/v1", "ReplicaSet", &parts(&[owner])).await?;
    }
    Ok(usage)
}

async fn persistent_volumes(lists: &mut Lists<'_>) -> Result<Vec<Value>, WorkloadError> {
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

/// Who uses add-ons that may be uninstalled, read at most once for each slot.
#[derive(Default)]
pub(super) struct Usage<'a> {
    storage: Option<ObservedStorage>,
    load_balancers: Option<ObservedExposure>,
    lists: Option<Lists<'a>>,
}

impl<'a> Usage<'a> {
    pub(super) async fn of(
        &mut self,
        workload: &'a WorkloadCluster,
        slot: Slot,
        installed: &Inventory,
    ) -> Result<Vec<String>, WorkloadError> {
        let lists = self.lists.get_or_insert_with(|| workload.lists());
        match slot {
            Slot::Storage => {
                let usage = match self.storage.take() {
                    Some(usage) => usage,
                    None => storage_users(lists).await?,
                };
                Ok(used_by_storage(installed, self.storage.insert(usage)))
            }
            Slot::Ingress => {
                let usage = match self.load_balancers.take() {
                    Some(usage) => usage,
                    None => load_balancer_users(lists).await?,
                };
                let usage = self.load_balancers.insert(usage);
                let users = match installed.registered {
                    None => used_by_ingress_controller(usage),
                    Some(_) => used_by_classes(installed, usage),
                };
                Ok(users.iter().map(ToString::to_string).collect())
            }
            Slot::CloudProvider | Slot::Networking | Slot::Other => Ok(Vec::new()),
        }
    }
}
