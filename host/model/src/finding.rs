//! What was read of AWS for those that only look at it, such as the check of a role, and what is said of it
//! in a condition.

/// How a read of AWS ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// What was read.
    Found(T),
    /// AWS says that it is not there.
    Absent,
    /// We may not read it; with the permission that is missing, such as `iam:GetRole`.
    AccessDenied {
        /// IAM action, such as `iam:GetRole`.
        permission: String,
    },
    /// Throttled, timed out, or failed otherwise; with what AWS said.
    Failed {
        /// For people: AWS's message, or that no answer came.
        message: String,
    },
}

/// Values of a condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was looked at, and it is fit.
    True,
    /// Something is wrong, and somebody has to act.
    False,
    /// Something could not be read or judged, and nothing is known to be wrong.
    Unknown,
}

/// What was found out about something that an add-on or an issuer needs of AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it is fit.
    pub status: Status,
    /// One of the reasons in `crds::conditions`.
    pub reason: &'static str,
    /// Everything that is wrong or unclear, what to do, and warnings.
    pub message: String,
    /// A trust policy that would pass, where the present one of a role does not or is not known. A role that
    /// serves others too needs its statement beside theirs.
    pub fix: Option<String>,
    /// The actions that were asked about and are allowed; none when that is not known.
    pub allowed: Vec<String>,
}
