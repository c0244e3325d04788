//! The merge patch (RFC 7386) that turns one JSON value into another.

use serde_json::{Map, Value};

/// What has to be sent so that `from` becomes `to`; `None`: nothing. A field that is null is taken as absent.
pub(super) fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let mut patch = Map::new();
    for (name, value) in new.iter().filter(|(_, value)| !value.is_null()) {
        match old.get(name) {
            Some(stored) => patch.extend(merge_patch(stored, value).map(|it| (name.clone(), it))),
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    let gone =
        |(name, value): &(&String, &Value)| !value.is_null() && new.get(*name).is_none_or(Value::is_null);
    patch.extend(old.iter().filter(gone).map(|(name, _)| (name.clone(), Value::Null)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_differs_is_sent_and_what_is_gone_is_removed() {
        let from = json!({"ready": true, "failureDomains": {"a": {}}, "network": {"vpc": {"id": "vpc-1"},
            "old": 1}});
        let to = json!({"ready": true, "failureDomains": [{"name": "a"}],
            "network": {"vpc": {"id": "vpc-1"}, "empty": null}});
        let expected = json!({"failureDomains": [{"name": "a"}], "network": {"old": null}});
        assert_eq!(merge_patch(&from, &to), Some(expected));
    }

    #[test]
    fn what_is_as_it_should_be_is_not_sent() {
        let stored = json!({"conditions": [{"type": "Ready"}]});
        assert_eq!(merge_patch(&stored, &stored), None);
    }

    #[test]
    fn a_value_that_is_no_object_is_replaced() {
        assert_eq!(merge_patch(&json!("nonsense"), &json!({"ready": true})), Some(json!({"ready": true})));
    }
}
