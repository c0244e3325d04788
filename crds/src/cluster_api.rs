//! The fields that this operator reads of Cluster API's objects (API version v1beta2), and nothing else of
//! them. They are never written whole: writing one back would drop every field that is not here. Changes are
//! merge patches.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

pub use crate::cluster::APIEndpoint;

/// What is read of a Cluster's spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Cluster",
    plural = "clusters",
    namespaced,
    schema = "disabled",
    status = "ClusterStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Nothing is done for the cluster while true.
    pub paused: Option<bool>,
    /// Where the API is reached.
    pub control_plane_endpoint: APIEndpoint,
    /// Addresses inside of the cluster.
    pub cluster_network: ClusterNetwork,
    /// The AWSCluster.
    pub infrastructure_ref: Option<ContractVersionedObjectReference>,
    /// The control plane.
    pub control_plane_ref: Option<ContractVersionedObjectReference>,
    /// What a ClusterClass makes of it; `None` when it is of none.
    pub topology: Option<Topology>,
}

/// What is read of the topology of a Cluster that is of a ClusterClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Topology {
    /// The Kubernetes version that the cluster is to have, such as `v1.36.3`.
    pub version: String,
}

/// Addresses inside of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterNetwork {
    /// Port that API servers are to be reached at; 6443 when absent.
    #[serde(rename = "apiServerPort")]
    pub api_server_port: Option<i32>,
    /// Addresses of Services.
    pub services: NetworkRanges,
    /// Addresses of Pods.
    pub pods: NetworkRanges,
    /// Domain of Services; `cluster.local` when absent.
    pub service_domain: Option<String>,
}

/// Ranges of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRanges {
    /// CIDR blocks.
    pub cidr_blocks: Vec<String>,
}

/// A reference to an object of the same namespace whose version follows from the contract.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContractVersionedObjectReference {
    /// Group of the API.
    pub api_group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// What is read of a Cluster's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// What has been reached once.
    pub initialization: ClusterInitialization,
}

/// What a Cluster has reached once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterInitialization {
    /// The infrastructure was provisioned.
    pub infrastructure_provisioned: Option<bool>,
    /// The control plane took requests.
    pub control_plane_initialized: Option<bool>,
}

/// What is read of a Machine's spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta2",
    kind = "Machine",
    plural = "machines",
    namespaced,
    schema = "disabled",
    status = "MachineStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// The Cluster.
    pub cluster_name: String,
    /// Where bootstrap data is.
    pub bootstrap: Bootstrap,
    /// The AWSMachine.
    pub infrastructure_ref: Option<ContractVersionedObjectReference>,
    /// Kubernetes version, such as `v1.36.3`.
    pub version: Option<String>,
    /// Name for Kubernetes, copied from the AWSMachine.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Availability zone that the machine should be in.
    pub failure_domain: Option<String>,
}

/// Where a machine's bootstrap data is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bootstrap {
    /// Secret with bootstrap data under the key `value`; absent until there is any.
    pub data_secret_name: Option<String>,
}

/// What is read of a Machine's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// The Node of the machine.
    pub node_ref: Option<NodeReference>,
    /// What the Node says of itself.
    pub node_info: Option<NodeInfo>,
    /// Cluster API's word for where the machine is in its life.
    pub phase: Option<String>,
    /// What Cluster API says of it, of its Node for one.
    pub conditions: Vec<Condition>,
}

/// A Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeReference {
    /// Name of the Node.
    pub name: String,
}

/// What is read of what a Node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    /// Version of its kubelet, such as `v1.36.3`. Whoever runs the machine writes it.
    pub kubelet_version: Option<String>,
}

/// What is read of a KubeadmControlPlane's spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "controlplane.cluster.x-k8s.io",
    version = "v1beta2",
    kind = "KubeadmControlPlane",
    plural = "kubeadmcontrolplanes",
    namespaced,
    schema = "disabled",
    status = "KubeadmControlPlaneStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeadmControlPlaneSpec {
    /// Kubernetes version, such as `v1.36.3`.
    pub version: String,
    /// Number of control plane machines wanted.
    pub replicas: Option<i32>,
    /// What kubeadm is told.
    pub kubeadm_config_spec: KubeadmConfigSpec,
}

/// What is read of what kubeadm is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeadmConfigSpec {
    /// What is the same on all machines of the control plane.
    pub cluster_configuration: Option<KubeadmClusterConfiguration>,
}

/// What is read of kubeadm's configuration of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeadmClusterConfiguration {
    /// The API servers.
    pub api_server: KubeadmAPIServer,
}

/// What is read of kubeadm's configuration of API servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeadmAPIServer {
    /// Their arguments, in order.
    pub extra_args: Vec<KubeadmArgument>,
}

/// An argument of a program that kubeadm runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeadmArgument {
    /// Without the dashes.
    pub name: String,
    /// Its value.
    pub value: Option<String>,
}

impl KubeadmControlPlaneSpec {
    /// Values of `service-account-issuer`, in their order.
    pub fn service_account_issuers(&self) -> Vec<&str> {
        let arguments =
            self.kubeadm_config_spec.cluster_configuration.iter().flat_map(|it| &it.api_server.extra_args);
        arguments
            .filter(|it| it.name == "service-account-issuer")
            .filter_map(|it| it.value.as_deref())
            .collect()
    }
}

/// What is read of a KubeadmControlPlane's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeadmControlPlaneStatus {
    /// What has been reached once.
    pub initialization: KubeadmControlPlaneInitialization,
    /// Number of control plane machines that are ready.
    pub ready_replicas: Option<i32>,
    /// Number of control plane machines there are.
    pub replicas: Option<i32>,
    /// Lowest Kubernetes version of its machines.
    pub version: Option<String>,
    /// The Kubernetes versions of its machines; Cluster API 1.14 and later.
    pub versions: Vec<MachinesVersion>,
}

/// A Kubernetes version that machines have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachinesVersion {
    /// Such as `v1.36.3`.
    pub version: String,
}

/// What a control plane has reached once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeadmControlPlaneInitialization {
    /// The API took requests; add-ons can be installed.
    pub control_plane_initialized: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cluster_that_was_just_applied_is_read() {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "prod", "namespace": "default"},
            "spec": {
                "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": "prod"},
            },
        }))
        .expect("a Cluster reads");
        assert!(cluster.spec.control_plane_endpoint.is_unset());
        assert_eq!(cluster.spec.cluster_network.pods.cidr_blocks, ["192.168.0.0/16"]);
        assert_eq!(cluster.spec.infrastructure_ref.expect("a reference").kind, "AWSCluster");
        assert!(cluster.status.is_none());
    }
}
