//! Security groups: who may talk to a machine or a load balancer.
//!
//! Pure: it turns the emulator's rules into an nftables script and into answers. What no rule admits is
//! dropped in silence, as AWS does, so that a missing rule shows as a hang. Egress is not restricted.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::Ipv4Addr;

use crate::emulator::{Instance, LoadBalancer, Rule, SecurityGroup, State};

/// A load balancer as its targets see it: the address it connects from.
pub struct Balancer<'a> {
    pub address: Ipv4Addr,
    pub is: &'a LoadBalancer,
}

/// The nftables script of one machine; replaces whatever was loaded before.
pub fn script(state: &State, instance: &Instance, balancers: &[Balancer<'_>]) -> String {
    let mut text = "table inet machine\ndelete table inet machine\ntable inet machine {\nchain input {\n\
        type filter hook input priority 0; policy drop;\n\
        ct state established,related accept\niif lo accept\n"
        .to_owned();
    for rule in ingress(state, &groups(instance)) {
        let Some(matches) = protocol(rule) else { continue };
        for source in sources(state, instance, rule, balancers) {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{source}{matches}accept");
        }
    }
    text + "}\n}\n"
}

/// Whether the groups `ids` admit TCP to `port` from `source`.
pub fn admits(state: &State, ids: &[String], port: u16, source: Ipv4Addr) -> bool {
    let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    ingress(state, &ids).any(|rule| {
        let protocol = matches!(rule.protocol.as_str(), "tcp" | "6" | "-1");
        let (from, to) = ports(rule).unwrap_or((0, i32::from(u16::MAX)));
        let port = (from..=to).contains(&i32::from(port));
        let cidr = rule.cidrs.iter().any(|cidr| contains(cidr, source));
        protocol && port && (cidr || members(state, rule).contains(&source))
    })
}

/// Whether an IPv4 range holds an address.
pub fn contains(cidr: &str, address: Ipv4Addr) -> bool {
    let Some((base, length)) = cidr.split_once('/') else { return false };
    let (Ok(base), Ok(length)) = (base.parse::<Ipv4Addr>(), length.parse::<u32>()) else { return false };
    let mask = u32::MAX.checked_shl(32 - length.min(32)).unwrap_or(0);
    base.to_bits() & mask == address.to_bits() & mask
}

fn ingress<'a>(state: &'a State, ids: &BTreeSet<&str>) -> impl Iterator<Item = &'a Rule> {
    let groups: Vec<&SecurityGroup> =
        state.security_groups.iter().filter(|group| ids.contains(group.id.as_str())).collect();
    groups.into_iter().flat_map(|group| &group.ingress)
}

fn groups(instance: &Instance) -> BTreeSet<&str> {
    let interfaces = instance.network_interfaces.iter().flat_map(|interface| &interface.security_groups);
    instance.security_groups.iter().chain(interfaces).map(String::as_str).collect()
}

/// Addresses of the instances that carry a group of the rule.
fn members(state: &State, rule: &Rule) -> BTreeSet<Ipv4Addr> {
    let carries =
        |instance: &&Instance| groups(instance).iter().any(|id| rule.groups.iter().any(|group| group == id));
    let addresses = |instance: &Instance| {
        let interfaces =
            instance.network_interfaces.iter().filter_map(|interface| interface.private_ip.clone());
        interfaces
            .chain(instance.private_ip.clone())
            .filter_map(|address| address.parse().ok())
            .collect::<Vec<_>>()
    };
    state.instances.iter().filter(carries).flat_map(addresses).collect()
}

