//! Clusters without machines, whose API server is another one: the management cluster's own, or one that a test
//! answers for. They are there as soon as they are applied.

use anyhow::Result;
use sandbox::Bed;
use serde_json::{Value, json};

use crate::{Cluster, fleet};

/// Makes a cluster whose API server is said to be at this URL, with a ClusterPlugin of this spec.
///
/// # Errors
/// The management cluster does not take an object.
pub async fn make(bed: &Bed, name: &str, server: &str, mut plugin: Value) -> Result<()> {
    let metadata =
        json!({"name": name, "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": name}});
    let mut kubeconfig: Value = serde_json::from_str(&std::fs::read_to_string(bed.running().kubeconfig())?)?;
    kubeconfig["clusters"][0]["cluster"]["server"] = server.into();
    // The name that is in the certificate of the API server, whichever address it is asked at.
    kubeconfig["clusters"][0]["cluster"]["tls-server-name"] = "localhost".into();
    let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": metadata.clone(), "stringData": {"value": kubeconfig.to_string()}});
    secret["metadata"]["name"] = format!("{name}-kubeconfig").into();
    // The same of all, so that all have the same plan.
    let endpoint = json!({"host": "10.255.0.1", "port": 6443});
    let spec = json!({"region": "us-east-1", "network": {"vpc": {"availabilityZoneUsageLimit": 1}},
        "controlPlaneLoadBalancer": {"loadBalancerType": "disabled"}, "controlPlaneEndpoint": endpoint});
    plugin["clusterName"] = name.into();
    let plugin = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin",
        "metadata": metadata, "spec": plugin});
    let cluster = Cluster::new("default", name, 0, 0);
    let documents =
        [fleet::documents(&cluster, spec, json!({}), &[]), secret.to_string(), plugin.to_string()];
    bed.apply(&documents.join("\n---\n")).await?;
    let pods = r#"{"spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}}}"#;
    bed.kubectl(&["patch", "cluster", name, "--type=merge", "--patch", pods]).await?;
    let initialized = r#"{"status": {"initialization": {"controlPlaneInitialized": true}}}"#;
    bed.kubectl(&["patch", "cluster", name, "--subresource=status", "--type=merge", "--patch", initialized])
        .await
        .map(drop)
}
