//! The settings of the EFS CSI driver, and what is wrong with them.

use crate::path;
use crate::storage_class::StorageClass;
use plugin_sdk::Diagnostic;
use plugin_sdk::settings::{ArgumentType, Extra, LogLevel, Resources, extra_problems, registry_problem};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where the tags of the file system are in the settings.
pub const TAGS: &str = "/fileSystemTags";

/// `spec.storage.efs` of a ClusterPlugin.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// IAM role of the controller's service account.
    #[serde(rename = "roleARN")]
    pub role_arn: Option<String>,
    #[serde(rename = "fileSystemID")]
    pub file_system_id: Option<String>,
    /// By which the file system is found.
    #[serde(default)]
    pub file_system_tags: BTreeMap<String, String>,
    #[serde(default)]
    pub delete_directories: bool,
    /// Whether access points carry the cluster's tags.
    #[serde(default)]
    pub tag_access_points: bool,
    pub replicas: Option<u32>,
    #[serde(default)]
    pub resources: Resources,
    /// As in a Pod.
    #[serde(default)]
    pub tolerations: Vec<Value>,
    #[serde(default)]
    pub node_selector: Map<String, Value>,
    #[serde(default)]
    pub log_level: LogLevel,
    #[serde(default)]
    pub extra_args: Map<String, Value>,
    #[serde(default)]
    pub storage_class: StorageClass,
    #[serde(default)]
    pub image_pull_secrets: Vec<Value>,
    pub image_registry: Option<String>,
    pub image_tag: Option<String>,
}

/// What of the release's documented arguments of the controller can be set without taking the place of
/// another setting, or of what the plugin decides.
pub const CONTROLLER_ARGS: &[Extra] = &[Extra { name: "adaptive-retry-mode", takes: ArgumentType::Switch }];

/// The same of what runs on nodes. Not among them are `force-unmount-after-timeout`, which loses what was not
/// written yet, and limits with which the driver does not start when one of a pair is missing.
pub const NODE_ARGS: &[Extra] = &[
    Extra { name: "vol-metrics-fs-rate-limit", takes: ArgumentType::Number(1, 100) },
    Extra { name: "vol-metrics-opt-in", takes: ArgumentType::Switch },
    Extra { name: "vol-metrics-refresh-period", takes: ArgumentType::Number(1, 10_080) },
];

impl Config {
    /// The class for volumes on the file system that is named or to be found, if there shall be one.
    pub fn class(&self) -> Option<&StorageClass> {
        let has_file_system = self.file_system_id.is_some() || !self.file_system_tags.is_empty();
        (has_file_system && self.storage_class.enabled.unwrap_or(true)).then_some(&self.storage_class)
    }

    /// What keeps the settings from being carried out, whatever the cluster.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut problems: Vec<Diagnostic> =
            registry_problem(self.image_registry.as_deref()).into_iter().collect();
        if self.file_system_id.is_some() && !self.file_system_tags.is_empty() {
            let message = "excludes fileSystemID: keep fileSystemID to name the file system, or \
                           fileSystemTags to have it found";
            problems.push(Diagnostic::error("NamedAndFound", TAGS, message));
        }
        problems.extend(extra_problems(
            &self.extra_args,
            &[CONTROLLER_ARGS, NODE_ARGS].concat(),
            "/extraArgs",
        ));
        problems.extend(path::problems(&self.storage_class));
        problems.extend(self.storage_class.problems());
        problems
    }
}
