//! Conditions: how they are put together, and the words for why something is not as it should be.

use std::collections::BTreeMap;

use crds::conditions::{PAUSED, READY, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff;

use crate::{Action, ActionNeeded, Key, Outcome, Plan, Problem, Timestamp};

/// Longest message: long enough for a trust policy. The API server takes 32,768 characters.
const LONGEST: usize = 8192;
/// How many things a message names.
const NAMED: usize = 8;

/// What one condition says.
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionState<'a> {
    /// `True` or `False`; it is never `Unknown`.
    pub status: bool,
    /// CamelCase, for programs.
    pub reason: &'a str,
    /// For people: what is lacking, and who has to act. [`merge`] shortens it.
    pub message: String,
}

impl<'a> ConditionState<'a> {
    /// `True`, with reason `Ready` and no message.
    pub fn yes() -> Self {
        ConditionState { status: true, reason: reason::READY, message: String::new() }
    }
    /// `False`, and why.
    pub fn no(reason: &'a str, message: impl Into<String>) -> Self {
        ConditionState { status: false, reason, message: message.into() }
    }
}

/// Replaces what this operator says, keeps what others say, and keeps the time of a condition whose status
/// did not change.
pub fn merge(
    previous: &[Condition],
    state: Vec<(&str, ConditionState<'_>)>,
    generation: Option<i64>,
    now: Timestamp,
    ours: &[&str],
) -> Vec<Condition> {
    let mut res: Vec<Condition> =
        previous.iter().filter(|it| !ours.contains(&it.type_.as_str())).cloned().collect();
    for (type_, state) in state {
        let status = if state.status { "True" } else { "False" };
        let before = previous.iter().find(|it| it.type_ == type_ && it.status == status);
        res.retain(|it| it.type_ != type_);
        res.push(Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: state.reason.to_owned(),
            message: shorten(&state.message),
            observed_generation: generation,
            last_transition_time: before
                .map(|it| it.last_transition_time.clone())
                .unwrap_or_else(|| time(now)),
        });
    }
    res.sort_by(|a, b| a.type_.cmp(&b.type_));
    res
}

/// The conditions of an object of which only this is known: whether it is paused.
pub fn paused(
    previous: &[Condition],
    paused: bool,
    now: Timestamp,
    generation: Option<i64>,
) -> Vec<Condition> {
    merge(previous, vec![(PAUSED, paused_state(paused))], generation, now, &[PAUSED])
}

/// The conditions of an object of which only this is known: why nothing can be done for it yet.
pub fn not_ready(
    previous: &[Condition],
    reason: &'static str,
    message: &str,
    now: Timestamp,
    generation: Option<i64>,
) -> Vec<Condition> {
    let state = vec![(PAUSED, paused_state(false)), (READY, ConditionState::no(reason, message))];
    merge(previous, state, generation, now, &[PAUSED, READY])
}

/// Whether an object has been judged before.
pub fn was_reported(previous: &[Condition]) -> bool {
    previous.iter().any(|it| it.type_ == READY)
}

/// What condition `Paused` says.
pub fn paused_state(paused: bool) -> ConditionState<'static> {
    ConditionState {
        status: paused,
        reason: if paused { reason::PAUSED } else { reason::NOT_PAUSED },
        message: String::new(),
    }
}

