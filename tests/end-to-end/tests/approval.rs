//! A cluster whose plans somebody has to approve of: a changed plan waits with what it changes and nothing of it
//! is written, what was approved is repaired meanwhile, and what is approved is carried out, once.

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::{reported, running};
use end_to_end::{Cluster, MOMENT, find_condition};
use sandbox::{Bed, Options, Workload};
use serde_json::{Value, json};

const EBS: &str = "aws-ebs-csi";
const APPROVE: &str = "cluster.kurator.dev/approve";

#[tokio::test(flavor = "multi_thread")]
async fn on_a_bed_a_changed_plan_waits_until_somebody_approves() -> Result<()> {
    let bed = Bed::up(Options { name: "approvals".into(), ..Options::default() }).await?;
    let cluster = Cluster::new("default", "approvals", 1, 1);
    cluster.apply(&bed).await?;
    patch(&bed, &cluster, json!({"spec": {"storage": {"ebs": {}}}})).await?;
    cluster.wait_until_ready(&bed).await?;
    running(&bed, &cluster, 3).await?;
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;

    let replicas = |count: usize| json!({"storage": {"ebs": {"replicas": count}}});
    let before = generation(&workload).await?;
    let mut spec = replicas(1);
    spec["approval"] = json!("Manual");
    patch(&bed, &cluster, json!({"spec": spec})).await?;
    let first = waiting(&bed, &cluster, "").await?;
    let changes = first["changes"].to_string();
    ensure!(changes.contains("~ Deployment kube-system/ebs-csi-controller: .spec.replicas"), "{changes}");
    let disruption =
        ["delete", "poddisruptionbudget", "ebs-csi-controller", "--namespace=kube-system", "--wait"];
    workload.kubectl(&disruption).await?;
    // Any edit has it looked at.
    patch(&bed, &cluster, json!({"spec": {"upgradeTimeout": "31m"}})).await?;
    bed.wait_for("repair of what was approved", MOMENT, async || {
        let budget = ["get", "poddisruptionbudget", "ebs-csi-controller", "--namespace=kube-system"];
        workload.kubectl(&budget).await.map(drop)
    })
    .await?;
    ensure!(generation(&workload).await? == before, "a plan that nobody approved of is carried out");

    let digest = text(&first);
    approve(&bed, &cluster, &digest).await?;
    carried_out(&bed, &cluster, &workload, 1).await.context("the approved plan")?;
    patch(&bed, &cluster, json!({"spec": replicas(2)})).await?;
    let second = text(&waiting(&bed, &cluster, &digest).await?);
    patch(&bed, &cluster, json!({"spec": replicas(1)})).await?;
    bed.wait_for("what was approved to need no approval", MOMENT, async || {
        ensure!(ebs(&bed, &cluster).await?["approval"].is_null(), "it waits");
        Ok(())
    })
    .await?;
    patch(&bed, &cluster, json!({"spec": replicas(2)})).await?;
    waiting(&bed, &cluster, &digest).await?;
    approve(&bed, &cluster, &second).await?;
    carried_out(&bed, &cluster, &workload, 2).await.context("the second plan")?;
    // What was approved once waits again.
    patch(&bed, &cluster, json!({"spec": replicas(1)})).await?;
    approve(&bed, &cluster, &digest).await?;
    waiting(&bed, &cluster, &digest).await?;
    ensure!(controller(&workload).await?["spec"]["replicas"] == 2, "an approval is used twice");
    Ok(())
}

/// Waits until another plan than that of this digest waits, while what was approved runs.
async fn waiting(bed: &Bed, cluster: &Cluster, other: &str) -> Result<Value> {
    bed.wait_for("a plan that waits for approval", MOMENT, async || {
        let object = cluster.object(bed, "clusterplugin", &cluster.name).await?;
        let ebs = ebs(bed, cluster).await?;
        let condition = find_condition(&object, "StorageReady").context("no condition")?;
        ensure!(condition["status"] == "True" && condition["reason"] == "ApprovalRequired", "{condition}");
        let digest = text(&ebs["approval"]);
        ensure!(digest.starts_with("sha256:") && digest != other && ebs["phase"] == "Running", "{ebs}");
        let command = format!("{APPROVE}={EBS}@{digest}");
        ensure!(condition["message"].as_str().is_some_and(|said| said.contains(&command)), "{condition}");
        Ok(ebs["approval"].clone())
    })
    .await
}

async fn approve(bed: &Bed, cluster: &Cluster, digest: &str) -> Result<()> {
    let annotations = json!({APPROVE: format!("{EBS}@{digest}")});
    patch(bed, cluster, json!({"metadata": {"annotations": annotations}})).await
}

/// Waits until there are as many replicas, nothing waits and the approval is used up.
async fn carried_out(bed: &Bed, cluster: &Cluster, workload: &Workload<'_>, replicas: usize) -> Result<()> {
    bed.wait_for("what was approved", MOMENT, async || {
        let deployment = controller(workload).await?;
        ensure!(deployment["spec"]["replicas"] == replicas, "{}", deployment["spec"]["replicas"]);
        let object = cluster.object(bed, "clusterplugin", &cluster.name).await?;
        ensure!(object["metadata"]["annotations"][APPROVE].is_null(), "the approval is still there");
        let ebs = ebs(bed, cluster).await?;
        ensure!(ebs["approval"].is_null() && ebs["phase"] == "Running", "{ebs}");
        Ok(())
    })
    .await
}

async fn patch(bed: &Bed, cluster: &Cluster, patch: Value) -> Result<()> {
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch.to_string()).await
}

async fn ebs(bed: &Bed, cluster: &Cluster) -> Result<Value> {
    reported(bed, cluster, EBS).await
}

async fn controller(workload: &Workload<'_>) -> Result<Value> {
    workload.kubectl_json(&["get", "deployment", "ebs-csi-controller", "--namespace=kube-system"]).await
}

async fn generation(workload: &Workload<'_>) -> Result<Value> {
    Ok(controller(workload).await?["metadata"]["generation"].clone())
}

fn text(approval: &Value) -> String {
    approval["digest"].as_str().unwrap_or_default().to_owned()
}
