//! Traffic between machines that a plugin may let in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// Traffic between machines of the cluster. Ports 2379 and 2380 of the control plane are etcd's: they are
/// granted by `etcd` alone, however wide the range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupRuleGrant {
    /// Who receives it.
    #[schemars(length(min = 1, max = 2))]
    pub groups: Vec<MachineRole>,
    /// Who sends it.
    #[schemars(length(min = 1, max = 2))]
    pub peers: Vec<MachineRole>,
    /// `tcp`, `udp`, `4` (IP in IP), or `-1`: everything, etcd among it.
    pub protocol: RuleProtocol,
    /// First port, of `tcp` and `udp`; all ports when neither is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535), extend("format" = "int32"))]
    pub from_port: Option<u16>,
    /// Last port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 65535), extend("format" = "int32"))]
    pub to_port: Option<u16>,
    /// Whether etcd's ports of the control plane are among the ports.
    #[serde(default, skip_serializing_if = "is_default")]
    pub etcd: bool,
}

/// Machines that share a security group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MachineRole {
    /// Machines of the control plane.
    ControlPlane,
    /// All other machines.
    Node,
}

/// IP protocol of a security-group rule, in EC2's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RuleProtocol {
    /// TCP.
    #[serde(rename = "tcp")]
    Tcp,
    /// UDP.
    #[serde(rename = "udp")]
    Udp,
    /// IP in IP, protocol number 4.
    #[serde(rename = "4")]
    IpInIp,
    /// Every protocol and port.
    #[serde(rename = "-1")]
    All,
}
