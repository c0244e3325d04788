//! Objects of add-ons that run, changed and deleted by hand: they are set back, unless they are only to be
//! looked at. Nothing here looks into the operator.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::{plugin, running};
use end_to_end::{Cluster, MOMENT, condition, condition_text};
use sandbox::Bed;
use sandbox::bed::Workload;
use serde_json::{Value, json};

use super::passed;

const SYSTEM: &str = "--namespace=kube-system";
const WEBHOOKS: &str = "validatingwebhookconfiguration/aws-load-balancer-webhook";
const BINDINGS: &str = "customresourcedefinition/targetgroupbindings.elbv2.k8s.aws";
const BUDGET: &str = "poddisruptionbudget/ebs-csi-controller";

/// What somebody does by hand: an object, a JSON patch, and where it shows.
const EDITS: [(&str, &str, &str); 5] = [
    (
        "service/aws-load-balancer-webhook-service",
        r#"[{"op":"replace","path":"/spec/ports/0/targetPort","value":1}]"#,
        "/spec/ports",
    ),
    ("role/ebs-csi-leases-role", r#"[{"op":"replace","path":"/rules","value":[]}]"#, "/rules"),
    (
        WEBHOOKS,
        r#"[{"op":"replace","path":"/webhooks/0/rules/0/operations","value":["DELETE"]}]"#,
        "/webhooks",
    ),
    (BINDINGS, r#"[{"op":"remove","path":"/spec/versions/0/additionalPrinterColumns/0"}]"#, "/spec/versions"),
    (BUDGET, r#"[{"op":"replace","path":"/spec/maxUnavailable","value":3}]"#, "/spec/maxUnavailable"),
];
/// What somebody deletes.
const DELETED: [&str; 4] = [
    "service/aws-load-balancer-webhook-service",
    "clusterrolebinding/ebs-csi-attacher-binding",
    WEBHOOKS,
    BUDGET,
];

/// All of it on one cluster that has EBS and the load balancer controller, and `count` add-ons.
pub async fn what_is_changed_by_hand_is_set_back(bed: &Bed, cluster: &Cluster, count: usize) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    edits_are_set_back(bed, cluster, &workload, count).await?;
    what_is_deleted_or_replaced_is_applied_again(bed, cluster, &workload, count).await?;
    an_edit_while_the_operator_is_down_is_found(bed, cluster, &workload).await?;
    a_paused_add_on_is_left_alone(bed, cluster, &workload).await?;
    a_warning_changes_nothing(bed, cluster, &workload, count).await
}

async fn edits_are_set_back(
    bed: &Bed,
    cluster: &Cluster,
    workload: &Workload<'_>,
    count: usize,
) -> Result<()> {
    let mut before = Vec::new();
    for (object, patch, path) in EDITS {
        before.push(part(workload, object, path).await?);
        workload
            .kubectl(&["patch", object, SYSTEM, "--type=json", "--field-manager=somebody", "--patch", patch])
            .await?;
        ensure!(
            part(workload, object, path).await? != *before.last().context("it was pushed")?,
            "{patch} changes nothing of {object}"
        );
    }
    look(bed, cluster, "edited").await?;
    bed.wait_for("edits to be set back", MOMENT, async || {
        for ((object, _, path), before) in EDITS.iter().zip(&before) {
            let now = part(workload, object, path).await?;
            ensure!(now == *before, "{object} has {now}");
        }
        Ok(())
    })
    .await?;
    running(bed, cluster, count).await?;
    let status = plugin(bed, cluster).await?["status"].clone();
    ensure!(status["lastRepairTime"].is_string(), "the time of the repair is not told: {status}");
    let wide = bed
        .kubectl(&["get", "clusterplugin", &cluster.name, "--namespace", &cluster.namespace, "-o", "wide"])
        .await?;
    ensure!(wide.contains("LAST REPAIR"), "{wide}");
    bed.wait_for("an event", MOMENT, async || {
        let events = bed.kubectl_json(&["get", "events.events.k8s.io", "--namespace", &cluster.namespace]).await?;
        let notes: Vec<&str> = events["items"].as_array().into_iter().flatten().filter_map(|it| it["note"].as_str()).collect();
        let wanted = r#".spec.maxUnavailable of PodDisruptionBudget kube-system/ebs-csi-controller was changed by "somebody""#;
        ensure!(notes.iter().any(|it| it.starts_with(wanted)), "{notes:?}");
        Ok(())
    })
    .await?;
    passed(
        "what somebody edits of running add-ons is set back, and an event names object, field and manager",
    );
    Ok(())
}

async fn what_is_deleted_or_replaced_is_applied_again(
    bed: &Bed,
    cluster: &Cluster,
    workload: &Workload<'_>,
    count: usize,
) -> Result<()> {
    let class = workload.kubectl_json(&["get", "storageclass", "ebs"]).await?;
    for object in DELETED.iter().chain(&["storageclass/ebs"]) {
        workload.kubectl(&["delete", object, SYSTEM, "--wait=true"]).await?;
    }
    let mut other = json!({"apiVersion": class["apiVersion"], "kind": class["kind"], "metadata": {"name": "ebs"},
        "provisioner": class["provisioner"], "parameters": class["parameters"]});
    other["parameters"]["type"] = "io2".into();
    workload.apply(&other.to_string()).await?;
    look(bed, cluster, "deleted").await?;
    bed.wait_for("what was deleted to be back", MOMENT, async || {
        for object in DELETED {
            workload.kubectl(&["get", object, SYSTEM]).await?;
        }
        let now = workload.kubectl_json(&["get", "storageclass", "ebs"]).await?;
        ensure!(now["parameters"] == class["parameters"], "the StorageClass has {}", now["parameters"]);
        Ok(())
    })
    .await?;
    running(bed, cluster, count).await?;
    passed(
        "what somebody deletes of running add-ons is applied again, also a StorageClass in whose place they put another",
    );
    Ok(())
}

async fn an_edit_while_the_operator_is_down_is_found(
    bed: &Bed,
    cluster: &Cluster,
    workload: &Workload<'_>,
) -> Result<()> {
    bed.stop_operator().await?;
    let before = part(workload, "clusterrole/ebs-external-attacher-role", "/rules").await?;
    workload
        .kubectl(&[
            "patch",
            "clusterrole/ebs-external-attacher-role",
            "--type=merge",
            "--patch",
            r#"{"rules":[]}"#,
        ])
        .await?;
    bed.start_operator().await?;
    bed.wait_for("the edit to be set back", MOMENT, async || {
        let now = part(workload, "clusterrole/ebs-external-attacher-role", "/rules").await?;
        ensure!(now == before, "there are {now} in {}", cluster.name);
        Ok(())
    })
    .await?;
    passed("what somebody edits while the operator is down is set back once it runs");
    Ok(())
}

async fn a_paused_add_on_is_left_alone(bed: &Bed, cluster: &Cluster, workload: &Workload<'_>) -> Result<()> {
    let pause = async |value: Value| {
        let patch = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}}).to_string();
        cluster.patch(bed, "clusterplugin", &cluster.name, &patch).await
    };
    let before = part(workload, BUDGET, "/spec/maxUnavailable").await?;
    pause(json!("")).await?;
    workload
        .kubectl(&["patch", BUDGET, SYSTEM, "--type=merge", "--patch", r#"{"spec":{"maxUnavailable":2}}"#])
        .await?;
    look(bed, cluster, "paused").await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    ensure!(part(workload, BUDGET, "/spec/maxUnavailable").await? == 2, "it was set back");
    pause(Value::Null).await?;
    bed.wait_for("the edit to be set back", MOMENT, async || {
        ensure!(part(workload, BUDGET, "/spec/maxUnavailable").await? == before, "not yet");
        Ok(())
    })
    .await?;
    passed("nothing is set back while a ClusterPlugin is paused");
    Ok(())
}

async fn a_warning_changes_nothing(
    bed: &Bed,
    cluster: &Cluster,
    workload: &Workload<'_>,
    count: usize,
) -> Result<()> {
    let set = async |drift: &str| {
        cluster
            .patch(bed, "clusterplugin", &cluster.name, &json!({"spec": {"drift": drift}}).to_string())
            .await
    };
    set("Warn").await?;
    let before = part(workload, BUDGET, "/spec/maxUnavailable").await?;
    let patch = r#"{"spec":{"maxUnavailable":3}}"#;
    workload
        .kubectl(&["patch", BUDGET, SYSTEM, "--type=merge", "--field-manager=somebody", "--patch", patch])
        .await?;
    look(bed, cluster, "warned").await?;
    bed.wait_for("the edit to be told", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "StorageReady");
        let is_told = [BUDGET.split_once('/').context("a name")?.1, ".spec.maxUnavailable", "\"somebody\""]
            .iter()
            .all(|it| text.contains(it));
        ensure!(condition(&object, "StorageReady") == "True" && is_told, "StorageReady says {text:?}");
        Ok(())
    })
    .await?;
    ensure!(part(workload, BUDGET, "/spec/maxUnavailable").await? == 3, "it was set back");
    set("Correct").await?;
    bed.wait_for("the edit to be set back", MOMENT, async || {
        ensure!(part(workload, BUDGET, "/spec/maxUnavailable").await? == before, "not yet");
        Ok(())
    })
    .await?;
    running(bed, cluster, count).await?;
    passed("where drift is to be warned of, it is told and left");
    Ok(())
}

/// The next look of a settled ClusterPlugin may be minutes away; a change of it brings one at once.
async fn look(bed: &Bed, cluster: &Cluster, why: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {"example.com/look": why}}}).to_string();
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch).await
}

async fn part(workload: &Workload<'_>, object: &str, path: &str) -> Result<Value> {
    let live = workload.kubectl_json(&["get", object, SYSTEM]).await?;
    Ok(live.pointer(path).cloned().unwrap_or_default())
}
