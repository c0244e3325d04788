//! Settings of the Amazon VPC CNI.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{Arguments, ContainerResources, LogLevel, NodeLabels};
use super::version::VersionPin;

/// Settings of the Amazon VPC CNI. Pods get addresses of the VPC, so the Cluster needs no
/// `spec.clusterNetwork.pods`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmazonVPCNetworking {
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// IAM role that service account `kube-system/aws-node` assumes. When absent, the roles of the instances
    /// of all machines must allow what the CNI does, as AWS's policy AmazonEKS_CNI_Policy does.
    #[serde(rename = "roleARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 2048),
        regex(pattern = r"^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$")
    )]
    pub role_arn: Option<String>,
    /// Whether network interfaces get prefixes of 16 addresses instead of single addresses, so that more Pods
    /// fit on an instance. It takes instances of the Nitro system, and subnets with free blocks of 16
    /// addresses.
    #[serde(default)]
    pub prefix_delegation: bool,
    /// Network interfaces with all addresses free that a node keeps ready. 1 when absent.
    #[serde(rename = "warmENITarget", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub warm_eni_target: Option<i32>,
    /// Free addresses that a node keeps ready, in place of `warmENITarget` and `warmPrefixTarget`. Goes
    /// together with `minimumIPTarget`.
    #[serde(rename = "warmIPTarget", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub warm_ip_target: Option<i32>,
    /// Addresses that a node has at least. Goes together with `warmIPTarget`.
    #[serde(rename = "minimumIPTarget", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub minimum_ip_target: Option<i32>,
    /// Free prefixes that a node keeps ready, with `prefixDelegation`. 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 64))]
    pub warm_prefix_target: Option<i32>,
    /// Whether packets that leave the VPC keep the address of the Pod, for Pods in private subnets behind a
    /// NAT gateway. Otherwise the node puts its own in place.
    #[serde(rename = "externalSNAT", default)]
    pub external_snat: bool,
    /// IPv4 ranges outside the VPC whose packets keep the address of the Pod too, such as those of a peered
    /// network. Without `externalSNAT` alone, which keeps it for all.
    #[serde(rename = "excludeSNATCIDRs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 18)))]
    pub exclude_snat_cidrs: Vec<String>,
    /// Largest packet of a network interface in bytes. 9001 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 9001))]
    pub mtu: Option<i32>,
    /// Largest packet of a Pod in bytes, no larger than `mtu`. The same as `mtu` when absent.
    #[serde(rename = "podMTU", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 9001))]
    pub pod_mtu: Option<i32>,
    /// Most network interfaces of a node, its first one among them. As many as its instance type can have
    /// when absent. With fewer there is room for fewer Pods, which the kubelet's `max-pods` has to follow.
    #[serde(rename = "maxENI", default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 15))]
    pub max_eni: Option<i32>,
    /// Subnets for Pods, one for each zone of the cluster. Pods get addresses from these, and not from their
    /// node's subnet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub custom_networking: Vec<PodSubnet>,
    /// What the container `aws-node` asks for: 25m of processor time and 64Mi of memory when absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub resources: ContainerResources,
    /// Labels of the nodes that the CNI runs on, all when absent. It tolerates every taint. A node without it
    /// never gets ready, unless something else connects its Pods.
    #[serde(default, skip_serializing_if = "NodeLabels::is_empty")]
    pub node_selector: NodeLabels,
    /// How much is said in the logs in `/var/log/aws-routed-eni` of the nodes. Info when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
    /// Further environment variables of the container `aws-node`, of these: AWS_EXTERNAL_SERVICE_CIDRS,
    /// AWS_MANAGE_ENIS_NON_SCHEDULABLE, AWS_VPC_K8S_CNI_RANDOMIZESNAT, DISABLE_INTROSPECTION,
    /// DISABLE_LEAKED_ENI_CLEANUP, DISABLE_METRICS, ENABLE_BANDWIDTH_PLUGIN, ENABLE_SUBNET_DISCOVERY,
    /// IP_COOLDOWN_PERIOD.
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub extra_env: Arguments,
    /// Registry and path in front of the image names `amazon-k8s-cni` and `amazon-k8s-cni-init`. That of
    /// `spec.imageRegistry` when absent, or Amazon's registry of the partition, for which machines need a
    /// credential provider in their image and rights in their role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image_registry: Option<String>,
    /// Tag of both images. When absent, the newest release known for the cluster's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"))]
    pub image_tag: Option<String>,
}

/// Where the Pods of a zone get their addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSubnet {
    /// Availability zone, such as `us-east-1a`.
    #[schemars(length(min = 1, max = 63))]
    pub zone: String,
    /// Subnet for Pods in this zone.
    #[serde(rename = "subnetID")]
    #[schemars(length(max = 64), regex(pattern = r"^subnet-[0-9a-f]+$"))]
    pub subnet_id: String,
    /// Security groups of Pods. Those of their node when absent.
    #[serde(rename = "securityGroupIDs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), inner(length(max = 64), regex(pattern = r"^sg-[0-9a-f]+$")))]
    pub security_group_ids: Vec<String>,
}
