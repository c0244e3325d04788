//! The settings of the Amazon VPC CNI, and what is wrong with them.

use plugin_sdk::settings::{
    ArgumentType, Extra, LogLevel, Resources, extra_problems, is_ipv4_range, registry_problem,
};
use plugin_sdk::{Diagnostic, facts, identity};
use serde::Deserialize;
use serde_json::{Map, Value};

/// `spec.networking.amazonVPC` of a ClusterPlugin.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// IAM role of the service account.
    #[serde(rename = "roleARN")]
    pub role_arn: Option<String>,
    #[serde(default)]
    pub prefix_delegation: bool,
    #[serde(rename = "warmENITarget")]
    pub warm_eni_target: Option<u32>,
    #[serde(rename = "warmIPTarget")]
    pub warm_ip_target: Option<u32>,
    #[serde(rename = "minimumIPTarget")]
    pub minimum_ip_target: Option<u32>,
    pub warm_prefix_target: Option<u32>,
    #[serde(rename = "externalSNAT", default)]
    pub external_snat: bool,
    /// IPv4 ranges outside the VPC.
    #[serde(rename = "excludeSNATCIDRs", default)]
    pub exclude_snat_cidrs: Vec<String>,
    /// Bytes.
    pub mtu: Option<u16>,
    /// Bytes.
    #[serde(rename = "podMTU")]
    pub pod_mtu: Option<u16>,
    /// The first interface of a node among them.
    #[serde(rename = "maxENI")]
    pub max_eni: Option<u32>,
    #[serde(default)]
    pub custom_networking: Vec<PodSubnet>,
    #[serde(default)]
    pub resources: Resources,
    #[serde(default)]
    pub node_selector: Map<String, Value>,
    #[serde(default)]
    pub log_level: LogLevel,
    #[serde(default)]
    pub extra_env: Map<String, Value>,
    #[serde(default)]
    pub image_pull_secrets: Vec<Value>,
    pub image_registry: Option<String>,
    pub image_tag: Option<String>,
}

/// Where the Pods of a zone get their addresses.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodSubnet {
    pub zone: String,
    #[serde(rename = "subnetID")]
    pub subnet_id: String,
    #[serde(rename = "securityGroupIDs", default)]
    pub security_group_ids: Vec<String>,
}

/// The largest packet that EC2 carries, in bytes.
const EC2_MTU: u16 = 9001;

/// What of the release's documented variables can be set without taking the place of another setting, or of
/// what the plugin decides.
const EXTRA_ENV: &[Extra] = &[
    Extra { name: "AWS_EXTERNAL_SERVICE_CIDRS", takes: ArgumentType::Ranges },
    Extra { name: "AWS_MANAGE_ENIS_NON_SCHEDULABLE", takes: ArgumentType::Switch },
    Extra {
        name: "AWS_VPC_K8S_CNI_RANDOMIZESNAT",
        takes: ArgumentType::Word(&["hashrandom", "prng", "none"]),
    },
    Extra { name: "DISABLE_INTROSPECTION", takes: ArgumentType::Switch },
    Extra { name: "DISABLE_LEAKED_ENI_CLEANUP", takes: ArgumentType::Switch },
    Extra { name: "DISABLE_METRICS", takes: ArgumentType::Switch },
    Extra { name: "ENABLE_BANDWIDTH_PLUGIN", takes: ArgumentType::Switch },
    Extra { name: "ENABLE_SUBNET_DISCOVERY", takes: ArgumentType::Switch },
    Extra { name: "IP_COOLDOWN_PERIOD", takes: ArgumentType::Number(0, 3600) },
];

