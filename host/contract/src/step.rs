//! The step kinds of the contract: what a plugin can ask the host to do, each with its JSON Schema in
//! `wit/steps/`. Whether a step is granted is decided elsewhere.

mod aws;
mod kubernetes;
pub(crate) mod reference;
mod wait;

use super::Step;
use aws::RoleForm;
pub use aws::{
    EfsFileSystemSpec, IamRoleSpec, InstanceRolesSpec, Protocol, Role, RoleAction, RoleMode, RoleTrust,
    SecurityGroupRuleSpec,
};
use kubernetes::ApplyForm;
pub use kubernetes::{ApplySpec, CertificateSpec, DeleteSpec, Prune, WaitCondition, WaitSpec};
use serde::Deserialize;
use serde_json::Value;
pub use wait::{FieldCondition, FieldWaitSpec, Operator, Segment, segments};

/// What a [`Step`] asks for, once its `spec` was read by the rules of its `kind`.
#[derive(Clone, Debug, PartialEq)]
pub enum StepSpec<'a> {
    /// Objects are applied.
    Apply(ApplySpec<'a>),
    /// An object fulfils a condition.
    Wait(WaitSpec),
    /// The fields of an object fulfil conditions.
    FieldWait(FieldWaitSpec),
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
            FieldWaitSpec::KIND => StepSpec::FieldWait(self.read()?),
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
            StepSpec::FieldWait(spec) => spec.contradiction(),
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
