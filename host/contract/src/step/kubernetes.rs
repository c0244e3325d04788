//! The step kinds that are about objects of the workload cluster.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `k8s.apply/v1`: these objects exist in the workload cluster with at least these fields. Applied
/// server-side, in the order given. They are most of a plan, and stay where the step has them.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplySpec<'a> {
    /// As they are applied, in this order.
    pub objects: &'a [Value],
    /// What happens to an object that a later plan no longer has. When absent, CustomResourceDefinitions and
    /// Namespaces are orphaned and everything else is deleted.
    pub prune: Option<Prune>,
    /// Id of a `tls.certificate/v1` step of the same list that comes before this one: the bundle of CAs that
    /// vouch for its certificate is put into every `clientConfig` of the webhook configurations among the
    /// objects.
    pub ca_bundle_from: Option<String>,
}

/// The form of [`ApplySpec`], whatever the objects are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ApplyForm {
    #[serde(rename = "objects")]
    _objects: Vec<IgnoredAny>,
    #[serde(default)]
    pub(super) prune: Option<Prune>,
    #[serde(default)]
    pub(super) ca_bundle_from: Option<String>,
}

impl ApplySpec<'_> {
    /// Kind of the step.
    pub const KIND: &'static str = "k8s.apply/v1";
}

/// What happens to an object that a later plan no longer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prune {
    /// It is deleted.
    Delete,
    /// It stays, and nobody looks after it.
    Orphan,
}

/// `k8s.wait/v1`: an object of the workload cluster fulfils a condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WaitSpec {
    /// Of the object.
    pub api_version: String,
    /// Of the object.
    pub kind: String,
    /// Of the object; `None` for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of the object.
    pub name: String,
    /// What is awaited.
    pub condition: WaitCondition,
    /// Seconds after which waiting is reported as a problem. The host goes on waiting.
    pub timeout_seconds: u32,
}

impl WaitSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "k8s.wait/v1";
}

/// What a `k8s.wait/v1` waits for. Status counts only when its `observedGeneration` is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitCondition {
    /// Deployment: condition `Available` is True for the current generation, and all replicas are of it.
    AvailableDeployment,
    /// DaemonSet: current generation seen, at least one Pod wanted, and as many updated and available as
    /// wanted.
    ReadyDaemonset,
    /// CustomResourceDefinition: condition `Established` is True.
    CrdEstablished,
    /// TigeraStatus: `Available` is True, `Progressing` and `Degraded` are not.
    TigerastatusAvailable,
    /// The object is there.
    Exists,
    /// The object is not there, whether its kind is or not.
    Gone,
}

impl WaitCondition {
    /// The only kind of object the condition makes sense for, if there is one.
    pub fn subject(self) -> Option<&'static str> {
        match self {
            WaitCondition::AvailableDeployment => Some("Deployment"),
            WaitCondition::ReadyDaemonset => Some("DaemonSet"),
            WaitCondition::CrdEstablished => Some("CustomResourceDefinition"),
            WaitCondition::TigerastatusAvailable => Some("TigeraStatus"),
            WaitCondition::Exists | WaitCondition::Gone => None,
        }
    }
}

/// `k8s.delete/v1`: an object of the workload cluster does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteSpec {
    /// Of the object.
    pub api_version: String,
    /// Of the object.
    pub kind: String,
    /// Of the object; `None` for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of the object.
    pub name: String,
    /// Whether the step is done only when the object is gone, or as soon as deletion was asked for.
    pub wait: bool,
}

impl DeleteSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "k8s.delete/v1";
}

/// `tls.certificate/v1`: a serving certificate, made and renewed by the host, in a Secret of type
/// `kubernetes.io/tls`. It is renewed under the same CA for as long as that lives, so that bundles handed out
/// with `caBundleFrom` stay good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CertificateSpec {
    /// Of the Secret.
    pub namespace: String,
    /// Of the Secret.
    pub secret_name: String,
    /// Names that the certificate is for.
    pub dns_names: Vec<String>,
}

impl CertificateSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "tls.certificate/v1";
}
