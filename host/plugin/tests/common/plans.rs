//! Plans of built-in plugins, asked for through the real host call, as text.

use super::{engine, load, request};
use contract::{AddOnPlan, Failure, Outcome, Request, Severity, Step};
use expect_test::Expect;
use plugin::{ConfigSchema, Plugin, built_in};
use serde_json::Value;
use std::fmt::Write;

pub fn plan(name: &str, request: &Request) -> Result<Outcome, Failure> {
    load(name).plan(request).expect("it answers").value
}

/// The plan for a configuration, which the host takes: it fulfils the schema and passes `validate`.
pub fn complete(name: &str, request: &Request) -> AddOnPlan {
    let schema = load(name).describe().expect("it answers").value.config_schema;
    let schema = ConfigSchema::read(&schema).expect("it is a schema");
    assert_eq!(schema.check(&request.config), [], "{name}: {}", request.config);
    let found = load(name).validate(request).expect("it answers").value;
    assert!(found.iter().all(|it| it.severity != Severity::Error), "{name}: {found:?}");
    match plan(name, request) {
        Ok(Outcome::Complete(plan)) => plan,
        other => panic!("{name} has no plan: {other:?}"),
    }
}

/// The whole plan as text.
pub fn golden(name: &str, config: Value, expected: expect_test::ExpectFile) {
    let plan = complete(name, &request(config));
    let mut text = serde_json::to_string_pretty(&plan).expect("a plan is JSON");
    text.push('\n');
    expected.assert_eq(&text);
}

/// One line per step.
pub fn outline(steps: &[Step]) -> String {
    steps.iter().fold(String::new(), |mut text, step| {
        let after =
            if step.after.is_empty() { String::new() } else { format!(" after {}", step.after.join(", ")) };
        writeln!(text, "{} ({}){after}", step.id, step.kind).expect("text grows");
        text
    })
}

pub fn refused(name: &str, request: &Request, expected: Expect) {
    let text = match plan(name, request) {
        Err(Failure::Invalid(found)) => {
            found.iter().map(|one| format!("invalid {} {}: {}\n", one.code, one.path, one.message)).collect()
        }
        Err(Failure::Unsupported(one)) => format!("unsupported {}: {}\n", one.code, one.message),
        Ok(Outcome::Pending(found)) => {
            found.iter().map(|one| format!("pending {}: {}\n", one.code, one.message)).collect()
        }
        other => panic!("expected a refusal: {other:?}"),
    };
    expected.assert_eq(&text);
}

/// Asks for the same plan a hundred times, each time of a fresh instance, and once of a plugin that was
/// compiled anew.
pub fn the_same_each_time(name: &str, request: &Request) {
    let ask = |plugin: &Plugin| {
        let answer = plugin.plan(request).expect("it answers");
        let Ok(Outcome::Complete(plan)) = answer.value else { panic!("{name} has no plan") };
        (serde_json::to_vec(&plan).expect("a plan is JSON"), answer.fuel)
    };
    let loaded = load(name);
    let first = ask(loaded);
    assert!(first.1 > 0, "{name} takes no fuel");
    for _ in 1..100 {
        assert_eq!(ask(loaded), first, "{name}");
    }
    let found = built_in().iter().find(|plugin| plugin.name == name).expect("it is built in");
    let compiled_anew = engine().load(found.name, found.bytes).expect("it is a plugin");
    assert_eq!(ask(&compiled_anew), first, "{name}, compiled anew");
}
