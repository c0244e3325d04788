//! How many addresses and interfaces the Amazon VPC CNI wants, by the variables of its container.
//!
//! Pure. <https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/eni-and-ip-target.md>, in its documented
//! rules only.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use aws_sdk_ec2::types::InstanceTypeInfo;

use crate::cloud::addons::aws::Tags;

/// Addresses of a prefix, a /28.
const PREFIX: usize = 16;

/// What the variables ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Name of the cluster, for a tag.
    pub cluster: Option<String>,
    /// Further tags of interfaces.
    pub tags: Tags,
    /// Whether interfaces are made in subnets of their own.
    pub custom: bool,
    /// The node's label that names its ENIConfig.
    pub label: String,
    /// Whether prefixes are assigned instead of addresses.
    pub prefixes: bool,
    warm_interfaces: usize,
    warm_addresses: Option<usize>,
    minimum_addresses: Option<usize>,
    warm_prefixes: usize,
    maximum: Option<usize>,
}

/// What an instance type can hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub interfaces: usize,
    /// Addresses per interface, its own included.
    pub addresses: usize,
}

/// What shall be there: numbers of addresses, or of prefixes, beside each interface's own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// On the instance's first interface.
    pub first: usize,
    /// Interfaces beside the first.
    pub interfaces: usize,
    /// On each of them.
    pub each: usize,
}

impl Targets {
    /// Reads the variables.
    ///
    /// # Errors
    /// When a number is none, or prefixes are wanted without any target, with which the real one ends.
    pub fn of(environment: &BTreeMap<String, String>) -> Result<Self> {
        let yes = |name: &str| environment.get(name).is_some_and(|value| value == "true");
        let number = |name: &str| -> Result<Option<usize>> {
            let value = environment.get(name).filter(|value| !value.is_empty());
            value.map(|value| value.parse().with_context(|| format!("reading {name}"))).transpose()
        };
        let tags = environment.get("ADDITIONAL_ENI_TAGS").map_or("{}", String::as_str);
        let targets = Self {
            cluster: environment.get("CLUSTER_NAME").filter(|name| !name.is_empty()).cloned(),
            tags: serde_json::from_str(tags).context("reading ADDITIONAL_ENI_TAGS")?,
            custom: yes("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG"),
            label: environment
                .get("ENI_CONFIG_LABEL_DEF")
                .cloned()
                .unwrap_or_else(|| "k8s.amazonaws.com/eniConfig".to_owned()),
            prefixes: yes("ENABLE_PREFIX_DELEGATION"),
            warm_interfaces: number("WARM_ENI_TARGET")?.unwrap_or(1),
            warm_addresses: number("WARM_IP_TARGET")?,
            minimum_addresses: number("MINIMUM_IP_TARGET")?,
            warm_prefixes: number("WARM_PREFIX_TARGET")?.unwrap_or(1),
            maximum: number("MAX_ENI")?.filter(|maximum| *maximum > 0),
        };
        let some = targets.warm_prefixes > 0 || targets.by_address();
        ensure!(
            !targets.prefixes || some,
            "prefix delegation needs WARM_PREFIX_TARGET, WARM_IP_TARGET or MINIMUM_IP_TARGET"
        );
        Ok(targets)
    }

    fn by_address(&self) -> bool {
        self.warm_addresses.unwrap_or(0) > 0 || self.minimum_addresses.unwrap_or(0) > 0
    }

    /// What shall be there for that many pods.
    pub fn wanted(&self, pods: usize, limits: Limits) -> Wanted {
        let slots = limits.addresses.saturating_sub(1).max(1);
        let first = if self.custom { 0 } else { slots };
        let most = self.maximum.unwrap_or(limits.interfaces).min(limits.interfaces).saturating_sub(1);
        let addresses = (pods + self.warm_addresses.unwrap_or(0)).max(self.minimum_addresses.unwrap_or(0));
        let needed = match (self.prefixes, self.by_address()) {
            (false, true) => addresses,
            (true, true) => addresses.div_ceil(PREFIX),
            (true, false) => pods.div_ceil(PREFIX) + self.warm_prefixes,
            // Whole interfaces: what pods use, and as many again to spare.
            (false, false) => {
                let interfaces = pods.saturating_sub(first).div_ceil(slots) + self.warm_interfaces;
                return Wanted { first, interfaces: interfaces.min(most), each: slots };
            }
        };
        let beyond = needed.saturating_sub(first);
        let interfaces = beyond.div_ceil(slots).min(most);
        Wanted { first: needed.min(first), interfaces, each: beyond.min(slots) }
    }
}

impl Limits {
    /// What DescribeInstanceTypes says.
    pub fn of(instance_type: &InstanceTypeInfo) -> Result<Self> {
        let network = instance_type.network_info().context("the instance's type has no network")?;
        let number = |value: Option<i32>, what: &str| {
            let value = value.and_then(|value| usize::try_from(value).ok());
            value.with_context(|| format!("the instance's type has no {what}"))
        };
        Ok(Self {
            interfaces: number(network.maximum_network_interfaces(), "number of interfaces")?,
            addresses: number(network.ipv4_addresses_per_interface(), "number of addresses")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Limits = Limits { interfaces: 3, addresses: 10 };

    fn targets(variables: &[(&str, &str)]) -> Result<Targets> {
        Targets::of(
            &variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        )
    }

    fn wanted(variables: &[(&str, &str)], pods: usize) -> Wanted {
        targets(variables).expect("targets").wanted(pods, LARGE)
    }

    #[test]
    fn one_whole_interface_is_kept_to_spare() {
        assert_eq!(wanted(&[], 3), Wanted { first: 9, interfaces: 1, each: 9 });
        assert_eq!(wanted(&[], 12), Wanted { first: 9, interfaces: 2, each: 9 });
        assert_eq!(wanted(&[("WARM_ENI_TARGET", "5")], 0).interfaces, 2);
        assert_eq!(wanted(&[("MAX_ENI", "1")], 0).interfaces, 0);
    }

    #[test]
    fn targets_of_addresses_come_before_those_of_interfaces() {
        let variables = [("WARM_IP_TARGET", "2"), ("MINIMUM_IP_TARGET", "6")];
        assert_eq!(wanted(&variables, 1), Wanted { first: 6, interfaces: 0, each: 0 });
        assert_eq!(wanted(&variables, 9), Wanted { first: 9, interfaces: 1, each: 2 });
    }

    #[test]
    fn prefixes_seldom_need_a_second_interface() {
        let variables = [("ENABLE_PREFIX_DELEGATION", "true"), ("WARM_PREFIX_TARGET", "1")];
        assert_eq!(wanted(&variables, 20), Wanted { first: 3, interfaces: 0, each: 0 });
        assert!(targets(&[("ENABLE_PREFIX_DELEGATION", "true"), ("WARM_PREFIX_TARGET", "0")]).is_err());
    }

    #[test]
    fn with_custom_networking_the_first_interface_serves_no_pod() {
        let wanted = wanted(&[("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", "true"), ("WARM_IP_TARGET", "2")], 1);
        assert_eq!(wanted, Wanted { first: 0, interfaces: 1, each: 3 });
    }
}
