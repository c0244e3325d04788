//! Carries out steps of a judged plan, one at a time, and says how each went. Which step comes next is not decided here.

use std::collections::BTreeSet;

use plan::addon::{self, ObjectRef};
use plan::certificate::with_bundle;
use plan::contract::{Step, StepSpec};

use super::apply::apply;
use super::certificate::{Authority, CertificateError};
use super::check::{self, Findings};
use crate::workload::{WorkloadCluster, WorkloadError};

/// How far the steps of a plan have come.
#[derive(Debug, PartialEq)]
pub enum Carried {
    /// All are done.
    Out,
    /// These are not, and nobody has to act.
    Waiting(String),
    /// The API server does not answer: there is no use in asking it for more now.
    Unreachable(String),
    /// Somebody has to act: a reason for a condition, and what to do.
    Refused(&'static str, String),
}

/// In whose name, and how, objects are applied.
pub struct Manner<'a> {
    pub field_manager: &'a str,
    pub force: bool,
    /// AWS was seen to have all security-group rules that the add-ons ask for.
    pub rules_are_there: bool,
    /// What was found in AWS about the steps that need something of it.
    pub findings: &'a Findings,
    /// Who vouches for the certificates of the plan; `None` when it has none.
    pub authority: Option<&'a Authority>,
}

/// Carries out what can be carried out of `steps` now; `done` grows as they are.
pub async fn carry_out(cluster: &WorkloadCluster, steps: &[Step], done: &mut BTreeSet<String>, manner: &Manner<'_>) -> Carried {
    let mut waiting = Vec::new();
    loop {
        let before = done.len();
        waiting.clear();
        for step in addon::runnable(steps, done) {
            match one(cluster, step, manner).await {
                Ok(()) => drop(done.insert(step.id.clone())),
                Err(Carried::Waiting(what)) => waiting.push(what),
                Err(other) => return other,
            }
        }
        if done.len() == before {
            break;
        }
    }
    waiting.dedup();
    if waiting.is_empty() { Carried::Out } else { Carried::Waiting(waiting.join("; ")) }
}

async fn one(cluster: &WorkloadCluster, step: &Step, manner: &Manner<'_>) -> Result<(), Carried> {
    let spec = step.typed().map_err(|it| Carried::Refused("PlanInvalid", it.to_string()))?;
    match spec {
        StepSpec::Apply(spec) => {
            let objects = match (&spec.ca_bundle_from, manner.authority) {
                (None, _) => spec.objects,
                (Some(_), Some(authority)) => with_bundle(&spec, &authority.bundle()),
                // Webhooks that nobody vouches for would refuse whatever they are asked about.
                (Some(from), None) => {
                    let message = format!("step {:?}: caBundleFrom names {from:?}, and the plan makes no certificate", step.id);
                    return Err(Carried::Refused("PlanInvalid", message));
                }
            };
            for object in &objects {
                apply(cluster, object, manner).await?;
            }
            Ok(())
        }
        StepSpec::Wait(spec) => {
            let object = ObjectRef {
                api_version: spec.api_version.clone(),
                kind: spec.kind.clone(),
                namespace: spec.namespace.clone(),
                name: spec.name.clone(),
            };
            let live = cluster.get(&object).await.map_err(carried)?;
            addon::waited(&spec, live.as_ref()).map_err(Carried::Waiting)
        }
        StepSpec::Delete(spec) => {
            let object = ObjectRef { api_version: spec.api_version, kind: spec.kind, namespace: spec.namespace, name: spec.name };
            match cluster.delete(&object).await.map_err(carried)? {
                false if spec.wait => Err(Carried::Waiting(format!("{object} is being deleted"))),
                _ => Ok(()),
            }
        }
        StepSpec::SecurityGroupRule(_) if manner.rules_are_there => Ok(()),
        StepSpec::SecurityGroupRule(_) => Err(Carried::Waiting("security-group rules are being made".into())),
        StepSpec::IamRole(_) | StepSpec::EfsFileSystem(_) => match check::refusal(manner.findings, &step.id) {
            Some((reason, message)) => Err(Carried::Refused(reason, message)),
            None => Ok(()),
        },
        StepSpec::Certificate(spec) => match manner.authority {
            Some(authority) => authority.certify(cluster, &spec, manner.field_manager).await.map_err(uncertified),
            None => Err(Carried::Waiting("for an authority of certificates".into())),
        },
    }
}

pub(super) fn carried(error: WorkloadError) -> Carried {
    match error {
        WorkloadError::Conflict { .. } => {
            Carried::Refused(crds::conditions::reason::CONFLICT, format!("{error}; remove the field there, or set spec.conflicts to Force"))
        }
        WorkloadError::Refused { code: 403 | 422 | 400, .. } => Carried::Refused("ApplyRefused", error.to_string()),
        WorkloadError::Kubeconfig(_) | WorkloadError::NotAllowed(_) | WorkloadError::Unreachable(_) => {
            Carried::Unreachable(error.to_string())
        }
        WorkloadError::UnknownKind { .. } | WorkloadError::Refused { .. } => Carried::Waiting(error.to_string()),
    }
}

pub(super) fn uncertified(error: CertificateError) -> Carried {
    match error {
        CertificateError::Workload(error) => carried(error),
        other => Carried::Refused("CertificateFailed", other.to_string()),
    }
}
