//! What the functions for authors make is what the host reads.

use contract::{FieldWaitSpec, Query};
use plugin_sdk::steps::{FieldCondition, Object, wait_for_fields};
use plugin_sdk::{Need, queries};

#[test]
fn questions_are_queries() {
    let objects = queries::Objects {
        api_version: "apps/v1",
        kind: "Deployment",
        namespace: Some("shop"),
        name: None,
        labels: &[("app", "web")],
        fields: &["/status/replicas"],
        limit: 10,
    };
    let all: [Need; 6] = [
        queries::objects("a", &objects),
        queries::objects("b", &queries::Objects { name: Some("web"), labels: &[], ..objects.clone() }),
        queries::nodes("c"),
        queries::apis("d", &["apps"]),
        queries::own_objects("e", &["Deployment"], &["/status"]),
        queries::outputs("f", "metrics"),
    ];
    for need in &all {
        let read = Query::read(&need.query);
        assert!(read.is_ok(), "{}: {read:?}", need.key);
    }
    let kinds: std::collections::BTreeSet<&str> =
        all.iter().filter_map(|it| Query::read(&it.query).ok()).map(|it| it.kind()).collect();
    assert_eq!(kinds, Query::KINDS.into());
}

#[test]
fn waits_for_fields_are_steps() {
    let object =
        Object { api_version: "example.com/v1", kind: "Database", namespace: Some("shop"), name: "a" };
    let conditions = vec![
        FieldCondition::exists("/status"),
        FieldCondition::not_exists("/metadata/deletionTimestamp"),
        FieldCondition::equals("/status/conditions/[type=Ready]/status", "True"),
        FieldCondition::not_equals("/status/phase", "Failed"),
        FieldCondition::is_in("/status/phase", &["Ready", "Running"]),
        FieldCondition::not_below("/status/observedGeneration", "/metadata/generation"),
        FieldCondition::at_least("/status/replicas", 1),
    ];
    let step = wait_for_fields("ready", object, conditions, 60);
    assert_eq!(step.kind, FieldWaitSpec::KIND);
    let read = contract::Step { id: step.id, kind: step.kind.to_owned(), spec: step.spec, after: step.after };
    assert!(read.typed().is_ok(), "{:?}", read.typed());
}
