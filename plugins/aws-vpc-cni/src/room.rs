//! How many Pods with an address of the VPC an instance has room for, and whether its kubelet lets in
//! more: those stay without an address for ever.

use crate::Config;
use plugin_sdk::{Diagnostic, facts};

/// Addresses of a prefix, which takes the place of one address.
const PREFIX: u32 = 16;
/// Pods of every node that are on the node's network: the CNI and kube-proxy.
const WITHOUT_ADDRESS: u32 = 2;

/// One for each type of the cluster's instances whose kubelet is known to let in more Pods than there is room
/// for.
pub fn warnings(config: &Config, types: &[facts::InstanceType]) -> Vec<Diagnostic> {
    types.iter().filter_map(|it| warning(config, it)).collect()
}

fn warning(config: &Config, instance_type: &facts::InstanceType) -> Option<Diagnostic> {
    let has_prefixes = config.prefix_delegation && instance_type.nitro;
    let room_now = room(config, instance_type, has_prefixes);
    let let_in = instance_type.max_pods.filter(|pods| *pods > room_now)?;
    let room_text = room_now.to_string();
    let mut message = [
        "instance type ",
        &instance_type.name,
        " has room for ",
        &room_text,
        " Pods where Pods have addresses of the VPC, but its kubelet lets in ",
        &let_in.to_string(),
        ": Pods beyond that stay in ContainerCreating; set the kubelet's max-pods to ",
        &room_text,
        " or less",
    ]
    .concat();
    let more = room(config, instance_type, true);
    match (config.prefix_delegation, instance_type.nitro) {
        (false, true) if more >= let_in => message.push_str(", or use prefixDelegation"),
        (false, true) => {
            message.push_str(&[", or to ", &more.to_string(), " or less with prefixDelegation"].concat())
        }
        (true, false) => {
            message.push_str("; prefixDelegation does nothing for a type that is not of the Nitro system")
        }
        _ => (),
    }
    Some(Diagnostic::warning("TooManyPods", "", message))
}

/// A node has no more interfaces than its type can have, and than the user lets it have. The first address of
/// an interface is the interface's own. With subnets for Pods, the first interface has none for Pods.
fn room(config: &Config, instance_type: &facts::InstanceType, has_prefixes: bool) -> u32 {
    let most = config.max_eni.map_or(instance_type.interfaces, |most| most.min(instance_type.interfaces));
    let interfaces = most.saturating_sub(u32::from(!config.custom_networking.is_empty()));
    let slots = interfaces.saturating_mul(instance_type.addresses_per_interface.saturating_sub(1));
    slots.saturating_mul(if has_prefixes { PREFIX } else { 1 }).saturating_add(WITHOUT_ADDRESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PodSubnet;

    fn instance_type(interfaces: u32, addresses_per_interface: u32) -> facts::InstanceType {
        facts::InstanceType {
            name: "it".to_owned(),
            interfaces,
            addresses_per_interface,
            nitro: true,
            max_pods: None,
        }
    }

    #[test]
    fn room_is_that_of_amazons_table() {
        let of =
            |interfaces, addresses| room(&Config::default(), &instance_type(interfaces, addresses), false);
        // t3.small, t3.medium, t3.large, m5.large
        assert_eq!([of(3, 4), of(3, 6), of(3, 12), of(3, 10)], [11, 17, 35, 29]);
        assert_eq!(of(0, 0), 2);
        assert_eq!(of(u32::MAX, u32::MAX), u32::MAX);
    }

    #[test]
    fn prefixes_and_subnets_for_pods_change_it() {
        assert_eq!(room(&Config::default(), &instance_type(3, 4), true), 146);
        let subnet = PodSubnet {
            zone: "a".to_owned(),
            subnet_id: "subnet-0a".to_owned(),
            security_group_ids: Vec::new(),
        };
        let custom = Config { custom_networking: vec![subnet], ..Config::default() };
        assert_eq!(room(&custom, &instance_type(3, 4), false), 8);
    }

    #[test]
    fn fewer_interfaces_have_room_for_fewer_pods() {
        let of = |most, interfaces| {
            room(&Config { max_eni: Some(most), ..Config::default() }, &instance_type(interfaces, 4), false)
        };
        assert_eq!([of(1, 3), of(2, 3), of(3, 3)], [5, 8, 11]);
        assert_eq!(of(15, 3), 11, "a type can have no more than it can");
    }
}
