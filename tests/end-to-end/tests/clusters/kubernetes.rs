//! Add-ons while the machines of a control plane are replaced, and an upgrade of Kubernetes that Cluster API does
//! not begin before they are ready for it. Nothing here looks into the operator.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use end_to_end::add_ons::{plugin, running};
use end_to_end::{Cluster, KUBERNETES_VERSION, MOMENT, condition, condition_text};
use sandbox::Bed;
use serde_json::{Value, json};

use super::passed;

const READY: &str = "KubernetesUpgradeReady";
const HOOK: &str = "before-upgrade.hook.cluster.cluster.x-k8s.io/cluster-operator";
/// A version for which no add-on is known.
const UNKNOWN: &str = "v1.37.0";

/// The add-ons of a cluster whose machines are replaced by others of the same version.
pub struct Replacement<'a> {
    bed: &'a Bed,
    cluster: &'a Cluster,
    cloud_provider: Value,
    /// What was seen that must not be.
    seen: BTreeSet<String>,
}

impl<'a> Replacement<'a> {
    pub async fn of(bed: &'a Bed, cluster: &'a Cluster) -> Result<Replacement<'a>> {
        running(bed, cluster, 2).await?;
        let cloud_provider = cloud_provider(bed, cluster).await?;
        Ok(Replacement { bed, cluster, cloud_provider, seen: BTreeSet::new() })
    }

    /// While a machine is new its Pods are awaited; nothing fails by that.
    pub async fn look(&mut self) -> Result<()> {
        let object = plugin(self.bed, self.cluster).await?;
        if condition(&object, READY) != "True" {
            self.seen.insert(format!("{READY} says {:?}", condition_text(&object, READY)));
        }
        for add_on in object["status"]["plugins"].as_array().into_iter().flatten() {
            if add_on["phase"] == "Failed" {
                self.seen.insert(add_on.to_string());
            }
        }
        Ok(())
    }

    pub async fn ensure_unchanged(self) -> Result<()> {
        let Self { bed, cluster, cloud_provider: before, seen } = self;
        running(bed, cluster, 2).await?;
        ensure!(seen.is_empty(), "while machines were replaced: {seen:?}");
        let after = cloud_provider(bed, cluster).await?;
        ensure!(before == after, "the cloud provider was {before} and is {after}");
        passed("while machines are replaced the add-ons run, and the cloud provider is not changed");
        Ok(())
    }
}

/// What changes with each change of what the cloud provider is to be.
async fn cloud_provider(bed: &Bed, cluster: &Cluster) -> Result<Value> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let daemon_set = ["get", "daemonset", "aws-cloud-controller-manager", "--namespace", "kube-system"];
    let object = workload.kubectl_json(&daemon_set).await?;
    let image = &object["spec"]["template"]["spec"]["containers"][0]["image"];
    Ok(json!([object["metadata"]["uid"], object["metadata"]["generation"], image]))
}

/// A Cluster of a ClusterClass is to have a version that no add-on supports: that is said, and Cluster API does not
/// begin until the add-ons are looked after no longer.
pub async fn an_unsupported_version_is_held(bed: &Bed) -> Result<()> {
    let cluster = Cluster::new("default", "class", 1, 0);
    bed.apply(&of_class(bed, &cluster).await?).await?;
    held(bed, &cluster, true).await?;
    cluster.wait_until_ready(bed).await?;
    running(bed, &cluster, 2).await?;
    let patch = json!({"spec": {"topology": {"version": UNKNOWN}}});
    cluster.patch(bed, "cluster", &cluster.name, &patch.to_string()).await?;
    bed.wait_for("the upgrade to be said to be held", MOMENT, async || {
        let text = condition_text(&plugin(bed, &cluster).await?, READY);
        ensure!(
            text.starts_with("UnsupportedKubernetesVersion") && text.contains(UNKNOWN),
            "{READY} says {text:?}"
        );
        let object = cluster.object(bed, "cluster", &cluster.name).await?;
        let text = condition_text(&object, "TopologyReconciled");
        ensure!(text.contains(HOOK), "TopologyReconciled says {text:?}");
        Ok(())
    })
    .await?;
    ensure!(control_plane_version(bed, &cluster).await? == KUBERNETES_VERSION, "the upgrade was begun");
    running(bed, &cluster, 2).await?;
    passed("an upgrade to a version that no add-on supports is said before it begins, and held");
    let pause = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &pause.to_string()).await?;
    held(bed, &cluster, false).await?;
    bed.wait_for("the upgrade to begin", MOMENT, async || {
        let version = control_plane_version(bed, &cluster).await?;
        ensure!(version == UNKNOWN, "the control plane is to be of {version:?}");
        Ok(())
    })
    .await?;
    passed("the upgrade begins when the ClusterPlugin is paused");
    let resume = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}});
    cluster.patch(bed, "clusterplugin", &cluster.name, &resume.to_string()).await?;
    held(bed, &cluster, true).await?;
    running(bed, &cluster, 2).await?;
    let (name, namespace) = (&cluster.name, &cluster.namespace);
    bed.kubectl(&["delete", "clusterplugin", name, "--namespace", namespace, "--wait=false"]).await?;
    held(bed, &cluster, false).await?;
    passed("a ClusterPlugin that is deleted holds no upgrade");
    cluster.delete(bed).await
}

