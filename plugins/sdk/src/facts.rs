//! The facts that come without asking, and those that a plugin asks for in its descriptor, as types. Fields that a newer host adds are ignored.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Key of [`Cluster`].
pub const CLUSTER: &str = "cluster";
/// Key of the Kubernetes version of the control plane, a string such as `v1.36.3`.
pub const KUBERNETES_VERSION: &str = "kubernetes-version";
/// Key of [`Aws`].
pub const AWS: &str = "aws";
/// Key of a list of [`StorageClass`].
pub const STORAGE_CLASSES: &str = "storage-classes";
/// Key of a list of [`Subnet`].
pub const SUBNETS: &str = "subnets";
/// Key of a list of [`FileSystem`].
pub const FILE_SYSTEMS: &str = "file-systems";
/// Key of a list of [`InstanceType`].
pub const INSTANCE_TYPES: &str = "instance-types";
/// Key of a list of [`IpPool`].
pub const IP_POOLS: &str = "ip-pools";
/// Key of the ids of the subnets in which the cluster has instances, a list of strings.
pub const MACHINE_SUBNETS: &str = "machine-subnets";
/// Key of [`Installed`].
pub const INSTALLED: &str = "installed";

/// The Cluster API Cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    pub name: String,
    pub namespace: String,
    #[serde(rename = "podCIDRs")]
    pub pod_cidrs: Vec<String>,
    #[serde(rename = "serviceCIDRs")]
    pub service_cidrs: Vec<String>,
    pub control_plane_endpoint: Endpoint,
}

/// Where the API server answers.
#[derive(Clone, Debug, Deserialize)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
}

/// Where the cluster runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aws {
    pub region: String,
    pub partition: String,
    pub vpc_id: String,
    pub zones: Vec<String>,
    pub tags: BTreeMap<String, String>,
}

/// What of this plugin was carried out last.
#[derive(Clone, Debug, Deserialize)]
pub struct Installed {
    pub version: String,
    pub digest: String,
}

/// A StorageClass of the workload cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    pub name: String,
    pub provisioner: String,
    /// Whether claims that name no class get this one.
    pub is_default: bool,
    /// What its driver is told about volumes.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

/// A subnet of the cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subnet {
    pub id: String,
    pub zone: String,
    /// `internet-facing` and `internal`: the schemes of load balancers for which the subnet is tagged.
    pub load_balancer_schemes: Vec<String>,
}

/// An EFS file system of the account in the cluster's region. The host tells of them when the configuration has `fileSystemTags`.
#[derive(Clone, Debug, Deserialize)]
pub struct FileSystem {
    pub id: String,
    /// Value of its tag `Name`; empty when it has none.
    pub name: String,
    pub tags: BTreeMap<String, String>,
    /// EFS's word, such as `available`.
    pub state: String,
}

/// An IPPool of Calico in the workload cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpPool {
    pub name: String,
    pub cidr: String,
    /// Prefix length of the blocks in which nodes get addresses of it.
    pub block_size: u8,
    /// Tigera's operator made it from an Installation, and changes and deletes it with that.
    pub managed: bool,
}

/// A type of the cluster's instances.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceType {
    pub name: String,
    /// Most network interfaces of its default network card.
    pub interfaces: u32,
    /// Most IPv4 addresses of one network interface, the interface's own among them.
    pub addresses_per_interface: u32,
    /// Whether it is of the Nitro system, whose interfaces take prefixes of addresses.
    pub nitro: bool,
    /// Most Pods that a kubelet lets in on a Node of this type; `None` when no such Node is known yet.
    pub max_pods: Option<u32>,
}
