//! What plugins are told of Nodes that ask for them.

use std::collections::BTreeMap;

use contract::{NodesAnswer, TaintAnswer};
use serde_json::Value;

/// The parts of a Node that are read for it.
pub const NODES_PARTS: [&str; 4] =
    ["/metadata/name", "/spec/taints", "/status/nodeInfo/architecture", "/status/conditions"];
/// Different architectures and taints that are told.
const MOST: usize = 64;
/// Bytes of a text of the cluster's.
const LONGEST: usize = 316;

/// The answer about these Nodes; `None` when they are of more sorts than are told.
pub fn nodes_answer(nodes: &[Value]) -> Option<NodesAnswer> {
    let mut res = NodesAnswer::default();
    let mut taints: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    for node in nodes {
        res.count += 1;
        res.ready += u32::from(is_ready(node));
        let architecture = text(node.pointer("/status/nodeInfo/architecture"))?;
        *res.architectures.entry(architecture).or_default() += 1;
        let all = node.pointer("/spec/taints").and_then(Value::as_array);
        for taint in all.into_iter().flatten() {
            let of = |field: &str| text(taint.get(field));
            *taints.entry((of("key")?, of("value")?, of("effect")?)).or_default() += 1;
        }
        if res.architectures.len() > MOST || taints.len() > MOST {
            return None;
        }
    }
    let taint = |((key, value, effect), count)| TaintAnswer { key, value, effect, count };
    res.taints = taints.into_iter().map(taint).collect();
    Some(res)
}

/// `None` when it is longer than it can be.
fn text(value: Option<&Value>) -> Option<String> {
    let text = value.and_then(Value::as_str).unwrap_or_default();
    (text.len() <= LONGEST).then(|| text.to_owned())
}

fn is_ready(node: &Value) -> bool {
    let all = node.pointer("/status/conditions").and_then(Value::as_array);
    all.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(architecture: &str, ready: &str, taints: Value) -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"taints": taints}, "status": {
            "nodeInfo": {"architecture": architecture}, "conditions": [{"type": "Ready", "status": ready}]}})
    }

    #[test]
    fn nodes_are_counted_by_architecture_and_taint() {
        let control_plane = json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
        let all = [
            node("arm64", "True", control_plane),
            node("amd64", "True", json!([])),
            node("amd64", "Unknown", json!([{"key": "a", "value": "b", "effect": "NoExecute"}])),
        ];
        expect_test::expect![[
            r#"{"count":3,"ready":2,"architectures":{"amd64":2,"arm64":1},"taints":[{"key":"a","value":"b","effect":"NoExecute","count":1},{"key":"node-role.kubernetes.io/control-plane","value":"","effect":"NoSchedule","count":1}]}"#
        ]]
        .assert_eq(&serde_json::to_string(&nodes_answer(&all)).expect("an answer"));
        assert_eq!(nodes_answer(&[]), Some(NodesAnswer::default()));
    }

    #[test]
    fn more_sorts_than_are_told_are_no_answer() {
        let many: Vec<Value> = (0..=MOST).map(|it| node(&it.to_string(), "True", json!([]))).collect();
        assert_eq!(nodes_answer(&many), None);
        let taints: Vec<Value> =
            (0..=MOST).map(|it| json!({"key": it.to_string(), "effect": "NoSchedule"})).collect();
        assert_eq!(nodes_answer(&[node("arm64", "True", json!(taints))]), None);
        assert_eq!(nodes_answer(&[node(&"a".repeat(LONGEST + 1), "True", json!([]))]), None);
    }
}
