//! The load balancer in front of a cluster's API servers, as its AWSCluster asks for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ingress::IngressRule;

/// The load balancer in front of the API servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AWSLoadBalancerSpec {
    /// Name of the load balancer, unique in its region; derived from the cluster's name when absent. The load
    /// balancer is made for the cluster: one that exists is not used. It cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub name: Option<String>,
    /// Whether the API is reachable from the internet or from the VPC alone. It cannot be changed.
    #[serde(default)]
    pub scheme: LoadBalancerScheme,
    /// Classic or network load balancer, or none of ours: then the endpoint is one that you set. It cannot be
    /// changed.
    #[serde(default)]
    pub load_balancer_type: LoadBalancerType,
    /// Whether every node of the load balancer forwards to machines of all availability zones.
    #[serde(default)]
    pub cross_zone_load_balancing: bool,
    /// Protocol of the health check of API servers. HTTP and HTTPS ask for `/readyz`. TCP when absent. For a
    /// network load balancer it cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_check_protocol: Option<HealthCheckProtocol>,
    /// Who may reach the API. When empty, everybody (0.0.0.0/0). Otherwise these, and the cluster's own nodes
    /// by the addresses of its NAT gateways (of an internal load balancer: of its VPC). Nodes that come from
    /// elsewhere need a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub ingress_rules: Vec<IngressRule>,
    /// Enabled: the cluster is not provisioned before the load balancer's name resolves for this operator.
    /// None: not checked, for management clusters that cannot resolve it. Enabled when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_resolution_check: Option<DnsResolutionCheck>,
}

/// From where a load balancer can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum LoadBalancerScheme {
    #[default]
    InternetFacing,
    Internal,
}

impl LoadBalancerScheme {
    /// The word that AWS uses for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InternetFacing => "internet-facing",
            Self::Internal => "internal",
        }
    }
}

/// Kind of the load balancer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum LoadBalancerType {
    #[default]
    Classic,
    Elb,
    Alb,
    Nlb,
    Disabled,
}

/// Protocol of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[allow(missing_docs)]
pub enum HealthCheckProtocol {
    Tcp,
    Ssl,
    Http,
    Https,
    Tls,
    Udp,
}

impl HealthCheckProtocol {
    /// The word that AWS uses for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Ssl => "SSL",
            Self::Http => "HTTP",
            Self::Https => "HTTPS",
            Self::Tls => "TLS",
            Self::Udp => "UDP",
        }
    }
}

/// Whether the load balancer's name must resolve before the cluster counts as provisioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DnsResolutionCheck {
    None,
    Enabled,
}
