//! What AWS's errors mean. Messages never hold what was sent: it may have been a secret.

mod class;

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use model::finding::Reading;
use model::{ActionNeeded, Outcome, Problem};

use class::{Class, class, is_gone, is_invalid_profile};
pub(crate) use class::{NOT_YET, TAKEN};

/// One call that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{action}: {message}")]
pub(crate) struct Failure {
    /// The call's name in IAM.
    pub action: &'static str,
    /// AWS's error code; `None` when the answer was not AWS's, or there was none.
    pub code: Option<String>,
    pub message: String,
    /// Whether AWS may have done it all the same.
    pub open: bool,
}

impl Failure {
    pub fn new<E: ProvideErrorMetadata>(action: &'static str, error: SdkError<E, HttpResponse>) -> Self {
        match &error {
            SdkError::ServiceError(it) => {
                let status = it.raw().status().as_u16();
                match it.err().code() {
                    Some(code) => {
                        let message = message(action, code, it.err().message().unwrap_or_default());
                        let open =
                            class(code) == Class::Server || (status >= 500 && class(code) == Class::Other);
                        Failure { action, code: Some(code.to_owned()), message, open }
                    }
                    None => Failure {
                        action,
                        code: None,
                        message: format!("answered with HTTP status {status} and no error code"),
                        open: true,
                    },
                }
            }
            SdkError::TimeoutError(_) => {
                Failure { action, code: None, message: "no answer in time".to_owned(), open: true }
            }
            SdkError::DispatchFailure(it) if it.is_timeout() => {
                Failure { action, code: None, message: "no answer in time".to_owned(), open: true }
            }
            SdkError::DispatchFailure(it) if it.is_io() => {
                Failure { action, code: None, message: "the connection failed".to_owned(), open: true }
            }
            SdkError::DispatchFailure(_) => Failure {
                action,
                code: None,
                message: "the call could not be sent, or its credentials not be got".to_owned(),
                open: true,
            },
            SdkError::ConstructionFailure(_) => {
                Failure::local(action, "InvalidCall", "the call could not be built")
            }
            _ => {
                Failure { action, code: None, message: "the answer could not be read".to_owned(), open: true }
            }
        }
    }

    /// A failure found before anything was sent.
    pub fn local(action: &'static str, code: &str, message: impl Into<String>) -> Self {
        Failure { action, code: Some(code.to_owned()), message: message.into(), open: false }
    }

    /// AWS's answer lacks what it always has.
    pub fn incomplete(action: &'static str) -> Self {
        Failure { action, code: None, message: "the answer lacks what was made".to_owned(), open: true }
    }

    /// The thing is not there, or not there any more.
    pub fn is_gone(&self) -> bool {
        self.code.as_deref().is_some_and(is_gone)
    }

    /// Something of that name, range or port is there already.
    pub fn is_duplicate(&self) -> bool {
        self.code.as_deref().is_some_and(|it| class(it) == Class::Duplicate)
    }

    /// The thing is not there, in IAM's words too.
    pub fn is_absent(&self) -> bool {
        self.is_gone() || self.is("NoSuchEntity")
    }

    /// This identity may not make the call. Wrong or expired credentials are something else.
    pub fn is_forbidden(&self) -> bool {
        ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"].iter().any(|it| self.is(it))
    }

    /// Whether it is about the calls of this identity and not about what this one names: others like it would
    /// have failed alike.
    pub fn is_general(&self) -> bool {
        let general = [Class::Throttled, Class::Expired, Class::Denied, Class::Quota];
        self.code.as_deref().is_some_and(|it| general.contains(&class(it)))
    }

    /// Whether it may be about one of several things that a call names: the others fare better alone. An
    /// instance that is protected from termination is refused like what an identity may not do. AWS forbids
    /// also a call where a policy goes by tags and allows all but one of what is named, such as one that is
    /// gone and has none any more: then it says which.
    pub fn may_be_about_one(&self, named: &[String]) -> bool {
        let says_which = || self.is_forbidden() && named.iter().any(|it| self.message.contains(it.as_str()));
        !self.is_general() || self.is("OperationNotPermitted") || says_which()
    }

