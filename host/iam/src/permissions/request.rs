//! Conditions on the tags of a request: `aws:TagKeys`, `aws:RequestTag/<key>` and `<service>:CreateAction`.
//! Everything else that a policy can ask of a request is known only to AWS at the time of the call.
//!
//! Source: IAM User Guide, "AWS global condition context keys" and "Multivalued context keys".

use super::super::condition::{self, Held};
use super::super::document::Condition;
use super::RequiredAction;

/// Whether a condition holds for every request of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// Nobody can say, or it differs from request to request.
    Unknown,
}

/// Evaluates a condition for the requests of an action.
pub(super) fn holds(condition: &Condition, has_variables: bool, demand: &RequiredAction) -> Answer {
    // Names of keys have no case.
    let key = condition.key.to_ascii_lowercase();
    let one = |held| answer(condition::evaluate(condition, has_variables, held));
    if let (Some(service), Some(create_action)) = (key.strip_suffix(":createaction"), &demand.create_action) {
        let is_own = demand.action.split(':').next().is_some_and(|it| it.eq_ignore_ascii_case(service));
        return if is_own { one(Held::Value(create_action)) } else { Answer::Unknown };
    }
    let Some(tags) = &demand.tags else { return Answer::Unknown };
    if let Some(name) = key.strip_prefix("aws:requesttag/") {
        return match tags.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(name)) {
            None => one(Held::Nothing),
            Some((_, Some(value))) => one(Held::Value(value)),
            // It is there, whatever its value is.
            Some((_, None)) if condition.operator == "Null" => one(Held::Value("")),
            Some((_, None)) => Answer::Unknown,
        };
    }
    if key != "aws:tagkeys" {
        return Answer::Unknown;
    }
    let each = || tags.keys().map(|tag| one(Held::Value(tag)));
    match condition.operator.split_once(':') {
        _ if tags.is_empty() => one(Held::Nothing),
        _ if condition.operator == "Null" => one(Held::Value("")),
        Some(("ForAllValues", _)) => all(each()),
        Some(("ForAnyValue", _)) => not(all(each().map(not))),
        // What an operator without either does with several values is not documented.
        _ if tags.len() > 1 => Answer::Unknown,
        _ => all(each()),
    }
}

fn answer(answer: condition::Answer) -> Answer {
    match answer {
        condition::Answer::Yes => Answer::Yes,
        condition::Answer::No(_) => Answer::No,
        condition::Answer::Unknown(_) => Answer::Unknown,
    }
}

fn not(answer: Answer) -> Answer {
    match answer {
        Answer::Yes => Answer::No,
        Answer::No => Answer::Yes,
        Answer::Unknown => Answer::Unknown,
    }
}

/// Yes when all are; one that is not settles it.
fn all(answers: impl Iterator<Item = Answer>) -> Answer {
    answers.fold(Answer::Yes, |so_far, it| match (so_far, it) {
        (Answer::No, _) | (_, Answer::No) => Answer::No,
        (Answer::Unknown, _) | (_, Answer::Unknown) => Answer::Unknown,
        (Answer::Yes, Answer::Yes) => Answer::Yes,
    })
}
