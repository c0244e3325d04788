//! Settings that add-ons have in common because all of them run containers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Labels of nodes, by their keys.
pub type NodeLabels = BTreeMap<String, String>;

/// Arguments of a program, by their names without hyphens in front.
pub type Arguments = BTreeMap<String, String>;

/// How many copies of a controller there are, where they run and what they say, whichever add-on it belongs
/// to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControllerSettings {
    /// Copies of the controller, of which one is at work.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 5))]
    pub replicas: i32,
    /// Taints that the controller tolerates beside that of the control plane. What runs on every node
    /// tolerates all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// Labels of the nodes that the controller runs on. Without `roleARN` they are machines of the control
    /// plane in any case. It says nothing about what runs on every node.
    #[serde(default, skip_serializing_if = "NodeLabels::is_empty")]
    pub node_selector: NodeLabels,
    /// How much the controller says in its log. Info when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self { replicas: two(), tolerations: Vec::new(), node_selector: NodeLabels::new(), log_level: None }
    }
}

/// What a container asks for. Nothing limits it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResources {
    /// Processor time, such as `100m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?m?$"))]
    pub cpu: Option<String>,
    /// Memory, such as `128Mi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?(k|M|G|Ki|Mi|Gi)?$"))]
    pub memory: Option<String>,
}

impl ContainerResources {
    pub(super) fn is_unset(&self) -> bool {
        *self == Self::default()
    }
}

/// A taint that Pods tolerate, as in a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Key of the taint. Every key when absent, with operator Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub key: Option<String>,
    /// Whether the value matters. Equal when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// Value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// Effect of the taint. Every effect when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// How long a taint of effect NoExecute is tolerated, in seconds. For ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub toleration_seconds: Option<i32>,
}

/// Whether the value of a taint matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum TolerationOperator {
    Exists,
    Equal,
}

/// What a taint does to Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum TaintEffect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

/// A Secret with which images are pulled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePullSecret {
    /// Name of the Secret in the cluster, of type `kubernetes.io/dockerconfigjson`.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub name: String,
}

/// How much a program says in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum LogLevel {
    Info,
    Debug,
}

/// Copies of a controller when the user does not say how many: one at work, one to take over.
fn two() -> i32 {
    2
}

pub(super) fn yes() -> bool {
    true
}
