//! What a kubelet does when a volume that a pod here uses has grown: it has the driver grow the file system
//! and says so in the claim. There is no file system to grow.

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::cloud::addons::Host;

/// What csi-resizer leaves to the node.
const PENDING: &str = "FileSystemResizePending";

/// Finishes the growth of the driver's volumes that pods of the node use.
///
/// # Errors
/// When the API server does not answer or refuses.
pub async fn finish(host: &Host, driver: &str) -> Result<()> {
    let here = ListParams::default().fields(&format!("spec.nodeName={},status.phase=Running", host.node));
    let pods = Api::<Pod>::all(host.client.clone()).list(&here).await.context("listing pods")?;
    for pod in &pods {
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        for name in volumes.filter_map(|volume| Some(&volume.persistent_volume_claim.as_ref()?.claim_name)) {
            let claims: Api<PersistentVolumeClaim> =
                Api::namespaced(host.client.clone(), &pod.namespace().unwrap_or_default());
            let Some(claim) = claims.get_opt(name).await.with_context(|| format!("reading claim {name}"))?
            else {
                continue;
            };
            if !pending(&claim) {
                continue;
            }
            let volume = claim
                .spec
                .as_ref()
                .and_then(|spec| spec.volume_name.as_deref())
                .context("the claim has no volume")?;
            let volume = Api::<PersistentVolume>::all(host.client.clone())
                .get(volume)
                .await
                .with_context(|| format!("reading {volume}"))?;
            let Some(status) = grown(&claim, &volume, driver) else { continue };
            let patch = Patch::Merge(
                json!({"metadata": {"resourceVersion": claim.resource_version()}, "status": status}),
            );
            claims
                .patch_status(name, &PatchParams::default(), &patch)
                .await
                .with_context(|| format!("saying that {name} has grown"))?;
        }
    }
    Ok(())
}

fn pending(claim: &PersistentVolumeClaim) -> bool {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == PENDING && condition.status == "True")
}

/// The claim's status once the file system is as large as the volume.
fn grown(claim: &PersistentVolumeClaim, volume: &PersistentVolume, driver: &str) -> Option<Value> {
    let spec = volume.spec.as_ref()?;
    if spec.csi.as_ref()?.driver != driver {
        return None;
    }
    let conditions = claim.status.as_ref()?.conditions.iter().flatten();
    let left: Vec<_> =
        conditions.filter(|condition| !matches!(condition.type_.as_str(), PENDING | "Resizing")).collect();
    let size = spec.capacity.as_ref()?.get("storage")?;
    Some(
        json!({"capacity": {"storage": size}, "conditions": left, "allocatedResourceStatuses": {"storage": null}}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_as_large_as_its_volume_once_the_node_is_done() {
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"name": "c"},
            "status": {"capacity": {"storage": "1Gi"}, "conditions": [{"type": PENDING, "status": "True"}, {"type": "Other", "status": "True"}]},
        }))
        .expect("a claim");
        let volume: PersistentVolume = serde_json::from_value(json!({
            "metadata": {"name": "v"},
            "spec": {"capacity": {"storage": "2Gi"}, "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}},
        }))
        .expect("a volume");
        assert!(pending(&claim));
        let status = grown(&claim, &volume, "ebs.csi.aws.com").expect("a status");
        assert_eq!(status["capacity"]["storage"], "2Gi");
        assert_eq!(status["conditions"], json!([{"type": "Other", "status": "True"}]));
        assert!(grown(&claim, &volume, "efs.csi.aws.com").is_none());
    }
}
