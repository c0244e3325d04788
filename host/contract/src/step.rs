//! The step kinds of the contract: what a plugin can ask the host to do, each with its JSON Schema in
//! `wit/steps/`. Reading a step says what is asked for, never whether it is allowed: that is the judge's
//! part.

mod reference;

use super::Step;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a [`Step`] asks for, once its `spec` was read by the rules of its `kind`.
#[derive(Clone, Debug, PartialEq)]
pub enum StepSpec<'a> {
    /// Objects are applied.
    Apply(ApplySpec<'a>),
    /// An object fulfils a condition.
    Wait(WaitSpec),
    /// An object is gone.
    Delete(DeleteSpec),
    /// Machines let traffic in.
    SecurityGroupRule(SecurityGroupRuleSpec),
    /// An IAM role is fit.
    IamRole(IamRoleSpec),
    /// The roles of instances allow something.
    InstanceRoles(InstanceRolesSpec),
    /// A file system can be mounted.
    EfsFileSystem(EfsFileSystemSpec),
    /// A serving certificate is there.
    Certificate(CertificateSpec),
}

/// Why a step has no meaning.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// The host does not know this kind of step.
    #[error("step {step:?}: unknown kind {kind:?}")]
    UnknownKind {
        /// Id of the step.
        step: String,
        /// Its kind.
        kind: String,
    },
    /// The spec does not have the shape of its kind.
    #[error("step {step:?}: spec is not a {kind}")]
    Spec {
        /// Id of the step.
        step: String,
        /// Its kind.
        kind: String,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Fields contradict each other.
    #[error("step {step:?}: {message}")]
    Inconsistent {
        /// Id of the step.
        step: String,
        /// Which, and how.
        message: String,
    },
}

impl Step {
    /// Reads `spec` by the rules of `kind`.
    ///
    /// # Errors
    /// The kind is not of this contract, a field is unknown, missing or of the wrong type, or fields
    /// contradict each other.
    pub fn typed(&self) -> Result<StepSpec<'_>, StepError> {
        let spec = match self.kind.as_str() {
            ApplySpec::KIND => StepSpec::Apply(self.apply()?),
            WaitSpec::KIND => StepSpec::Wait(self.read()?),
            DeleteSpec::KIND => StepSpec::Delete(self.read()?),
            SecurityGroupRuleSpec::KIND => StepSpec::SecurityGroupRule(self.read()?),
            IamRoleSpec::KIND => StepSpec::IamRole(self.read::<RoleForm<String>>()?.into()),
            IamRoleSpec::KIND_WITH_TAGS => StepSpec::IamRole(self.read::<RoleForm<RoleAction>>()?.into()),
            InstanceRolesSpec::KIND => StepSpec::InstanceRoles(self.read()?),
            EfsFileSystemSpec::KIND => StepSpec::EfsFileSystem(self.read()?),
            CertificateSpec::KIND => StepSpec::Certificate(self.read()?),
            _ => {
                return Err(StepError::UnknownKind { step: self.id.clone(), kind: self.kind.clone() });
            }
        };
        match spec.contradiction() {
            Some(message) => Err(StepError::Inconsistent { step: self.id.clone(), message }),
            None => Ok(spec),
        }
    }

    fn apply(&self) -> Result<ApplySpec<'_>, StepError> {
        let form: ApplyForm = self.read()?;
        let objects =
            self.spec.get("objects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Ok(ApplySpec { objects, prune: form.prune, ca_bundle_from: form.ca_bundle_from })
    }

    fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, StepError> {
        T::deserialize(&self.spec).map_err(|source| StepError::Spec {
            step: self.id.clone(),
            kind: self.kind.clone(),
            source,
        })
    }
}

impl StepSpec<'_> {
    fn contradiction(&self) -> Option<String> {
        match self {
            StepSpec::Apply(spec) => {
                let mut flaws = spec.objects.iter().map(reference::object_flaw).enumerate();
                flaws.find_map(|(index, flaw)| flaw.map(|flaw| format!("objects/{index}{flaw}")))
            }
            StepSpec::Wait(spec) => {
                let flaw =
                    reference::flaw(&spec.api_version, &spec.kind, spec.namespace.as_deref(), &spec.name);
                let subject = spec.condition.subject().filter(|kind| *kind != spec.kind);
                flaw.or_else(|| {
                    subject.map(|kind| format!("condition is about a {kind}, not a {}", spec.kind))
                })
            }
            StepSpec::Delete(spec) => {
                reference::flaw(&spec.api_version, &spec.kind, spec.namespace.as_deref(), &spec.name)
            }
            StepSpec::SecurityGroupRule(spec) => {
                match (spec.protocol.has_ports(), spec.from_port, spec.to_port) {
                    (true, Some(from), Some(to)) if from <= to => None,
                    (true, Some(_), Some(_)) => Some("fromPort is above toPort".to_owned()),
                    (true, ..) => Some("tcp and udp need fromPort and toPort".to_owned()),
                    (false, None, None) => None,
                    (false, ..) => Some("only tcp and udp have ports".to_owned()),
                }
            }
            StepSpec::IamRole(spec) => {
                let fields = [("namespace", &spec.namespace), ("serviceAccount", &spec.service_account)];
                fields.into_iter().find_map(|(field, text)| reference::segment_flaw(field, text.as_deref()?))
            }
            StepSpec::Certificate(spec) => reference::segment_flaw("namespace", &spec.namespace)
                .or_else(|| reference::segment_flaw("secretName", &spec.secret_name)),
            StepSpec::InstanceRoles(_) | StepSpec::EfsFileSystem(_) => None,
        }
    }
}

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
struct ApplyForm {
    #[serde(rename = "objects")]
    _objects: Vec<IgnoredAny>,
    #[serde(default)]
    prune: Option<Prune>,
    #[serde(default)]
    ca_bundle_from: Option<String>,
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
    /// Deployment: condition `Available` is True for the current generation.
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
    /// The object is not there, nor is its kind.
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

/// `aws.sg-rule/v1`: an ingress rule between machines of the cluster. Groups are named by role, so that a
/// plugin cannot point at others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecurityGroupRuleSpec {
    /// The role whose machines receive the traffic.
    pub group: Role,
    /// What is let in.
    pub protocol: Protocol,
    /// First port; given exactly for tcp and udp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_port: Option<u16>,
    /// Last port; given exactly for tcp and udp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_port: Option<u16>,
    /// The role whose machines send it.
    pub peer: Role,
    /// For people who look at the rule in AWS.
    pub description: String,
}

