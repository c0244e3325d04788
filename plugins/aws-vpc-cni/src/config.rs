//! The settings of the Amazon VPC CNI, and what is wrong with them.

use plugin_sdk::settings::{Resources, registry_problem};
use plugin_sdk::{Diagnostic, facts, identity};
use serde::Deserialize;

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
    /// Bytes.
    pub mtu: Option<u16>,
    #[serde(default)]
    pub custom_networking: Vec<PodSubnet>,
    #[serde(default)]
    pub resources: Resources,
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

impl Config {
    /// What keeps the settings from being carried out, whatever the cluster.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut problems: Vec<Diagnostic> = registry_problem(self.image_registry.as_deref()).into_iter().collect();
        match (self.warm_ip_target, self.minimum_ip_target) {
            (Some(_), None) => problems.push(together("/warmIPTarget", "minimumIPTarget")),
            (None, Some(_)) => problems.push(together("/minimumIPTarget", "warmIPTarget")),
            _ => (),
        }
        if self.prefix_delegation && self.warm_prefix_target == Some(0) && self.warm_ip_target.is_none() {
            let message = "must be at least 1 with prefixDelegation, unless warmIPTarget and minimumIPTarget are set";
            problems.push(Diagnostic::error("NoWarmTarget", "/warmPrefixTarget", message));
        }
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

    /// What keeps the settings from being carried out where the cluster runs.
    pub fn problems_in(&self, aws: &facts::Aws) -> Vec<Diagnostic> {
        let mut problems: Vec<Diagnostic> = self.role_arn.iter().filter_map(|arn| identity::problem(arn, &aws.partition)).collect();
        for (index, subnet) in self.custom_networking.iter().enumerate() {
            if !aws.zones.contains(&subnet.zone) {
                let message = ["the cluster has no subnet in zone ", &subnet.zone, "; its zones are ", &aws.zones.join(", ")];
                problems.push(Diagnostic::error("UnknownZone", &zone_path(index), message.concat()));
            }
        }
        problems
    }

    /// What the user should know although it is carried out.
    pub fn warnings(&self, aws: &facts::Aws) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        if self.role_arn.is_none() {
            let message = "without roleARN, the IAM roles of the instances of all machines must allow what the CNI does, as AWS's policy AmazonEKS_CNI_Policy does";
            warnings.push(Diagnostic::warning("InstanceRole", "/roleARN", message));
        }
        if !self.custom_networking.is_empty() {
            for zone in aws.zones.iter().filter(|zone| self.custom_networking.iter().all(|subnet| subnet.zone != **zone)) {
                let message = ["zone ", zone, " has no subnet for Pods: Pods that are not on their node's network do not start there"];
                warnings.push(Diagnostic::warning("ZoneWithoutPodSubnet", "/customNetworking", message.concat()));
            }
        }
        warnings
    }
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
