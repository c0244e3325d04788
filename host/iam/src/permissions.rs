//! Permissions of a role: which of the needed actions its policies do not allow. It looks at the role's own
//! policies and boundary; what an organization or a resource adds or forbids is not in them, so it is never
//! said here. Of conditions, those on the tags of a request are evaluated where the tags are known; others
//! are told.

mod request;

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Choice, Condition, Document, Effect, Statement};
use super::pattern::action_matches;
use request::Answer;

/// A policy document of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How messages call it: the ARN of a managed policy, the name of an inline one.
    pub name: String,
    /// JSON, percent-encoded as IAM returns it, or plain.
    pub document: String,
}

/// An action that is needed, and what is known of its requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequiredAction {
    /// Such as `ec2:AttachVolume`.
    pub action: String,
    /// All tags that its requests set, by key, with no value where nobody knows it beforehand; `None` when
    /// the tags are not known.
    pub tags: Option<BTreeMap<String, Option<String>>>,
    /// The call that sets them on what it makes, for actions such as `ec2:CreateTags`.
    pub create_action: Option<String>,
    /// When it is needed, if that is not always. Who lacks it is told so.
    pub advice: Option<String>,
}

impl From<&str> for RequiredAction {
    fn from(action: &str) -> Self {
        RequiredAction { action: action.to_owned(), ..RequiredAction::default() }
    }
}

/// What the policies of a role say to the actions that are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// In the order in which they are needed; what is needed only at times is not among them.
    pub missing: Vec<Missing>,
    /// What is needed only at times and not allowed.
    pub advised: Vec<Missing>,
    /// Limits under which actions are allowed: they may or may not matter to who needs them.
    pub notes: Vec<String>,
    /// Documents that are no policy, and why. What they would allow or deny is not counted.
    pub unreadable: Vec<String>,
}

/// An action that is needed and not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub action: String,
    pub cause: Cause,
    /// When it is needed, if that is not always.
    pub advice: Option<String>,
}

/// Why an action is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    NotAllowed,
    /// It would be allowed with other tags; which, and by which statements.
    OtherTags(String),
    /// Forbidden outright, with the policy and statement.
    Denied(String),
    /// The permissions boundary, which is named, does not allow it.
    Boundary(String),
}

impl Cause {
    /// Whether a policy that nobody read may allow it all the same.
    pub fn may_be_allowed_elsewhere(&self) -> bool {
        matches!(self, Cause::NotAllowed | Cause::OtherTags(_))
    }
}

/// Missing actions in a sentence, by cause; empty when there are none.
pub fn missing_text<'a>(missing: impl IntoIterator<Item = &'a Missing>) -> String {
    let mut by_cause: BTreeMap<&Cause, Vec<&str>> = BTreeMap::new();
    for it in missing {
        by_cause.entry(&it.cause).or_default().push(&it.action);
    }
    let text = |(cause, actions): (&Cause, Vec<&str>)| match cause {
        Cause::NotAllowed => format!("no policy allows {}", actions.join(", ")),
        Cause::OtherTags(why) => {
            format!("no policy allows {} with the tags that are set: {why}", actions.join(", "))
        }
        Cause::Denied(by) => format!("{by} denies {}", actions.join(", ")),
        Cause::Boundary(name) => {
            format!("the permissions boundary {name} does not allow {}", actions.join(", "))
        }
    };
    by_cause.into_iter().map(text).collect::<Vec<_>>().join("; ")
}

/// How far a set of policies allows an action.
enum Allowed {
    /// With the conditions on tags that keep each statement about it from allowing it.
    No(BTreeSet<String>),
    /// With the limits of each statement that allows it, when none does so without limits.
    Within(BTreeSet<String>),
    Yes,
}

impl Allowed {
    fn limits(self) -> BTreeSet<String> {
        match self {
            Allowed::Within(limits) => limits,
            Allowed::No(_) | Allowed::Yes => BTreeSet::new(),
        }
    }
}

/// Judges actions such as `ec2:AttachVolume`. A needed action with a wildcard is allowed only by a pattern
/// that covers it whole.
pub fn evaluate(policies: &[Policy], boundary: Option<&Policy>, needed: &[RequiredAction]) -> Permissions {
    let mut res = Permissions::default();
    let own: Statements<'_> =
        policies.iter().flat_map(|it| read(it, &mut res.unreadable).unwrap_or_default()).collect();
    // A boundary that cannot be read is reported, and limits nothing here.
    let limits = boundary.and_then(|it| Some((it, read(it, &mut res.unreadable)?)));
    let mut notes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut seen: Vec<&RequiredAction> = Vec::new();
    for demand in needed {
        let is_same = |it: &&RequiredAction| {
            it.action.eq_ignore_ascii_case(&demand.action)
                && it.tags == demand.tags
                && it.create_action == demand.create_action
        };
        if seen.iter().any(is_same) {
            continue;
        }
        seen.push(demand);
        let all = own.iter().chain(limits.iter().flat_map(|(_, statements)| statements));
        let (denied, mut limited) = denials(all, demand);
        let (own, boundary) =
            (allows(&own, demand), limits.as_ref().map(|(policy, it)| (policy, allows(it, demand))));
        let cause = match (denied, own, boundary) {
            (Some(by), ..) => Some(Cause::Denied(by)),
            (None, Allowed::No(unmet), _) if unmet.is_empty() => Some(Cause::NotAllowed),
            (None, Allowed::No(unmet), _) => {
                Some(Cause::OtherTags(unmet.into_iter().collect::<Vec<_>>().join("; ")))
            }
            (None, _, Some((policy, Allowed::No(_)))) => Some(Cause::Boundary(policy.name.clone())),
            (None, own, boundary) => {
                limited.extend(own.limits());
                limited.extend(boundary.into_iter().flat_map(|(_, it)| it.limits()));
                None
            }
        };
        match cause {
            Some(cause) => {
                let missing = Missing { action: demand.action.clone(), cause, advice: demand.advice.clone() };
                let list = if missing.advice.is_some() { &mut res.advised } else { &mut res.missing };
                list.push(missing);
            }
            None => limited.into_iter().for_each(|it| notes.entry(it).or_default().push(&demand.action)),
        }
    }
    let text = |(limit, mut actions): (String, Vec<&str>)| {
        actions.dedup();
        format!("{}: {limit}", actions.join(", "))
    };
    res.notes = notes.into_iter().map(text).collect();
    res
}