impl Config {
    /// Largest packet of a network interface, in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu.unwrap_or(EC2_MTU)
    }

    /// What keeps the settings from being carried out, whatever the cluster.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut problems: Vec<Diagnostic> =
            registry_problem(self.image_registry.as_deref()).into_iter().collect();
        match (self.warm_ip_target, self.minimum_ip_target) {
            (Some(_), None) => problems.push(together("/warmIPTarget", "minimumIPTarget")),
            (None, Some(_)) => problems.push(together("/minimumIPTarget", "warmIPTarget")),
            _ => (),
        }
        if self.prefix_delegation && self.warm_prefix_target == Some(0) && self.warm_ip_target.is_none() {
            let message =
                "must be at least 1 with prefixDelegation, unless warmIPTarget and minimumIPTarget are set";
            problems.push(Diagnostic::error("NoWarmTarget", "/warmPrefixTarget", message));
        }
        problems.extend(self.address_problems());
        problems.extend(extra_problems(&self.extra_env, EXTRA_ENV, "/extraEnv"));
        for (index, subnet) in self.custom_networking.iter().enumerate() {
            if self.custom_networking[..index].iter().any(|earlier| earlier.zone == subnet.zone) {
                problems.push(Diagnostic::error(
                    "DuplicateZone",
                    &zone_path(index),
                    ["zone ", &subnet.zone, " has a subnet already"].concat(),
                ));
            }
        }
        problems
    }

    fn address_problems(&self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        if self.external_snat && !self.exclude_snat_cidrs.is_empty() {
            let message = "has no effect with externalSNAT, which keeps the address of Pods in all packets; \
                           remove one of them";
            problems.push(Diagnostic::error("UnusedRanges", "/excludeSNATCIDRs", message));
        }
        for (index, _) in
            self.exclude_snat_cidrs.iter().enumerate().filter(|(_, range)| !is_ipv4_range(range))
        {
            let path = ["/excludeSNATCIDRs/", &index.to_string()].concat();
            problems.push(Diagnostic::error(
                "InvalidRange",
                &path,
                "must be an IPv4 range, such as 10.0.0.0/16",
            ));
        }
        if self.pod_mtu.is_some_and(|mtu| mtu > self.mtu()) {
            let message = [
                "must be at most ",
                &self.mtu().to_string(),
                ", which is the largest packet of a network interface (mtu)",
            ];
            problems.push(Diagnostic::error("MTUTooLarge", "/podMTU", message.concat()));
        }
        if self.max_eni == Some(1) && !self.custom_networking.is_empty() {
            let message = "must be at least 2 with customNetworking, where the first network interface of a \
                           node has no addresses for Pods";
            problems.push(Diagnostic::error("TooFewInterfaces", "/maxENI", message));
        }
        problems
    }

    /// What keeps the settings from being carried out where the cluster runs.
    pub fn problems_in(&self, aws: &facts::Aws) -> Vec<Diagnostic> {
        let mut problems: Vec<Diagnostic> =
            self.role_arn.iter().filter_map(|arn| identity::problem(arn, &aws.partition)).collect();
        for (index, subnet) in self.custom_networking.iter().enumerate() {
            if !aws.zones.contains(&subnet.zone) {
                let message = [
                    "the cluster has no subnet in zone ",
                    &subnet.zone,
                    "; its zones are ",
                    &aws.zones.join(", "),
                ];
                problems.push(Diagnostic::error("UnknownZone", &zone_path(index), message.concat()));
            }
        }
        problems
    }

    /// What the user should know although it is carried out.
    pub fn warnings(&self, cluster: &facts::Cluster, aws: &facts::Aws) -> Vec<Diagnostic> {
        let mut warnings: Vec<Diagnostic> = pod_range_warning(cluster).into_iter().collect();
        if self.role_arn.is_none() {
            let message = "without roleARN, the IAM roles of the instances of all machines must allow what \
                           the CNI does, as AWS's policy AmazonEKS_CNI_Policy does";
            warnings.push(Diagnostic::warning("InstanceRole", "/roleARN", message));
        }
        if !self.custom_networking.is_empty() {
            for zone in aws
                .zones
                .iter()
                .filter(|zone| self.custom_networking.iter().all(|subnet| subnet.zone != **zone))
            {
                let message = [
                    "zone ",
                    zone,
                    " has no subnet for Pods: Pods that are not on their node's network do not start there",
                ];
                warnings.push(Diagnostic::warning(
                    "ZoneWithoutPodSubnet",
                    "/customNetworking",
                    message.concat(),
                ));
            }
        }
        warnings
    }
}

/// kubeadm tells kube-proxy the range of a cluster's Pods, and kube-proxy masks the source of whatever comes
/// from elsewhere.
fn pod_range_warning(cluster: &facts::Cluster) -> Option<Diagnostic> {
    let ranges = cluster.pod_cidrs.join(", ");
    let message = [
        "the Cluster has spec.clusterNetwork.pods (",
        &ranges,
        "), but Pods have addresses of the VPC: kube-proxy takes all of them for strangers, and Services see \
         the address of the node in place of the Pod's. Make clusters without it; in this one, remove \
         it, and empty clusterCIDR in ConfigMap kube-system/kube-proxy and restart the \
         Pods of kube-proxy",
    ];
    (!cluster.pod_cidrs.is_empty()).then(|| Diagnostic::warning("PodCIDR", "", message.concat()))
}

fn together(path: &str, other: &str) -> Diagnostic {
    Diagnostic::error(
        "IncompleteTarget",
        path,
        ["needs ", other, " beside it: with one alone the CNI asks EC2 for every single address"].concat(),
    )
}

fn zone_path(index: usize) -> String {
    ["/customNetworking/", &index.to_string(), "/zone"].concat()
}
