//! The life of a volume of EBS, by the real driver with its real provisioner, attacher and resizer, which act
//! with the rights that the add-on gives them: made, attached, grown, and gone with its claim. Nothing here
//! looks into the operator.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use end_to_end::{Cluster, MOMENT};
use sandbox::{Bed, Workload};
use serde_json::{Value, json};

use super::passed;

/// The claim, and the Pod that uses it.
const CLAIM: &str = "growing";
const ROLE: &str = "full-ebs";
/// Containers of the driver's controller that run for real.
const PROGRAMS: [&str; 4] = ["ebs-plugin", "csi-provisioner", "csi-attacher", "csi-resizer"];

/// A claim from its first Pod to its deletion.
pub async fn one_is_made_attached_grown_and_deleted(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let from = bed.emulator().calls(0).await?.next;
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": CLAIM, "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "ebs", "resources": {"requests": {"storage": "1Gi"}}}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": CLAIM, "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "c"}], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": CLAIM}}]}});
    workload.apply(&json!({"apiVersion": "v1", "kind": "List", "items": [claim, pod]}).to_string()).await?;
    let (name, id) = bed
        .wait_for("a volume to be bound", MOMENT, async || {
            let claim = workload.kubectl_json(&["get", "pvc", CLAIM]).await?;
            let name = claim["spec"]["volumeName"].as_str().context("the claim has no volume")?.to_owned();
            let volume = workload.kubectl_json(&["get", "pv", &name]).await?;
            let id = volume["spec"]["csi"]["volumeHandle"]
                .as_str()
                .context("the volume has no handle")?
                .to_owned();
            Ok((name, id))
        })
        .await?;
    ensure_tags(&volume(bed, &id).await?, &name, &cluster.name)?;

    let pod = workload.kubectl_json(&["get", "pod", CLAIM]).await?;
    let node = workload
        .kubectl_json(&["get", "node", pod["spec"]["nodeName"].as_str().context("the Pod has no node")?])
        .await?;
    let provider = node["spec"]["providerID"].as_str().unwrap_or_default().to_owned();
    bed.wait_for("the volume to be attached to the Pod's node", MOMENT, async || {
        let attached = &volume(bed, &id).await?["Attachments"][0];
        let instance = attached["InstanceId"].as_str().unwrap_or("nothing");
        ensure!(
            attached["State"] == "attached" && provider.ends_with(instance),
            "{attached}, and the Pod is on {provider}"
        );
        let all = workload.kubectl_json(&["get", "volumeattachments"]).await?;
        let of = |it: &&Value| it["spec"]["source"]["persistentVolumeName"] == *name;
        let said =
            all["items"].as_array().into_iter().flatten().find(of).map(|it| it["status"]["attached"] == true);
        ensure!(said == Some(true), "the VolumeAttachment does not say so: {all}");
        Ok(())
    })
    .await?;

    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}).to_string();
    workload.kubectl(&["patch", "pvc", CLAIM, "--type", "merge", "--patch", &more]).await?;
    bed.wait_for("the volume and the claim to have grown", MOMENT, async || {
        let size = volume(bed, &id).await?["Size"].clone();
        let held = workload.kubectl_json(&["get", "pv", &name]).await?["spec"]["capacity"]["storage"].clone();
        let claim = workload.kubectl_json(&["get", "pvc", CLAIM]).await?["status"].clone();
        ensure!(
            size == 2 && held == "2Gi" && claim["capacity"]["storage"] == "2Gi",
            "{size} GiB, {held}, {claim}"
        );
        Ok(())
    })
    .await?;

    workload.kubectl(&["delete", "pod,pvc", CLAIM, "--wait=false"]).await?;
    bed.wait_for("the volume to be deleted with its claim", MOMENT, async || {
        let filter = format!("Name=tag:CSIVolumeName,Values={name}");
        let left = bed.aws(&["ec2", "describe-volumes", "--filters", &filter]).await?;
        ensure!(left["Volumes"].as_array().is_some_and(Vec::is_empty), "{left}");
        let left =
            workload.kubectl_json(&["get", "pv", "--ignore-not-found", &name]).await.unwrap_or_default();
        ensure!(left.is_null(), "its object is still there: {left}");
        Ok(())
    })
    .await?;
    let calls = bed.emulator().calls(from).await?.calls;
    for action in ["CreateVolume", "AttachVolume", "ModifyVolume", "DetachVolume", "DeleteVolume"] {
        let by_role = |call: &&sandbox::emulator::Call| {
            call.action == action && call.code.is_none() && call.caller.as_deref() == Some(ROLE)
        };
        ensure!(calls.iter().any(|it| by_role(&it)), "{action} was not called as {ROLE}");
    }
    ensure_no_right_was_missing(bed, &workload).await?;
    passed(
        "a volume of EBS is made, attached, grown and deleted by the real driver and its sidecars, with AWS's policy for it",
    );
    Ok(())
}

/// What the API server refused stands in the programs' logs, and nowhere else.
async fn ensure_no_right_was_missing(bed: &Bed, workload: &Workload<'_>) -> Result<()> {
    let pods = workload
        .kubectl_json(&["get", "pods", "--namespace", "kube-system", "--selector", "app=ebs-csi-controller"])
        .await?;
    let pods: Vec<&str> = pods["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["metadata"]["name"].as_str())
        .collect();
    let mut read = BTreeSet::new();
    for entry in std::fs::read_dir(bed.directory().join("logs")).context("listing logs")? {
        let path = entry.context("listing logs")?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        let of = |program: &&str| pods.iter().any(|pod| name.ends_with(&format!("{pod}-{program}")));
        let Some(program) = PROGRAMS.into_iter().find(|program| of(program)) else { continue };
        let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let refused = text.lines().find(|line| line.contains(" is forbidden"));
        ensure!(refused.is_none(), "{program} lacks a right: {refused:?}");
        read.insert(program);
    }
    ensure!(read.len() == PROGRAMS.len(), "only {read:?} have logs");
    Ok(())
}

async fn volume(bed: &Bed, id: &str) -> Result<Value> {
    Ok(bed.aws(&["ec2", "describe-volumes", "--volume-ids", id]).await?["Volumes"][0].clone())
}

/// The tags by which volumes are found, by users and when the cluster is gone.
fn ensure_tags(volume: &Value, name: &str, cluster: &str) -> Result<()> {
    let owned = format!("kubernetes.io/cluster/{cluster}");
    let called = format!("{cluster}-dynamic-{name}");
    let wanted = [
        ("CSIVolumeName", name),
        ("Name", &called),
        ("ebs.csi.aws.com/cluster", "true"),
        ("kubernetes.io/created-for/pv/name", name),
        ("kubernetes.io/created-for/pvc/name", CLAIM),
        ("kubernetes.io/created-for/pvc/namespace", "default"),
        (&owned, "owned"),
    ];
    for (key, value) in wanted {
        let has = |it: &Value| it["Key"] == key && it["Value"] == value;
        ensure!(
            volume["Tags"].as_array().is_some_and(|tags| tags.iter().any(has)),
            "no tag {key}={value}: {}",
            volume["Tags"]
        );
    }
    Ok(())
}
