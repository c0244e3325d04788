//! The network of a cluster as its AWSCluster asks for it: VPC, subnets, and the rules of its security
//! groups. What was found in AWS is in status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ingress::{CNISpec, IngressRule};
use crate::metadata::Tags;

/// Everything about the cluster's network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkSpec {
    /// The VPC of the cluster.
    #[serde(default)]
    pub vpc: VPCSpec,
    /// Subnets of the cluster. When empty and the VPC is made for the cluster, one public and one private
    /// subnet per availability zone are made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub subnets: Vec<SubnetSpec>,
    /// What the cluster's network plugin needs between nodes. When absent: BGP (tcp 179) and IP-in-IP, which
    /// Calico's plain manifest needs. Rules that a ClusterPlugin needs are added by themselves.
    #[serde(default)]
    pub cni: CNISpec,
    /// Further ingress rules of the control plane's security group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub additional_control_plane_ingress_rules: Vec<IngressRule>,
    /// Further ingress rules of the nodes' security group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub additional_node_ingress_rules: Vec<IngressRule>,
    /// Who may reach node ports (tcp 30000-32767) of the nodes. When empty, everybody (0.0.0.0/0).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub node_port_ingress_rule_cidr_blocks: Vec<String>,
}

/// The VPC of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VPCSpec {
    /// Id of an existing VPC to use. When empty, a VPC is made for the cluster. It cannot be changed once
    /// set.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub id: String,
    /// IPv4 addresses of the VPC that is made for the cluster. 10.0.0.0/16 when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 43))]
    pub cidr_block: String,
    /// Id of the internet gateway of an existing VPC. Accepted for manifests of Cluster API Provider AWS, and
    /// not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub internet_gateway_id: Option<String>,
    /// Further tags of the VPC. Those that AWS reserves for itself (`aws:...`) are left out.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// How many availability zones subnets are made in, when none are listed.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 32))]
    pub availability_zone_usage_limit: i32,
    /// Which availability zones are taken when the region has more than the limit: Ordered takes the first by
    /// name.
    #[serde(default)]
    pub availability_zone_selection: AvailabilityZoneSelection,
}

impl Default for VPCSpec {
    fn default() -> Self {
        Self {
            id: String::new(),
            cidr_block: String::new(),
            internet_gateway_id: None,
            tags: Tags::new(),
            availability_zone_usage_limit: three(),
            availability_zone_selection: AvailabilityZoneSelection::default(),
        }
    }
}

fn three() -> i32 {
    3
}

/// How availability zones are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum AvailabilityZoneSelection {
    #[default]
    Ordered,
    Random,
}

/// A subnet of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetSpec {
    /// The id that AWS gave to an existing subnet (`subnet-0123456789abcdef0`), or any other name for a
    /// subnet that is to be made.
    #[schemars(length(min = 1, max = 255))]
    pub id: String,
    /// Id in AWS of a subnet that was made by CAPA under another name. Read, never written.
    #[serde(rename = "resourceID", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub resource_id: String,
    /// IPv4 addresses of the subnet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 43))]
    pub cidr_block: String,
    /// Availability zone of the subnet, such as `us-east-1a`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub availability_zone: String,
    /// True for a subnet with a route to the internet gateway. False when absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_public: bool,
    /// Id of the route table of an existing subnet. Accepted for manifests of Cluster API Provider AWS, and
    /// not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub route_table_id: Option<String>,
    /// Id of the NAT gateway that lies in this subnet. Accepted for manifests of Cluster API Provider AWS,
    /// and not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub nat_gateway_id: Option<String>,
    /// Further tags of the subnet. A tag `Name` names the subnet. Those that AWS reserves for itself
    /// (`aws:...`) are left out.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
}
