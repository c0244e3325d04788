//! The settings of the EBS CSI driver, and what is wrong with them.

use plugin_sdk::Diagnostic;
use plugin_sdk::settings::{DefaultClass, ReclaimPolicy, Resources, registry_problem};
use serde::Deserialize;
use serde_json::Value;

/// `spec.storage.ebs` of a ClusterPlugin.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// IAM role of the controller's service account.
    #[serde(rename = "roleARN")]
    pub role_arn: Option<String>,
    pub replicas: Option<u32>,
    #[serde(default)]
    pub resources: Resources,
    /// As in a Pod.
    #[serde(default)]
    pub tolerations: Vec<Value>,
    #[serde(default)]
    pub snapshots: bool,
    #[serde(default)]
    pub storage_class: StorageClass,
    #[serde(default)]
    pub image_pull_secrets: Vec<Value>,
    pub image_registry: Option<String>,
    pub image_tag: Option<String>,
}

/// The StorageClass that comes with the driver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageClass {
    pub enabled: Option<bool>,
    pub name: Option<String>,
    #[serde(rename = "default")]
    pub default_class: Option<DefaultClass>,
    #[serde(rename = "type")]
    pub volume_type: Option<String>,
    pub iops: Option<u32>,
    /// MiB per second.
    pub throughput: Option<u32>,
    pub encrypted: Option<bool>,
    #[serde(rename = "kmsKeyID")]
    pub kms_key_id: Option<String>,
    pub reclaim_policy: Option<ReclaimPolicy>,
}

impl StorageClass {
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("ebs")
    }

    pub fn volume_type(&self) -> &str {
        self.volume_type.as_deref().unwrap_or("gp3")
    }

    pub fn is_encrypted(&self) -> bool {
        self.encrypted.unwrap_or(true)
    }
}

impl Config {
    /// What keeps the settings from being carried out, whatever the cluster.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let class = &self.storage_class;
        let mut problems: Vec<Diagnostic> = registry_problem(self.image_registry.as_deref()).into_iter().collect();
        let mut problem = |code: &str, path: &str, message: &str| problems.push(Diagnostic::error(code, path, message));
        let kind = class.volume_type();
        if class.iops.is_some() && !matches!(kind, "gp3" | "io1" | "io2") {
            problem("UnsuitableType", "/storageClass/iops", "can be set only for volumes of type gp3, io1 or io2");
        }
        if class.iops.is_none() && matches!(kind, "io1" | "io2") {
            problem("MissingIOPS", "/storageClass/iops", "must be set for volumes of type io1 or io2");
        }
        if class.throughput.is_some() && kind != "gp3" {
            problem("UnsuitableType", "/storageClass/throughput", "can be set only for volumes of type gp3");
        }
        if class.kms_key_id.is_some() && !class.is_encrypted() {
            problem("UnusedKey", "/storageClass/kmsKeyID", "has no effect on volumes that are not encrypted; remove it, or encrypted");
        }
        problems
    }
}
