//! What is granted and what is not: each rule of the judge.

mod golden;
mod kinds;
mod metadata;
mod narrowing;
mod pods;
mod rights;
mod schemas;
mod steps;
mod values;
mod volumes;
mod webhooks;

use contract::Step;
use serde_json::{Value, json};

use super::*;

/// A step that applies these objects.
fn applying(objects: Vec<Value>) -> Step {
    Step { id: "it".into(), kind: "k8s.apply/v1".into(), spec: json!({"objects": objects}), after: vec![] }
}

/// Grants as they are written, with the step kinds of objects.
fn granted(grants: Value) -> Grants {
    let grants: Grants = serde_json::from_value(grants).expect("grants");
    let steps = ["k8s.apply/v1", "k8s.wait/v1", "k8s.delete/v1"].map(str::to_owned);
    merged(&Grants { steps: steps.into(), ..Grants::default() }, &grants)
}

/// What of a step is denied, each with what would grant it.
fn denied(step: &Step, grants: &Grants) -> Vec<String> {
    let denials = authorize([step], grants);
    for denial in denials.iter().filter_map(|it| it.grant.as_ref()) {
        assert_ne!(authorize([step], &merged(grants, denial)), denials, "{denial:?} grants nothing of it");
    }
    let said = |it: &Denial| match &it.grant {
        Some(grants) => format!("{} <- {}", it.message, fragment(grants)),
        None => format!("{} <- nothing", it.message),
    };
    denials.iter().map(said).collect()
}

/// What of an object is denied.
fn denied_of(object: Value, grants: Value) -> Vec<String> {
    denied(&applying(vec![object]), &granted(grants))
}
