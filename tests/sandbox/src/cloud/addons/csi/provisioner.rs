//! What csi-provisioner does: a PersistentVolume for every claim that asks for the driver, gone with its
//! claim by policy.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ObjectReference, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::cloud::addons::aws;
use crate::cloud::addons::events::Events;
use crate::cloud::addons::follow::{Changes, changes, forbidden};
use crate::cloud::addons::log::explain;
use crate::cloud::addons::stand_in::StandIn;

/// Keeps a PersistentVolume until what it stands for is gone.
const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const GIBIBYTE: f64 = 1_073_741_824.0;

/// What a volume shall be.
pub struct Request {
    /// Name of the PersistentVolume.
    pub name: String,
    pub claim: PersistentVolumeClaim,
    pub class: StorageClass,
    /// Whole GiB, at least one.
    pub size: u64,
}

impl Request {
    /// A parameter of the StorageClass.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.class.parameters.as_ref()?.get(name).map(String::as_str)
    }
}

/// The driver's own part.
pub trait Driver: Sync {
    /// As StorageClasses name it.
    const NAME: &'static str;

    /// Makes the volume, or finds the one that was made for the request before; returns its handle.
    fn create(&self, request: &Request) -> impl Future<Output = Result<String>> + Send;

    /// Deletes the volume; one that is gone is no error.
    fn delete(&self, handle: &str) -> impl Future<Output = Result<()>> + Send;
}

/// Provisions for one driver.
pub struct Provisioner<'a, D> {
    pub stand_in: &'a StandIn,
    pub driver: &'a D,
    pub events: Events<'a>,
}

impl<D: Driver> Provisioner<'_, D> {
    /// What it looks at.
    pub fn changes(stand_in: &StandIn) -> Vec<Changes> {
        vec![
            changes(Api::<PersistentVolumeClaim>::all(stand_in.client.clone())),
            changes(Api::<PersistentVolume>::all(stand_in.client.clone())),
            changes(Api::<StorageClass>::all(stand_in.client.clone())),
        ]
    }

    /// Compares claims and volumes.
    pub async fn reconcile(&self) -> Result<()> {
        let client = || self.stand_in.client.clone();
        let all = ListParams::default();
        let claims =
            Api::<PersistentVolumeClaim>::all(client()).list(&all).await.context("listing claims")?;
        let volumes = Api::<PersistentVolume>::all(client()).list(&all).await.context("listing volumes")?;
        let classes =
            Api::<StorageClass>::all(client()).list(&all).await.context("listing StorageClasses")?;
        let mut result = Ok(());
        for claim in &claims {
            let name = format!("pvc-{}", claim.uid().unwrap_or_default());
            if volumes.iter().any(|volume| volume.name_any() == name) {
                continue;
            }
            let Some(class) = class(claim, &classes.items, D::NAME) else { continue };
            let made = self.provision(&name, claim, class).await;
            if let Err(error) = &made {
                let class = class.name_any();
                let message =
                    format!("failed to provision volume with StorageClass {class:?}: {}", explain(error));
                self.events.warn(claim.object_ref(&()), "ProvisioningFailed", &message).await;
            }
            result = worse(result, made);
        }
        for volume in &volumes {
            let ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == D::NAME);
            if ours {
                let gone = self.reclaim(volume).await;
                if let Err(error) = &gone {
                    self.events.warn(volume.object_ref(&()), "VolumeFailedDelete", &explain(error)).await;
                }
                result = worse(result, gone);
            }
        }
        result
    }

    async fn provision(&self, name: &str, claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<()> {
        let spec = claim.spec.as_ref().context("the claim has no spec")?;
        let asked = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()?.get("storage"));
        let size = gibibytes(&asked.context("the claim asks for no storage")?.0)?;
        let request = Request { name: name.to_owned(), claim: claim.clone(), class: class.clone(), size };
        let handle = self.driver.create(&request).await?;
        let volume =
            serde_json::from_value(volume::<D>(&request, &handle)).context("making the volume's object")?;
        let volumes: Api<PersistentVolume> = Api::all(self.stand_in.client.clone());
        match volumes.create(&PostParams::default(), &volume).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            result => drop(result.with_context(|| format!("creating {name}"))?),
        }
        self.stand_in.log(&format!("provisioned {handle} as {name}"));
        Ok(())
    }

    async fn reclaim(&self, volume: &PersistentVolume) -> Result<()> {
        let name = volume.name_any();
        let volumes: Api<PersistentVolume> = Api::all(self.stand_in.client.clone());
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        let deleting = volume.metadata.deletion_timestamp.is_some();
        let spec = volume.spec.as_ref().context("the volume has no spec")?;
        if spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete") {
            let bound = phase == Some("Bound");
            if bound
                || !(deleting || phase == Some("Released"))
                || !volume.finalizers().iter().any(|held| held == FINALIZER)
            {
                return Ok(());
            }
            let handle = spec
                .csi
                .as_ref()
                .map(|source| source.volume_handle.as_str())
                .context("the volume has no handle")?;
            self.driver.delete(handle).await?;
            self.stand_in.log(&format!("deleted {handle} of {name}"));
            if !deleting {
                gone(volumes.delete(&name, &DeleteParams::default()).await.map(drop))
                    .with_context(|| format!("deleting {name}"))?;
            }
        } else if !deleting {
            return Ok(());
        }
        without(&volumes, volume, FINALIZER).await
    }
}