async fn held(bed: &Bed, cluster: &Cluster, is_held: bool) -> Result<()> {
    bed.wait_for("the hook of upgrades to be as it should", MOMENT, async || {
        let object = cluster.object(bed, "cluster", &cluster.name).await?;
        let annotations = &object["metadata"]["annotations"];
        ensure!(annotations.get(HOOK).is_some() == is_held, "annotations {annotations}");
        Ok(())
    })
    .await
}

async fn control_plane_version(bed: &Bed, cluster: &Cluster) -> Result<String> {
    let all = cluster.objects(bed, "kubeadmcontrolplanes").await?;
    Ok(all.iter().filter_map(|it| it["spec"]["version"].as_str()).collect())
}

/// The cluster template, as a class of clusters and one of them: with a control plane and without workers.
async fn of_class(bed: &Bed, cluster: &Cluster) -> Result<String> {
    let manifest = cluster.manifest(bed).await?;
    let documents: Vec<Value> =
        manifest.split("\n---\n").map(serde_saphyr::from_str).collect::<Result<_, _>>()?;
    let find = |kind: &str| documents.iter().find(|it| it["kind"] == kind).cloned().unwrap_or_default();
    let metadata = |name: &str| json!({"name": name, "namespace": cluster.namespace});
    let name = cluster.name.as_str();
    let (infrastructure, control_plane) =
        ("infrastructure.cluster.x-k8s.io/v1beta2", "controlplane.cluster.x-k8s.io/v1beta2");
    let reference = |version: &str, kind: &str, name: &str| json!({"templateRef": {"apiVersion": version, "kind": kind, "name": name}});
    let machines = format!("{name}-control-plane");
    let mut of_machines = reference(control_plane, "KubeadmControlPlaneTemplate", name);
    of_machines["machineInfrastructure"] = reference(infrastructure, "AWSMachineTemplate", &machines);
    of_machines["naming"] = json!({"template": "{{ .cluster.name }}-control-plane"});
    let mut of_cluster = reference(infrastructure, "AWSClusterTemplate", name);
    of_cluster["naming"] = json!({"template": "{{ .cluster.name }}"});
    let objects = [
        json!({"apiVersion": infrastructure, "kind": "AWSClusterTemplate", "metadata": metadata(name),
            "spec": {"template": {"spec": find("AWSCluster")["spec"]}}}),
        json!({"apiVersion": control_plane, "kind": "KubeadmControlPlaneTemplate", "metadata": metadata(name),
            "spec": {"template": {"spec": {"kubeadmConfigSpec": find("KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]}}}}),
        find("AWSMachineTemplate"),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": metadata(name),
            "spec": {"infrastructure": of_cluster, "controlPlane": of_machines}}),
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata(name),
            "spec": {"clusterNetwork": find("Cluster")["spec"]["clusterNetwork"], "topology": {
                "classRef": {"name": name}, "version": KUBERNETES_VERSION, "controlPlane": {"replicas": cluster.control_planes}}}}),
        find("ClusterPlugin"),
    ];
    Ok(objects.map(|it| it.to_string()).join("\n---\n"))
}
