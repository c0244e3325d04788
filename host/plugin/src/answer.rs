//! Reads what a plugin answered, strictly: text must be JSON, steps must be of kinds that the host offered
//! and of their form, ids must be unique, `after` must lead somewhere and never in a circle, and nothing may
//! be larger than people can look at. Names are plain, and messages are made fit to be shown. What the steps have to be like as a list is [`contract::order::flaw`]'s
//! to say.

use crate::bindings::kurator::cluster_plugin::types as wit;
use crate::error::PluginError;
use crate::text::{is_name, shown};
use contract::{
    AddOnPlan, CertificateSpec, Descriptor, Diagnostic, Failure, Need, Outcome, Severity, Step, StepSpec,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Steps in a list, and objects in a step.
const MOST_STEPS: usize = 512;
/// JSON values in an answer: more than the CustomResourceDefinitions of large add-ons have, and some 64 MB at
/// most once they are read.
const MOST_VALUES: usize = 100_000;
/// Diagnostics and needs in an answer.
const MOST_DIAGNOSTICS: usize = 64;
/// Bytes of a message, and of any name.
const LONGEST_MESSAGE: usize = 4096;
const LONGEST_NAME: usize = 253;

pub fn descriptor(descriptor: wit::Descriptor) -> Result<Descriptor, PluginError> {
    const FUNCTION: &str = "describe";
    for (field, text) in
        [("name", &descriptor.name), ("version", &descriptor.version), ("category", &descriptor.category)]
    {
        name(field, text)?;
    }
    few_values(FUNCTION, [&descriptor.config_schema, &descriptor.requires, &descriptor.extra])?;
    Ok(Descriptor {
        config_schema: object(FUNCTION, "config-schema", &descriptor.config_schema)?,
        requires: object(FUNCTION, "requires", &descriptor.requires)?,
        extra: object(FUNCTION, "extra", &descriptor.extra)?,
        name: descriptor.name,
        version: descriptor.version,
        category: descriptor.category,
    })
}

pub fn outcome(outcome: wit::Outcome, features: &[String]) -> Result<Outcome, PluginError> {
    Ok(match outcome {
        wit::Outcome::Complete(plan) => Outcome::Complete(add_on_plan(plan, features)?),
        wit::Outcome::Needs(needs) => Outcome::Needs(self::needs(needs)?),
        wit::Outcome::Pending(found) => Outcome::Pending(diagnostics("plan", found)?),
    })
}

pub fn failure(failure: wit::Failure) -> Result<Failure, PluginError> {
    Ok(match failure {
        wit::Failure::Invalid(found) => Failure::Invalid(diagnostics("plan", found)?),
        wit::Failure::Unsupported(found) => Failure::Unsupported(diagnostic(found)?),
        wit::Failure::Internal(message) => Failure::Internal(message_of("internal", message)?),
    })
}

pub fn diagnostics(
    function: &'static str,
    found: Vec<wit::Diagnostic>,
) -> Result<Vec<Diagnostic>, PluginError> {
    at_most(&format!("{function}: diagnostics"), found.len(), MOST_DIAGNOSTICS)?;
    found.into_iter().map(diagnostic).collect()
}

fn diagnostic(found: wit::Diagnostic) -> Result<Diagnostic, PluginError> {
    name("the code of a diagnostic", &found.code)?;
    let severity = match found.severity {
        wit::Severity::Info => Severity::Info,
        wit::Severity::Warning => Severity::Warning,
        wit::Severity::Error => Severity::Error,
    };
    let path = message_of("path", found.path)?;
    Ok(Diagnostic { severity, code: found.code, path, message: message_of("message", found.message)? })
}

fn needs(needs: Vec<wit::Need>) -> Result<Vec<Need>, PluginError> {
    at_most("needs", needs.len(), MOST_DIAGNOSTICS)?;
    few_values("plan", needs.iter().map(|need| &need.query))?;
    let need = |need: wit::Need| {
        name("the key of a need", &need.key)?;
        let query = json("plan", &format!("the query of need {:?}", need.key), &need.query)?;
        Ok(Need { key: need.key, query })
    };
    needs.into_iter().map(need).collect()
}

fn add_on_plan(plan: wit::Plan, features: &[String]) -> Result<AddOnPlan, PluginError> {
    few_values("plan", plan.steps.iter().chain(&plan.removal).map(|step| &step.spec).chain([&plan.extra]))?;
    let plan = AddOnPlan {
        steps: steps("steps", plan.steps, features)?,
        removal: steps("removal", plan.removal, features)?,
        diagnostics: diagnostics("plan", plan.diagnostics)?,
        extra: object("plan", "extra", &plan.extra)?,
    };
    contract::outputs(&plan.extra).map_err(|flaw| invalid(flaw.to_string()))?;
    Ok(plan)
}

fn steps(list: &str, steps: Vec<wit::Step>, features: &[String]) -> Result<Vec<Step>, PluginError> {
    at_most(list, steps.len(), MOST_STEPS)?;
    let steps = steps.into_iter().map(|found| step(list, found, features)).collect::<Result<Vec<_>, _>>()?;
    match contract::order::flaw(&steps).or_else(|| steps.iter().find_map(|step| ca_bundle_flaw(step, &steps)))
    {
        Some(flaw) => Err(invalid(format!("{list}: {flaw}"))),
        None => Ok(steps),
    }
}

fn step(list: &str, found: wit::Step, features: &[String]) -> Result<Step, PluginError> {
    name("the id of a step", &found.id)?;
    let spec = json("plan", &format!("the spec of step {:?}", found.id), &found.spec)?;
    at_most(&format!("{list}: what step {:?} comes after", found.id), found.after.len(), MOST_STEPS)?;
    let step = Step { id: found.id, kind: found.kind, spec, after: once_each(found.after) };
    if !features.contains(&step.kind) {
        return Err(invalid(format!(
            "{list}: step {:?} is a {:?}, which this host does not carry out",
            step.id, step.kind
        )));
    }
    let spec = step.typed().map_err(|error| {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        invalid(format!("{list}: {error}{cause}"))
    })?;
    if let StepSpec::Apply(spec) = spec {
        at_most(&format!("{list}: objects of step {:?}", step.id), spec.objects.len(), MOST_STEPS)?;
    }
    Ok(step)
}

/// A certificate authority can only be filled in when the certificate was made before.
fn ca_bundle_flaw(step: &Step, steps: &[Step]) -> Option<String> {
    let from = step.spec.get("caBundleFrom").and_then(Value::as_str)?;
    let makes_it = steps.iter().any(|other| other.id == from && other.kind == CertificateSpec::KIND);
    let problem = match (makes_it, step.after.iter().any(|id| id == from)) {
        (false, _) => "which is no tls.certificate/v1 step of the list",
        (true, false) => "but does not come after it",
        (true, true) => return None,
    };
    Some(format!("step {:?} takes its CA bundle from {from:?}, {problem}", step.id))
}

/// The first of each: to come after a step twice is to come after it, and costs whoever looks at the steps
/// again and again.
fn once_each(after: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    after.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// Refuses JSON that would take too much memory once it is read: a value of a few bytes takes a hundred times
/// as many then, and the limit of an answer's bytes knows nothing of that.
fn few_values<'a>(
    function: &'static str,
    texts: impl IntoIterator<Item = &'a String>,
) -> Result<(), PluginError> {
    if texts.into_iter().map(|text| values(text)).sum::<usize>() > MOST_VALUES {
        return Err(PluginError::TooManyValues { function, limit: MOST_VALUES });
    }
    Ok(())
}

/// How many values there are in a JSON text, empty lists and objects counted twice. In what is no JSON, at
/// least those that a parser reads before it notices.
fn values(text: &str) -> usize {
    let (mut found, mut is_string) = (1, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match (is_string, byte) {
            (true, b'\\') => {
                bytes.next();
            }
            (_, b'"') => is_string = !is_string,
            (false, b'[' | b'{' | b',') => found += 1,
            _ => (),
        }
    }
    found
}

fn json(function: &'static str, field: &str, text: &str) -> Result<Value, PluginError> {
    serde_json::from_str(text).map_err(|source| PluginError::InvalidJson {
        function,
        field: field.to_owned(),
        expected: "JSON",
        source: Some(source),
    })
}

fn object(function: &'static str, field: &str, text: &str) -> Result<Value, PluginError> {
    let value = json(function, field, text)?;
    if value.is_object() {
        return Ok(value);
    }
    Err(PluginError::InvalidJson {
        function,
        field: field.to_owned(),
        expected: "a JSON object",
        source: None,
    })
}

fn name(what: &str, text: &str) -> Result<(), PluginError> {
    if text.is_empty() || text.len() > LONGEST_NAME {
        return Err(invalid(format!("{what} has {} bytes, not 1 to {LONGEST_NAME}", text.len())));
    }
    if !is_name(text) {
        return Err(invalid(format!(
            "{what} is \"{}\"; it begins and ends with a letter or digit of ASCII, and has -, _, ., : and + \
             besides",
            text.escape_default()
        )));
    }
    Ok(())
}

fn message_of(what: &str, text: String) -> Result<String, PluginError> {
    if text.len() > LONGEST_MESSAGE {
        return Err(invalid(format!("a {what} has {} bytes, more than {LONGEST_MESSAGE}", text.len())));
    }
    Ok(shown(&text, LONGEST_MESSAGE))
}

fn at_most(what: &str, count: usize, most: usize) -> Result<(), PluginError> {
    if count > most {
        return Err(invalid(format!("{what}: {count}, more than {most}")));
    }
    Ok(())
}

fn invalid(detail: String) -> PluginError {
    PluginError::InvalidPlan { detail }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn step(id: &str, kind: &str, spec: &str, after: &[&str]) -> wit::Step {
        let after = after.iter().map(|id| (*id).to_owned()).collect();
        wit::Step { id: id.to_owned(), kind: kind.to_owned(), spec: spec.to_owned(), after }
    }

    fn apply(id: &str, after: &[&str]) -> wit::Step {
        step(id, "k8s.apply/v1", r#"{"objects":[]}"#, after)
    }

    fn check(list: Vec<wit::Step>, expected: Expect) {
        let features: Vec<String> = contract::FEATURES.iter().map(|feature| (*feature).to_owned()).collect();
        let message = match steps("steps", list, &features) {
            Ok(steps) => format!("{} steps", steps.len()),
            Err(error) => format!("{}: {error}", error.reason()),
        };
        expected.assert_eq(&message);
    }

    #[test]
    fn a_good_list_is_read() {
        check(vec![apply("a", &[]), apply("b", &["a"]), apply("c", &["a", "b"])], expect!["3 steps"]);
    }

    #[test]
    fn who_comes_after_a_step_twice_comes_after_it_once() {
        let features = ["k8s.apply/v1".to_owned()];
        let list = vec![apply("a", &[]), apply("b", &[]), apply("c", &["b", "a", "b", "a"])];
        let steps = steps("steps", list, &features).expect("it is a good list");
        assert_eq!(steps[2].after, ["b", "a"]);
    }

    #[test]
    fn values_are_counted_without_reading_them() {
        for (text, count) in [
            ("1", 1),
            (r#"{"a":1}"#, 2),
            (r#"[1, [2, 3], {"a": null, "b": {"c": true}}]"#, 9),
            (r#"{"[{,\"[,": "\\", "b": ",,,\\\"[["}"#, 3),
            ("[{}]", 3),
        ] {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
            assert_eq!(values(text), count, "{text}");
        }
    }

    #[test]
    fn small_values_are_as_many_as_large_ones() {
        let half = format!("[{}0]", "0,".repeat(MOST_VALUES / 2 - 2));
        let halves = [&half, &half].map(|text| values(text));
        assert_eq!(halves, [MOST_VALUES / 2; 2]);
        assert!(few_values("plan", [&half, &half]).is_ok());
        let error = few_values("plan", [&half, &half, &String::from("0")]).expect_err("it is one more");
        expect!["PlanTooManyValues: the answer of plan holds more than the 100000 JSON values allowed"]
            .assert_eq(&format!("{}: {error}", error.reason()));
    }

    #[test]
    fn a_bad_list_is_refused_and_the_step_is_named() {
        check(
            vec![apply("a", &[]), apply("a", &[])],
            expect![[r#"InvalidPlan: steps: the id "a" is used twice"#]],
        );
        check(
            vec![apply("a", &["b"])],
            expect![[r#"InvalidPlan: steps: step "a" comes after "b", which is not there"#]],
        );
        check(
            vec![apply("a", &["b"]), apply("b", &["a"]), apply("c", &[])],
            expect![[r#"InvalidPlan: steps: step "a" comes after itself"#]],
        );
        check(vec![apply("", &[])], expect!["InvalidPlan: the id of a step has 0 bytes, not 1 to 253"]);
        check(
            (0..513).map(|n| apply(&n.to_string(), &[])).collect(),
            expect!["InvalidPlan: steps: 513, more than 512"],
        );
        check(
            vec![step("a", "aws.bucket/v1", "{}", &[])],
            expect![[
                r#"InvalidPlan: steps: step "a" is a "aws.bucket/v1", which this host does not carry out"#
            ]],
        );
        check(
            vec![step("a", "k8s.apply/v1", r#"{"objects":[],"force":true}"#, &[])],
            expect![[
                r#"InvalidPlan: steps: step "a": spec is not a k8s.apply/v1: unknown field `force`, expected one of `objects`, `prune`, `caBundleFrom`"#
            ]],
        );
        check(
            vec![step("a", "k8s.apply/v1", r#"{"objects":[{"apiVersion":"v1"}]}"#, &[])],
            expect![[r#"InvalidPlan: steps: step "a": objects/0 has no /kind"#]],
        );
        check(
            vec![step("a", "k8s.apply/v1", "{} {}", &[])],
            expect![[r#"PluginInvalidJSON: the spec of step "a" in the answer of plan is not JSON"#]],
        );
    }

    #[test]
    fn a_ca_bundle_comes_from_a_certificate_that_was_made_before() {
        let features: Vec<String> = ["k8s.apply/v1", "tls.certificate/v1"].map(str::to_owned).into();
        let certificate =
            || step("cert", "tls.certificate/v1", r#"{"namespace":"n","secretName":"s","dnsNames":[]}"#, &[]);
        let hooks = |from: &str, after: &[&str]| {
            step("hooks", "k8s.apply/v1", &format!(r#"{{"objects":[],"caBundleFrom":{from:?}}}"#), after)
        };
        let found = |list| {
            steps("steps", list, &features).map(|steps| steps.len()).map_err(|error| error.to_string())
        };
        assert_eq!(found(vec![certificate(), hooks("cert", &["cert"])]), Ok(2));
        expect![[r#"steps: step "hooks" takes its CA bundle from "cert", but does not come after it"#]]
            .assert_eq(&found(vec![certificate(), hooks("cert", &[])]).unwrap_err());
        expect![[r#"steps: step "hooks" takes its CA bundle from "a", which is no tls.certificate/v1 step of the list"#]]
            .assert_eq(&found(vec![apply("a", &[]), hooks("a", &["a"])]).unwrap_err());
    }

    #[test]
    fn extra_must_be_an_object() {
        assert!(object("plan", "extra", "{}").is_ok());
        assert_eq!(object("plan", "extra", "[]").map_err(|error| error.reason()), Err("PluginInvalidJSON"));
    }
}