/// A statement of a policy.
struct Named<'a> {
    policy: &'a str,
    has_variables: bool,
    statement: Statement,
}

type Statements<'a> = Vec<Named<'a>>;

/// None for a text that is no policy.
fn read<'a>(policy: &'a Policy, unreadable: &mut Vec<String>) -> Option<Statements<'a>> {
    let message = match Document::read(&policy.document) {
        Err(error) => error.to_string(),
        Ok(document) => {
            match document.statements.iter().find(|it| it.resources.is_none() || it.principals.is_some()) {
                Some(it) if it.principals.is_some() => {
                    format!("{} has a Principal, which only trust policies have", it.name)
                }
                Some(it) => format!("{} has no Resource", it.name),
                None => {
                    let named = |statement| Named {
                        policy: policy.name.as_str(),
                        has_variables: document.has_variables,
                        statement,
                    };
                    return Some(document.statements.into_iter().map(named).collect());
                }
            }
        }
    };
    unreadable.push(format!("policy {} cannot be read: {message}", policy.name));
    None
}

fn is_about(statement: &Statement, action: &str) -> bool {
    match &statement.actions {
        Choice::Only(list) => list.iter().any(|it| action_matches(it, action)),
        Choice::AllBut(list) => !list.iter().any(|it| action_matches(it, action)),
    }
}

/// What a statement says to requests of an action: to none of them, because of its conditions on tags, or to
/// those within its limits.
enum Says<'a> {
    Nothing(&'a Condition),
    Within(Option<String>),
}

/// Conditions that hold for every request limit nothing.
fn says<'a>(policy: &'a Named<'_>, demand: &RequiredAction) -> Says<'a> {
    let mut open = Vec::new();
    for condition in &policy.statement.conditions {
        match request::holds(condition, policy.has_variables, demand) {
            Answer::Yes => (),
            Answer::No => return Says::Nothing(condition),
            Answer::Unknown => open.push(condition),
        }
    }
    Says::Within(limits(&policy.statement, &open))
}

fn about<'a, 'b>(
    statements: impl Iterator<Item = &'a Named<'b>>,
    effect: Effect,
    demand: &RequiredAction,
) -> impl Iterator<Item = &'a Named<'b>>
where
    'b: 'a,
{
    statements.filter(move |it| it.statement.effect == effect && is_about(&it.statement, &demand.action))
}

fn allows(statements: &Statements<'_>, demand: &RequiredAction) -> Allowed {
    let (mut within, mut unmet) = (BTreeSet::new(), BTreeSet::new());
    for it in about(statements.iter(), Effect::Allow, demand) {
        let Named { policy, statement, .. } = it;
        match says(it, demand) {
            Says::Within(None) => return Allowed::Yes,
            Says::Within(Some(limits)) => {
                _ = within.insert(format!("allowed only {limits} ({policy}, {})", statement.name))
            }
            Says::Nothing(condition) => {
                let set =
                    demand.tags.iter().flatten().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(", ");
                let set = if set.is_empty() { "none" } else { &set };
                _ = unmet.insert(format!(
                    "{policy}, {}, does so if {}, and set are {set}",
                    statement.name,
                    text(condition)
                ));
            }
        }
    }
    if within.is_empty() { Allowed::No(unmet) } else { Allowed::Within(within) }
}

/// Which statement forbids an action outright, and which do so under conditions or for some resources.
fn denials<'a, 'b: 'a>(
    statements: impl Iterator<Item = &'a Named<'b>>,
    demand: &RequiredAction,
) -> (Option<String>, BTreeSet<String>) {
    let (mut outright, mut limited) = (None, BTreeSet::new());
    for it in about(statements, Effect::Deny, demand) {
        let Named { policy, statement, .. } = it;
        match says(it, demand) {
            Says::Within(None) => outright = outright.or(Some(format!("{policy}, {},", statement.name))),
            Says::Within(Some(limits)) => {
                _ = limited.insert(format!("denied {limits} ({policy}, {})", statement.name))
            }
            Says::Nothing(_) => (),
        }
    }
    (outright, limited)
}

fn text(condition: &Condition) -> String {
    format!("{} {} {}", condition.operator, condition.key, condition.values.join(" or "))
}

/// The resources of a statement and those of its conditions that nobody can evaluate; None when it is about
/// everything.
fn limits(statement: &Statement, open: &[&Condition]) -> Option<String> {
    let resources = match &statement.resources {
        None => None,
        Some(Choice::Only(list))
            if list.iter().any(|it| it.chars().all(|char| char == '*') && !it.is_empty()) =>
        {
            None
        }
        Some(Choice::Only(list)) => Some(format!("on {}", list.join(", "))),
        Some(Choice::AllBut(list)) => Some(format!("on all but {}", list.join(", "))),
    };
    let conditions: Vec<String> = open.iter().map(|it| text(it)).collect();
    let conditions =
        if conditions.is_empty() { None } else { Some(format!("if {}", conditions.join(" and "))) };
    match (resources, conditions) {
        (None, None) => None,
        (one, other) => Some([one, other].into_iter().flatten().collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests;
