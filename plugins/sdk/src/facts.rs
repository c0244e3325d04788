//! The facts that come without asking, and those that a plugin asks for in its descriptor, as types. Fields
//! that a newer host adds are ignored.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Key of [`Cluster`].
pub const CLUSTER: &str = "cluster";
/// Key of the Kubernetes version that the control plane is to have, a string such as `v1.36.3`.
pub const KUBERNETES_VERSION: &str = "kubernetes-version";
/// Key of the lowest version of the API servers that are there, a string such as `v1.36.3`. See
/// [`versions::running`](crate::versions::running).
pub const API_SERVER_VERSION: &str = "api-server-version";
/// Key of [`KubeletVersions`].
pub const KUBELET_VERSIONS: &str = "kubelet-versions";
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
    /// `metadata.name` of the Cluster.
    pub name: String,
    /// `metadata.namespace` of the Cluster.
    pub namespace: String,
    /// CIDR blocks of Pods, such as `192.168.0.0/16`; empty when the Cluster names none.
    #[serde(rename = "podCIDRs")]
    pub pod_cidrs: Vec<String>,
    /// CIDR blocks of Services, such as `10.96.0.0/12`; empty when the Cluster names none.
    #[serde(rename = "serviceCIDRs")]
    pub service_cidrs: Vec<String>,
    /// Where its API is reached.
    pub control_plane_endpoint: Endpoint,
}

/// Where the API server answers.
#[derive(Clone, Debug, Deserialize)]
pub struct Endpoint {
    /// DNS name or IP address.
    pub host: String,
    /// TCP port, such as 6443.
    pub port: u16,
}

/// Where the cluster runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aws {
    /// Such as `eu-west-1`.
    pub region: String,
    /// `aws`, `aws-cn` or `aws-us-gov`.
    pub partition: String,
    /// Id of the VPC that the cluster is in, such as `vpc-0123456789abcdef0`.
    pub vpc_id: String,
    /// Availability zones of the cluster's subnets, such as `eu-west-1a`, sorted.
    pub zones: Vec<String>,
    /// Tags that the user wants on everything that is made for the cluster.
    pub tags: BTreeMap<String, String>,
}

/// Kubernetes versions of the kubelets of the cluster's machines.
#[derive(Clone, Debug, Deserialize)]
pub struct KubeletVersions {
    /// That of the oldest one, such as `v1.35.2`.
    pub lowest: String,
    /// That of the newest one, such as `v1.36.3`.
    pub highest: String,
}

/// What of this plugin was carried out last.
#[derive(Clone, Debug, Deserialize)]
pub struct Installed {
    /// Version of the plugin that installed it, as in its [`Descriptor`](crate::Descriptor).
    pub version: String,
    /// `sha256:` and the hash of the component.
    pub digest: String,
}

/// A StorageClass of the workload cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StorageClass {
    /// `metadata.name` of the StorageClass.
    pub name: String,
    /// Name of the CSI driver, such as `ebs.csi.aws.com`.
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
    /// Such as `subnet-0123456789abcdef0`.
    pub id: String,
    /// Availability zone, such as `eu-west-1a`.
    pub zone: String,
    /// `internet-facing` and `internal`: the schemes of load balancers for which the subnet is tagged.
    pub load_balancer_schemes: Vec<String>,
}

/// An EFS file system of the account in the cluster's region. The host tells of them when the configuration
/// has `fileSystemTags`.
#[derive(Clone, Debug, Deserialize)]
pub struct FileSystem {
    /// Such as `fs-0123456789abcdef0`.
    pub id: String,
    /// Value of its tag `Name`; empty when it has none.
    pub name: String,
    /// All of its tags, `Name` among them.
    pub tags: BTreeMap<String, String>,
    /// EFS's word, such as `available`.
    pub state: String,
}

/// An IPPool of Calico in the workload cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IpPool {
    /// `metadata.name` of the IPPool.
    pub name: String,
    /// Addresses of Pods, as a CIDR block.
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
    /// Such as `t3.large`.
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
