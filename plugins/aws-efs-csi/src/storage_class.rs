//! The settings of the StorageClass that comes with the driver, and what is wrong with them.

use plugin_sdk::Diagnostic;
use plugin_sdk::settings::{DefaultClass, ReclaimPolicy};
use serde::Deserialize;

/// The StorageClass that comes with the driver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StorageClass {
    pub enabled: Option<bool>,
    pub name: Option<String>,
    #[serde(rename = "default")]
    pub default_class: Option<DefaultClass>,
    pub directory_permissions: Option<String>,
    pub base_path: Option<String>,
    pub sub_path_pattern: Option<String>,
    pub ensure_unique_directory: Option<bool>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub gid_range_start: Option<u32>,
    pub gid_range_end: Option<u32>,
    /// Of every volume, as in a StorageClass.
    #[serde(default)]
    pub mount_options: Vec<String>,
    pub reclaim_policy: Option<ReclaimPolicy>,
}

impl StorageClass {
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("efs")
    }

    /// First and last group id that is given to a volume.
    pub fn gids(&self) -> (u32, u32) {
        (self.gid_range_start.unwrap_or(50_000), self.gid_range_end.unwrap_or(7_000_000))
    }

    /// Whether directories that a pattern names end with something that no other has.
    pub fn is_unique(&self) -> bool {
        self.ensure_unique_directory.unwrap_or(true)
    }

    /// What is wrong with it, the paths of its directories aside.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let (first, last) = self.gids();
        if first >= last {
            let message = ["must be above gidRangeStart, which is ", &first.to_string()];
            problems.push(Diagnostic::error("EmptyRange", "/storageClass/gidRangeEnd", message.concat()));
        }
        for (index, option) in self.mount_options.iter().enumerate() {
            let name = option.split('=').next().unwrap_or_default();
            if ["accesspoint", "mounttargetip"].contains(&name) {
                let path = ["/storageClass/mountOptions/", &index.to_string()].concat();
                let message =
                    [name, " is the driver's to set: it is another for each volume; remove it"].concat();
                problems.push(Diagnostic::error("ReservedOption", &path, message));
            }
        }
        problems
    }
}
