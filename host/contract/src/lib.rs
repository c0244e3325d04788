//! What goes into an add-on plugin and what comes out of it, as plain values: the Rust mirror of `wit/cluster-plugin.wit`
//! (package `kurator:cluster-plugin@0.1.0`) and of the step kinds in `wit/steps/`.
//! It never runs a plugin, never judges a plan and never does I/O.
//!
//! The records and variants are those of the WIT, one to one, with every `json` already parsed. They are serialized too
//! (an installed plan is stored, so that its removal works when the plugin is gone); the serialized form is camelCase JSON
//! and is not part of the contract with plugins.

mod fact;
pub mod order;
mod step;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use fact::{
    AwsFact, ClusterFact, ControlPlaneEndpoint, FileSystemFact, InstalledFact, InstanceTypeFact, IpPoolFact, KUBERNETES_VERSION,
    MACHINE_SUBNETS, StorageClassFact, SubnetFact,
};
pub use step::{
    ApplySpec, CertificateSpec, DeleteSpec, EfsFileSystemSpec, IamRoleSpec, InstanceRolesSpec, Protocol, Prune, Role, RoleAction, RoleMode,
    RoleTrust, SecurityGroupRuleSpec, StepError, StepSpec, WaitCondition, WaitSpec,
};

/// The version of the contract that this host speaks.
pub const CONTRACT: &str = "kurator:cluster-plugin@0.1.0";

/// What the host can do for a plugin, in the words of `request.host.features`: the step kinds it carries out.
pub const FEATURES: &[&str] = &[
    ApplySpec::KIND,
    WaitSpec::KIND,
    DeleteSpec::KIND,
    SecurityGroupRuleSpec::KIND,
    IamRoleSpec::KIND,
    IamRoleSpec::KIND_WITH_TAGS,
    InstanceRolesSpec::KIND,
    EfsFileSystemSpec::KIND,
    CertificateSpec::KIND,
];

/// How much a diagnostic matters. Only `Error` keeps a plan from being carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    Info,
    Warning,
    Error,
}

/// Something a plugin has to say to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable word for programs, in CamelCase, such as `UnsupportedKubernetesVersion`.
    pub code: String,
    /// JSON pointer into the configuration; empty when it is about the whole.
    pub path: String,
    /// One sentence for people.
    pub message: String,
}

/// What the plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Nothing of this plugin is installed, or the same version is and is kept as it should be.
    Install,
    /// Another version or configuration of this plugin is installed.
    Upgrade,
    /// The plugin leaves a cluster that goes on living.
    Uninstall,
    /// The whole cluster is being deleted.
    DeleteCluster,
}

/// The host that asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostInfo {
    pub version: String,
    /// Step kinds the host carries out; see [`FEATURES`].
    pub features: Vec<String>,
}

/// What is known under a fact's key. "Absent" and "could not be read" are different answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactValue {
    Present(Value),
    /// Looked for, and not there.
    Absent,
    /// The plugin may not know, or the host may not read it; the text says which and why.
    Denied(String),
    /// Could not be read now; the text says why.
    Unknown(String),
}

/// One thing the host knows about the cluster. Keys and the schemas of their values are in `wit/facts/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fact {
    pub key: String,
    pub value: FactValue,
}

/// The question put to a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    pub operation: Operation,
    pub host: HostInfo,
    /// Version of this plugin whose plan was carried out last.
    pub installed_version: Option<String>,
    /// Configuration of that plan.
    pub previous_config: Option<Value>,
    pub config: Value,
    pub facts: Vec<Fact>,
    /// Room to grow; an empty object today.
    pub extra: Value,
}

/// A question back: a query that the host may resolve into a fact of that key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Need {
    pub key: String,
    pub query: Value,
}

/// One thing the host shall do. [`Step::typed`] gives the meaning of `kind` and `spec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Unique among the steps of its list.
    pub id: String,
    pub kind: String,
    pub spec: Value,
    /// Ids of steps of the same list that must be done before.
    pub after: Vec<String>,
}

/// The `plan` record of the WIT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddOnPlan {
    pub steps: Vec<Step>,
    /// What uninstalls it; kept by the host, because the plugin may be gone by then.
    pub removal: Vec<Step>,
    pub diagnostics: Vec<Diagnostic>,
    pub extra: Value,
}

/// What a plugin answers when it has no objection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    Complete(AddOnPlan),
    /// Asks for facts and wants to be called again.
    Needs(Vec<Need>),
    /// Nothing can be done yet; the diagnostics say what it waits for.
    Pending(Vec<Diagnostic>),
}

/// What a plugin answers when it objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The user has to change the configuration.
    Invalid(Vec<Diagnostic>),
    /// The configuration is right, but not for this cluster or this host.
    Unsupported(Diagnostic),
    /// A defect of the plugin.
    Internal(String),
}

/// What a plugin says about itself, whatever the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Descriptor {
    pub name: String,
    pub version: String,
    /// The slot it fills: `cloud-provider`, `networking`, `storage`, `ingress` or `other`.
    pub category: String,
    /// JSON Schema (draft 2020-12) of the configuration.
    pub config_schema: Value,
    /// What it needs to be granted.
    pub requires: Value,
    pub extra: Value,
}
