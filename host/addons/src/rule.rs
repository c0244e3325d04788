//! The security-group rules that add-ons ask for, as AWS has them.

use contract::SecurityGroupRuleSpec;
use model::{AddOnRule, Rule, Source};

/// The rule that a plugin's step asks for.
pub fn rule(spec: &SecurityGroupRuleSpec) -> AddOnRule {
    let role = |role| match role {
        contract::Role::ControlPlane => "controlplane".to_owned(),
        contract::Role::Node => "node".to_owned(),
    };
    let protocol = match spec.protocol {
        contract::Protocol::Tcp => "tcp",
        contract::Protocol::Udp => "udp",
        contract::Protocol::IpInIp => "4",
        contract::Protocol::All => "-1",
    };
    let port = |port: Option<u16>| port.map_or(-1, i32::from);
    let rule = Rule {
        protocol: protocol.to_owned(),
        from_port: port(spec.from_port),
        to_port: port(spec.to_port),
        source: Source::Group(role(spec.peer)),
        description: spec.description.clone(),
    };
    AddOnRule { group: role(spec.group), rule }
}
