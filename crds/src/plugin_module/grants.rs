//! What a plugin may do: one type for those that come with the operator and for those of third parties.

mod limits;
mod network;
mod pods;
mod queries;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use limits::LimitGrants;
pub use network::{MachineRole, RuleProtocol, SecurityGroupRuleGrant};
pub use pods::{HostPathGrant, PodGrants};
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
    /// Objects that it may apply, delete and wait for, and use in its Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub objects: Vec<ObjectGrant>,
    /// Objects that it may only wait for and read, and use in its Pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub reads: Vec<ObjectGrant>,
    /// Where images may come from: the part of the reference before the last path segments, such as
    /// `quay.io/tigera`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 255)))]
    pub registries: Vec<String>,
    /// Secrets with which the images of its Pods may be pulled; it may do nothing else with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    pub pull_secrets: Vec<String>,
    /// What its Pods may have that reaches beyond them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pods: PodGrants,
    /// Fields of its other objects that reach beyond them, such as `CSIDriver.tokenRequests`;
    /// docs/plugin-security.md lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 127)))]
    pub fields: Vec<String>,
    /// Labels of Kubernetes' own that its objects may carry, such as `pod-security.kubernetes.io/enforce`. Labels
    /// of other domains and `app.kubernetes.io/...` need no grant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 317)))]
    pub labels: Vec<String>,
    /// Annotations of Kubernetes' own that its objects may carry, such as
    /// `storageclass.kubernetes.io/is-default-class`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 317)))]
    pub annotations: Vec<String>,
    /// Secrets that a serving certificate may be put into, and that its Pods may use. It may not apply them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub certificates: Vec<CertificateGrant>,
    /// What the roles that it makes may allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub rights: Vec<Right>,
    /// URLs of the API server that the roles that it makes may allow to read, such as `/metrics`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub urls: Vec<String>,
    /// Roles that others made and that it may give to its service accounts, besides its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub roles: Vec<ObjectGrant>,
    /// Which requests its webhooks may be asked about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub webhooks: Vec<Right>,
    /// Traffic between machines of the cluster that it may let in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub security_group_rules: Vec<SecurityGroupRuleGrant>,
    /// Whether it may ask for IAM roles that instances assume, besides those of its own service accounts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub node_roles: bool,
    /// Whose fields of its objects it may take over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub taken_over: Vec<TakeOver>,
    /// What a call of it may use, where that is less than the operator's own limits.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: LimitGrants,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    value == &T::default()
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
    /// Names, where only some are granted; all of them when empty. In `kube-system`, `kube-public` and
    /// `kube-node-lease`, and of cluster-scoped kinds of Kubernetes, only what is named is granted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub names: Vec<String>,
    /// Whether they may be applied although nobody reads what they say: custom resources, and kinds such as
    /// APIService, whose meaning is not judged.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unread: bool,
}

/// Secrets for serving certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateGrant {
    /// Their namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Their names.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 253)))]
    pub secrets: Vec<String>,
}

/// Verbs on resources, in all of the cluster or in one namespace. `*` stands for itself: it covers a rule
/// that has `*`, and nothing else. So do `bind`, `escalate` and `impersonate`.
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
    /// Names, where a rule has to be restricted to some by `resourceNames`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 253)))]
    pub names: Vec<String>,
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
