//! Clusters without a life of their own: plain Machines, which make AWS work and boot nothing.

use serde_json::Value;

/// A cluster of plain Machines whose bootstrap data is there: nothing of Kubernetes has to boot.
pub fn manifest(number: usize, machines: usize) -> String {
    let name = format!("fleet-{number}");
    let mut documents: Vec<Value> = vec![
        serde_json::json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name, "namespace": "default"},
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": name}}}),
        serde_json::json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"region": "us-east-1", "network": {"vpc": {"availabilityZoneUsageLimit": 1}}}}),
        serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-bootstrap"), "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "type": "cluster.x-k8s.io/secret", "stringData": {"format": "cloud-config", "value": "#cloud-config\n{}\n"}}),
    ];
    for machine in 0..machines {
        let machine_name = format!("{name}-{machine}");
        let mut labels = serde_json::json!({"cluster.x-k8s.io/cluster-name": name});
        if machine == 0 {
            labels["cluster.x-k8s.io/control-plane"] = "".into();
        }
        documents.push(serde_json::json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": machine_name, "namespace": "default", "labels": labels},
            "spec": {"clusterName": name, "version": "v1.36.3", "bootstrap": {"dataSecretName": format!("{name}-bootstrap")},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSMachine", "name": machine_name}}}));
        documents.push(serde_json::json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachine",
            "metadata": {"name": machine_name, "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "spec": {"instanceType": "t3.large",
                "iamInstanceProfile": "nodes.cluster-api-provider-aws.sigs.k8s.io"}}));
    }
    documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}
