//! What the status of a ClusterPlugin says of each add-on.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::approval::PluginApproval;
use crate::lenient;

/// What is installed and what is awaited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPluginStatus {
    /// Every add-on of the cluster.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub plugins: Vec<PluginStatus>,
    /// What is true of the add-ons, and why.
    #[serde(default, deserialize_with = "lenient::list", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub conditions: Vec<Condition>,
    /// When something that somebody changed or deleted in the cluster was last set back. An event says what
    /// it was.
    #[serde(default, deserialize_with = "lenient::value", skip_serializing_if = "Option::is_none")]
    pub last_repair_time: Option<Time>,
}

/// One add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// Name of the add-on, such as `calico`: that of its plugin, of the PluginModule in a slot, or the one among
    /// `spec.plugins`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Name of the PluginModule, for a plugin of a third party.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub module: Option<String>,
    /// Version of the plugin whose plan is, or is being, carried out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub version: String,
    /// Hash of the plugin's component, `sha256:...`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub digest: String,
    /// Where the add-on is in its life: Pending until it may be installed, Provisioning while it is, Running
    /// when all of it is there, Updating while another version or configuration is installed, Deleting,
    /// Deleted, and Failed when somebody has to act.
    #[serde(default)]
    pub phase: PluginPhase,
    /// What is awaited; empty when nothing is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub waiting_for: String,
    /// While it is being upgraded: the version before, to which it goes back if it is not whole in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub upgrading_from: Option<String>,
    /// What the operator brings in its place; absent when that is what is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<AvailablePlugin>,
    /// The upgrade that was undone, or should be and cannot. It is not tried again before the annotation
    /// `cluster.kurator.dev/upgrade` names its digest, and does not begin in other clusters meanwhile, unless
    /// the add-on is pinned to another version here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_upgrade: Option<FailedUpgrade>,
    /// The plan that waits until somebody approves of it; absent when none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<PluginApproval>,
    /// What the plugin tells of what it installed, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
}

/// A component that an add-on was upgraded to, and that did not become whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedUpgrade {
    /// Its version.
    #[schemars(length(max = 128))]
    pub version: String,
    /// Hash of its component, `sha256:...`.
    #[schemars(length(max = 128))]
    pub digest: String,
    /// What it awaited when its time was over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Another component of an add-on, to which it can be upgraded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailablePlugin {
    /// Its version.
    #[schemars(length(max = 128))]
    pub version: String,
    /// Hash of its component, `sha256:...`. The annotation `cluster.kurator.dev/upgrade` names it.
    #[schemars(length(max = 128))]
    pub digest: String,
    /// What an upgrade would change, with the configuration of now, a line each: `+` is added, `-` removed
    /// and `~` changed. Objects first, then security-group rules, what roles have to allow, certificates and
    /// images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub changes: Vec<String>,
}

/// Where an add-on is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum PluginPhase {
    #[default]
    Pending,
    Provisioning,
    Running,
    Updating,
    Deleting,
    Deleted,
    Failed,
}
