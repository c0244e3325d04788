//! The values of the facts that plugins are given without asking, those that they name in `requires.facts`,
//! each with its JSON Schema in `wit/facts/`. Facts `kubernetes-version` and `api-server-version` are plain
//! strings such as `v1.36.3`.
//! No fact ever holds a secret.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Fact `cluster`: the Cluster API Cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClusterFact {
    /// Of the Cluster.
    pub name: String,
    /// Of the Cluster.
    pub namespace: String,
    /// CIDR blocks of Pods; empty when the Cluster names none.
    #[serde(rename = "podCIDRs")]
    pub pod_cidrs: Vec<String>,
    /// CIDR blocks of Services; empty when the Cluster names none.
    #[serde(rename = "serviceCIDRs")]
    pub service_cidrs: Vec<String>,
    /// Where its API is asked.
    pub control_plane_endpoint: ControlPlaneEndpoint,
}

impl ClusterFact {
    /// Key of the fact.
    pub const KEY: &'static str = "cluster";
}

/// Where the API server answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ControlPlaneEndpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// The key of the fact that is the Kubernetes version that the control plane is to have.
pub const KUBERNETES_VERSION: &str = "kubernetes-version";

/// The key of the fact that is the lowest version of the API servers that are there; absent before the first
/// machine of the control plane.
pub const API_SERVER_VERSION: &str = "api-server-version";

/// Fact `kubelet-versions`: the versions of the kubelets of the cluster's machines; absent before the first
/// machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KubeletVersionsFact {
    /// That of the oldest one.
    pub lowest: String,
    /// That of the newest one.
    pub highest: String,
}

impl KubeletVersionsFact {
    /// Key of the fact.
    pub const KEY: &'static str = "kubelet-versions";
}

/// Fact `aws`: where the cluster runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AwsFact {
    /// Such as `eu-west-1`.
    pub region: String,
    /// `aws`, `aws-cn` or `aws-us-gov`.
    pub partition: String,
    /// Id of the VPC that the cluster is in.
    pub vpc_id: String,
    /// Availability zones of the cluster's subnets, sorted.
    pub zones: Vec<String>,
    /// Tags that the user wants on everything that is made for the cluster.
    pub tags: BTreeMap<String, String>,
}

impl AwsFact {
    /// Key of the fact.
    pub const KEY: &'static str = "aws";
}

/// Fact `installed`: what of this plugin was carried out last; absent before the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstalledFact {
    /// Version of the plugin that installed it.
    pub version: String,
    /// `sha256:` and the hash of the component.
    pub digest: String,
}

impl InstalledFact {
    /// Key of the fact.
    pub const KEY: &'static str = "installed";
}

/// One element of fact `storage-classes`: a StorageClass of the workload cluster, sorted by name. The
/// plugin's own are among them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageClassFact {
    /// Of the StorageClass.
    pub name: String,
    /// Name of the CSI driver.
    pub provisioner: String,
    /// Annotation `storageclass.kubernetes.io/is-default-class` is `true`.
    pub is_default: bool,
    /// What its driver is told about volumes. Names of Secrets may be in it, and never what is in one.
    pub parameters: BTreeMap<String, String>,
}

impl StorageClassFact {
    /// Key of the fact.
    pub const KEY: &'static str = "storage-classes";
}

/// One element of fact `subnets`: a subnet of the cluster, sorted by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubnetFact {
    /// Id of the subnet.
    pub id: String,
    /// Availability zone.
    pub zone: String,
    /// Schemes of load balancers for which it is tagged: `internet-facing` (`kubernetes.io/role/elb`),
    /// `internal` (`kubernetes.io/role/internal-elb`).
    pub load_balancer_schemes: Vec<String>,
}

impl SubnetFact {
    /// Key of the fact.
    pub const KEY: &'static str = "subnets";
}

/// One element of fact `file-systems`: an EFS file system of the account in the cluster's region, sorted by
/// id. The host gives the fact to plugins whose configuration has `fileSystemTags`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FileSystemFact {
    /// Id of the file system.
    pub id: String,
    /// Value of its tag `Name`; empty when it has none.
    pub name: String,
    /// All of its tags.
    pub tags: BTreeMap<String, String>,
    /// EFS's word, such as `available`.
    pub state: String,
}

impl FileSystemFact {
    /// Key of the fact.
    pub const KEY: &'static str = "file-systems";
}

/// One element of fact `instance-types`: a type of the cluster's instances, sorted by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceTypeFact {
    /// Such as `t3.large`.
    pub name: String,
    /// Most network interfaces of its default network card.
    pub interfaces: u32,
    /// Most IPv4 addresses of one network interface, the interface's own among them.
    pub addresses_per_interface: u32,
    /// Whether it is of the Nitro system, whose interfaces take prefixes of addresses.
    pub nitro: bool,
    /// Most Pods that a kubelet lets in on a Node of this type; absent when no such Node is known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
}

impl InstanceTypeFact {
    /// Key of the fact.
    pub const KEY: &'static str = "instance-types";
}

/// One element of fact `ip-pools`: an IPPool of Calico in the workload cluster, sorted by name; none before
/// its kind is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IpPoolFact {
    /// Of the IPPool.
    pub name: String,
    /// Addresses of Pods, as a CIDR block.
    pub cidr: String,
    /// Prefix length of the blocks in which nodes get addresses of it.
    pub block_size: u32,
    /// Tigera's operator made it from an Installation, and changes and deletes it with that.
    pub managed: bool,
}

impl IpPoolFact {
    /// Key of the fact.
    pub const KEY: &'static str = "ip-pools";
}

/// The key of the fact that is the ids of the subnets in which the cluster has instances, sorted.
pub const MACHINE_SUBNETS: &str = "machine-subnets";

/// The keys of all facts. No answer to a query has one of them.
pub const FACTS: [&str; 12] = [
    ClusterFact::KEY,
    KUBERNETES_VERSION,
    API_SERVER_VERSION,
    KubeletVersionsFact::KEY,
    AwsFact::KEY,
    InstalledFact::KEY,
    StorageClassFact::KEY,
    SubnetFact::KEY,
    FileSystemFact::KEY,
    InstanceTypeFact::KEY,
    IpPoolFact::KEY,
    MACHINE_SUBNETS,
];
