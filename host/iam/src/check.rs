//! Whether a role is fit for who needs it: puts together what was read of it into one finding for a
//! condition. What could not be read makes a finding unknown, never false.

use std::collections::{BTreeMap, BTreeSet};

use super::permissions::{self, Missing, Policy, RequiredAction};
use super::role::{self, RoleArn};
use super::trust::{self, Assumer, Verdict, issuer_host};
use crds::conditions::reason;
use model::Tags;
use model::finding::{Finding, Reading, Status};

/// What is asked of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleCheck {
    /// Field path of the ARN in the user's object, for messages.
    pub field: String,
    /// As the user wrote it.
    pub role_arn: String,
    /// The region of the cluster.
    pub region: String,
    /// The account whose roles we read; None when it is not known.
    pub own_account: Option<String>,
    pub assumer: Assumer,
    /// What the role must allow.
    pub actions: Vec<RequiredAction>,
    /// What is installed and acts as this role already: the actions that the role allowed when that was done.
    /// More that is asked for since is told, and holds nothing. None where nothing is installed with this
    /// role.
    pub allowed_before: Option<Vec<String>>,
}

/// What was read of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readings {
    /// GetRole.
    pub role: Reading<Role>,
    /// GetOpenIDConnectProvider for the provider's ARN; None where no service account is to assume the role.
    pub provider: Option<Reading<Provider>>,
    /// ListAttachedRolePolicies, GetPolicy and GetPolicyVersion.
    pub attached: Reading<Vec<Policy>>,
    /// ListRolePolicies and GetRolePolicy.
    pub inline: Reading<Vec<Policy>>,
    /// The policy that GetRole names as permissions boundary; None where it names none.
    pub boundary: Option<Reading<Policy>>,
}

/// A role as GetRole returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub arn: String,
    /// `AssumeRolePolicyDocument`, as returned.
    pub trust_policy: String,
}

/// An OIDC provider as GetOpenIDConnectProvider returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The issuer, without scheme.
    pub url: String,
    /// The audiences that it takes tokens for.
    pub client_ids: Vec<String>,
    pub tags: Tags,
}

