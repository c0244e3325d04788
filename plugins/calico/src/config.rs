//! The settings of Calico, and what is wrong with them.

use plugin_sdk::Diagnostic;
use plugin_sdk::settings::{LogLevel, Resources, registry_problem};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `spec.networking.calico` of a ClusterPlugin.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    #[serde(default)]
    pub encapsulation: Encapsulation,
    /// What calico-node does about EC2's source/destination check of its instance.
    pub source_destination_check: Option<SourceDestinationCheck>,
    /// Prefix length of the blocks in which nodes get addresses of Pods.
    pub block_size: Option<u8>,
    /// Whether packets of Pods that leave the pools carry the address of their node.
    #[serde(default = "yes")]
    pub nat_outgoing: bool,
    /// Largest packet of a Pod in bytes.
    pub mtu: Option<u16>,
    /// Of the container calico-node.
    #[serde(default)]
    pub resources: Resources,
    /// Of the container calico-typha.
    #[serde(default)]
    pub typha_resources: Resources,
    /// Copies of what does not run on every node and can have several.
    pub control_plane_replicas: Option<u32>,
    /// Of the nodes for what does not run on every node.
    #[serde(default)]
    pub control_plane_node_selector: Map<String, Value>,
    /// Of what does not run on every node, as in a Pod.
    #[serde(default)]
    pub control_plane_tolerations: Vec<Value>,
    /// Of calico-node.
    pub log_level: Option<LogLevel>,
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
}

/// What calico-node does about EC2's source/destination check, in the words of its FelixConfiguration
/// (`awsSrcDstCheck`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SourceDestinationCheck {
    DoNothing,
    Enable,
    Disable,
}

impl SourceDestinationCheck {
    /// The word Calico has for it.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceDestinationCheck::DoNothing => "DoNothing",
            SourceDestinationCheck::Enable => "Enable",
            SourceDestinationCheck::Disable => "Disable",
        }
    }

    /// Whether calico-node sets it, acting as the role of its instance.
    pub fn is_set_by_felix(self) -> bool {
        self != SourceDestinationCheck::DoNothing
    }
}

/// What calico-node calls to set the source/destination check of its instance (docs.tigera.io, "Amazon Web
/// Services", of 3.32). It is not Ready before it has done so.
pub const FELIX_ACTIONS: [&str; 2] = ["ec2:DescribeInstances", "ec2:ModifyNetworkInterfaceAttribute"];

fn yes() -> bool {
    true
}

/// The largest packet that EC2 carries, in bytes.
const EC2_MTU: u16 = 9001;

impl Config {
    /// Registry of all images, without a slash at its end.
    pub fn registry(&self) -> &str {
        self.image_registry.as_deref().unwrap_or("quay.io")
    }

    /// What keeps the settings from being carried out. `previous` are those that were carried out last.
    pub fn problems(&self, previous: Option<&Value>) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let largest = EC2_MTU - self.encapsulation.overhead();
        if self.mtu.is_some_and(|mtu| mtu > largest) {
            let message = [
                "must be at most ",
                &largest.to_string(),
                " with encapsulation ",
                self.encapsulation.as_str(),
            ];
            problems.push(Diagnostic::error("MTUTooLarge", "/mtu", message.concat()));
        }
        problems.extend(self.check_problem(previous));
        problems.extend(registry_problem(self.image_registry.as_deref()));
        problems
    }

    fn check_problem(&self, previous: Option<&Value>) -> Option<Diagnostic> {
        use SourceDestinationCheck::{Disable, DoNothing, Enable};
        let bare = self.encapsulation.sends_bare_packets();
        let message = match self.source_destination_check {
            Some(Enable) if bare => {
                "cannot be Enable with this encapsulation: EC2 would drop packets with addresses of Pods"
            }
            None if bare && !self.goes_on_as(previous) => {
                "must say who turns EC2's source/destination check off, which drops packets with addresses \
                 of Pods: Disable (calico-node does, for which the roles of all instances need \
                ec2:DescribeInstances and ec2:ModifyNetworkInterfaceAttribute) or DoNothing (you do, on \
                every instance)"
            }
            None | Some(Disable | DoNothing | Enable) => return None,
        };
        Some(Diagnostic::error("SourceDestinationCheck", "/sourceDestinationCheck", message))
    }

    /// Whether packets were sent this way before: whoever set it so was told then to turn off the check.
    fn goes_on_as(&self, previous: Option<&Value>) -> bool {
        previous.and_then(|it| it.get("encapsulation")?.as_str()) == Some(self.encapsulation.as_str())
    }

    /// What the user should know although it is carried out.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        const PATH: &str = "/sourceDestinationCheck";
        let bare = self.encapsulation.sends_bare_packets();
        match self.source_destination_check {
            None | Some(SourceDestinationCheck::DoNothing) if bare => vec![Diagnostic::warning(
                "SourceDestinationCheck",
                PATH,
                "packets with addresses of Pods are dropped until you turn EC2's source/destination check \
                 off on every instance; with Disable, calico-node does",
            )],
            _ => Vec::new(),
        }
    }
}
