//! What a plugin may do: an allow-list, for built-in plugins and those of third parties alike.

mod queries;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use queries::QueryGrant;

/// What a plugin may do. Whatever is not listed is denied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Grants {
    /// Kinds of steps, such as `k8s.apply/v1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    pub steps: Vec<String>,
    /// Facts that it is told, besides `cluster`, `kubernetes-version`, `aws` and `installed`, which all are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    pub facts: Vec<String>,
    /// What it may ask of the cluster beside its facts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub queries: Vec<QueryGrant>,
    /// Objects that it may apply, delete and wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub objects: Vec<ObjectGrant>,
    /// Where images may come from: the part of the reference before the last path segments, such as
    /// `quay.io/tigera`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 255)))]
    pub registries: Vec<String>,
    /// Secrets with which the images of its Pods may be pulled; it may do nothing else with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    pub pull_secrets: Vec<String>,
    /// What the roles that it makes may allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub rights: Vec<Right>,
    /// Roles that others made and that it may give to its service accounts, besides its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub roles: Vec<ObjectGrant>,
    /// Which requests its webhooks may be asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub webhooks: Vec<Right>,
    /// Whether its Pods may use what belongs to the machine: its network, ports, files and privileges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
    /// Whose fields of its objects it may take over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub taken_over: Vec<TakeOver>,
}

/// Kinds of one API group, in some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectGrant {
    /// API group; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Kinds, such as `Deployment`.
    #[schemars(length(min = 1, max = 32), inner(length(min = 1, max = 63)))]
    pub kinds: Vec<String>,
    /// Namespaces; none for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// Names, where only some are granted; all of them when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub names: Vec<String>,
}

/// Verbs on resources, in all of the cluster or in one namespace. `*` stands for itself: it covers a rule
/// that has `*`, and nothing else. Names of resources only narrow a rule, and are not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Right {
    /// Empty for the whole cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// API groups; empty text for the core group.
    #[schemars(length(min = 1, max = 16), inner(length(max = 253)))]
    pub groups: Vec<String>,
    /// Resources, with subresources, such as `pods/status`.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 127)))]
    pub resources: Vec<String>,
    /// Verbs; operations, such as `CREATE`, where a webhook is granted to be asked.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 32)))]
    pub verbs: Vec<String>,
}

/// An object into which whoever carries out what it says writes the defaults, which makes him hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TakeOver {
    /// The object.
    pub object: ObjectGrant,
    /// Field manager that writes the defaults. Only what it wrote is taken over, nothing that it applied.
    #[schemars(length(min = 1, max = 128))]
    pub manager: String,
}
