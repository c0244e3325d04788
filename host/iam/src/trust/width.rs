//! What a statement lets in beyond what it must. Statements that let the right one in may get warnings; the
//! verdict stays.

use super::super::condition::Operator;
use super::super::document::{Choice, Principal, Principals, Statement};
use super::super::pattern::Pattern;
use super::statement::Request;

/// What limits a key in a statement.
enum Limit {
    /// Only the values listed.
    Exact,
    /// Patterns with wildcards.
    Wild(Vec<String>),
    Nothing,
}

pub(super) fn warnings(statement: &Statement, request: &Request<'_>, has_variables: bool) -> Vec<String> {
    let name = &statement.name;
    let mut res = Vec::new();
    match &statement.principals {
        Some(Principals::Only(list)) if list.iter().any(is_everyone) => {
            res.push(format!("{name}: Principal \"*\" lets in identities of any provider and account"));
        }
        Some(Principals::AllBut(_)) => {
            res.push(format!("{name}: NotPrincipal lets in everyone that it does not name"))
        }
        _ => (),
    }
    if matches!(statement.actions, Choice::AllBut(_)) {
        res.push(format!("{name}: NotAction allows every action that it does not name"));
    }
    if request.identity.is_none() {
        return res;
    }
    match limit(statement, request, "sub", has_variables) {
        Limit::Exact => (),
        Limit::Wild(patterns) => {
            res.push(format!("{name}: subject {} lets in other service accounts", patterns.join(", ")));
        }
        Limit::Nothing => res.push(format!(
            "{name}: no condition limits the subject, so every service account of the cluster gets in"
        )),
    }
    match limit(statement, request, "aud", has_variables) {
        Limit::Exact => (),
        Limit::Wild(patterns) => {
            res.push(format!("{name}: audience {} takes tokens made for other services", patterns.join(", ")))
        }
        Limit::Nothing => res.push(format!(
            "{name}: no condition limits the audience, so tokens made for other services get in"
        )),
    }
    res
}

fn is_everyone(principal: &Principal) -> bool {
    match principal {
        Principal::Everyone => true,
        Principal::Of { value, .. } => value == "*",
    }
}

/// All conditions must hold, so one exact one is enough.
fn limit(statement: &Statement, request: &Request<'_>, claim: &str, has_variables: bool) -> Limit {
    let mut wild = Vec::new();
    for it in statement.conditions.iter().filter(|it| request.is_key(&it.key, claim)) {
        let Some(operator) = Operator::read(&it.operator).filter(|it| it.is_limiting()) else { continue };
        let has_wildcards = |value: &&String| {
            let pattern =
                if has_variables { Pattern::with_variables(value) } else { Ok(Pattern::new(value)) };
            operator.has_wildcards() && pattern.is_ok_and(|it| it.has_wildcards())
        };
        let patterns: Vec<String> =
            it.values.iter().filter(has_wildcards).map(|it| format!("{it:?}")).collect();
        if patterns.is_empty() {
            return Limit::Exact;
        }
        wild.extend(patterns);
    }
    if wild.is_empty() { Limit::Nothing } else { Limit::Wild(wild) }
}
