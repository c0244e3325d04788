//! The settings of the EBS CSI driver, and what is wrong with them.

use plugin_sdk::Diagnostic;
use plugin_sdk::settings::{
    ArgumentType, DefaultClass, Extra, LogLevel, ReclaimPolicy, Resources, extra_problems, registry_problem,
};
use serde::Deserialize;
use serde_json::{Map, Value};

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
    pub node_selector: Map<String, Value>,
    #[serde(default)]
    pub log_level: LogLevel,
    #[serde(default)]
    pub extra_args: Map<String, Value>,
    #[serde(default)]
    pub snapshots: bool,
    #[serde(default)]
    pub storage_class: StorageClass,
    /// Classes beside that one.
    #[serde(default)]
    pub storage_classes: Vec<StorageClass>,
    /// Volumes that a node takes at most.
    pub volume_attach_limit: Option<u32>,
    /// Attachments of a node that are not for volumes of claims.
    pub reserved_volume_attachments: Option<u32>,
    #[serde(default)]
    pub image_pull_secrets: Vec<Value>,
    pub image_registry: Option<String>,
    pub image_tag: Option<String>,
}

/// A StorageClass that comes with the driver.
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
    /// What volumes are formatted with.
    pub fs_type: Option<String>,
    pub reclaim_policy: Option<ReclaimPolicy>,
}

/// What of the release's controller can be set without taking the place of another setting, or of what the
/// plugin decides. Not among them are `aws-sdk-debug-log`, which writes requests to the log with the tokens
/// that sign them, and `modify-volume-request-handler-timeout`, which has to stay below the timeouts of the
/// sidecars.
pub const EXTRA_ARGS: &[Extra] = &[
    Extra { name: "batching", takes: ArgumentType::Switch },
    Extra { name: "enable-node-local-volumes", takes: ArgumentType::Switch },
    Extra { name: "logging-format", takes: ArgumentType::Word(&["text", "json"]) },
    Extra { name: "warn-on-invalid-tag", takes: ArgumentType::Switch },
];

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

    pub fn fs_type(&self) -> &str {
        self.fs_type.as_deref().unwrap_or("ext4")
    }

    pub fn is_encrypted(&self) -> bool {
        self.encrypted.unwrap_or(true)
    }
}

impl Config {
    /// The classes that there shall be, each with where it is in the settings.
    pub fn classes(&self) -> Vec<(String, &StorageClass)> {
        let mut classes = Vec::new();
        if self.storage_class.is_enabled() {
            classes.push(("/storageClass".to_owned(), &self.storage_class));
        }
        for (index, class) in self.storage_classes.iter().enumerate() {
            classes.push((["/storageClasses/", &index.to_string()].concat(), class));
        }
        classes
    }

    /// What keeps the settings from being carried out, whatever the cluster.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut problems: Vec<Diagnostic> =
            registry_problem(self.image_registry.as_deref()).into_iter().collect();
        problems.extend(extra_problems(&self.extra_args, EXTRA_ARGS, "/extraArgs"));
        if self.volume_attach_limit.is_some() && self.reserved_volume_attachments.is_some() {
            let message = "excludes volumeAttachLimit, which is what is left after all reservations; remove \
                           one of them";
            problems.push(Diagnostic::error("LimitAndReservation", "/reservedVolumeAttachments", message));
        }
        if !self.storage_class.is_enabled() {
            self.storage_class.problems("/storageClass", &mut problems);
        }
        let classes = self.classes();
        for (index, (path, class)) in classes.iter().enumerate() {
            class.problems(path, &mut problems);
            for (other_path, other) in &classes[..index] {
                if other.name() == class.name() {
                    let message =
                        ["there is a class of the name ", class.name(), " already; choose another"].concat();
                    problems.push(Diagnostic::error("DuplicateName", &[path, "/name"].concat(), message));
                }
                if other.default_class == Some(DefaultClass::Always)
                    && class.default_class == other.default_class
                {
                    let message =
                        ["only one class can be the default, and ", &other_path[1..], " is"].concat();
                    problems.push(Diagnostic::error(
                        "SeveralDefaults",
                        &[path, "/default"].concat(),
                        message,
                    ));
                }
            }
        }
        problems
    }
}

impl StorageClass {
    /// What is wrong with a class that stands at `path` of the settings.
    fn problems(&self, path: &str, problems: &mut Vec<Diagnostic>) {
        let mut problem = |code: &str, field: &str, message: &str| {
            problems.push(Diagnostic::error(code, &[path, field].concat(), message))
        };
        let kind = self.volume_type();
        if self.iops.is_some() && !matches!(kind, "gp3" | "io1" | "io2") {
            problem("UnsuitableType", "/iops", "can be set only for volumes of type gp3, io1 or io2");
        }
        if self.iops.is_none() && matches!(kind, "io1" | "io2") {
            problem("MissingIOPS", "/iops", "must be set for volumes of type io1 or io2");
        }
        if self.throughput.is_some() && kind != "gp3" {
            problem("UnsuitableType", "/throughput", "can be set only for volumes of type gp3");
        }
        if self.kms_key_id.is_some() && !self.is_encrypted() {
            problem(
                "UnusedKey",
                "/kmsKeyID",
                "has no effect on volumes that are not encrypted; remove it, or encrypted",
            );
        }
    }
}
