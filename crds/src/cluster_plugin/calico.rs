//! Settings of Calico.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{ContainerResources, LogLevel, NodeLabels, Toleration, yes};
use super::version::VersionPin;

/// Settings of Calico. Addresses of Pods are those of the Cluster (`spec.clusterNetwork.pods`): ranges can be
/// added there, and those that Pods have addresses of have to stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CalicoNetworking {
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// How packets between Pods of different nodes are wrapped. VXLAN works everywhere and needs udp 4789.
    /// IPIP needs BGP (tcp 179) and IP protocol 4. VXLANCrossSubnet and None send packets with addresses of
    /// Pods, for which EC2's source/destination check has to be off (`sourceDestinationCheck`); None needs
    /// all machines in one subnet.
    #[serde(default)]
    pub encapsulation: CalicoEncapsulation,
    /// What calico-node does about EC2's source/destination check of its instance. Disable turns it off and
    /// Enable turns it on again, for which the roles of all instances must allow ec2:DescribeInstances and
    /// ec2:ModifyNetworkInterfaceAttribute; with DoNothing somebody else does. Needed with VXLANCrossSubnet
    /// and None. When absent, the FelixConfiguration stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_destination_check: Option<CalicoSourceDestinationCheck>,
    /// Prefix length of the blocks in which nodes get addresses of Pods. 26 when absent, or that of a smaller
    /// range. It cannot be changed for ranges that are in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 20, max = 32))]
    pub block_size: Option<i32>,
    /// Whether packets of Pods to addresses that are no Pods' carry the address of their node. Otherwise
    /// routes back to the Pods have to be there.
    #[serde(default = "yes")]
    pub nat_outgoing: bool,
    /// Largest packet of a Pod in bytes. Found by Calico when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 9001))]
    pub mtu: Option<i32>,
    /// What the container `calico-node` asks for. Nothing when absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub resources: ContainerResources,
    /// What the container `calico-typha` asks for. Nothing when absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub typha_resources: ContainerResources,
    /// Copies of Calico's API server. As many as the operator thinks right when absent: 2, or 1 where there
    /// is one node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 5))]
    pub control_plane_replicas: Option<i32>,
    /// Labels of the nodes that Typha, Calico's API server and its controllers run on, all when absent.
    /// calico-node runs on every node, and gets nowhere ready without Typha.
    #[serde(default, skip_serializing_if = "NodeLabels::is_empty")]
    pub control_plane_node_selector: NodeLabels,
    /// Taints that Typha, Calico's API server and its controllers tolerate beside those of the control plane
    /// and of nodes that are not ready yet. When absent, Typha tolerates whatever the operator thinks right,
    /// which is more. calico-node tolerates every taint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub control_plane_tolerations: Vec<Toleration>,
    /// How much calico-node says in its log, which is `logSeverityScreen` of the FelixConfiguration
    /// `default`. When absent, the FelixConfiguration stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
    /// Registry of the operator's and of Calico's images, for clusters that cannot reach quay.io. The layout
    /// below it must be the same as there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image_registry: Option<String>,
}

impl Default for CalicoNetworking {
    fn default() -> Self {
        Self {
            pin: VersionPin::default(),
            encapsulation: CalicoEncapsulation::default(),
            source_destination_check: None,
            block_size: None,
            nat_outgoing: yes(),
            mtu: None,
            resources: ContainerResources::default(),
            typha_resources: ContainerResources::default(),
            control_plane_replicas: None,
            control_plane_node_selector: NodeLabels::new(),
            control_plane_tolerations: Vec::new(),
            log_level: None,
            image_registry: None,
        }
    }
}

/// How packets between Pods of different nodes are wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum CalicoEncapsulation {
    #[default]
    VXLAN,
    VXLANCrossSubnet,
    IPIP,
    None,
}

/// What calico-node does about EC2's source/destination check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum CalicoSourceDestinationCheck {
    DoNothing,
    Enable,
    Disable,
}
