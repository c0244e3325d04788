//! What csi-attacher does: volumes are attached for as long as their VolumeAttachment exists.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use super::ebs::Volumes;
use super::provisioner::{gone, without, worse};
use crate::cloud::addons::follow::{Changes, changes};
use crate::cloud::addons::stand_in::StandIn;

/// Keeps a VolumeAttachment until its volume is detached, and a PersistentVolume until it has none.
const FINALIZER: &str = "external-attacher/ebs-csi-aws-com";

/// Attaches for one driver.
pub struct Attacher<'a> {
    pub stand_in: &'a StandIn,
    pub volumes: &'a Volumes,
    pub driver: &'static str,
}

impl Attacher<'_> {
    /// What it looks at beside the provisioner's objects.
    pub fn changes(stand_in: &StandIn) -> Vec<Changes> {
        vec![changes(Api::<VolumeAttachment>::all(stand_in.client.clone()))]
    }

    /// Compares VolumeAttachments with what is attached.
    pub async fn reconcile(&self) -> Result<()> {
        let attachments: Api<VolumeAttachment> = Api::all(self.stand_in.client.clone());
        let volumes: Api<PersistentVolume> = Api::all(self.stand_in.client.clone());
        let mut all = attachments.list(&ListParams::default()).await.context("listing VolumeAttachments")?.items;
        all.retain(|attachment| attachment.spec.attacher == self.driver);
        let found = volumes.list(&ListParams::default()).await.context("listing volumes")?;
        let mut result = Ok(());
        for attachment in &all {
            let of = found.iter().find(|volume| attachment.spec.source.persistent_volume_name == volume.metadata.name);
            result = worse(result, self.follow(&attachments, attachment, &volumes, of).await);
        }
        for volume in found.iter().filter(|volume| volume.metadata.deletion_timestamp.is_some()) {
            if !all.iter().any(|attachment| attachment.spec.source.persistent_volume_name == volume.metadata.name) {
                result = worse(result, without(&volumes, volume, FINALIZER).await);
            }
        }
        result
    }

    async fn follow(
        &self,
        attachments: &Api<VolumeAttachment>,
        attachment: &VolumeAttachment,
        volumes: &Api<PersistentVolume>,
        of: Option<&PersistentVolume>,
    ) -> Result<()> {
        let name = attachment.name_any();
        let handle = of.and_then(|volume| Some(volume.spec.as_ref()?.csi.as_ref()?.volume_handle.as_str()));
        let attached = attachment.status.as_ref().is_some_and(|status| status.attached);
        if attachment.metadata.deletion_timestamp.is_some() {
            if let Some(handle) = handle {
                self.volumes.detach(handle).await.with_context(|| format!("detaching {handle}"))?;
                self.stand_in.log(&format!("detached {handle}"));
            }
            return finalizers(attachments, attachment, false).await;
        }
        if attached {
            return Ok(());
        }
        let (volume, handle) = of.zip(handle).with_context(|| format!("the volume of {name} is not there"))?;
        finalizers(attachments, attachment, true).await?;
        if !volume.finalizers().iter().any(|held| held == FINALIZER) {
            let kept: Vec<&str> = volume.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
            let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": volume.resource_version()}});
            volumes.patch(&volume.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.context("keeping the volume")?;
        }
        let node = &attachment.spec.node_name;
        let registered: Api<CSINode> = Api::all(self.stand_in.client.clone());
        let registered = registered.get(node).await.with_context(|| format!("reading CSINode {node}"))?;
        let driver = registered.spec.drivers.iter().find(|driver| driver.name == self.driver);
        let instance = &driver.with_context(|| format!("CSINode {node} does not know {}", self.driver))?.node_id;
        let device = self.volumes.attach(handle, instance).await.with_context(|| format!("attaching {handle} to {instance}"))?;
        self.stand_in.log(&format!("attached {handle} to {instance}"));
        let patch = json!({"status": {"attached": true, "attachmentMetadata": {"devicePath": device}}});
        let result = attachments.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
        gone(result.map(drop)).with_context(|| format!("saying that {handle} is attached"))
    }
}

async fn finalizers(attachments: &Api<VolumeAttachment>, attachment: &VolumeAttachment, held: bool) -> Result<()> {
    if attachment.finalizers().iter().any(|finalizer| finalizer == FINALIZER) == held {
        return Ok(());
    }
    let name = attachment.name_any();
    let finalizers: &[&str] = if held { &[FINALIZER] } else { &[] };
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    let result = attachments.patch(&name, &PatchParams::default(), &patch).await;
    gone(result.map(drop)).with_context(|| format!("setting the finalizers of {name}"))
}
