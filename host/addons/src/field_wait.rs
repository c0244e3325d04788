//! Whether the fields of an object fulfil what a `k8s.wait/v2` waits for.

use contract::{FieldCondition, FieldWaitSpec, Operator, Segment, segments};
use serde_json::Value;

/// Elements of a list among which one is chosen.
const ELEMENTS: usize = 1000;

/// Whether such a wait is over; if not, what it is waiting for. `live` is the object as the API server shows it,
/// `None` when it, or its kind, is not there. Nothing that the object holds is in the words.
///
/// # Errors
/// It is not over.
pub fn waited_for_fields(spec: &FieldWaitSpec, live: Option<&Value>) -> Result<(), String> {
    let subject = match &spec.namespace {
        Some(namespace) => format!("{} {namespace}/{}", spec.kind, spec.name),
        None => format!("{} {}", spec.kind, spec.name),
    };
    let Some(live) = live else { return Err(format!("{subject} is not there yet")) };
    match spec.conditions.iter().find(|condition| !holds(condition, live)) {
        None => Ok(()),
        Some(condition) => Err(format!("{subject}: {} {}", condition.path, wanted(condition))),
    }
}

fn holds(condition: &FieldCondition, live: &Value) -> bool {
    let found = at(live, &condition.path);
    let other = match (&condition.value, &condition.value_from) {
        (Some(value), _) => Some(value),
        (None, Some(path)) => at(live, path),
        (None, None) => None,
    };
    match (condition.operator, found, other) {
        (Operator::Exists, found, _) => found.is_some(),
        (Operator::NotExists, found, _) => found.is_none(),
        (Operator::Equals, Some(found), Some(other)) => is_same(found, other),
        (Operator::NotEquals, Some(found), Some(other)) => !is_same(found, other),
        // With what it would be compared is not there.
        (Operator::NotEquals, None, other) => other.is_some(),
        (Operator::GreaterOrEqual, Some(found), Some(other)) => is_not_smaller(found, other),
        (Operator::In, Some(found), Some(Value::Array(all))) => all.iter().any(|it| is_same(found, it)),
        _ => false,
    }
}

/// What is at a path; null is nothing.
fn at<'a>(live: &'a Value, path: &str) -> Option<&'a Value> {
    let found = segments(path)?.iter().try_fold(live, |place, segment| match segment {
        Segment::Field(name) => place.as_object()?.get(name),
        Segment::Element { key, value } => {
            place.as_array()?.iter().take(ELEMENTS).find(|it| it[key.as_str()] == value.as_str())
        }
    });
    found.filter(|it| !it.is_null())
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(_), Some(_)) => is_not_smaller(one, other) && is_not_smaller(other, one),
        _ => one == other,
    }
}

/// Whole numbers are compared exactly, however large they are.
fn is_not_smaller(one: &Value, other: &Value) -> bool {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one >= other,
        _ => one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| one >= other),
    }
}

/// What is awaited of a field, in words.
fn wanted(condition: &FieldCondition) -> String {
    let other = match (&condition.value, &condition.value_from) {
        (Some(Value::Array(all)), _) => all.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        (Some(value), _) => value.to_string(),
        (None, path) => path.clone().unwrap_or_default(),
    };
    match condition.operator {
        Operator::Equals => format!("is not {other}"),
        Operator::NotEquals => format!("is {other}"),
        Operator::Exists => "is not there".to_owned(),
        Operator::NotExists => "is there".to_owned(),
        Operator::GreaterOrEqual => format!("is below {other}"),
        Operator::In => format!("is none of {other}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn waited(conditions: Value) -> Result<(), String> {
        let spec = json!({"apiVersion": "example.com/v1", "kind": "Database", "namespace": "shop", "name": "a", "conditions": conditions});
        let live = json!({"metadata": {"generation": 3, "annotations": {"a.b/c": "x"}},
            "status": {"phase": "Ready", "observedGeneration": 3, "replicas": 2, "nothing": null, "paused": false,
                "conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]}});
        waited_for_fields(&serde_json::from_value(spec).expect("a spec"), Some(&live))
    }

    fn is(path: &str, operator: &str, value: Value) -> Result<(), String> {
        let mut condition = json!({"path": path, "operator": operator});
        if !value.is_null() {
            condition["value"] = value;
        }
        waited(json!([condition]))
    }

    #[test]
    fn all_conditions_have_to_hold() {
        let ready =
            json!({"path": "/status/conditions/[type=Ready]/status", "operator": "Equals", "value": "True"});
        let current = json!({"path": "/status/observedGeneration", "operator": "GreaterOrEqual", "valueFrom": "/metadata/generation"});
        let synced =
            json!({"path": "/status/conditions/[type=Synced]/status", "operator": "Equals", "value": "True"});
        assert_eq!(waited(json!([ready, current])), Ok(()));
        expect_test::expect![[r#"Database shop/a: /status/conditions/[type=Synced]/status is not "True""#]]
            .assert_eq(&waited(json!([ready, synced, current])).unwrap_err());
    }

    #[test]
    fn each_operator_compares_what_is_there() {
        let none = Value::Null;
        for (path, operator, value, expected) in [
            ("/status/phase", "Equals", json!("Ready"), true),
            ("/status/phase", "Equals", json!("ready"), false),
            ("/status/replicas", "Equals", json!(2.0), true),
            ("/status/replicas", "Equals", json!("2"), false),
            ("/status/paused", "Equals", json!(false), true),
            ("/status/gone", "Equals", json!("x"), false),
            ("/status/phase", "NotEquals", json!("Failed"), true),
            ("/status/phase", "NotEquals", json!("Ready"), false),
            ("/status/gone", "NotEquals", json!("x"), true),
            ("/metadata/annotations/a.b~1c", "Exists", none.clone(), true),
            ("/status/nothing", "Exists", none.clone(), false),
            ("/status/nothing", "NotExists", none.clone(), true),
            ("/status/phase", "NotExists", none.clone(), false),
            ("/status/phase/deeper", "Exists", none.clone(), false),
            ("/status/replicas", "GreaterOrEqual", json!(2), true),
            ("/status/replicas", "GreaterOrEqual", json!(2.5), false),
            ("/status/phase", "GreaterOrEqual", json!(0), false),
            ("/status/phase", "In", json!(["Bound", "Ready"]), true),
            ("/status/phase", "In", json!(["Bound"]), false),
            ("/status/conditions/[type=Lost]/status", "NotExists", none.clone(), true),
        ] {
            assert_eq!(is(path, operator, value.clone()).is_ok(), expected, "{path} {operator} {value}");
        }
    }

    #[test]
    fn a_field_that_is_compared_with_nothing_fulfils_nothing() {
        for operator in ["Equals", "NotEquals", "GreaterOrEqual"] {
            let condition =
                json!({"path": "/metadata/generation", "operator": operator, "valueFrom": "/status/gone"});
            assert!(waited(json!([condition])).is_err(), "{operator}");
        }
    }

    #[test]
    fn an_object_that_is_not_there_fulfils_nothing() {
        let spec = json!({"apiVersion": "v1", "kind": "Namespace", "name": "a", "conditions": [{"path": "/status", "operator": "NotExists"}]});
        let spec: FieldWaitSpec = serde_json::from_value(spec).expect("a spec");
        assert_eq!(waited_for_fields(&spec, None).unwrap_err(), "Namespace a is not there yet");
    }
}
