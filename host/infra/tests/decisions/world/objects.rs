//! Objects as users and Cluster API write them, and merge patches to them.

use crds::cluster_api::{Cluster, Machine};
use crds::{AWSCluster, AWSMachine};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "default";

pub fn cluster(name: &str) -> Cluster {
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}},
        "status": {"initialization": {"infrastructureProvisioned": true}},
    });
    serde_json::from_value(object).expect("a Cluster")
}

pub fn aws_cluster(name: &str, spec: Value) -> AWSCluster {
    let mut object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
        "metadata": {"name": name, "namespace": NAMESPACE, "resourceVersion": "1", "generation": 1, "creationTimestamp": "2027-01-15T08:00:00Z"},
        "spec": {"region": "us-east-1", "network": {"vpc": {"availabilityZoneUsageLimit": 1}}},
    });
    merge(&mut object["spec"], &spec);
    serde_json::from_value(object).expect("an AWSCluster")
}

pub fn machine(name: &str, control_plane: bool) -> Machine {
    let labels = if control_plane { json!({"cluster.x-k8s.io/control-plane": ""}) } else { json!({}) };
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"clusterName": "prod", "version": "v1.36.3", "bootstrap": {"dataSecretName": name}},
    });
    serde_json::from_value(object).expect("a Machine")
}

pub fn aws_machine(name: &str, spec: Value) -> AWSMachine {
    let mut object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachine",
        "metadata": {"name": name, "namespace": NAMESPACE, "resourceVersion": "1", "generation": 1, "creationTimestamp": "2027-01-15T08:00:00Z"},
        "spec": {"instanceType": "t3.large", "ami": {"id": "ami-1"}, "iamInstanceProfile": "nodes.cluster-api-provider-aws.sigs.k8s.io"},
    });
    merge(&mut object["spec"], &spec);
    serde_json::from_value(object).expect("an AWSMachine")
}

/// JSON merge patch, as the API server applies it; the resource version has to be the current one.
pub fn patched<T: serde::Serialize + serde::de::DeserializeOwned>(object: &T, patch: &Value) -> T {
    let mut value = serde_json::to_value(object).expect("an object");
    let version = value["metadata"]["resourceVersion"].clone();
    assert_eq!(
        patch["metadata"]["resourceVersion"], version,
        "a patch has to name the version that it was made for"
    );
    merge(&mut value, patch);
    let next = version.as_str().and_then(|it| it.parse::<u64>().ok()).unwrap_or_default() + 1;
    value["metadata"]["resourceVersion"] = json!(next.to_string());
    serde_json::from_value(value).expect("a patched object")
}

pub fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    let Value::Object(into) = into else { return };
    for (key, value) in patch {
        match value {
            Value::Null => {
                into.remove(key);
            }
            value => merge(into.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}
