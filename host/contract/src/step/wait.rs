//! The step kind that waits for any object, by what its fields hold. What one costs is bounded by its size: no
//! expressions, so many paths, each so deep.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::reference;

/// Conditions of one step, and values that one of them is compared with.
const MOST: usize = 16;
/// Segments of one path.
const DEEPEST: usize = 16;
/// Characters of a path, and of a text that is compared.
const LONGEST: usize = 512;

/// `k8s.wait/v2`: an object of the workload cluster is there, and its fields fulfil all of these conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldWaitSpec {
    /// Of the object.
    pub api_version: String,
    /// Of the object.
    pub kind: String,
    /// Of the object; `None` for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Of the object.
    pub name: String,
    /// What its fields have to fulfil, all of it.
    pub conditions: Vec<FieldCondition>,
    /// Seconds after which waiting is reported as a problem. The host goes on waiting.
    #[serde(default = "ten_minutes")]
    pub timeout_seconds: u32,
}

fn ten_minutes() -> u32 {
    600
}

/// What one field has to fulfil.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FieldCondition {
    /// Where the field is: a JSON pointer in which a segment such as `[type=Ready]` is the first element of a
    /// list whose field has that value.
    pub path: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what: a list for `In`, nothing for `Exists` and `NotExists`, otherwise a text, number or boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// In place of `value`: the path of another field of the object. For `Equals`, `NotEquals` and
    /// `GreaterOrEqual`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<String>,
}

/// How a field is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The field is there and has this value.
    Equals,
    /// The field has another value, or is not there.
    NotEquals,
    /// The field is there, whatever it holds; null is nothing.
    Exists,
    /// The field is not there.
    NotExists,
    /// The field is a number that is not smaller.
    GreaterOrEqual,
    /// The field has one of these values.
    In,
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// The field of an object.
    Field(String),
    /// The first element of a list whose field `key` has this text as its value.
    Element {
        /// Name of the field.
        key: String,
        /// What it holds.
        value: String,
    },
}

impl FieldWaitSpec {
    /// Kind of the step.
    pub const KIND: &'static str = "k8s.wait/v2";

    /// JSON pointers to all that the conditions look at, up to the first list.
    pub fn parts(&self) -> Vec<String> {
        let paths = self.conditions.iter().flat_map(|it| std::iter::once(&it.path).chain(&it.value_from));
        let part = |path: &String| {
            let fields = path.split('/').skip(1).take_while(|segment| !segment.starts_with('['));
            fields.fold(String::new(), |pointer, field| format!("{pointer}/{field}"))
        };
        paths.map(part).collect()
    }

    pub(super) fn contradiction(&self) -> Option<String> {
        let count = self.conditions.len();
        reference::flaw(&self.api_version, &self.kind, self.namespace.as_deref(), &self.name)
            .or_else(|| {
                (count == 0 || count > MOST).then(|| format!("conditions are {count}, not 1 to {MOST}"))
            })
            .or_else(|| {
                let flaws = self.conditions.iter().map(FieldCondition::flaw).enumerate();
                let mut named =
                    flaws.filter_map(|(place, flaw)| Some(format!("conditions/{place}: {}", flaw?)));
                named.next()
            })
    }
}

impl FieldCondition {
    fn flaw(&self) -> Option<String> {
        use Operator::{Equals, Exists, GreaterOrEqual, In, NotEquals, NotExists};
        let paths = std::iter::once(&self.path).chain(&self.value_from);
        if let Some(wrong) = paths.into_iter().find(|path| segments(path).is_none()) {
            let shown: String = wrong.chars().take(LONGEST).collect();
            return Some(format!(
                "{shown:?} is no path of at most {DEEPEST} segments that begins with a field"
            ));
        }
        let is_fit = match (self.operator, &self.value, &self.value_from) {
            (Exists | NotExists, None, None) => true,
            (Equals | NotEquals, None, Some(_)) | (GreaterOrEqual, None, Some(_)) => true,
            (Equals | NotEquals, Some(value), None) => is_scalar(value),
            (GreaterOrEqual, Some(value), None) => value.is_number(),
            (In, Some(Value::Array(values)), None) => {
                (1..=MOST).contains(&values.len()) && values.iter().all(is_scalar)
            }
            _ => false,
        };
        (!is_fit).then(|| format!("value does not fit operator {:?}", self.operator))
    }
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::String(text) => text.chars().count() <= LONGEST,
        Value::Number(_) | Value::Bool(_) => true,
        _ => false,
    }
}

/// The steps of a path; `None` when it is none.
pub fn segments(path: &str) -> Option<Vec<Segment>> {
    let mut texts = path.split('/');
    if path.chars().count() > LONGEST || texts.next() != Some("") {
        return None;
    }
    let all: Vec<Segment> = texts.map(segment).collect::<Option<_>>()?;
    let is_field = matches!(all.first(), Some(Segment::Field(_)));
    (is_field && all.len() <= DEEPEST).then_some(all)
}

fn segment(text: &str) -> Option<Segment> {
    let plain = |text: &str| text.replace("~1", "/").replace("~0", "~");
    match text.strip_prefix('[') {
        None => (!text.is_empty()).then(|| Segment::Field(plain(text))),
        Some(rest) => {
            let (key, value) = rest.strip_suffix(']')?.split_once('=')?;
            (!key.is_empty()).then(|| Segment::Element { key: plain(key), value: plain(value) })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_through_fields_and_chosen_elements() {
        let field = |name: &str| Segment::Field(name.into());
        let ready = Segment::Element { key: "type".into(), value: "Ready".into() };
        let path = segments("/status/conditions/[type=Ready]/status");
        assert_eq!(path, Some(vec![field("status"), field("conditions"), ready, field("status")]));
        assert_eq!(segments("/a~1b/c~0d"), Some(vec![field("a/b"), field("c~d")]));
        let deep = "/a".repeat(16);
        assert!(segments(&deep).is_some() && segments(&format!("{deep}/a")).is_none());
        for none in ["", "a", "/", "/a//b", "/[a=b]", "/a/[b]", "/a/[=b]", "/a/[b=c"] {
            assert_eq!(segments(none), None, "{none}");
        }
    }

    #[test]
    fn only_what_is_looked_at_is_read() {
        let spec: FieldWaitSpec = serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod", "name": "a",
            "conditions": [
                {"path": "/status/conditions/[type=Ready]/status", "operator": "Equals", "value": "True"},
                {"path": "/status/observedGeneration", "operator": "GreaterOrEqual", "valueFrom": "/metadata/generation"}]}))
        .expect("a spec");
        assert_eq!(
            spec.parts(),
            ["/status/conditions", "/status/observedGeneration", "/metadata/generation"]
        );
        assert_eq!((spec.contradiction(), spec.timeout_seconds), (None, 600));
    }
}
