//! The pools that Pods get their addresses from: those of the Cluster, as they go into the Installation,
//! and which changes of pools that are there are refused.

use crate::Config;
use plugin_sdk::{Diagnostic, Stop, facts};
use serde_json::{Value, json};

/// Calico hands out addresses to nodes in blocks of this prefix length, unless the whole pool is smaller.
const BLOCK_SIZE: u8 = 26;
/// What Tigera's operator calls the only pool there is.
const ONLY: &str = "default-ipv4-ippool";

/// The pools, with every field that the operator would fill in, and its value: it writes the whole list back
/// where one is open, holds it from then on, and whoever applies it again is in conflict with it.
///
/// # Errors
/// The Cluster's addresses of Pods are missing or of a kind that does not go with this plugin, or pools that
/// are `there` cannot become these.
pub fn pools(config: &Config, cluster: &facts::Cluster, there: &[facts::IpPool]) -> Result<Vec<Value>, Stop> {
    if cluster.pod_cidrs.is_empty() {
        let message = [
            "Cluster ",
            &cluster.name,
            " has no spec.clusterNetwork.pods.cidrBlocks, from which Calico takes the addresses of Pods",
        ];
        return Err(Stop::unsupported("NoPodCIDR", message.concat()));
    }
    let ranges = cluster
        .pod_cidrs
        .iter()
        .map(|cidr| Range::of(cidr).ok_or_else(|| malformed(cidr)))
        .collect::<Result<Vec<_>, _>>()?;
    let managed: Vec<&facts::IpPool> = there.iter().filter(|it| it.managed).collect();
    let is_kept = |it: &&&facts::IpPool| Range::of(&it.cidr).is_none_or(|range| ranges.contains(&range));
    if let Some(gone) = managed.iter().find(|it| !is_kept(it)) {
        return Err(moved(gone, cluster));
    }
    let is_only = ranges.len() == 1;
    let pool = |(cidr, range): (&String, &Range)| {
        let there = managed.iter().find(|it| Range::of(&it.cidr).as_ref() == Some(range)).copied();
        let block_size = block_size(config, cidr, range, there)?;
        let name = match there {
            Some(there) => there.name.clone(),
            None if is_only => ONLY.to_owned(),
            None => range.name(),
        };
        Ok(json!({
            "name": name,
            "cidr": cidr,
            "encapsulation": config.encapsulation.as_str(),
            "natOutgoing": if config.nat_outgoing { "Enabled" } else { "Disabled" },
            "nodeSelector": "all()",
            "blockSize": block_size,
            "allowedUses": ["Workload", "Tunnel"],
            "disableNewAllocations": false,
            "assignmentMode": "Automatic",
        }))
    };
    cluster.pod_cidrs.iter().zip(&ranges).map(pool).collect()
}

/// Calico cannot change the blocks of a pool that nodes have blocks of.
fn block_size(config: &Config, cidr: &str, range: &Range, there: Option<&facts::IpPool>) -> Result<u8, Stop> {
    let refused =
        |message: String| Err(Stop::Invalid(vec![Diagnostic::error("BlockSize", "/blockSize", message)]));
    match (config.block_size, there) {
        (Some(wanted), Some(there)) if wanted != there.block_size => {
            let size = there.block_size.to_string();
            refused(
                [
                    "cannot be changed: nodes have blocks of /",
                    &size,
                    " of pool ",
                    &there.name,
                    ", which has addresses in use; set it to ",
                    &size,
                ]
                .concat(),
            )
        }
        (_, Some(there)) => Ok(there.block_size),
        (Some(wanted), None) if wanted < range.length => refused(
            [
                "must be at least ",
                &range.length.to_string(),
                ": the Cluster's Pod CIDR ",
                cidr,
                " is smaller than such a block",
            ]
            .concat(),
        ),
        (wanted, None) => Ok(wanted.unwrap_or(BLOCK_SIZE.max(range.length))),
    }
}

/// Tigera's operator would delete the pool, and Pods that have addresses of it would lose them.
fn moved(pool: &facts::IpPool, cluster: &facts::Cluster) -> Stop {
    let message = [
        "Pods have addresses of ",
        &pool.cidr,
        " (IPPool ",
        &pool.name,
        "), which Cluster ",
        &cluster.name,
        " does not have in spec.clusterNetwork.pods.cidrBlocks any more; put it back: the addresses of a \
         cluster that lives can be added to, not moved",
    ];
    Stop::unsupported("PodCIDRChanged", message.concat())
}

fn malformed(cidr: &str) -> Stop {
    Stop::unsupported(
        "UnsupportedPodCIDR",
        ["the Cluster's Pod CIDR ", cidr, " is not an IPv4 CIDR block"].concat(),
    )
}

/// A range of IPv4 addresses, however it was written.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    first: u32,
    length: u8,
}

impl Range {
    fn of(cidr: &str) -> Option<Range> {
        let (address, length) = cidr.split_once('/')?;
        let address = u32::from(address.parse::<std::net::Ipv4Addr>().ok()?);
        let length = length.parse::<u8>().ok().filter(|length| *length <= 32)?;
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        Some(Range { first: address & mask, length })
    }

    /// What Tigera's operator calls a pool that is one of several.
    fn name(&self) -> String {
        [&std::net::Ipv4Addr::from(self.first).to_string(), "-", &self.length.to_string()].concat()
    }
}