    pub fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// What it means for the action that made the call.
    pub fn outcome(self) -> Outcome {
        let message = self.to_string();
        let Some(code) = self.code else { return Outcome::Unknown { message } };
        let (retry, who) = match class(&code) {
            // A first try whose answer was lost may have made it: the next poll tells.
            Class::Duplicate | Class::Server => {
                return Outcome::Unknown { message: format!("{message} ({code})") };
            }
            // A failure of AWS's own, by its status: its code is none that is known.
            Class::Other if self.open => return Outcome::Unknown { message: format!("{message} ({code})") },
            Class::Taken => (true, ActionNeeded::SpecAuthor),
            Class::Throttled | Class::Expired | Class::NotYet | Class::Capacity => (true, ActionNeeded::None),
            Class::Denied | Class::Quota => (true, ActionNeeded::CloudAdmin),
            Class::Invalid if is_invalid_profile(&code, &message) => (true, ActionNeeded::CloudAdmin),
            Class::Invalid => (false, ActionNeeded::SpecAuthor),
            Class::Other => (true, ActionNeeded::CloudAdmin),
        };
        Outcome::Refused { code, message, retry, who }
    }

    /// What it means for whoever wanted to know.
    pub fn problem(self) -> Problem {
        match self.clone().outcome() {
            Outcome::Refused { code, message, who, .. } => Problem { code, message, who },
            _ => Problem {
                code: self.code.clone().unwrap_or_else(|| "NoReply".to_owned()),
                message: self.to_string(),
                who: ActionNeeded::None,
            },
        }
    }
}

/// How a read ended, for whoever judges what it found.
pub(crate) fn reading<T>(result: Result<T, Failure>) -> Reading<T> {
    match result {
        Ok(it) => Reading::Found(it),
        Err(failure) if failure.is_absent() => Reading::Absent,
        Err(failure) if failure.is_forbidden() => {
            Reading::AccessDenied { permission: failure.action.to_owned() }
        }
        Err(failure) => Reading::Failed { message: failure.to_string() },
    }
}

/// Success also when what should be removed was not there.
pub(crate) fn gone_is_done(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(failure) if failure.is_gone() => Ok(()),
        other => other,
    }
}

