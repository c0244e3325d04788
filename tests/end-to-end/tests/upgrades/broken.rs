//! A component that never becomes ready, in a fleet of three clusters: it is undone in the first, which then is as it
//! was, and begins in no other.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use end_to_end::components::{Program, components, replace, restart};
use end_to_end::{Cluster, MOMENT, condition_text};
use sandbox::{Bed, Workload};
use serde_json::{Value, json};

use super::{EBS, ebs, text};

/// An argument that the driver's sidecars do not know, in place of one that they do.
const ARGUMENT: (&str, &str) = ("--timeout=60s", "--timeoux=60s");
/// Label of clusters that go first.
const FIRST: &str = "cluster.kurator.dev/upgrade-first";

/// Two clusters more.
pub async fn others(bed: &Bed) -> Result<[Cluster; 2]> {
    let clusters = ["second", "third"].map(|name| Cluster::new("default", &format!("upgrades-{name}"), 1, 1));
    for cluster in &clusters {
        cluster.apply(bed).await?;
        let storage = json!({"spec": {"storage": {"ebs": {}}}});
        cluster.patch(bed, "clusterplugin", &cluster.name, &storage.to_string()).await?;
    }
    Ok(clusters)
}

pub async fn stops_the_rest(
    bed: &Bed,
    program: &Program,
    folder: &Path,
    first: &Cluster,
    others: &[Cluster],
) -> Result<()> {
    for cluster in others {
        bed.wait_for("the EBS driver of the others", MOMENT * 2, async || {
            let ebs = ebs(bed, cluster).await?;
            ensure!(ebs["phase"] == "Running", "{ebs}");
            Ok(())
        })
        .await?;
    }
    let installed = text(&ebs(bed, first).await?, "digest");
    let workload = bed.workload(&first.namespace, &first.name).await?;
    let before = objects(&workload).await?;
    components(folder)?;
    replace(&folder.join(EBS).with_extension("wasm"), ARGUMENT)?;
    let label = json!({"metadata": {"labels": {FIRST: "true"}}, "spec": {"upgradeTimeout": "20s"}});
    first.patch(bed, "clusterplugin", &first.name, &label.to_string()).await?;
    restart(bed, program, folder).await?;
    let automatic = json!({"spec": {"upgradePolicy": "Automatic"}}).to_string();
    first.patch(bed, "clusterplugin", &first.name, &automatic).await?;
    // Without consent, its label would hold up nobody.
    bed.wait_for("the upgrade of the first to begin", MOMENT, async || {
        let ebs = ebs(bed, first).await?;
        ensure!(!ebs["upgradingFrom"].is_null() || !ebs["failedUpgrade"].is_null(), "{ebs}");
        Ok(())
    })
    .await?;
    for cluster in others {
        cluster.patch(bed, "clusterplugin", &cluster.name, &automatic).await?;
    }
    bed.wait_for("the first to be as it was", MOMENT * 2, async || {
        let said = said(bed, first).await?;
        ensure!(said.starts_with("UpgradeUndone: "), "{said}");
        ensure!(said.contains("Deployment kube-system/ebs-csi-controller"), "{said}");
        let ebs = ebs(bed, first).await?;
        ensure!(ebs["phase"] == "Running" && ebs["digest"] == installed.as_str(), "{ebs}");
        ensure!(!ebs["failedUpgrade"].is_null() && ebs["upgradingFrom"].is_null(), "{ebs}");
        Ok(())
    })
    .await?;
    let after = objects(&workload).await?;
    let differ: Vec<_> =
        before.keys().chain(after.keys()).filter(|it| before.get(*it) != after.get(*it)).collect();
    ensure!(differ.is_empty(), "not as they were: {differ:?}");
    for cluster in others {
        bed.wait_for("the others to wait", MOMENT, async || {
            let said = said(bed, cluster).await?;
            ensure!(said.contains(&format!("it failed in default/{}", first.name)), "{said}");
            let ebs = ebs(bed, cluster).await?;
            ensure!(ebs["digest"] == installed.as_str() && ebs["phase"] == "Running", "{ebs}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

async fn said(bed: &Bed, cluster: &Cluster) -> Result<String> {
    let object = cluster.object(bed, "clusterplugin", &cluster.name).await?;
    Ok(condition_text(&object, "StorageReady"))
}

/// What the EBS driver consists of, but for what an upgrade and its way back leave behind: generations, revisions and
/// statuses.
async fn objects(workload: &Workload<'_>) -> Result<BTreeMap<String, Value>> {
    const KINDS: &str = "deployments,daemonsets,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,\
        csidrivers,storageclasses,poddisruptionbudgets";
    let all = workload.kubectl_json(&["get", KINDS, "--all-namespaces"]).await?;
    let mut res = BTreeMap::new();
    for item in all["items"].as_array().context("no items")? {
        let name = format!("{} {}", text(item, "kind"), text(&item["metadata"], "name"));
        if !name.contains("ebs") {
            continue;
        }
        let mut item = item.clone();
        item["status"] = Value::Null;
        for field in ["generation", "resourceVersion"] {
            item["metadata"][field] = Value::Null;
        }
        for annotation in ["deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"] {
            item["metadata"]["annotations"].as_object_mut().map(|all| all.remove(annotation));
        }
        res.insert(name, item);
    }
    ensure!(res.len() > 5, "{:?}", res.keys());
    Ok(res)
}
