//! Whether one statement of a trust policy is about a request.

use super::super::condition::{Answer, Held, evaluate};
use super::super::document::{Choice, Principal, Principals, Statement};
use super::super::pattern::action_matches;
use super::{Assumer, WebIdentity, instance_service, issuer_host};

pub(super) const WEB_IDENTITY_ACTION: &str = "sts:AssumeRoleWithWebIdentity";
pub(super) const SERVICE_ACTION: &str = "sts:AssumeRole";

/// Claims that IAM takes from a token for condition keys, and that tokens of service accounts do not have.
const ABSENT_CLAIMS: [&str; 3] = ["amr", "email", "oaud"];

/// What STS would be asked.
pub(super) struct Request<'a> {
    action: &'static str,
    principal_kind: &'static str,
    principals: Vec<String>,
    pub(super) identity: Option<&'a WebIdentity>,
    subject: String,
    /// The issuer's name in condition keys, in lower case.
    issuer: String,
}

/// The parts of a statement in the order in which they are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Action,
    Principal,
    Condition,
}

pub(super) enum Applies {
    Yes,
    /// With the part that does not fit.
    No {
        reached: Part,
        reason: String,
    },
    Unknown(String),
}

impl<'a> Request<'a> {
    pub(super) fn of(assumer: &'a Assumer) -> Request<'a> {
        match assumer {
            Assumer::ServiceAccount(identity) => Request {
                action: WEB_IDENTITY_ACTION,
                principal_kind: "Federated",
                principals: vec![identity.provider_arn.clone()],
                identity: Some(identity),
                subject: identity.subject(),
                issuer: issuer_host(&identity.issuer).to_ascii_lowercase(),
            },
            Assumer::Instances { partition } => Request {
                action: SERVICE_ACTION,
                principal_kind: "Service",
                // Regions in China take both.
                principals: vec![instance_service(partition), "ec2.amazonaws.com".to_owned()],
                identity: None,
                subject: String::new(),
                issuer: String::new(),
            },
        }
    }

    pub(super) fn applies(&self, statement: &Statement, has_variables: bool) -> Applies {
        if let Some(reason) = self.misses_action(&statement.actions) {
            return Applies::No { reached: Part::Action, reason };
        }
        let mut unknown = Vec::new();
        match self.is_among(statement.principals.as_ref()) {
            Answer::Yes => (),
            Answer::No(reason) => return Applies::No { reached: Part::Principal, reason },
            Answer::Unknown(reason) => unknown.push(reason),
        }
        let mut failed = Vec::new();
        for it in &statement.conditions {
            match evaluate(it, has_variables, self.held(&it.key)) {
                Answer::Yes => (),
                Answer::No(reason) => failed.push(reason),
                Answer::Unknown(reason) => unknown.push(reason),
            }
        }
        if !failed.is_empty() {
            return Applies::No { reached: Part::Condition, reason: failed.join("; ") };
        }
        if unknown.is_empty() { Applies::Yes } else { Applies::Unknown(unknown.join("; ")) }
    }

    fn misses_action(&self, actions: &Choice) -> Option<String> {
        match actions {
            Choice::Only(list) if list.iter().any(|it| action_matches(it, self.action)) => None,
            Choice::Only(list) => Some(format!("Action is {}, not {}", list.join(", "), self.action)),
            Choice::AllBut(list) => list
                .iter()
                .find(|it| action_matches(it, self.action))
                .map(|it| format!("NotAction {it} leaves out {}", self.action)),
        }
    }

    fn is_among(&self, principals: Option<&Principals>) -> Answer {
        match principals {
            Some(Principals::Only(list)) => {
                let answers: Vec<Answer> = list.iter().map(|it| self.is(it)).collect();
                if answers.contains(&Answer::Yes) {
                    return Answer::Yes;
                }
                if let Some(unknown) = answers.into_iter().find(|it| matches!(it, Answer::Unknown(_))) {
                    return unknown;
                }
                Answer::No(self.not_among(list))
            }
            Some(Principals::AllBut(list)) => {
                let answers: Vec<Answer> = list.iter().map(|it| self.is(it)).collect();
                if answers.contains(&Answer::Yes) {
                    return Answer::No(format!("NotPrincipal leaves out {}", self.principals[0]));
                }
                answers.into_iter().find(|it| matches!(it, Answer::Unknown(_))).unwrap_or(Answer::Yes)
            }
            None => Answer::No("there is no Principal".to_owned()),
        }
    }

    /// AWS documents `"*"` and `{"AWS": "*"}` as the same: everyone.
    fn is(&self, principal: &Principal) -> Answer {
        let Principal::Of { kind, value } = principal else { return Answer::Yes };
        let is_same = match kind.as_str() {
            "AWS" => value == "*",
            "Federated" | "Service" if kind == self.principal_kind => {
                value == "*" || self.principals.contains(value)
            }
            "Federated" | "Service" | "CanonicalUser" => false,
            _ => {
                return Answer::Unknown(format!(
                    "principal type {kind} is not one that can be evaluated here"
                ));
            }
        };
        if is_same { Answer::Yes } else { Answer::No(String::new()) }
    }

    fn not_among(&self, list: &[Principal]) -> String {
        let named = |it: &Principal| match it {
            Principal::Everyone => "*".to_owned(),
            Principal::Of { kind, value } => format!("{kind} {value}"),
        };
        let names: Vec<String> = list.iter().map(named).collect();
        let has_scheme = names
            .iter()
            .any(|it| it.contains("oidc-provider/https://") || it.contains("oidc-provider/http://"));
        let hint = if has_scheme { "; write the ARN without https://" } else { "" };
        format!("Principal is {}, not {} {}{hint}", names.join(", "), self.principal_kind, self.principals[0])
    }

    /// Keys do not count case.
    pub(super) fn held(&self, key: &str) -> Held<'_> {
        let key = key.to_ascii_lowercase();
        if key == "aws:securetransport" {
            return Held::Value("true"); // STS has no other.
        }
        let (Some(identity), Some((provider, claim))) = (self.identity, key.rsplit_once(':')) else {
            return Held::Unknown;
        };
        let is_ours = provider == self.issuer;
        match claim {
            _ if ["aws", "sts"].contains(&provider) => Held::Unknown,
            "sub" if is_ours => Held::Value(&self.subject),
            "aud" if is_ours => Held::Value(&identity.audience),
            // A token brings keys of its own issuer only.
            "sub" | "aud" => Held::Nothing,
            claim if ABSENT_CLAIMS.contains(&claim) => Held::Nothing,
            _ => Held::Unknown,
        }
    }

    pub(super) fn is_key(&self, key: &str, claim: &str) -> bool {
        key.to_ascii_lowercase() == format!("{}:{claim}", self.issuer)
    }
}
