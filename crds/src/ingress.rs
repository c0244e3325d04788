//! Ingress rules of security groups, as users write them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a network plugin needs between the nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CNISpec {
    /// Rules of the security groups of control plane and nodes, each with both groups as source.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub cni_ingress_rules: Vec<CNIIngressRule>,
}

impl Default for CNISpec {
    fn default() -> Self {
        Self {
            cni_ingress_rules: vec![
                CNIIngressRule {
                    description: "bgp (calico)".into(),
                    protocol: SecurityGroupProtocol::Tcp,
                    from_port: 179,
                    to_port: 179,
                },
                CNIIngressRule {
                    description: "IP-in-IP (calico)".into(),
                    protocol: SecurityGroupProtocol::IpInIp,
                    from_port: -1,
                    to_port: 65535,
                },
            ],
        }
    }
}

/// One rule between nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CNIIngressRule {
    /// What the rule is for; of punctuation only what EC2 takes.
    #[schemars(length(max = 255), regex(pattern = r"^[a-zA-Z0-9 ._:/()#,@\[\]+=&;{}!$*-]*$"))]
    pub description: String,
    /// Protocol: `-1` (all), `4` (IP in IP), `tcp`, `udp`, `icmp`, `58` (ICMPv6), `50` (ESP).
    pub protocol: SecurityGroupProtocol,
    /// First port, -1 where the protocol has none.
    #[schemars(range(min = -1, max = 65535))]
    pub from_port: i32,
    /// Last port.
    #[schemars(range(min = -1, max = 65535))]
    pub to_port: i32,
}

/// One ingress rule of a security group. Its source is of one kind: CIDR blocks (IPv4 and IPv6), security
/// groups (by id and by role), or the cluster's NAT gateways. Without a source, it is the security group of
/// the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngressRule {
    /// What the rule is for; of punctuation only what EC2 takes.
    #[schemars(length(max = 255), regex(pattern = r"^[a-zA-Z0-9 ._:/()#,@\[\]+=&;{}!$*-]*$"))]
    pub description: String,
    /// Protocol: `-1` (all), `4` (IP in IP), `tcp`, `udp`, `icmp`, `58` (ICMPv6), `50` (ESP).
    pub protocol: SecurityGroupProtocol,
    /// First port, -1 where the protocol has none.
    #[schemars(range(min = -1, max = 65535))]
    pub from_port: i32,
    /// Last port.
    #[schemars(range(min = -1, max = 65535))]
    pub to_port: i32,
    /// IPv4 sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub cidr_blocks: Vec<String>,
    /// IPv6 sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub ipv6_cidr_blocks: Vec<String>,
    /// Ids of security groups as sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(max = 64)))]
    pub source_security_group_ids: Vec<String>,
    /// Security groups of this cluster as sources, by their role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub source_security_group_roles: Vec<SecurityGroupRole>,
    /// True: the public addresses of the cluster's NAT gateways are the source.
    #[serde(rename = "natGatewaysIPsSource", default, skip_serializing_if = "std::ops::Not::not")]
    pub nat_gateways_ips_source: bool,
}

/// Protocol of a rule, in EC2's words and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum SecurityGroupProtocol {
    #[serde(rename = "-1")]
    All,
    #[serde(rename = "4")]
    IpInIp,
    #[serde(rename = "tcp")]
    Tcp,
    #[serde(rename = "udp")]
    Udp,
    #[serde(rename = "icmp")]
    Icmp,
    #[serde(rename = "58")]
    IcmpV6,
    #[serde(rename = "50")]
    Esp,
}

impl SecurityGroupProtocol {
    /// The word EC2 uses for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "-1",
            Self::IpInIp => "4",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
            Self::IcmpV6 => "58",
            Self::Esp => "50",
        }
    }
}

/// What a security group of the cluster is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum SecurityGroupRole {
    Bastion,
    Node,
    #[serde(rename = "controlplane")]
    ControlPlane,
    #[serde(rename = "apiserver-lb")]
    ApiServerLb,
    Lb,
    NodeEksAdditional,
}

impl SecurityGroupRole {
    /// The word that names and tags of security groups use for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bastion => "bastion",
            Self::Node => "node",
            Self::ControlPlane => "controlplane",
            Self::ApiServerLb => "apiserver-lb",
            Self::Lb => "lb",
            Self::NodeEksAdditional => "node-eks-additional",
        }
    }
}