impl SecurityGroupRuleSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "aws.sg-rule/v1";
}

/// The machines of a cluster that share a security group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Machines of the control plane.
    ControlPlane,
    /// All other machines.
    Node,
}

/// IP protocol of a security-group rule, in EC2's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Protocol {
    /// With ports.
    #[serde(rename = "tcp")]
    Tcp,
    /// With ports.
    #[serde(rename = "udp")]
    Udp,
    /// IP in IP, protocol number 4.
    #[serde(rename = "4")]
    IpInIp,
    /// Every protocol and port.
    #[serde(rename = "-1")]
    All,
}

impl Protocol {
    /// Whether rules of this protocol name ports.
    pub fn has_ports(self) -> bool {
        matches!(self, Protocol::Tcp | Protocol::Udp)
    }
}

/// `aws.iam-role/v1` and `/v2`: an IAM role is fit for a service account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IamRoleSpec {
    /// ARN of the role.
    pub role_arn: String,
    /// Who may assume it.
    pub trust: RoleTrust,
    /// Namespace of the service account; given when `trust` is `irsa`.
    pub namespace: Option<String>,
    /// Name of the service account; given when `trust` is `irsa`.
    pub service_account: Option<String>,
    /// What the role must allow.
    pub actions: Vec<RoleAction>,
    /// Whether it may be changed.
    pub mode: RoleMode,
}

impl IamRoleSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "aws.iam-role/v1";
    /// Of which each action says which tags its requests set.
    pub const KIND_WITH_TAGS: &'static str = "aws.iam-role/v2";
}

/// An IAM action that an add-on needs. All that the first version knows of one is its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RoleAction {
    /// Such as `ec2:AttachVolume`.
    pub action: String,
    /// All tags that its requests set, by key, with no value where it differs from request to request. `None`
    /// when they are not known.
    #[serde(default)]
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// The call that sets them on what it makes, such as `CreateVolume`.
    #[serde(default)]
    pub create_action: Option<String>,
    /// When it is needed, where nobody sees that beforehand: it is then told that a role lacks it, and holds
    /// nothing.
    #[serde(default)]
    pub advice: Option<String>,
}

impl From<String> for RoleAction {
    fn from(action: String) -> Self {
        RoleAction { action, ..RoleAction::default() }
    }
}

/// The form of an [`IamRoleSpec`] with actions of one version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RoleForm<A> {
    role_arn: String,
    trust: RoleTrust,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    service_account: Option<String>,
    actions: Vec<A>,
    mode: RoleMode,
}

impl<A: Into<RoleAction>> From<RoleForm<A>> for IamRoleSpec {
    fn from(form: RoleForm<A>) -> Self {
        let RoleForm { role_arn, trust, namespace, service_account, actions, mode } = form;
        IamRoleSpec {
            role_arn,
            trust,
            namespace,
            service_account,
            actions: actions.into_iter().map(Into::into).collect(),
            mode,
        }
    }
}

/// `aws.instance-roles/v1`: the IAM roles of all the cluster's instances allow these actions. They are looked
/// at, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceRolesSpec {
    /// Such as `ec2:DescribeInstances`.
    pub actions: Vec<String>,
}

impl InstanceRolesSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "aws.instance-roles/v1";
}

/// Who may assume a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleTrust {
    /// A service account, by the cluster's own issuer.
    Irsa,
    /// The instances of the cluster.
    Node,
}

/// Whether a role is only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoleMode {
    /// It is looked at.
    Check,
    /// It is changed where it is not fit.
    Ensure,
}

/// `aws.efs-file-system/v1`: an EFS file system is there, and has a mount target in the cluster's VPC in each
/// of the cluster's zones. It is looked at, never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EfsFileSystemSpec {
    /// Such as `fs-0123456789abcdef0`.
    pub file_system_id: String,
}

impl EfsFileSystemSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "aws.efs-file-system/v1";
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
