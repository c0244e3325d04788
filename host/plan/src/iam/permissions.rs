//! Permissions of a role: which of the needed actions its policies do not allow. It looks at the role's own policies and boundary;
//! what an organization or a resource adds or forbids is not in them, so it is never said here.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Choice, Document, Effect, Statement};
use super::pattern::action_matches;

/// A policy document of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How messages call it: the ARN of a managed policy, the name of an inline one.
    pub name: String,
    /// JSON, percent-encoded as IAM returns it, or plain.
    pub document: String,
}

/// What the policies of a role say to the actions that are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// In the order in which they are needed.
    pub missing: Vec<Missing>,
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
}

/// Why an action is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    NotAllowed,
    /// Forbidden outright, with the policy and statement.
    Denied(String),
    /// The permissions boundary, which is named, does not allow it.
    Boundary(String),
}

impl Permissions {
    /// The missing actions in a sentence, by cause; empty when none is missing.
    pub fn missing_text(&self) -> String {
        let mut by_cause: BTreeMap<&Cause, Vec<&str>> = BTreeMap::new();
        for it in &self.missing {
            by_cause.entry(&it.cause).or_default().push(&it.action);
        }
        let text = |(cause, actions): (&Cause, Vec<&str>)| match cause {
            Cause::NotAllowed => format!("no policy allows {}", actions.join(", ")),
            Cause::Denied(by) => format!("{by} denies {}", actions.join(", ")),
            Cause::Boundary(name) => format!("the permissions boundary {name} does not allow {}", actions.join(", ")),
        };
        by_cause.into_iter().map(text).collect::<Vec<_>>().join("; ")
    }
}

/// How far a set of policies allows an action.
enum Allowed {
    No,
    /// With the limits of each statement that allows it, when none does so without limits.
    Within(BTreeSet<String>),
    Yes,
}

impl Allowed {
    fn limits(self) -> BTreeSet<String> {
        match self {
            Allowed::Within(limits) => limits,
            Allowed::No | Allowed::Yes => BTreeSet::new(),
        }
    }
}

/// Judges actions such as `ec2:AttachVolume`. A needed action with a wildcard is allowed only by a pattern that covers it whole.
pub fn judge(policies: &[Policy], boundary: Option<&Policy>, needed: &[String]) -> Permissions {
    let mut res = Permissions::default();
    let own: Statements<'_> = policies.iter().flat_map(|it| read(it, &mut res.unreadable).unwrap_or_default()).collect();
    // A boundary that cannot be read is reported, and limits nothing here.
    let limits = boundary.and_then(|it| Some((it, read(it, &mut res.unreadable)?)));
    let mut notes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for action in needed.iter().filter(|it| seen.insert(it.to_ascii_lowercase())) {
        let all = own.iter().chain(limits.iter().flat_map(|(_, statements)| statements));
        let (denied, mut limited) = denials(all, action);
        let (own, boundary) = (allows(&own, action), limits.as_ref().map(|(policy, it)| (policy, allows(it, action))));
        let cause = match (denied, own, boundary) {
            (Some(by), ..) => Some(Cause::Denied(by)),
            (None, Allowed::No, _) => Some(Cause::NotAllowed),
            (None, _, Some((policy, Allowed::No))) => Some(Cause::Boundary(policy.name.clone())),
            (None, own, boundary) => {
                limited.extend(own.limits());
                limited.extend(boundary.into_iter().flat_map(|(_, it)| it.limits()));
                None
            }
        };
        match cause {
            Some(cause) => res.missing.push(Missing { action: action.clone(), cause }),
            None => limited.into_iter().for_each(|it| notes.entry(it).or_default().push(action)),
        }
    }
    res.notes = notes.into_iter().map(|(limit, actions)| format!("{}: {limit}", actions.join(", "))).collect();
    res
}

/// Statements with the name of their policy.
type Statements<'a> = Vec<(&'a str, Statement)>;

/// None for a text that is no policy.
fn read<'a>(policy: &'a Policy, unreadable: &mut Vec<String>) -> Option<Statements<'a>> {
    let message = match Document::read(&policy.document) {
        Err(error) => error.to_string(),
        Ok(document) => match document.statements.iter().find(|it| it.resources.is_none() || it.principals.is_some()) {
            Some(it) if it.principals.is_some() => format!("{} has a Principal, which only trust policies have", it.name),
            Some(it) => format!("{} has no Resource", it.name),
            None => return Some(document.statements.into_iter().map(|it| (policy.name.as_str(), it)).collect()),
        },
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

fn allows(statements: &Statements<'_>, action: &str) -> Allowed {
    let mut within = BTreeSet::new();
    for (policy, statement) in statements.iter().filter(|(_, it)| it.effect == Effect::Allow && is_about(it, action)) {
        match limits(statement) {
            None => return Allowed::Yes,
            Some(limits) => _ = within.insert(format!("allowed only {limits} ({policy}, {})", statement.name)),
        }
    }
    if within.is_empty() { Allowed::No } else { Allowed::Within(within) }
}

/// Which statement forbids an action outright, and which do so under conditions or for some resources.
fn denials<'a>(statements: impl Iterator<Item = &'a (&'a str, Statement)>, action: &str) -> (Option<String>, BTreeSet<String>) {
    let (mut outright, mut limited) = (None, BTreeSet::new());
    for (policy, statement) in statements.filter(|(_, it)| it.effect == Effect::Deny && is_about(it, action)) {
        match limits(statement) {
            None => outright = outright.or(Some(format!("{policy}, {},", statement.name))),
            Some(limits) => _ = limited.insert(format!("denied {limits} ({policy}, {})", statement.name)),
        }
    }
    (outright, limited)
}

/// The resources and conditions of a statement; None when it is about everything.
fn limits(statement: &Statement) -> Option<String> {
    let resources = match &statement.resources {
        None => None,
        Some(Choice::Only(list)) if list.iter().any(|it| it.chars().all(|char| char == '*') && !it.is_empty()) => None,
        Some(Choice::Only(list)) => Some(format!("on {}", list.join(", "))),
        Some(Choice::AllBut(list)) => Some(format!("on all but {}", list.join(", "))),
    };
    let conditions: Vec<String> =
        statement.conditions.iter().map(|it| format!("{} {} {}", it.operator, it.key, it.values.join(" or "))).collect();
    let conditions = if conditions.is_empty() { None } else { Some(format!("if {}", conditions.join(" and "))) };
    match (resources, conditions) {
        (None, None) => None,
        (one, other) => Some([one, other].into_iter().flatten().collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests;
