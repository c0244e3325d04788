//! Clusters without a life of their own: plain Machines, which make AWS work and boot nothing.

use serde_json::{Value, json};

use crate::{Cluster, KUBERNETES_VERSION};

/// The instance profile of plain Machines.
pub const PROFILE: &str = "nodes.cluster-api-provider-aws.sigs.k8s.io";

/// One of many clusters that are all alike.
pub fn manifest(number: usize, machines: usize) -> String {
    let cluster = Cluster::new("default", &format!("fleet-{number}"), 1, machines - 1);
    let names: Vec<String> = (0..machines).map(|it| it.to_string()).collect();
    // Where nothing boots, no name resolves.
    let balancer = json!({"dnsResolutionCheck": "None"});
    let spec = json!({"region": "us-east-1", "network": {"vpc": {"availabilityZoneUsageLimit": 1}}, "controlPlaneLoadBalancer": balancer});
    let machine = json!({"instanceType": "t3.large", "iamInstanceProfile": PROFILE});
    let machines: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(number, name)| (name.as_str(), number == 0, machine.clone()))
        .collect();
    documents(&cluster, spec, json!({}), &machines)
}

/// A cluster of plain Machines whose bootstrap data is there: nothing of Kubernetes has to boot. `spec` and
/// `annotations` are the AWSCluster's; of each machine there is a name, whether it is of the control plane,
/// and the AWSMachine's spec.
pub fn documents(
    cluster: &Cluster,
    spec: Value,
    annotations: Value,
    machines: &[(&str, bool, Value)],
) -> String {
    let (name, namespace) = (&cluster.name, &cluster.namespace);
    let labels = json!({"cluster.x-k8s.io/cluster-name": name});
    let reference = |kind: &str, name: &str| json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name});
    let secret = format!("{name}-bootstrap");
    let mut documents = vec![
        json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name, "namespace": namespace},
            "spec": {"infrastructureRef": reference("AWSCluster", name)}}),
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations}, "spec": spec}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": namespace, "labels": labels},
            "type": "cluster.x-k8s.io/secret", "stringData": {"format": "cloud-config", "value": "#cloud-config\n{}\n"}}),
    ];
    for (machine, is_control_plane, spec) in machines {
        let machine = format!("{name}-{machine}");
        let mut of_machine = labels.clone();
        if *is_control_plane {
            of_machine["cluster.x-k8s.io/control-plane"] = "".into();
        }
        documents.push(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": machine, "namespace": namespace, "labels": of_machine},
            "spec": {"clusterName": name, "version": KUBERNETES_VERSION, "bootstrap": {"dataSecretName": secret},
                "infrastructureRef": reference("AWSMachine", &machine)}}));
        documents.push(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachine",
            "metadata": {"name": machine, "namespace": namespace, "labels": labels}, "spec": spec}));
    }
    documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}
