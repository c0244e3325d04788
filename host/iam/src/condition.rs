//! Conditions of a policy: evaluates one key of one operator by the rules that AWS documents for condition
//! operators. An operator, key or variable that cannot be evaluated from plain data is unknown and named.

use super::document::Condition;
use super::pattern::{Case, Pattern};

/// What a request holds for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held<'a> {
    Value(&'a str),
    Nothing,
    /// Only AWS knows, at the time of the call.
    Unknown,
}

/// Whether something holds, with the reason where it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No(String),
    Unknown(String),
}

/// How a set of values in the request counts. Every key known here has one value, so this matters only when
/// it has none.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quantifier {
    Single,
    Any,
    All,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equals(Case),
    Like,
    Bool,
    Null,
}

/// An operator such as `ForAnyValue:StringNotLikeIfExists`, taken apart.
#[derive(Clone, Copy)]
pub(super) struct Operator {
    quantifier: Quantifier,
    comparison: Comparison,
    is_negated: bool,
    if_exists: bool,
}

impl Operator {
    /// None for an operator that is not known here.
    pub(super) fn read(name: &str) -> Option<Operator> {
        let (quantifier, base) = match name.split_once(':') {
            None => (Quantifier::Single, name),
            Some(("ForAnyValue", base)) => (Quantifier::Any, base),
            Some(("ForAllValues", base)) => (Quantifier::All, base),
            Some(_) => return None,
        };
        let (base, if_exists) = base.strip_suffix("IfExists").map_or((base, false), |base| (base, true));
        let (comparison, is_negated) = match base {
            "StringEquals" => (Comparison::Equals(Case::Sensitive), false),
            "StringNotEquals" => (Comparison::Equals(Case::Sensitive), true),
            "StringEqualsIgnoreCase" => (Comparison::Equals(Case::Insensitive), false),
            "StringNotEqualsIgnoreCase" => (Comparison::Equals(Case::Insensitive), true),
            "StringLike" => (Comparison::Like, false),
            "StringNotLike" => (Comparison::Like, true),
            "Bool" => (Comparison::Bool, false),
            "Null" if quantifier == Quantifier::Single && !if_exists => (Comparison::Null, false),
            _ => return None,
        };
        Some(Operator { quantifier, comparison, is_negated, if_exists })
    }

    /// Whether it holds only for the values that it lists.
    pub(super) fn is_limiting(self) -> bool {
        !self.is_negated && matches!(self.comparison, Comparison::Equals(_) | Comparison::Like)
    }

    /// Whether `*` and `?` in its values are wildcards.
    pub(super) fn has_wildcards(self) -> bool {
        self.comparison == Comparison::Like
    }

    fn for_nothing(self) -> bool {
        match self.quantifier {
            Quantifier::Any => false,
            Quantifier::All => true,
            Quantifier::Single => self.if_exists || self.is_negated,
        }
    }

    fn matches(self, value: &Pattern, held: &str) -> bool {
        match self.comparison {
            Comparison::Equals(case) => case.equal(&value.literal(), held),
            Comparison::Like => value.matches(held, Case::Sensitive),
            Comparison::Bool | Comparison::Null => Case::Insensitive.equal(&value.literal(), held),
        }
    }
}

/// Evaluates a condition against what the request holds for its key.
pub(super) fn evaluate(condition: &Condition, has_variables: bool, held: Held<'_>) -> Answer {
    let Condition { operator: name, key, values } = condition;
    let Some(operator) = Operator::read(name) else {
        return Answer::Unknown(format!(
            "condition operator {name} on {key} is not one that can be evaluated here"
        ));
    };
    if held == Held::Unknown {
        return Answer::Unknown(format!(
            "condition {name} is on {key}, which only AWS knows at the time of the call"
        ));
    }
    if operator.comparison == Comparison::Null {
        let is_absent = held == Held::Nothing;
        let wanted =
            values.iter().any(|it| it.eq_ignore_ascii_case(if is_absent { "true" } else { "false" }));
        let held = if is_absent { "does not carry" } else { "carries" };
        return if wanted {
            Answer::Yes
        } else {
            Answer::No(format!("{name} on {key} fails: the token {held} it"))
        };
    }
    let Held::Value(held) = held else {
        return if operator.for_nothing() { Answer::Yes } else { Answer::No(absent(name, key)) };
    };
    let mut variable = None;
    for value in values {
        let pattern = if has_variables { Pattern::with_variables(value) } else { Ok(Pattern::new(value)) };
        match pattern {
            Ok(pattern) if operator.matches(&pattern, held) => {
                return if operator.is_negated {
                    Answer::No(format!("{name} excludes {key} {held:?}"))
                } else {
                    Answer::Yes
                };
            }
            Ok(_) => (),
            Err(name) => variable = Some(name),
        }
    }
    match variable {
        Some(variable) => Answer::Unknown(format!(
            "condition {name} on {key} uses ${{{variable}}}, which only AWS can fill in"
        )),
        None if operator.is_negated => Answer::Yes,
        None => Answer::No(mismatch(operator, condition, held)),
    }
}

fn absent(name: &str, key: &str) -> String {
    let hint = if key.contains("://") { "; write the key without https://" } else { "" };
    format!("{name} is on {key}, which the token does not carry{hint}")
}

fn mismatch(operator: Operator, condition: &Condition, held: &str) -> String {
    let Condition { operator: name, key, values } = condition;
    let would_match = |it: &String| Pattern::new(it).matches(held, Case::Sensitive);
    let hint = match operator.comparison {
        Comparison::Equals(_) if values.iter().any(would_match) => {
            "; it takes * and ? as plain characters, StringLike does not"
        }
        Comparison::Equals(Case::Sensitive) | Comparison::Like
            if values.iter().any(|it| it.eq_ignore_ascii_case(held)) =>
        {
            "; case counts"
        }
        _ => "",
    };
    let values = values.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join(", ");
    let values = if values.is_empty() { "nothing" } else { &values };
    format!("{name} on {key} takes {values}, but the token has {held:?}{hint}")
}
