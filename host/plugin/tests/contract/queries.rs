//! Queries, their answers and outputs: the published JSON Schemas and the host's types say the same.

use contract::{ApiAnswer, NodesAnswer, OwnObjectAnswer, Query, outputs};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::accepts;

fn query(kind: &str, good: &[Value], bad: &[Value]) {
    let file = format!("queries/{}.json", kind.replace('/', "."));
    for (values, expected) in [(good, true), (bad, false)] {
        for spec in values {
            let read = Query::read(&json!({ "kind": kind, "spec": spec }));
            assert_eq!(read.is_ok(), expected, "the type, for {spec}: {read:?}");
            assert_eq!(accepts(&file, spec), expected, "the schema, for {spec}");
        }
    }
}

#[test]
fn queries_agree() {
    let objects = |field: &str, value: Value| {
        let mut query = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "limit": 10 });
        query[field] = value;
        query
    };
    let mut both = objects("name", json!("a"));
    both["labelSelector"] = json!({ "a": "b" });
    query(
        "k8s.objects/v1",
        &[
            objects("limit", json!(500)),
            objects("namespace", json!("kube-system")),
            objects("name", json!("a")),
            objects("labelSelector", json!({ "app.kubernetes.io/name": "x", "empty": "" })),
            objects("fields", json!(["/spec/replicas", "/metadata/labels/a~1b"])),
        ],
        &[
            both,
            json!({ "apiVersion": "apps/v1", "kind": "Deployment" }),
            objects("limit", json!(0)),
            objects("limit", json!(501)),
            objects("namespace", json!("a/b")),
            objects("name", json!("..")),
            objects("apiVersion", json!("apps/v1/x")),
            objects("labelSelector", json!({ "a": "b,c" })),
            objects("fields", json!(["spec"])),
            objects("fields", json!([""])),
            objects("fieldSelector", json!("a=b")),
        ],
    );
    query("k8s.nodes/v1", &[json!({})], &[json!({ "names": [] }), json!(1)]);
    query(
        "k8s.apis/v1",
        &[json!({}), json!({ "groups": ["", "apps"] })],
        &[json!({ "groups": ["a/b"] }), json!({ "groups": vec!["a"; 17] })],
    );
    query(
        "own-objects/v1",
        &[json!({}), json!({ "kinds": ["Deployment"], "fields": ["/status"] })],
        &[json!({ "kinds": ["a?b"] }), json!({ "fields": ["/"] }), json!({ "names": [] })],
    );
    query("outputs/v1", &[json!({ "plugin": "metrics" })], &[json!({}), json!({ "plugin": "a/b" })]);
}

#[test]
fn answers_to_queries_agree() {
    let nodes = json!({ "count": 2, "ready": 1, "architectures": { "arm64": 2 },
        "taints": [{ "key": "a", "value": "", "effect": "NoSchedule", "count": 1 }] });
    value_of::<NodesAnswer>("queries/answers/k8s.nodes.v1.json", &nodes);
    let api = json!([{ "apiVersion": "apps/v1", "kinds": ["Deployment"] }, { "apiVersion": "v1" }]);
    value_of::<Vec<ApiAnswer>>("queries/answers/k8s.apis.v1.json", &api);
    let own = json!([{ "apiVersion": "v1", "kind": "Namespace", "name": "a", "object": null }]);
    value_of::<Vec<OwnObjectAnswer>>("queries/answers/own-objects.v1.json", &own);
    assert!(accepts(
        "queries/answers/k8s.objects.v1.json",
        &json!([{ "metadata": { "name": "a" }, "spec": {} }])
    ));
    assert!(!accepts("queries/answers/k8s.objects.v1.json", &json!([{ "spec": {} }])));
    assert!(accepts("queries/answers/outputs.v1.json", &json!({ "endpoint": "a" })));
    assert!(!accepts("queries/answers/outputs.v1.json", &json!({ "endpoint": 1 })));
}

/// A value of a type without fields that may be left out of an object.
fn value_of<T: DeserializeOwned>(file: &str, good: &Value) {
    let check = |value: &Value, expected: bool| {
        assert_eq!(T::deserialize(value).is_ok(), expected, "the type, for {value}");
        assert_eq!(accepts(file, value), expected, "the schema, for {value}");
    };
    check(good, true);
    check(&json!(17), false);
    let text = good.to_string();
    check(&serde_json::from_str(&text.replacen('{', "{\"unknown\":1,", 1)).expect("JSON"), false);
}

#[test]
fn outputs_agree() {
    let check = |value: Value, expected: bool| {
        let extra = json!({ "outputs": value });
        assert_eq!(outputs(&extra).is_ok(), expected, "the type, for {extra}");
        assert_eq!(accepts("extra/plan.json", &extra), expected, "the schema, for {extra}");
    };
    check(json!({ "endpoint": "https://example.com", "a-1": "" }), true);
    for wrong in [
        json!([]),
        json!({ "A": "" }),
        json!({ "a": 1 }),
        json!({ "a": "x\ny" }),
        json!({ "a": "x".repeat(1025) }),
    ] {
        check(wrong, false);
    }
    assert!(outputs(&json!({ "later": 1 })).is_ok() && accepts("extra/plan.json", &json!({ "later": 1 })));
}
