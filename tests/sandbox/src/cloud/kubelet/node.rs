//! The Node object: registered once, kept alive by a Lease, Ready as soon as a pod network is there.
//!
//! Addresses are set at registration only: afterwards they are the cloud controller manager's.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::watch;

use super::flags::Flags;
use crate::cloud::boot;
use crate::cloud::machine::Specification;
use crate::cloud::machine::root::OURS;

/// How often the Lease is renewed; the node lifecycle controller gives it 40 s.
const INTERVAL: Duration = Duration::from_secs(10);

/// What is needed to keep the Node object.
pub struct Registration {
    flags: Flags,
    address: String,
    /// Version of Kubernetes, such as `v1.36.3`.
    version: String,
    nodes: Api<Node>,
    leases: Api<Lease>,
    network: watch::Receiver<bool>,
}

impl Registration {
    /// `network` says whether a pod network is there.
    ///
    /// # Errors
    /// When the version cannot be found out.
    pub async fn new(
        machine: &Specification,
        flags: Flags,
        client: Client,
        network: watch::Receiver<bool>,
    ) -> Result<Self> {
        let output = Command::new(format!("{OURS}/programs/kubeadm"))
            .args(["version", "-o", "short"])
            .env("PATH", boot::PATH)
            .output()
            .await
            .context("asking kubeadm for its version")?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let leases = Api::namespaced(client.clone(), "kube-node-lease");
        Ok(Self {
            flags,
            address: machine.address.clone(),
            version,
            nodes: Api::all(client),
            leases,
            network,
        })
    }

    /// Creates the Node, however long that takes; returns its uid.
    pub async fn register(&self) -> String {
        loop {
            match self.attempt().await {
                Ok(uid) => return uid,
                Err(error) => tracing::warn!("registering the node: {error:#}"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn attempt(&self) -> Result<String> {
        let name = &self.flags.node_name;
        if let Some(node) = self.nodes.get_opt(name).await.context("reading the node")? {
            return node.uid().context("the node has no uid");
        }
        let node: Node = serde_json::from_value(self.object()).context("making the node")?;
        let node = self.nodes.create(&PostParams::default(), &node).await.context("creating the node")?;
        tracing::info!(name, "registered");
        node.uid().context("the node has no uid")
    }

    fn object(&self) -> Value {
        let name = &self.flags.node_name;
        let mut labels = json!({
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64",
        });
        for (key, value) in &self.flags.labels {
            labels[key] = json!(value);
        }
        let taints: Vec<Value> = self
            .flags
            .taints
            .iter()
            .map(|taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect}))
            .collect();
        let pods = self.flags.max_pods.unwrap_or(110).to_string();
        let resources = json!({"cpu": "2", "memory": "4Gi", "pods": pods, "ephemeral-storage": "20Gi"});
        let mut spec = json!({"taints": taints});
        if let Some(id) = &self.flags.provider_id {
            spec["providerID"] = json!(id);
        }
        json!({
            "apiVersion": "v1", "kind": "Node", "spec": spec,
            "metadata": {"name": name, "labels": labels, "annotations": {
                // Volumes are attached by the attach-detach controller, as everywhere.
                "volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
            "status": {
                "capacity": resources, "allocatable": resources,
                "addresses": [
                    {"type": "InternalIP", "address": self.address}, {"type": "Hostname", "address": name}],
                "conditions": conditions(false),
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "nodeInfo": {
                    "kubeletVersion": self.version, "kubeProxyVersion": "", "operatingSystem": "linux", "architecture": "amd64",
                    "containerRuntimeVersion": "containerd://sandbox", "kernelVersion": "sandbox", "osImage": "sandbox",
                    "machineID": name, "systemUUID": name, "bootID": name,
                },
            },
        })
    }

    /// Renews the Lease and keeps the conditions true, for ever.
    pub async fn keep(&self) {
        let mut network = self.network.clone();
        loop {
            if let Err(error) = self.renew().await {
                tracing::warn!("renewing the lease: {error:#}");
            }
            let ready = *network.borrow_and_update();
            if let Err(error) = self.report(ready).await {
                tracing::warn!("reporting the node's status: {error:#}");
            }
            // An error would mean that nothing runs pods any more; then the pause alone is left.
            if let Ok(Err(_)) = tokio::time::timeout(INTERVAL, network.changed()).await {
                tokio::time::sleep(INTERVAL).await;
            }
        }
    }

    async fn renew(&self) -> Result<()> {
        let name = &self.flags.node_name;
        let spec = json!({
            "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": format!("{:.6}", Timestamp::now()),
        });
        let patch = Patch::Merge(json!({"spec": spec}));
        match self.leases.patch(name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            result => return result.map(drop).context("patching the lease"),
        }
        let lease = json!({"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec});
        let lease: Lease = serde_json::from_value(lease).context("making the lease")?;
        self.leases.create(&PostParams::default(), &lease).await.map(drop).context("creating the lease")
    }

    /// Patches the conditions if somebody, such as the node lifecycle controller, has set them otherwise.
    async fn report(&self, ready: bool) -> Result<()> {
        let name = &self.flags.node_name;
        let node = self.nodes.get(name).await.context("reading the node")?;
        let found = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let wanted = conditions(ready);
        let says = |condition: &Value| {
            found
                .iter()
                .any(|found| condition["type"] == *found.type_ && condition["status"] == *found.status)
        };
        if wanted.iter().all(says) {
            return Ok(());
        }
        let patch = Patch::Strategic(json!({"status": {"conditions": wanted}}));
        self.nodes
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .map(drop)
            .context("patching the node")
    }
}

fn conditions(network: bool) -> Vec<Value> {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        let status = if status { "True" } else { "False" };
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let ready = if network {
        condition("Ready", true, "KubeletReady", "kubelet is posting ready status")
    } else {
        let message = "container runtime network not ready: NetworkReady=false \
            reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";
        condition("Ready", false, "KubeletNotReady", message)
    };
    vec![
        condition(
            "MemoryPressure",
            false,
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition("DiskPressure", false, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", false, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ready,
    ]
}