/// nftables matches of the rule's sources, each ending in a space unless it matches everything.
fn sources(state: &State, instance: &Instance, rule: &Rule, balancers: &[Balancer<'_>]) -> BTreeSet<String> {
    let vpc = state.vpcs.iter().find(|vpc| Some(&vpc.id) == instance.vpc_id.as_ref());
    let inside: Vec<Ipv4Addr> = vpc
        .iter()
        .flat_map(|vpc| &vpc.cidrs)
        .filter_map(|cidr| cidr.split_once('/').and_then(|(base, _)| base.parse().ok()))
        .collect();
    let mut addresses = members(state, rule);
    for balancer in balancers.iter().filter(|balancer| balancer.is.vpc_id == instance.vpc_id) {
        let group = balancer.is.security_groups.iter().any(|id| rule.groups.contains(id));
        // Its real addresses would lie in the subnets of the VPC.
        let range = rule.cidrs.iter().any(|cidr| inside.iter().any(|base| contains(cidr, *base)));
        if group || range {
            addresses.insert(balancer.address);
        }
    }
    let cidrs = rule.cidrs.iter().map(|cidr| match cidr.as_str() {
        "0.0.0.0/0" => String::new(),
        cidr => format!("ip saddr {cidr} "),
    });
    addresses.iter().map(|address| format!("ip saddr {address} ")).chain(cidrs).collect()
}

fn ports(rule: &Rule) -> Option<(i32, i32)> {
    match (rule.from_port?, rule.to_port?) {
        (from, _) if from < 0 => None,
        range => Some(range),
    }
}

/// nftables match of the rule's protocol and ports; none when it matches nothing that IPv4 carries.
fn protocol(rule: &Rule) -> Option<String> {
    match rule.protocol.as_str() {
        "-1" | "all" => Some(String::new()),
        "tcp" | "udp" | "6" | "17" => {
            let name = if matches!(rule.protocol.as_str(), "tcp" | "6") { "tcp" } else { "udp" };
            Some(match ports(rule) {
                Some((from, to)) => format!("{name} dport {from}-{to} "),
                None => format!("meta l4proto {name} "),
            })
        }
        "icmp" | "1" => Some("meta l4proto icmp ".to_owned()),
        number => number.parse::<u8>().ok().map(|number| format!("meta l4proto {number} ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let value = serde_json::json!({
            "vpcs": [{"id": "vpc-1", "cidrs": ["10.0.0.0/16"]}],
            "instances": [
                {"id": "i-1", "vpcId": "vpc-1", "privateIp": "10.0.0.4", "securityGroups": ["sg-plane"]},
                {"id": "i-2", "vpcId": "vpc-1", "privateIp": "10.0.0.5", "securityGroups": ["sg-node"]},
            ],
            "securityGroups": [{"id": "sg-plane", "ingress": [
                {"protocol": "tcp", "fromPort": 6443, "toPort": 6443, "groups": ["sg-balancer"]},
                {"protocol": "tcp", "fromPort": 10250, "toPort": 10250, "groups": ["sg-node"]},
                {"protocol": "4", "groups": ["sg-node"]},
                {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrs": ["0.0.0.0/0"]},
                {"protocol": "-1", "cidrs": ["192.168.7.0/24"]},
            ]}],
        });
        serde_json::from_value(value).expect("a state")
    }

    fn accepted(groups: &[&str]) -> Vec<String> {
        let balancer = LoadBalancer {
            vpc_id: Some("vpc-1".to_owned()),
            security_groups: groups.iter().map(|&id| id.to_owned()).collect(),
            ..LoadBalancer::default()
        };
        let state = state();
        let balancers = [Balancer { address: Ipv4Addr::new(100, 64, 0, 1), is: &balancer }];
        let script = script(&state, &state.instances[0], &balancers);
        script.lines().filter(|line| line.ends_with("accept")).skip(2).map(str::to_owned).collect()
    }

    #[test]
    fn only_what_a_rule_names_is_accepted() {
        let mut expected = vec![
            "ip saddr 10.0.0.5 tcp dport 10250-10250 accept",
            "ip saddr 10.0.0.5 meta l4proto 4 accept",
            "tcp dport 22-22 accept",
            "ip saddr 100.64.0.1 tcp dport 22-22 accept",
            "ip saddr 192.168.7.0/24 accept",
        ];
        expected.sort_unstable();
        let mut found = accepted(&[]);
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_load_balancer_counts_as_its_security_group() {
        let line = "ip saddr 100.64.0.1 tcp dport 6443-6443 accept".to_owned();
        assert!(accepted(&["sg-balancer"]).contains(&line));
        assert!(!accepted(&["sg-other"]).contains(&line));
    }

    #[test]
    fn admission_needs_protocol_port_and_source() {
        let (state, ids) = (state(), ["sg-plane".to_owned()]);
        assert!(admits(&state, &ids, 22, Ipv4Addr::new(203, 0, 113, 1)));
        assert!(!admits(&state, &ids, 6443, Ipv4Addr::new(203, 0, 113, 1)));
        assert!(admits(&state, &ids, 10250, Ipv4Addr::new(10, 0, 0, 5)));
        assert!(!admits(&state, &ids, 10250, Ipv4Addr::new(10, 0, 0, 9)));
        assert!(!admits(&state, &[], 22, Ipv4Addr::new(203, 0, 113, 1)));
    }

    #[test]
    fn ranges_hold_their_addresses() {
        assert!(contains("0.0.0.0/0", Ipv4Addr::new(8, 8, 8, 8)));
        assert!(contains("10.1.0.0/16", Ipv4Addr::new(10, 1, 200, 3)));
        assert!(!contains("10.1.0.0/16", Ipv4Addr::new(10, 2, 0, 0)));
        assert!(!contains("nonsense", Ipv4Addr::new(10, 2, 0, 0)));
    }
}
