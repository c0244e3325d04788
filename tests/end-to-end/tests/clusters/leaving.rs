//! Add-ons that leave, or must not: networking that cannot be switched, a ClusterPlugin that is deleted while
//! its cluster lives, and a cluster whose API server is dead when it is deleted. Nothing here looks into the
//! operator.

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::{plugin, running};
use end_to_end::{BOOT, Cluster, MOMENT, condition, condition_text};
use sandbox::Bed;
use serde_json::{Value, json};

use super::passed;

/// Another network is asked for, and then the first again.
pub async fn networking_is_not_switched(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let networking = plugin(bed, cluster).await?["spec"]["networking"].clone();
    let patch = json!({"spec": {"networking": {"calico": null, "amazonVPC": {}}}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch.to_string()).await?;
    bed.wait_for("switching the network to be refused", MOMENT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "NetworkingReady");
        let refused = condition(&object, "NetworkingReady") == "False";
        ensure!(
            refused && text.contains("calico stays") && text.contains("spec.networking.calico"),
            "NetworkingReady says {text:?}"
        );
        Ok(())
    })
    .await?;
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let daemons = workload.kubectl_json(&["get", "daemonsets", "--all-namespaces"]).await?;
    let names: Vec<&str> = daemons["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["metadata"]["name"].as_str())
        .collect();
    ensure!(names.contains(&"calico-node") && !names.contains(&"aws-node"), "there are {names:?}");
    let mut back = json!({"spec": {"networking": {"amazonVPC": null}}});
    back["spec"]["networking"]["calico"] = networking["calico"].clone();
    cluster.patch(bed, "clusterplugin", &cluster.name, &back.to_string()).await?;
    running(bed, cluster, 5).await?;
    passed(
        "the network of a cluster that lives is not switched, and the condition says what stays and what to set",
    );
    Ok(())
}

/// The ClusterPlugin is deleted, and applied again.
pub async fn a_deleted_cluster_plugin_takes_what_may_go(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let object = plugin(bed, cluster).await?;
    bed.kubectl(&[
        "delete",
        "clusterplugin",
        &cluster.name,
        "--namespace",
        &cluster.namespace,
        "--wait=false",
    ])
    .await?;
    bed.wait_for("the ClusterPlugin to be gone", MOMENT, async || {
        let left = bed
            .kubectl(&["get", "clusterplugins", "--namespace", &cluster.namespace, "--output", "name"])
            .await?;
        ensure!(!left.lines().any(|it| it.ends_with(&format!("/{}", cluster.name))), "there are {left}");
        Ok(())
    })
    .await?;
    let names = async || -> Result<Vec<String>> {
        let all = workload
            .kubectl_json(&["get", "deployments,daemonsets,ingressclasses,csidrivers", "--all-namespaces"])
            .await?;
        let name = |it: &Value| it["metadata"]["name"].as_str().map(str::to_owned);
        Ok(all["items"].as_array().into_iter().flatten().filter_map(name).collect())
    };
    let left = names().await?;
    let gone = [
        "ebs-csi-controller",
        "ebs-csi-node",
        "efs-csi-controller",
        "aws-load-balancer-controller",
        "alb",
        "ebs.csi.aws.com",
    ];
    ensure!(!left.iter().any(|it| gone.contains(&it.as_str())), "there are {left:?}");
    let kept = ["calico-node", "aws-cloud-controller-manager"];
    ensure!(kept.iter().all(|it| left.iter().any(|left| left == it)), "there are {left:?}");
    let again = json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "spec": object["spec"],
        "metadata": {"name": cluster.name, "namespace": cluster.namespace}});
    bed.apply(&again.to_string()).await?;
    running(bed, cluster, 5).await?;
    passed(
        "a ClusterPlugin that is deleted takes storage and ingress along, leaves the network, and takes it over when it is back",
    );
    Ok(())
}

/// The control plane dies with a load balancer open, then the cluster is deleted, and the operator killed on
/// the way.
pub async fn a_cluster_with_a_dead_api_server_is_deleted(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "open", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
    workload.apply(&service.to_string()).await?;
    bed.wait_for("the Service to have a load balancer", MOMENT, async || {
        let service = workload.kubectl_json(&["get", "service", "open"]).await?;
        ensure!(service["status"]["loadBalancer"]["ingress"][0]["hostname"].is_string(), "no hostname yet");
        Ok(())
    })
    .await?;
    for machine in cluster.objects(bed, "awsmachines").await? {
        if machine["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_some() {
            let id = machine["spec"]["providerID"]
                .as_str()
                .and_then(|it| it.rsplit('/').next())
                .context("no instance")?;
            bed.emulator().terminate(id).await?;
        }
    }
    cluster.patch(bed, "clusterplugin", &cluster.name, r#"{"spec":{"deletion":{"timeout":"45s"}}}"#).await?;
    let from = bed.emulator().calls(0).await?.next;
    cluster.ask_for_deletion(bed).await?;
    bed.wait_for("the ClusterPlugin to say that the API server does not answer", MOMENT, async || {
        let text = condition_text(&plugin(bed, cluster).await?, "Ready");
        ensure!(text.contains("API server"), "Ready says {text:?}");
        Ok(())
    })
    .await?;
    let workers = cluster.instances(bed).await?;
    ensure!(
        workers.len() == cluster.workers,
        "{workers:?} are alive while the timeout runs, {} workers wanted",
        cluster.workers
    );
    bed.wait_for("the middle of deletion", BOOT, async || {
        let calls = bed.emulator().calls(from).await?.calls;
        ensure!(calls.iter().any(|it| it.did("TerminateInstances", &workers)), "nothing is terminated yet");
        Ok(())
    })
    .await?;
    bed.kill_operator().await?;
    bed.start_operator().await?;
    cluster.wait_until_gone(bed).await?;
    let load_balancers = bed.aws(&["elb", "describe-load-balancers"]).await?;
    let vpcs: Vec<&str> = load_balancers["LoadBalancerDescriptions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["VPCId"].as_str())
        .collect();
    let existing = bed.aws(&["ec2", "describe-vpcs"]).await?.to_string();
    ensure!(vpcs.iter().all(|it| existing.contains(it)), "load balancers are left in {vpcs:?}");
    passed(
        "a cluster whose API servers are dead is deleted after its timeout, its Service's load balancer too, though the operator was killed",
    );
    Ok(())
}
