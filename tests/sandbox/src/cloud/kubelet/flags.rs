//! The kubelet's flags as kubeadm writes them: `/var/lib/kubelet/kubeadm-flags.env`.
//!
//! Only those that show outside the machine are read.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// Written by kubeadm just before it starts the kubelet.
pub const FILE: &str = "/var/lib/kubelet/kubeadm-flags.env";

/// What the flags ask of the Node object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    pub node_name: String,
    pub labels: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub provider_id: Option<String>,
    /// Whether a cloud controller manager is to initialize the node.
    pub external_cloud_provider: bool,
    /// How many Pods it lets in; 110 when it is not said.
    pub max_pods: Option<u32>,
}

/// A taint in the flag's form `key=value:effect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

impl Flags {
    /// Reads the file; the node is named after the host unless a flag says otherwise.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(hostname: &str) -> Result<Self> {
        let text = std::fs::read_to_string(FILE).with_context(|| format!("reading {FILE}"))?;
        Ok(Self::parse(&text, hostname))
    }

    fn parse(text: &str, hostname: &str) -> Self {
        let line =
            text.lines().find_map(|line| line.strip_prefix("KUBELET_KUBEADM_ARGS=")).unwrap_or_default();
        let mut flags = Self { node_name: hostname.to_lowercase(), ..Self::default() };
        for word in line.trim_matches('"').split_whitespace() {
            let Some((name, value)) = word.trim_start_matches('-').split_once('=') else { continue };
            let value = value.trim_matches(['"', '\'']);
            match name {
                "hostname-override" => flags.node_name = value.to_lowercase(),
                "node-labels" => flags.labels = pairs(value),
                "register-with-taints" => flags.taints = value.split(',').filter_map(taint).collect(),
                "provider-id" => flags.provider_id = Some(value.to_owned()),
                "max-pods" => flags.max_pods = value.parse().ok(),
                "cloud-provider" => flags.external_cloud_provider = value == "external",
                _ => {}
            }
        }
        if flags.external_cloud_provider {
            let key = "node.cloudprovider.kubernetes.io/uninitialized".to_owned();
            flags.taints.push(Taint { key, value: "true".to_owned(), effect: "NoSchedule".to_owned() });
        }
        flags
    }
}

fn pairs(value: &str) -> BTreeMap<String, String> {
    let pairs = value.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn taint(word: &str) -> Option<Taint> {
    let (key, effect) = word.rsplit_once(':')?;
    let (key, value) = key.split_once('=').unwrap_or((key, ""));
    Some(Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_a_worker_are_understood() {
        let text = "KUBELET_KUBEADM_ARGS=\"--cloud-provider=external --max-pods=35 --hostname-override=IP-10-0-0-5.ec2.internal \
            --node-labels=a=b,example.com/c=d --register-with-taints=node.cluster.x-k8s.io/uninitialized:NoSchedule,k=v:NoExecute\"\n";
        let flags = Flags::parse(text, "other");
        assert_eq!(flags.node_name, "ip-10-0-0-5.ec2.internal");
        assert_eq!(flags.labels.get("example.com/c").map(String::as_str), Some("d"));
        assert_eq!(flags.provider_id, None);
        assert_eq!(flags.max_pods, Some(35));
        let taints: Vec<String> = flags
            .taints
            .iter()
            .map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect))
            .collect();
        assert_eq!(
            taints,
            [
                "node.cluster.x-k8s.io/uninitialized=:NoSchedule",
                "k=v:NoExecute",
                "node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule"
            ]
        );
    }

    #[test]
    fn without_flags_the_node_is_named_after_its_host() {
        let flags = Flags::parse("KUBELET_KUBEADM_ARGS=\"\"\n", "ip-10-0-0-4.ec2.internal");
        assert_eq!(flags, Flags { node_name: "ip-10-0-0-4.ec2.internal".to_owned(), ..Flags::default() });
    }
}