fn message(action: &str, code: &str, message: &str) -> String {
    // AWS quotes parameters that it does not like, and this service's parameters are secrets.
    if action.starts_with("secretsmanager:") && class(code) == Class::Invalid {
        return format!("AWS refused the parameters ({code})");
    }
    // What follows is an encrypted blob of a thousand characters.
    let message = message.split("Encoded authorization failure message").next().unwrap_or_default().trim();
    if message.is_empty() { code.to_owned() } else { message.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> (bool, ActionNeeded) {
        match Failure::local("ec2:RunInstances", code, "why").outcome() {
            Outcome::Refused { retry, who, .. } => (retry, who),
            other => panic!("{code}: {other:?}"),
        }
    }

    #[test]
    fn throttles_and_dependencies_are_tried_again_by_nobody() {
        for code in [
            "RequestLimitExceeded",
            "Throttling",
            "DependencyViolation",
            "InsufficientInstanceCapacity",
            "ResourceInUse",
        ] {
            assert_eq!(refused(code), (true, ActionNeeded::None), "{code}");
        }
        for code in [
            "DependencyThrottle",
            "TooManyRequests",
            "ConcurrentModification",
            "ConcurrentModificationException",
        ] {
            assert_eq!(
                (refused(code), class(code)),
                ((true, ActionNeeded::None), Class::Throttled),
                "{code}"
            );
        }
        for code in ["RequestExpired", "RequestTimeTooSkewed", "PaginationTokenExpiredException"] {
            assert_eq!((refused(code), class(code)), ((true, ActionNeeded::None), Class::Expired), "{code}");
        }
    }

    #[test]
    fn what_is_about_the_identity_fares_no_better_alone() {
        let of = |code: &str| Failure::local("ec2:TerminateInstances", code, "why").is_general();
        for code in [
            "RequestLimitExceeded",
            "UnauthorizedOperation",
            "ExpiredToken",
            "RequestExpired",
            "VcpuLimitExceeded",
        ] {
            assert!(of(code), "{code}");
        }
        for code in [
            "InvalidInstanceID.NotFound",
            "IncorrectInstanceState",
            "InvalidParameterValue",
            "HealthUnavailable",
        ] {
            assert!(!of(code), "{code}");
        }
    }

    #[test]
    fn what_one_of_several_is_protected_from_is_tried_alone() {
        let said = |code: &str, why: &str| {
            let named = ["i-1".to_owned(), "i-2".to_owned()];
            Failure::local("ec2:TerminateInstances", code, why).may_be_about_one(&named)
        };
        let of = |code: &str| said(code, "why");
        assert!(said(
            "UnauthorizedOperation",
            "not authorized to perform: ec2:TerminateInstances on resource: arn:aws:ec2:::instance/i-2"
        ));
        for code in ["OperationNotPermitted", "InvalidInstanceID.NotFound"] {
            assert!(of(code), "{code}");
        }
        for code in ["RequestLimitExceeded", "UnauthorizedOperation", "ExpiredToken", "VcpuLimitExceeded"] {
            assert!(!of(code), "{code}");
        }
    }

    #[test]
    fn what_is_not_visible_yet_is_tried_again() {
        for code in [
            "InvalidVpcID.NotFound",
            "InvalidInstanceID.NotFound",
            "NatGatewayNotFound",
            "LoadBalancerNotFound",
        ] {
            assert_eq!(refused(code), (true, ActionNeeded::None), "{code}");
            assert!(Failure::local("ec2:DeleteVpc", code, "").is_gone(), "{code}");
        }
        for code in ["InvalidSecurityGroup", "InvalidSubnet", "InvalidConfigurationRequest"] {
            assert_eq!(refused(code), (true, ActionNeeded::None), "{code}");
            assert!(!Failure::local("elasticloadbalancing:CreateLoadBalancer", code, "").is_gone(), "{code}");
        }
    }

    #[test]
    fn a_wrong_field_is_the_authors() {
        for code in [
            "InvalidAMIID.NotFound",
            "InvalidKeyPair.NotFound",
            "InvalidParameterValue",
            "Unsupported",
            "InvalidSubnet.Range",
        ] {
            assert_eq!(refused(code), (false, ActionNeeded::SpecAuthor), "{code}");
        }
    }

    #[test]
    fn permissions_and_quotas_are_the_administrators() {
        for code in [
            "UnauthorizedOperation",
            "AccessDenied",
            "VpcLimitExceeded",
            "VcpuLimitExceeded",
            "AddressLimitExceeded",
        ] {
            assert_eq!(refused(code), (true, ActionNeeded::CloudAdmin), "{code}");
        }
    }

    #[test]
    fn an_absent_instance_profile_is_the_administrators() {
        let failure = Failure::local(
            "ec2:RunInstances",
            "InvalidParameterValue",
            "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        );
        assert!(matches!(failure.outcome(), Outcome::Refused { who: ActionNeeded::CloudAdmin, .. }));
    }

    #[test]
    fn what_a_lost_answer_may_have_caused_is_unknown() {
        for code in
            ["InvalidGroup.Duplicate", "DuplicateLoadBalancerName", "InternalError", "ServiceUnavailable"]
        {
            assert!(matches!(Failure::local("ec2:X", code, "").outcome(), Outcome::Unknown { .. }), "{code}");
        }
        let broken = Failure { open: true, ..Failure::local("ec2:CreateVpc", "SomethingBroke", "") };
        assert!(matches!(broken.outcome(), Outcome::Unknown { .. }));
        let lost =
            Failure { action: "ec2:CreateVpc", code: None, message: "no answer in time".into(), open: true };
        assert!(matches!(lost.outcome(), Outcome::Unknown { .. }));
    }

    #[test]
    fn readings_tell_what_is_absent_what_is_forbidden_and_what_failed() {
        let of = |code: &str| reading::<()>(Err(Failure::local("iam:GetRole", code, "why")));
        assert_eq!(of("NoSuchEntity"), Reading::Absent);
        assert_eq!(of("FileSystemNotFound"), Reading::Absent);
        assert_eq!(of("AccessDenied"), Reading::AccessDenied { permission: "iam:GetRole".into() });
        for code in ["Throttling", "ExpiredToken", "InvalidClientTokenId", "ServiceUnavailable"] {
            assert_eq!(of(code), Reading::Failed { message: "iam:GetRole: why".into() }, "{code}");
        }
    }

    #[test]
    fn a_denial_names_the_action_and_not_the_blob() {
        let text = message(
            "ec2:CreateVpc",
            "UnauthorizedOperation",
            "You are not authorized. Encoded authorization failure message: Zm9v",
        );
        assert_eq!(
            Failure::local("ec2:CreateVpc", "UnauthorizedOperation", text).to_string(),
            "ec2:CreateVpc: You are not authorized."
        );
    }

    #[test]
    fn parameters_of_secrets_stay_out_of_messages() {
        let text = message(
            "secretsmanager:CreateSecret",
            "ValidationException",
            "Value 'token=abc' at 'secretBinary' failed",
        );
        assert!(!text.contains("abc"), "{text}");
    }
}
