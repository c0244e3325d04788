//! The step kinds that are about AWS.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
pub(super) struct RoleForm<A> {
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
