//! The settings of Calico, and what is wrong with them.

use plugin_sdk::{Diagnostic, steps};
use serde::Deserialize;
use serde_json::Value;

/// `spec.networking.calico` of a ClusterPlugin.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub encapsulation: Encapsulation,
    /// Largest packet of a Pod in bytes.
    pub mtu: Option<u16>,
    /// Registry of the operator's and of Calico's images.
    pub image_registry: Option<String>,
    #[serde(default)]
    pub image_pull_secrets: Vec<Value>,
}

/// How packets between Pods of different nodes are wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Encapsulation {
    #[default]
    #[serde(rename = "VXLAN")]
    Vxlan,
    #[serde(rename = "VXLANCrossSubnet")]
    VxlanCrossSubnet,
    #[serde(rename = "IPIP")]
    IpInIp,
    None,
}

impl Encapsulation {
    /// The word Calico has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Encapsulation::Vxlan => "VXLAN",
            Encapsulation::VxlanCrossSubnet => "VXLANCrossSubnet",
            Encapsulation::IpInIp => "IPIP",
            Encapsulation::None => "None",
        }
    }

    /// Whether nodes learn each other's routes by BGP. With VXLAN, Calico distributes them itself.
    pub fn needs_bgp(self) -> bool {
        matches!(self, Encapsulation::IpInIp | Encapsulation::None)
    }

    /// Whether some packets between nodes carry the addresses of Pods.
    pub fn sends_bare_packets(self) -> bool {
        matches!(self, Encapsulation::VxlanCrossSubnet | Encapsulation::None)
    }

    /// Bytes that wrapping adds to a packet.
    fn overhead(self) -> u16 {
        match self {
            Encapsulation::Vxlan | Encapsulation::VxlanCrossSubnet => 50,
            Encapsulation::IpInIp => 20,
            Encapsulation::None => 0,
        }
    }

    /// What the user should know although it is carried out.
    pub fn warnings(self) -> Vec<Diagnostic> {
        if !self.sends_bare_packets() {
            return Vec::new();
        }
        vec![Diagnostic::warning(
            "SourceDestinationCheck",
            "/encapsulation",
            "packets with addresses of Pods are dropped until EC2's source/destination check is turned off on every instance; VXLAN and IPIP need no such change",
        )]
    }
}

/// The largest packet that EC2 carries, in bytes.
const EC2_MTU: u16 = 9001;

impl Config {
    /// Registry of all images, without a slash at its end.
    pub fn registry(&self) -> &str {
        self.image_registry.as_deref().unwrap_or("quay.io")
    }

    /// What keeps the settings from being carried out.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let largest = EC2_MTU - self.encapsulation.overhead();
        if self.mtu.is_some_and(|mtu| mtu > largest) {
            let message = ["must be at most ", &largest.to_string(), " with encapsulation ", self.encapsulation.as_str()];
            problems.push(Diagnostic::error("MTUTooLarge", "/mtu", message.concat()));
        }
        if !steps::is_registry(self.registry()) {
            problems.push(Diagnostic::error(
                "InvalidImageRegistry",
                "/imageRegistry",
                "must be a registry and a path without scheme and without a slash at its end, such as registry.example.com/mirror",
            ));
        }
        problems
    }
}
