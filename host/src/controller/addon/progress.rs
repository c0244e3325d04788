//! How far the steps of a plan have come, and what an error of the workload cluster says of that.

use crds::conditions::reason;

use super::certificate::CertificateError;
use crate::workload::WorkloadError;

/// How far the steps of a plan have come.
#[derive(Debug, PartialEq)]
pub enum StepProgress {
    /// All are done.
    Done,
    /// These are not, and nobody has to act.
    Waiting(Awaited),
    /// The API server does not answer: there is no use in asking it for more now.
    Unreachable(String),
    /// Somebody has to act: a reason for a condition, and what to do.
    Refused(&'static str, String),
}

/// What steps wait for.
#[derive(Debug, Default, PartialEq)]
pub struct Awaited {
    pub what: String,
    /// Some of it takes longer than it should.
    pub is_overdue: bool,
}

impl StepProgress {
    /// Waits for something that is not overdue.
    pub fn waiting(what: &str) -> Self {
        StepProgress::Waiting(what.into())
    }

    /// The time of this reconciliation is over.
    pub fn out_of_time() -> Self {
        StepProgress::Unreachable(
            "the API server answers slowly: there is more to do at the next look".into(),
        )
    }
}

impl From<Result<(), StepProgress>> for StepProgress {
    fn from(result: Result<(), StepProgress>) -> Self {
        result.err().unwrap_or(StepProgress::Done)
    }
}

impl From<WorkloadError> for StepProgress {
    fn from(error: WorkloadError) -> Self {
        match error {
            WorkloadError::Conflict { .. } => StepProgress::Refused(
                reason::CONFLICT,
                format!("{error}; remove the field there, or set spec.conflicts to Force"),
            ),
            WorkloadError::Refused { code: 403 | 422 | 400, .. } => {
                StepProgress::Refused(reason::APPLY_REFUSED, error.to_string())
            }
            WorkloadError::Kubeconfig(_)
            | WorkloadError::NotAllowed(_)
            | WorkloadError::NotAsked(_)
            | WorkloadError::Unreachable(_) => StepProgress::Unreachable(error.to_string()),
            WorkloadError::UnknownKind { .. } | WorkloadError::Refused { .. } => {
                StepProgress::waiting(&error.to_string())
            }
        }
    }
}

impl From<CertificateError> for StepProgress {
    fn from(error: CertificateError) -> Self {
        match error {
            CertificateError::Workload(error) => error.into(),
            other => StepProgress::Refused(reason::CERTIFICATE_FAILED, other.to_string()),
        }
    }
}

impl Awaited {
    /// Both; what both name is named once.
    pub fn and(mut self, other: Self) -> Self {
        let is_known = self.what.split("; ").any(|what| what == other.what);
        if !is_known {
            let separator = if self.what.is_empty() { "" } else { "; " };
            self.what = format!("{}{separator}{}", self.what, other.what);
        }
        Self { what: self.what, is_overdue: self.is_overdue || other.is_overdue }
    }
}

impl From<&str> for Awaited {
    fn from(what: &str) -> Self {
        Self { what: what.to_owned(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overdue_is_named_once_among_the_rest() {
        let overdue =
            Awaited { what: "DaemonSet a is not there, for more than 60 s".into(), is_overdue: true };
        let all = Awaited::from("b is not ready").and(overdue).and("b is not ready".into());
        let what = "b is not ready; DaemonSet a is not there, for more than 60 s".to_owned();
        assert_eq!(all, Awaited { what, is_overdue: true });
    }
}
