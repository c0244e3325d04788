//! The Installation: what the operator shall make of the cluster's network.

use crate::Config;
use plugin_sdk::steps::Object;
use plugin_sdk::{Stop, facts};
use serde_json::{Value, json};

pub const INSTALLATION: Object<'static> =
    Object { api_version: "operator.tigera.io/v1", kind: "Installation", namespace: None, name: "default" };

/// Calico hands out addresses to nodes in blocks of this prefix length, unless the whole pool is smaller.
const BLOCK_SIZE: u8 = 26;

/// # Errors
/// The Cluster's addresses of Pods are missing, or of a kind that does not go with this plugin.
pub fn object(config: &Config, cluster: &facts::Cluster) -> Result<Value, Stop> {
    if cluster.pod_cidrs.is_empty() {
        let message =
            ["Cluster ", &cluster.name, " has no spec.clusterNetwork.pods.cidrBlocks, from which Calico takes the addresses of Pods"];
        return Err(Stop::unsupported("NoPodCIDR", message.concat()));
    }
    let pools = cluster.pod_cidrs.iter().map(|cidr| pool(config, cidr)).collect::<Result<Vec<_>, _>>()?;
    let mut network = json!({
        "bgp": if config.encapsulation.needs_bgp() { "Enabled" } else { "Disabled" },
        "ipPools": pools,
        "linuxDataplane": "Iptables",
    });
    if let Some(mtu) = config.mtu {
        network["mtu"] = mtu.into();
    }
    let mut spec = json!({
        "variant": "Calico",
        "cni": { "type": "Calico", "ipam": { "type": "Calico" } },
        "calicoNetwork": network,
        // Leaves out Calico's CSI driver, which only serves policies for application layers.
        "kubeletVolumePluginPath": "None",
    });
    if let Some(registry) = &config.image_registry {
        spec["registry"] = [registry, "/"].concat().into();
    }
    // The operator hands them on to all that it makes.
    if !config.image_pull_secrets.is_empty() {
        spec["imagePullSecrets"] = config.image_pull_secrets.as_slice().into();
    }
    Ok(json!({
        "apiVersion": INSTALLATION.api_version, "kind": INSTALLATION.kind,
        "metadata": { "name": INSTALLATION.name },
        "spec": spec,
    }))
}

fn pool(config: &Config, cidr: &str) -> Result<Value, Stop> {
    let malformed = || Stop::unsupported("UnsupportedPodCIDR", ["the Cluster's Pod CIDR ", cidr, " is not an IPv4 CIDR block"].concat());
    let (address, length) = cidr.split_once('/').ok_or_else(malformed)?;
    address.parse::<std::net::Ipv4Addr>().map_err(|_| malformed())?;
    let length = length.parse::<u8>().ok().filter(|length| *length <= 32).ok_or_else(malformed)?;
    let mut pool = json!({
        "cidr": cidr,
        "encapsulation": config.encapsulation.as_str(),
        "natOutgoing": "Enabled",
        "nodeSelector": "all()",
    });
    if length > BLOCK_SIZE {
        pool["blockSize"] = length.into();
    }
    Ok(pool)
}
