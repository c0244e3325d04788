//! The facts that come without asking, as types. Fields that a newer host adds are ignored.

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
