//! The security-group rules that Pods with addresses of the VPC need. Their network interfaces have the
//! groups of their node, so a packet between Pods is one between machines, of any protocol and port.
//!
//! One thing is left out: from nodes, the control plane's etcd (tcp 2379 and 2380) cannot be reached, because
//! every Pod could.

use plugin_sdk::Step;
use plugin_sdk::steps::{Role, Traffic, security_group_rule};

const DESCRIPTION: &str = "Amazon VPC CNI Pod traffic";

/// One step per rule.
pub fn steps() -> Vec<Step> {
    use Role::{ControlPlane, Node};
    let rule = |id: &str, group: Role, traffic: Traffic, peer: Role| {
        security_group_rule(id, group, traffic, peer, DESCRIPTION)
    };
    vec![
        rule("sg-node-to-node", Node, Traffic::All, Node),
        rule("sg-control-plane-to-node", Node, Traffic::All, ControlPlane),
        rule("sg-control-plane-to-control-plane", ControlPlane, Traffic::All, ControlPlane),
        rule("sg-tcp-below-etcd-node-to-control-plane", ControlPlane, Traffic::TcpRange(0, 2378), Node),
        rule("sg-tcp-above-etcd-node-to-control-plane", ControlPlane, Traffic::TcpRange(2381, 65535), Node),
        rule("sg-udp-node-to-control-plane", ControlPlane, Traffic::UdpRange(0, 65535), Node),
    ]
}
