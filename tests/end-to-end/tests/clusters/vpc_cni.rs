//! What the Amazon VPC CNI wants of a cluster and its machines, as the template of its flavor has it. Nothing
//! here looks into the operator.

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::plugin;
use end_to_end::{Cluster, MOMENT, condition, condition_text};
use sandbox::Bed;

use super::passed;

/// Neither systemd nor kube-proxy nor the kubelet, and the condition has nothing to warn of.
pub async fn nothing_is_in_the_way_of_pods(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let instances = cluster.instances(bed).await?;
    ensure!(instances.len() == cluster.control_planes + cluster.workers, "there are {instances:?}");
    for id in instances {
        let link =
            bed.directory().join("machines").join(&id).join("root/etc/systemd/network/99-default.link");
        let text = std::fs::read_to_string(&link).with_context(|| format!("reading {}", link.display()))?;
        ensure!(text.lines().any(|line| line == "MACAddressPolicy=none"), "{} says {text}", link.display());
    }
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let proxy =
        workload.kubectl_json(&["get", "configmap", "kube-proxy", "--namespace", "kube-system"]).await?;
    let settings = proxy["data"]["config.conf"].as_str().unwrap_or_default();
    ensure!(settings.lines().any(|line| line.trim() == "clusterCIDR: \"\""), "kube-proxy is told {settings}");
    bed.wait_for("networking to be ready without a warning", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "NetworkingReady");
        let warns = text.contains("clusterNetwork") || text.contains("max-pods");
        ensure!(condition(&object, "NetworkingReady") == "True" && !warns, "NetworkingReady says {text:?}");
        Ok(())
    })
    .await?;
    passed(
        "machines leave the addresses of Pods alone, kube-proxy knows no range of them, and kubelets let in no more than have one",
    );
    Ok(())
}
