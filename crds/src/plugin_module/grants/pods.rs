//! What Pods of a plugin may have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_default;

/// What Pods of a plugin may have that reaches beyond them: to the machine, to other machines, to other
/// identities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodGrants {
    /// Fields, such as `hostNetwork`, `hostPID`, `privileged`; docs/plugin-security.md lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub fields: Vec<String>,
    /// Directories and files of the machine that they may mount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub host_paths: Vec<HostPathGrant>,
    /// Linux capabilities that containers may add, such as `NET_ADMIN`; `ALL` stands for itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 48), inner(length(min = 1, max = 63)))]
    pub capabilities: Vec<String>,
    /// Keys of taints that they may tolerate; `*` for all. Taints `node.kubernetes.io/...` and `CriticalAddonsOnly`
    /// need no grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 317)))]
    pub tolerations: Vec<String>,
    /// Labels of machines by which they may choose where they run. Architecture, operating system, zone, region and
    /// instance type need no grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 317)))]
    pub node_labels: Vec<String>,
    /// Whether they may be sent to machines of the control plane, whose files and IAM role are the cluster's.
    #[serde(default, skip_serializing_if = "is_default")]
    pub control_plane: bool,
    /// PriorityClasses, such as `system-cluster-critical`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub priority_classes: Vec<String>,
    /// Whom tokens of their service accounts may be made for, such as `sts.amazonaws.com`. A token for the API server
    /// itself needs no grant, since the service account does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub token_audiences: Vec<String>,
}

/// Files of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostPathGrant {
    /// A file, or a directory with all that is below it.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^/"))]
    pub path: String,
    /// Whether every container has to mount it read-only.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_only: bool,
}