/// Seconds since 1970 as conditions hold a time.
pub fn time(now: Timestamp) -> Time {
    // Whole seconds: that is what Kubernetes keeps.
    Time(jiff::Timestamp::from_second(now as i64).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
}

/// A time of Kubernetes as a timestamp.
pub fn timestamp(time: &Time) -> Timestamp {
    time.0.as_second() as f64
}

/// At most 8192 characters of it: long enough for a trust policy.
pub fn shorten(message: &str) -> String {
    match message.char_indices().nth(LONGEST) {
        None => message.to_owned(),
        Some((at, _)) => format!("{}...", &message[..at]),
    }
}

/// Why some keys are not as they should be; `None` when they are. What somebody has to act on comes first.
pub fn lacking(
    plan: &Plan,
    outcomes: &[(Key, Outcome)],
    concerns: impl Fn(&Key) -> bool,
) -> Option<ConditionState<'static>> {
    let mut worst = None;
    let mut lines: BTreeMap<(u8, String), String> = BTreeMap::new();
    let mut say = |rank: u8, reason: &'static str, key: &Key, text: &str| {
        if worst.is_none_or(|(other, _)| rank < other) {
            worst = Some((rank, reason));
        }
        lines.entry((rank, key.to_string())).or_insert_with(|| text.to_owned());
    };
    for (key, text) in plan.blocked.iter().filter(|(key, _)| concerns(key)) {
        say(0, blocked_reason(text), key, text);
    }
    for action in &plan.actions {
        let key = action.key();
        if !concerns(&key) {
            continue;
        }
        let outcome = outcomes.iter().rev().find(|(other, _)| *other == key).map(|(_, outcome)| outcome);
        match (outcome, action) {
            (Some(Outcome::Refused { code, message, who, .. }), _) => {
                let rank = if *who == ActionNeeded::None { 2 } else { 1 };
                say(rank, code_reason(code), &key, &refused(code, message, *who));
            }
            (Some(Outcome::Unknown { .. }), _) => {
                say(3, reason::UNREACHABLE, &key, "AWS did not answer; asking again")
            }
            (_, Action::Create { .. }) => say(4, reason::CREATING, &key, "creating"),
            (_, Action::Update { .. }) => say(4, reason::UPDATING, &key, "updating"),
            (_, Action::Delete { .. }) => say(4, reason::DELETING, &key, "deleting"),
            (_, Action::Tag { .. } | Action::Confirm { .. }) => (),
        }
    }
    for (key, text) in plan.waiting.iter().filter(|(key, _)| concerns(key)) {
        let rank = if text.starts_with("after ") { 6 } else { 5 };
        let reason = match text.as_str() {
            "creating" => reason::CREATING,
            "deleting" => reason::DELETING,
            _ => reason::NOT_READY,
        };
        say(rank, reason, key, text);
    }
    let (_, reason) = worst?;
    let mut named: Vec<String> =
        lines.iter().take(NAMED).map(|((_, key), text)| format!("{key}: {text}")).collect();
    if lines.len() > NAMED {
        named.push(format!("and {} more", lines.len() - NAMED));
    }
    Some(ConditionState::no(reason, named.join("; ")))
}

/// A sweep that fails.
pub fn problem(problem: &Problem) -> ConditionState<'static> {
    ConditionState::no(code_reason(&problem.code), refused(&problem.code, &problem.message, problem.who))
}

fn blocked_reason(text: &str) -> &'static str {
    match text {
        _ if text.starts_with("lost: ") => reason::LOST,
        _ if text.starts_with("found more than one") => reason::AMBIGUOUS,
        _ if text.contains("has its place and belongs to") => reason::NOT_OWNED,
        _ if text.contains("cannot be changed") => reason::IMMUTABLE,
        _ => reason::BLOCKED,
    }
}

fn refused(code: &str, message: &str, who: ActionNeeded) -> String {
    // What follows is another text each time, and says nothing to people.
    let message = message
        .split("Encoded authorization failure message")
        .next()
        .unwrap_or_default()
        .trim()
        .trim_end_matches('.');
    let act = match who {
        ActionNeeded::None => "it is tried again",
        ActionNeeded::SpecAuthor => "whoever wrote this object has to correct it",
        ActionNeeded::CloudAdmin => "an administrator of the AWS account has to act",
    };
    format!("{code}: {message} ({act})")
}

/// AWS has hundreds of codes; these are told apart because somebody else has to act.
fn code_reason(code: &str) -> &'static str {
    let any = |words: &[&str]| words.iter().any(|word| code.contains(word));
    match code {
        _ if any(&["Unauthorized", "AccessDenied", "AuthFailure", "OptInRequired"]) => reason::ACCESS_DENIED,
        _ if any(&["Credential", "ExpiredToken", "InvalidClientTokenId", "UnrecognizedClient"]) => {
            reason::CREDENTIALS_UNAVAILABLE
        }
        _ if any(&["RequestLimitExceeded", "Throttl", "SlowDown", "TooManyRequests"]) => reason::THROTTLED,
        _ if any(&["LimitExceeded", "QuotaExceeded", "TooMany"]) => reason::QUOTA_EXCEEDED,
        _ if any(&["InsufficientInstanceCapacity", "InsufficientHostCapacity", "Unsupported"]) => {
            reason::INSUFFICIENT_CAPACITY
        }
        _ if any(&["Unreachable", "Timeout", "Dispatch", "ServiceUnavailable", "InternalError"]) => {
            reason::UNREACHABLE
        }
        _ => reason::AWS_ERROR,
    }
}
