//! What goes into an add-on plugin and what comes out of it, as plain values: the Rust mirror of
//! `wit/cluster-plugin.wit` (package `kurator:cluster-plugin@0.1.0`) and of the step kinds in `wit/steps/`.
//! It never runs a plugin, never judges a plan and never does I/O.
//!
//! The records and variants are those of the WIT, one to one, with every `json` already parsed. They are
//! serialized too (an installed plan is stored, so that its removal works when the plugin is gone); the
//! serialized form is camelCase JSON and is not part of the contract with plugins.

#![deny(missing_docs)]

mod fact;
pub mod order;
mod output;
mod query;
mod step;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use fact::{
    API_SERVER_VERSION, AwsFact, ClusterFact, ControlPlaneEndpoint, FACTS, FileSystemFact, InstalledFact,
    InstanceTypeFact, IpPoolFact, KUBERNETES_VERSION, KubeletVersionsFact, MACHINE_SUBNETS, StorageClassFact,
    SubnetFact,
};
pub use output::{OutputFlaw, outputs};
pub use query::{
    ApiAnswer, ApisQuery, MOST_OBJECTS, NodesAnswer, NodesQuery, ObjectsQuery, OutputsQuery, OwnObjectAnswer,
    OwnObjectsQuery, Query, QueryError, TaintAnswer,
};
pub use step::{
    ApplySpec, CertificateSpec, DeleteSpec, EfsFileSystemSpec, FieldCondition, FieldWaitSpec, IamRoleSpec,
    InstanceRolesSpec, Operator, Protocol, Prune, Role, RoleAction, RoleMode, RoleTrust,
    SecurityGroupRuleSpec, Segment, StepError, StepSpec, WaitCondition, WaitSpec, segments,
};

/// The version of the contract that this host speaks.
pub const CONTRACT: &str = "kurator:cluster-plugin@0.1.0";

/// The code of the diagnostic with which a plugin says that it knows no release for the cluster's version of
/// Kubernetes.
pub const UNSUPPORTED_KUBERNETES_VERSION: &str = "UnsupportedKubernetesVersion";

/// What the host can do for a plugin, in the words of `request.host.features`: the step kinds it carries out,
/// and the kinds of queries that it answers.
pub const FEATURES: &[&str] = &[
    ApplySpec::KIND,
    WaitSpec::KIND,
    FieldWaitSpec::KIND,
    DeleteSpec::KIND,
    SecurityGroupRuleSpec::KIND,
    IamRoleSpec::KIND,
    IamRoleSpec::KIND_WITH_TAGS,
    InstanceRolesSpec::KIND,
    EfsFileSystemSpec::KIND,
    CertificateSpec::KIND,
    ObjectsQuery::KIND,
    NodesQuery::KIND,
    ApisQuery::KIND,
    OwnObjectsQuery::KIND,
    OutputsQuery::KIND,
];

/// How much a diagnostic matters. Only `Error` keeps a plan from being carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// It is carried out, and the user should look at it.
    Warning,
    /// It is not carried out.
    Error,
}

/// Something a plugin has to say to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Diagnostic {
    /// How much it matters.
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
    /// Version of this program.
    pub version: String,
    /// Kinds of steps and queries that the host knows; see [`FEATURES`].
    pub features: Vec<String>,
}

/// What is known under a fact's key. "Absent" and "could not be read" are different answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactValue {
    /// It is there, and has this value.
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
    /// What it is about.
    pub key: String,
    /// What is known.
    pub value: FactValue,
}

/// The question put to a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// What the plan is for.
    pub operation: Operation,
    /// Who asks.
    pub host: HostInfo,
    /// Version of this plugin whose plan was carried out last.
    pub installed_version: Option<String>,
    /// Configuration of that plan.
    pub previous_config: Option<Value>,
    /// What the user wrote, by the plugin's schema.
    pub config: Value,
    /// What is known of the cluster, as far as the plugin may know it.
    pub facts: Vec<Fact>,
    /// Room to grow; an empty object today.
    pub extra: Value,
}

/// A question back: the host answers the query, as far as it is granted, with a fact of that key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Need {
    /// Key of the fact.
    pub key: String,
    /// What is asked for; [`Query::read`] gives its meaning.
    pub query: Value,
}

/// One thing the host shall do. [`Step::typed`] gives the meaning of `kind` and `spec`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Unique among the steps of its list.
    pub id: String,
    /// Such as `k8s.apply/v1`.
    pub kind: String,
    /// What is asked for, by the schema of the kind.
    pub spec: Value,
    /// Ids of steps of the same list that must be done before.
    pub after: Vec<String>,
}

/// The `plan` record of the WIT.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddOnPlan {
    /// What is carried out, in the order that `after` gives.
    pub steps: Vec<Step>,
    /// What uninstalls it; kept by the host, because the plugin may be gone by then.
    pub removal: Vec<Step>,
    /// What the user is told.
    pub diagnostics: Vec<Diagnostic>,
    /// Room to grow: [`outputs`] has what is read of it.
    pub extra: Value,
}

/// What a plugin answers when it has no objection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Carry this out.
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
    /// Of the plugin.
    pub name: String,
    /// Of the plugin, as semantic versioning has it.
    pub version: String,
    /// The slot it fills: `cloud-provider`, `networking`, `storage`, `ingress` or `other`.
    pub category: String,
    /// JSON Schema (draft 2020-12) of the configuration.
    pub config_schema: Value,
    /// What it needs to be granted.
    pub requires: Value,
    /// Room to grow; an empty object today.
    pub extra: Value,
}