/// The StorageClass of a claim that waits for the driver.
fn class<'a>(
    claim: &PersistentVolumeClaim,
    classes: &'a [StorageClass],
    driver: &str,
) -> Option<&'a StorageClass> {
    let spec = claim.spec.as_ref()?;
    let asked = ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];
    let asked = asked.iter().any(|key| claim.annotations().get(*key).is_some_and(|name| name == driver));
    if !asked || spec.volume_name.is_some() || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let class = classes
        .iter()
        .find(|class| spec.storage_class_name == class.metadata.name && class.provisioner == driver)?;
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    (!waits || selected(claim).is_some()).then_some(class)
}

fn selected(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.annotations().get("volume.kubernetes.io/selected-node").map(String::as_str)
}

fn volume<D: Driver>(request: &Request, handle: &str) -> Value {
    let claim = &request.claim;
    let spec = claim.spec.as_ref();
    let reference = ObjectReference { resource_version: claim.resource_version(), ..claim.object_ref(&()) };
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {
            "name": request.name, "annotations": {PROVISIONED_BY: D::NAME},
            "finalizers": ["kubernetes.io/pv-protection", FINALIZER],
        },
        "spec": {
            "capacity": {"storage": format!("{}Gi", request.size)},
            "accessModes": spec.and_then(|spec| spec.access_modes.clone()),
            "volumeMode": spec.and_then(|spec| spec.volume_mode.clone()),
            "storageClassName": request.class.name_any(),
            "persistentVolumeReclaimPolicy": request.class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "mountOptions": request.class.mount_options,
            "claimRef": reference,
            "csi": {"driver": D::NAME, "volumeHandle": handle, "fsType": request.parameter("csi.storage.k8s.io/fstype")},
        },
    })
}

/// Takes a finalizer off a PersistentVolume.
async fn without(volumes: &Api<PersistentVolume>, volume: &PersistentVolume, finalizer: &str) -> Result<()> {
    if !volume.finalizers().iter().any(|held| held == finalizer) {
        return Ok(());
    }
    let name = volume.name_any();
    // It may have changed since it was listed, by the deletion above for one.
    let Some(current) = volumes.get_opt(&name).await.with_context(|| format!("reading {name}"))? else {
        return Ok(());
    };
    let kept: Vec<&String> = current.finalizers().iter().filter(|held| *held != finalizer).collect();
    let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": current.resource_version()}});
    let result = volumes.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
    gone(result.map(drop)).with_context(|| format!("taking a finalizer off {name}"))
}

/// An object that is gone is no error.
pub fn gone(result: kube::Result<()>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        result => result,
    }
}

/// The result that matters more: a missing right, then any error.
pub fn worse(one: Result<()>, other: Result<()>) -> Result<()> {
    match (one, other) {
        (Ok(()), other) => other,
        (Err(_), Err(other)) if aws::denied(&other) || forbidden(&other) => Err(other),
        (one, _) => one,
    }
}

/// A quantity of bytes in whole GiB, rounded up.
fn gibibytes(quantity: &str) -> Result<u64> {
    let split = quantity.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(quantity.len());
    let (number, suffix) = quantity.split_at(split);
    let factor = match suffix {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1_048_576.0,
        "Gi" => GIBIBYTE,
        "Ti" => GIBIBYTE * 1024.0,
        other => anyhow::bail!("{other} is no unit of storage"),
    };
    let number: f64 = number.parse().with_context(|| format!("reading the size {quantity}"))?;
    Ok((number * factor / GIBIBYTE).ceil().clamp(1.0, 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_whole_gibibytes() {
        let sizes: Vec<u64> =
            ["4Gi", "1500Mi", "5G", "1", "1Ti"].map(|size| gibibytes(size).expect("a size")).to_vec();
        assert_eq!(sizes, [4, 2, 5, 1, 1024]);
        assert!(gibibytes("4Q").is_err());
    }

    #[test]
    fn a_claim_waits_for_its_consumer_until_a_node_is_selected() {
        let class_of = |value: Value| serde_json::from_value::<StorageClass>(value).expect("a class");
        let classes = [class_of(json!({"metadata": {"name": "ebs"}, "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer"}))];
        let mut claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "c", "annotations": {"volume.kubernetes.io/storage-provisioner": "ebs.csi.aws.com"}},
            "spec": {"storageClassName": "ebs"},
        }))
        .expect("a claim");
        assert!(class(&claim, &classes, "ebs.csi.aws.com").is_none());
        claim.annotations_mut().insert("volume.kubernetes.io/selected-node".to_owned(), "n".to_owned());
        assert!(class(&claim, &classes, "ebs.csi.aws.com").is_some());
        assert!(class(&claim, &classes, "efs.csi.aws.com").is_none());
    }
}
