//! The outputs of a plan: what a plugin tells users and other plugins of what it installs. They stand in the
//! plan's `extra`, whose JSON Schema is `wit/extra/plan.json`.

use std::collections::BTreeMap;

use serde_json::Value;

/// Outputs of one plan.
const MOST: usize = 16;
/// Characters of an output's name, and of its text.
const LONGEST_NAME: usize = 63;
const LONGEST: usize = 1024;

/// Why the outputs of a plan are none. It names no text that is not fit to be shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("outputs: {0}")]
pub struct OutputFlaw(String);

/// The outputs in the `extra` of a plan, texts by their names.
///
/// # Errors
/// They are too many or too long, or cannot be shown in one line.
pub fn outputs(extra: &Value) -> Result<BTreeMap<String, String>, OutputFlaw> {
    let flaw = |what: String| Err(OutputFlaw(what));
    let all = match extra.get("outputs") {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(all)) => all,
        Some(_) => return flaw("they are no object".to_owned()),
    };
    if all.len() > MOST {
        return flaw(format!("{}, more than {MOST}", all.len()));
    }
    let mut res = BTreeMap::new();
    for (name, text) in all {
        if !is_name(name) {
            return flaw(format!("a name is not 1 to {LONGEST_NAME} lower-case letters, digits and hyphens"));
        }
        let Value::String(text) = text else { return flaw(format!("{name} is no text")) };
        if text.chars().count() > LONGEST || text.chars().any(char::is_control) {
            return flaw(format!("{name} is longer than {LONGEST} characters, or has control characters"));
        }
        res.insert(name.clone(), text.clone());
    }
    Ok(res)
}

fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_few_short_texts() {
        let good = json!({"outputs": {"endpoint": "https://metrics.example.com", "v2-port": ""}, "later": 1});
        assert_eq!(outputs(&good).map(|it| it.len()), Ok(2));
        assert_eq!(outputs(&json!({})), Ok(BTreeMap::new()));
        let many: serde_json::Map<_, _> = (0..17).map(|it| (format!("a{it}"), json!(""))).collect();
        let bad = [
            json!([]),
            json!({"A": "b"}),
            json!({"": "b"}),
            json!({"a".repeat(64): "b"}),
            json!({"a": 1}),
            json!({"a": "b\nc"}),
            json!({"a": "b\u{1b}[31m"}),
            json!({"a": "b".repeat(1025)}),
            json!(many),
        ];
        for wrong in bad {
            assert!(outputs(&json!({"outputs": wrong})).is_err(), "{wrong}");
        }
    }
}
