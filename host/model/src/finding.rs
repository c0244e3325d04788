//! What was read of AWS for those that only look at it, such as the check of a role, and what is said of it in a condition.

/// How a read of AWS ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    Found(T),
    /// AWS says that it is not there.
    Absent,
    /// We may not read it; with the permission that is missing, such as `iam:GetRole`.
    AccessDenied {
        permission: String,
    },
    /// Throttled, timed out, or failed otherwise; with what AWS said.
    Failed {
        message: String,
    },
}

/// Values of a condition's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    True,
    False,
    Unknown,
}

/// Reasons of findings, in CamelCase as conditions have them.
pub mod reason {
    pub const ROLE_READY: &str = "RoleReady";
    pub const INVALID_ROLE_ARN: &str = "InvalidRoleARN";
    pub const ROLE_NOT_FOUND: &str = "RoleNotFound";
    pub const ROLE_IN_OTHER_ACCOUNT: &str = "RoleInOtherAccount";
    pub const TRUST_POLICY_DENIES: &str = "TrustPolicyDenies";
    pub const TRUST_POLICY_UNCLEAR: &str = "TrustPolicyUnclear";
    pub const PROVIDER_NOT_FOUND: &str = "OIDCProviderNotFound";
    pub const PROVIDER_MISMATCH: &str = "OIDCProviderMismatch";
    pub const PERMISSIONS_MISSING: &str = "PermissionsMissing";
    pub const POLICY_UNCLEAR: &str = "PolicyUnclear";
    pub const ACCESS_DENIED: &str = "AccessDenied";
    pub const READ_FAILED: &str = "ReadFailed";
}

/// What was found out about something that an add-on or an issuer needs of AWS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub status: Status,
    pub reason: &'static str,
    /// Everything that is wrong or unclear, what to do, and warnings.
    pub message: String,
    /// A trust policy that would pass, where the present one of a role does not or is not known. A role that serves others too needs its statement
    /// beside theirs.
    pub fix: Option<String>,
    /// The actions that were asked about and are allowed; none when that is not known.
    pub allowed: Vec<String>,
}
