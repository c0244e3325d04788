//! Trust policies: who may assume a role. The text alone is evaluated; what only AWS can know is unknown and
//! named.

mod statement;
mod width;

use super::document::{Document, Effect};
use super::partition;
use statement::{Applies, Request};

/// The audience that AWS SDKs and the pod identity webhook ask tokens for by default, in every partition.
pub const DEFAULT_AUDIENCE: &str = "sts.amazonaws.com";

/// Who is to assume a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumer {
    /// A service account, by a token of the cluster's issuer.
    ServiceAccount(WebIdentity),
    /// The instances of the cluster, by their instance profile.
    Instances {
        /// Such as `aws`.
        partition: String,
    },
}

/// A service account as IAM sees it: by the claims of its token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebIdentity {
    /// URL of the issuer, with or without `https://`.
    pub issuer: String,
    /// ARN of the OIDC provider in IAM; [`provider_arn`] makes it.
    pub provider_arn: String,
    pub namespace: String,
    pub service_account: String,
    /// The audience of the token.
    pub audience: String,
}

impl WebIdentity {
    /// The claim `sub` of the token.
    pub fn subject(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.service_account)
    }
}

/// Whether the role could be assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    /// Why each statement that comes nearest does not let it, or which one forbids it.
    Denied {
        reasons: Vec<String>,
    },
    /// What could not be evaluated.
    Unknown {
        reasons: Vec<String>,
    },
}

/// A verdict, and what should be looked at whatever the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    pub verdict: Verdict,
    /// Ways in which the policy lets in more than it must.
    pub warnings: Vec<String>,
}

/// An issuer as IAM names it in ARNs and condition keys: without scheme.
pub fn issuer_host(issuer: &str) -> &str {
    issuer.strip_prefix("https://").unwrap_or(issuer)
}

/// ARN of the OIDC provider of an issuer in an account.
pub fn provider_arn(partition: &str, account: &str, issuer: &str) -> String {
    format!("arn:{partition}:iam::{account}:oidc-provider/{}", issuer_host(issuer))
}

/// Judges a trust policy, percent-encoded as IAM returns it, or plain. A text that is no policy gives an
/// unknown verdict.
pub fn evaluate(policy: &str, assumer: &Assumer) -> Evaluation {
    let document = match Document::read(policy) {
        Ok(document) => document,
        Err(error) => return unreadable(format!("the trust policy cannot be read: {error}")),
    };
    if let Some(it) = document.statements.iter().find(|it| it.principals.is_none() || it.resources.is_some())
    {
        let message = if it.principals.is_none() {
            "has no Principal"
        } else {
            "has a Resource, which a trust policy cannot have"
        };
        return unreadable(format!("the trust policy cannot be read: {} {message}", it.name));
    }
    let request = Request::of(assumer);
    let (mut allowed, mut denied, mut missed) = (false, Vec::new(), Vec::new());
    let (mut maybe_allowed, mut maybe_denied, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for it in &document.statements {
        let applies = request.applies(it, document.has_variables);
        if it.effect == Effect::Allow && !matches!(applies, Applies::No { .. }) {
            warnings.extend(width::warnings(it, &request, document.has_variables));
        }
        match (it.effect, applies) {
            (Effect::Allow, Applies::Yes) => allowed = true,
            (Effect::Deny, Applies::Yes) => denied.push(format!("{} denies it", it.name)),
            (Effect::Allow, Applies::Unknown(reason)) => maybe_allowed.push(format!("{}: {reason}", it.name)),
            (Effect::Deny, Applies::Unknown(reason)) => {
                maybe_denied.push(format!("{} may deny it: {reason}", it.name))
            }
            (Effect::Allow, Applies::No { reached, reason }) => {
                missed.push((reached, format!("{}: {reason}", it.name)))
            }
            (Effect::Deny, Applies::No { .. }) => (),
        }
    }
    let verdict = if !denied.is_empty() {
        Verdict::Denied { reasons: denied }
    } else if !allowed && maybe_allowed.is_empty() {
        Verdict::Denied { reasons: nearest(missed) }
    } else if allowed && maybe_denied.is_empty() {
        Verdict::Allowed
    } else {
        let reasons = if allowed { maybe_denied } else { [maybe_allowed, maybe_denied].concat() };
        Verdict::Unknown { reasons }
    };
    Evaluation { verdict, warnings }
}

fn unreadable(reason: String) -> Evaluation {
    Evaluation { verdict: Verdict::Unknown { reasons: vec![reason] }, warnings: Vec::new() }
}

/// A trust policy usually has statements for others too: only those that come nearest say what is wrong.
fn nearest(missed: Vec<(statement::Part, String)>) -> Vec<String> {
    let Some(furthest) = missed.iter().map(|(reached, _)| *reached).max() else {
        return vec!["no statement allows anything".to_owned()];
    };
    missed.into_iter().filter(|(reached, _)| *reached == furthest).map(|(_, reason)| reason).collect()
}

/// A whole trust policy that lets in this assumer and nobody else.
pub fn fix(assumer: &Assumer) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let (principal, action, condition) = match assumer {
        Assumer::ServiceAccount(it) => {
            let key = |claim: &str| quoted(&format!("{}:{claim}", issuer_host(&it.issuer)));
            let (aud, sub) = (quoted(&it.audience), quoted(&it.subject()));
            let equals = format!("          {}: {aud},\n          {}: {sub}\n", key("aud"), key("sub"));
            let condition = format!(
                ",\n      \"Condition\": {{\n        \"StringEquals\": {{\n{equals}        }}\n      }}"
            );
            (
                format!("\"Federated\": {}", quoted(&it.provider_arn)),
                statement::WEB_IDENTITY_ACTION,
                condition,
            )
        }
        Assumer::Instances { partition } => (
            format!("\"Service\": {}", quoted(&instance_service(partition))),
            statement::SERVICE_ACTION,
            String::new(),
        ),
    };
    let statement = format!(
        "      \"Effect\": \"Allow\",\n      \"Principal\": {{ {principal} }},\n      \"Action\": {}{condition}",
        quoted(action)
    );
    format!("{{\n  \"Version\": \"2012-10-17\",\n  \"Statement\": [\n    {{\n{statement}\n    }}\n  ]\n}}")
}

/// The service principal of EC2.
fn instance_service(partition: &str) -> String {
    let suffix = if partition == "aws-cn" { partition::dns_suffix(partition) } else { "amazonaws.com" };
    format!("ec2.{suffix}")
}

#[cfg(test)]
mod tests;