/// Collects what is said; the worst status wins, and of that the first reason.
#[derive(Default)]
struct Report {
    wrong: Vec<(&'static str, String)>,
    unclear: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    fix: Option<String>,
    allowed: Vec<String>,
}

/// Says whether a role is fit.
pub fn check_role(question: &RoleCheck, readings: &Readings) -> Finding {
    let mut report = Report::default();
    match role::check(&question.field, &question.role_arn, &question.region) {
        Err(error) => report.wrong.push((reason::INVALID_ROLE_ARN, error.to_string())),
        Ok(arn) => match foreign_account(question, &arn) {
            Some(message) => report.unclear.push((reason::ROLE_IN_OTHER_ACCOUNT, message)),
            None => role_and_the_rest(question, &arn, readings, &mut report),
        },
    }
    report.finding()
}

/// IAM reads only roles of one's own account, by name: what it would return is another role.
fn foreign_account(question: &RoleCheck, arn: &RoleArn) -> Option<String> {
    let own = question.own_account.as_ref().filter(|it| **it != arn.account)?;
    Some(format!(
        "{}: {arn} is in account {}, but roles can be read in {own} only; it is used unchecked",
        question.field, arn.account
    ))
}

fn role_and_the_rest(question: &RoleCheck, arn: &RoleArn, readings: &Readings, report: &mut Report) {
    let RoleCheck { field, assumer, .. } = question;
    match &readings.role {
        Reading::Absent => {
            let message = format!(
                "{field}: role {arn} does not exist; create it with the trust policy given here, or name another"
            );
            report.wrong.push((reason::ROLE_NOT_FOUND, message));
            report.fix = Some(trust::fix(assumer));
            return;
        }
        Reading::Found(role) if role.arn.split(':').nth(4).is_some_and(|it| it != arn.account) => {
            let message = format!(
                "{field}: {arn} is in account {}, but only {} can be read; it is used unchecked",
                arn.account, role.arn
            );
            report.unclear.push((reason::ROLE_IN_OTHER_ACCOUNT, message));
            return;
        }
        Reading::Found(role) if role.arn != arn.to_string() => {
            let message =
                format!("{field}: {arn} does not exist, but {} does; write that, or name another", role.arn);
            report.wrong.push((reason::ROLE_NOT_FOUND, message));
            return;
        }
        Reading::Found(role) => check_trust(arn, assumer, &role.trust_policy, report),
        other => {
            report.unread(&format!("whether role {arn} exists and whom it trusts"), other);
            report.fix = Some(trust::fix(assumer));
        }
    }
    if let (Assumer::ServiceAccount(identity), Some(reading)) = (assumer, &readings.provider) {
        check_provider(identity, reading, report);
    }
    check_permissions(question, arn, readings, report);
}

fn check_trust(arn: &RoleArn, assumer: &Assumer, policy: &str, report: &mut Report) {
    let judgement = trust::evaluate(policy, assumer);
    let who = match assumer {
        Assumer::ServiceAccount(it) => format!("{} with audience {}", it.subject(), it.audience),
        Assumer::Instances { .. } => "instances".to_owned(),
    };
    match judgement.verdict {
        Verdict::Allowed => (),
        Verdict::Denied { reasons } => {
            let message =
                format!("the trust policy of {arn} does not let {who} assume it: {}", reasons.join("; "));
            report.wrong.push((reason::TRUST_POLICY_DENIES, message));
            report.fix = Some(trust::fix(assumer));
        }
        Verdict::Unknown { reasons } => {
            let message = format!(
                "whether the trust policy of {arn} lets {who} assume it cannot be said: {}",
                reasons.join("; ")
            );
            report.unclear.push((reason::TRUST_POLICY_UNCLEAR, message));
            report.fix = Some(trust::fix(assumer));
        }
    }
    report.warnings.extend(judgement.warnings.into_iter().map(|it| format!("trust policy, {it}")));
}

fn check_provider(identity: &trust::WebIdentity, reading: &Reading<Provider>, report: &mut Report) {
    let arn = &identity.provider_arn;
    match reading {
        Reading::Found(provider) if issuer_host(&provider.url) != issuer_host(&identity.issuer) => {
            let message =
                format!("OIDC provider {arn} is of issuer {}, not of {}", provider.url, identity.issuer);
            report.wrong.push((reason::PROVIDER_MISMATCH, message));
        }
        Reading::Found(provider) if !provider.client_ids.contains(&identity.audience) => {
            let message = format!(
                "OIDC provider {arn} does not list {} among its client ids; add it",
                identity.audience
            );
            report.wrong.push((reason::PROVIDER_MISMATCH, message));
        }
        Reading::Found(_) => (),
        Reading::Absent => {
            let message = format!(
                "OIDC provider {arn} does not exist; create it for {} with client id {}",
                identity.issuer, identity.audience
            );
            report.wrong.push((reason::PROVIDER_NOT_FOUND, message));
        }
        other => report.unread(&format!("OIDC provider {arn}"), other),
    }
}

fn check_permissions(question: &RoleCheck, arn: &RoleArn, readings: &Readings, report: &mut Report) {
    let mut policies = Vec::new();
    let mut is_complete = true;
    for (what, reading) in [("attached", &readings.attached), ("inline", &readings.inline)] {
        match reading {
            Reading::Found(found) => policies.extend(found.iter().cloned()),
            other => {
                is_complete = false;
                report.unread(&format!("the {what} policies of {arn}"), other);
            }
        }
    }
    let boundary = match &readings.boundary {
        None => None,
        Some(Reading::Found(policy)) => Some(policy),
        Some(other) => {
            report.unread(&format!("the permissions boundary of {arn}"), other);
            None
        }
    };
    let mut permissions = permissions::evaluate(&policies, boundary, &question.actions);
    is_complete &= permissions.unreadable.is_empty();
    for it in std::mem::take(&mut permissions.unreadable) {
        report.unclear.push((reason::POLICY_UNCLEAR, it));
    }
    // A policy that was not read may allow what no other does. It cannot take back what another denies.
    let is_certain = |it: &Missing| is_complete || !it.cause.may_be_allowed_elsewhere();
    permissions.missing.retain(is_certain);
    permissions.advised.retain(is_certain);
    if is_complete {
        let lacks = |action: &str| {
            permissions.missing.iter().chain(&permissions.advised).any(|it| it.action == action)
        };
        let allowed: BTreeSet<&str> =
            question.actions.iter().map(|it| it.action.as_str()).filter(|it| !lacks(it)).collect();
        report.allowed = allowed.into_iter().map(str::to_owned).collect();
    }
    let is_new =
        |it: &Missing| question.allowed_before.as_ref().is_some_and(|before| !before.contains(&it.action));
    let (new, missing): (Vec<Missing>, Vec<Missing>) = permissions.missing.into_iter().partition(is_new);
    if !missing.is_empty() {
        let message = format!("role {arn} lacks permissions: {}", permissions::missing_text(&missing));
        report.wrong.push((reason::PERMISSIONS_MISSING, message));
    }
    if !new.is_empty() {
        let text = permissions::missing_text(&new);
        report.warnings.push(format!("role {arn} lacks permissions that it was not asked for before, and what needs them will fail: {text}"));
    }
    let mut by_advice: BTreeMap<&str, Vec<&Missing>> = BTreeMap::new();
    for it in &permissions.advised {
        by_advice.entry(it.advice.as_deref().unwrap_or_default()).or_default().push(it);
    }
    for (when, missing) in by_advice {
        report.warnings.push(format!(
            "role {arn} lacks what is needed only {when}: {}",
            permissions::missing_text(missing)
        ));
    }
    report.warnings.extend(permissions.notes);
}

impl Report {
    fn unread<T>(&mut self, what: &str, reading: &Reading<T>) {
        let (reason, message) = match reading {
            Reading::AccessDenied { permission } => (
                reason::ACCESS_DENIED,
                format!("{what} cannot be read: grant {permission} to this operator, or check it yourself"),
            ),
            Reading::Failed { message } => {
                (reason::READ_FAILED, format!("{what} could not be read and will be tried again: {message}"))
            }
            // Lists and named policies that are gone were changed while they were read.
            Reading::Absent | Reading::Found(_) => {
                (reason::READ_FAILED, format!("{what} changed while it was read; it will be tried again"))
            }
        };
        self.unclear.push((reason, message));
    }

    fn finding(self) -> Finding {
        let (status, reason) = match (self.wrong.first(), self.unclear.first()) {
            (Some((reason, _)), _) => (Status::False, *reason),
            (None, Some((reason, _))) => (Status::Unknown, *reason),
            (None, None) => (Status::True, reason::ROLE_READY),
        };
        let warnings = self.warnings.into_iter().map(|it| format!("warning: {it}"));
        let report = self.wrong.into_iter().chain(self.unclear).map(|(_, message)| message);
        Finding {
            status,
            reason,
            message: report.chain(warnings).collect::<Vec<_>>().join(". "),
            fix: self.fix,
            allowed: self.allowed,
        }
    }
}

#[cfg(test)]
mod tests;
