//! A plan as text for people: one line for each thing to do, to wait for, and to be moved by somebody. It
//! never shows bootstrap data.

use std::fmt;

use crate::{Action, Plan, Rule, Source, Tags};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for action in &self.actions {
            writeln!(f, "{action}")?;
        }
        for (key, reason) in &self.waiting {
            writeln!(f, "wait    {key}: {reason}")?;
        }
        for (key, reason) in &self.blocked {
            writeln!(f, "blocked {key}: {reason}")?;
        }
        for key in &self.close {
            writeln!(f, "close   {key}")?;
        }
        Ok(())
    }
}

impl Action {
    /// The word for what is done.
    pub fn verb(&self) -> &'static str {
        match self {
            Action::Create { .. } => "create",
            Action::Update { .. } => "update",
            Action::Tag { .. } => "tag",
            Action::Delete { .. } => "delete",
            Action::Confirm { .. } => "confirm",
        }
    }

    /// With which of AWS's things it is done, and what of it is set or changed. Empty or with a space before.
    pub fn detail(&self) -> String {
        match self {
            Action::Create { is, .. } => is.details(),
            Action::Update { id, is, observed, .. } => format!(" ({id}){}", is.changes(observed)),
            Action::Tag { id, tags, untag, .. } => {
                let untag: String = untag.iter().map(|it| format!(" -{it}")).collect();
                format!(" ({id}){}{untag}", Pairs(tags))
            }
            Action::Delete { id, .. } | Action::Confirm { id, .. } => format!(" ({id})"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8}{}{}", self.verb(), self.key(), self.detail())
    }
}

struct Pairs<'a>(&'a Tags);

impl fmt::Display for Pairs<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// Names on one line.
pub(crate) fn join<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(String::as_str).collect::<Vec<_>>().join(" + ")
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.protocol)?;
        match (self.from_port, self.to_port) {
            (from, to) if from == to => write!(f, " {from}")?,
            (from, to) => write!(f, " {from}-{to}")?,
        }
        match &self.source {
            Source::Cidr(it) | Source::GroupId(it) | Source::PrefixList(it) => write!(f, " from {it}")?,
            Source::Group(it) => write!(f, " from group {it}")?,
        }
        write!(f, " ({})", self.description)
    }
}
