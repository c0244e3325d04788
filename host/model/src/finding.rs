//! What was read of AWS for those that only look at it, such as the check of a role, and what is said of it in a condition.

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

/// Reasons of findings, in CamelCase as conditions have them.
pub mod reason {
    /// The role can be assumed, and allows what is needed.
    pub const ROLE_READY: &str = "RoleReady";
    /// The ARN is not that of a role, or is of another partition.
    pub const INVALID_ROLE_ARN: &str = "InvalidRoleARN";
    /// There is no such role, or an instance profile has none.
    pub const ROLE_NOT_FOUND: &str = "RoleNotFound";
    /// The role is in an account whose roles cannot be read; it is used unchecked.
    pub const ROLE_IN_OTHER_ACCOUNT: &str = "RoleInOtherAccount";
    /// The trust policy does not let those assume the role who have to.
    pub const TRUST_POLICY_DENIES: &str = "TrustPolicyDenies";
    /// The trust policy has something that cannot be judged, such as a condition on what only AWS knows.
    pub const TRUST_POLICY_UNCLEAR: &str = "TrustPolicyUnclear";
    /// IAM has no OIDC provider for the cluster's issuer.
    pub const PROVIDER_NOT_FOUND: &str = "OIDCProviderNotFound";
    /// The OIDC provider is of another issuer, or does not list the audience of the tokens among its client ids.
    pub const PROVIDER_MISMATCH: &str = "OIDCProviderMismatch";
    /// Policies do not allow all actions that are needed.
    pub const PERMISSIONS_MISSING: &str = "PermissionsMissing";
    /// A policy could not be judged, so the role may allow more or less than it seems to.
    pub const POLICY_UNCLEAR: &str = "PolicyUnclear";
    /// The operator has no permission to read what has to be looked at.
    pub const ACCESS_DENIED: &str = "AccessDenied";
    /// A read failed, or what is read changed meanwhile; it is read again.
    pub const READ_FAILED: &str = "ReadFailed";
}

/// What was found out about something that an add-on or an issuer needs of AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it is fit.
    pub status: Status,
    /// One of [`reason`], or of the reasons of whoever judges.
    pub reason: &'static str,
    /// Everything that is wrong or unclear, what to do, and warnings.
    pub message: String,
    /// A trust policy that would pass, where the present one of a role does not or is not known. A role that serves others too needs its statement
    /// beside theirs.
    pub fix: Option<String>,
    /// The actions that were asked about and are allowed; none when that is not known.
    pub allowed: Vec<String>,
}
