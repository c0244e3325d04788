//! The security-group rules that each encapsulation needs. Nodes and control plane are alike to Calico, so
//! every rule holds both ways and among themselves.

use crate::Encapsulation;
use plugin_sdk::Step;
use plugin_sdk::steps::{Role, Traffic, security_group_rule};

/// What has to pass between machines, each with the word for it in ids.
fn traffic(encapsulation: Encapsulation) -> &'static [(&'static str, Traffic, &'static str)] {
    const VXLAN: (&str, Traffic, &str) = ("vxlan", Traffic::Udp(4789), "Calico VXLAN");
    const TYPHA: (&str, Traffic, &str) = ("typha", Traffic::Tcp(5473), "Calico Typha");
    const BGP: (&str, Traffic, &str) = ("bgp", Traffic::Tcp(179), "Calico BGP");
    const IPIP: (&str, Traffic, &str) = ("ipip", Traffic::IpInIp, "Calico IP in IP");
    // A bare packet is of whatever protocol its Pod speaks.
    const BARE: (&str, Traffic, &str) = ("pods", Traffic::All, "Calico Pod traffic without encapsulation");
    match encapsulation {
        Encapsulation::Vxlan => &[VXLAN, TYPHA],
        Encapsulation::IpInIp => &[IPIP, BGP, TYPHA],
        Encapsulation::VxlanCrossSubnet | Encapsulation::None => &[BARE],
    }
}

/// One step per rule.
pub fn steps(encapsulation: Encapsulation) -> Vec<Step> {
    let mut steps = Vec::new();
    for (word, traffic, description) in traffic(encapsulation) {
        for group in Role::ALL {
            for peer in Role::ALL {
                let id = ["sg-", word, "-", peer.as_str(), "-to-", group.as_str()].concat();
                steps.push(security_group_rule(&id, group, *traffic, peer, description));
            }
        }
    }
    if !encapsulation.sends_bare_packets() {
        // Kubernetes' API servers hand on what is asked of projectcalico.org. Between Pods' addresses that is
        // wrapped like all the rest; the rule is for a calico-apiserver on the machine's own network.
        for group in Role::ALL {
            let id = ["sg-apiserver-control-plane-to-", group.as_str()].concat();
            steps.push(security_group_rule(
                &id,
                group,
                Traffic::Tcp(5443),
                Role::ControlPlane,
                "Calico API server",
            ));
        }
    }
    steps
}
