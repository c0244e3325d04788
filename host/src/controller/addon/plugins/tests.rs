//! What becomes of the answers of a plugin, asked through the whole way from a configuration to a verdict.

use std::collections::BTreeSet;

use addons::Inventory;
use contract::Operation;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use serde_json::Value;

use super::guest::{Guest, PLACE, cluster, desired, facts, plugins};
use super::loaded::request;
use super::*;
use crate::controller::addon::queries::Queries;

/// What is said of an add-on with this configuration whose plugin is this guest, and its outputs.
async fn said(guest: &Guest<'_>, config: Value) -> String {
    let (plugins, cluster, desired) = (plugins(guest), cluster(), desired(config));
    let Ok(loaded) = plugins.brought(&desired).await else { panic!("it can be loaded") };
    match plugins.ask(&loaded, &desired, &facts(&cluster), Ok(None)).await.verdict {
        Verdict::Plan(plan, _) => format!("a plan, {}", plan.extra),
        Verdict::Refused(reason, message) => format!("{reason}: {message}"),
        Verdict::Pending(message) => format!("waits: {message}"),
        Verdict::Left(_, message) | Verdict::Unsupported(message) => message,
    }
}

#[tokio::test]
async fn a_configuration_that_the_schema_refuses_reaches_no_plugin() {
    let schema = json!({"type": "object", "additionalProperties": false,
        "properties": {"replicas": {"type": "integer", "maximum": 9}}});
    let guest = Guest { schema, validate: "(unreachable)", ..Guest::default() };
    expect_test::expect![
        "InvalidConfiguration: spec.storage.ebs.replicas: 10 is greater than the maximum of 9"
    ]
    .assert_eq(&said(&guest, json!({"replicas": 10})).await);
    let trapped = said(&guest, json!({"replicas": 9})).await;
    assert!(trapped.starts_with("PluginTrapped: "), "{trapped}");
    let none = Guest { schema: json!({"type": 1}), ..Guest::default() };
    let Err(Verdict::Refused(reason, _)) = plugins(&none).brought(&desired(json!({}))).await else {
        panic!("it is none")
    };
    assert_eq!(reason, "InvalidConfigSchema");
}

#[tokio::test]
async fn a_configuration_that_the_plugin_refuses_is_not_planned() {
    let guest = Guest { validate: "(i32.const 1)", plan: "(unreachable)", ..Guest::default() };
    expect_test::expect!["InvalidConfiguration: spec.storage.ebs.replicas: that is too many"]
        .assert_eq(&said(&guest, json!({"replicas": 10})).await);
}

#[tokio::test]
async fn the_same_question_is_checked_once() {
    let guest = Guest::default();
    let (plugins, cluster, desired) = (plugins(&guest), cluster(), desired(json!({})));
    let Ok(loaded) = plugins.brought(&desired).await else { panic!("it can be loaded") };
    for _ in 0..3 {
        let answer = plugins.ask(&loaded, &desired, &facts(&cluster), Ok(None)).await;
        assert!(matches!(answer.verdict, Verdict::Plan(..)));
    }
    assert_eq!(plugins.checked.len(), 1);
    let other = DesiredAddOn { config: json!({"a": 1}), ..desired };
    plugins.ask(&loaded, &other, &facts(&cluster), Ok(None)).await;
    assert_eq!(plugins.checked.len(), 2);
}

#[tokio::test]
async fn a_plugin_is_asked_again_with_what_it_asked_for() {
    let ask = "(if (result i32) (i32.eq (local.get $facts) (i32.const 4)) (then (call $needs (i32.const 0))) (else (call $complete)))";
    let guest = Guest { plan: ask, ..Guest::default() };
    expect_test::expect![[r#"a plan, {"outputs":{"endpoint":"https://example.com"}}"#]]
        .assert_eq(&said(&guest, json!({})).await);
}

#[tokio::test]
async fn a_plugin_that_never_stops_asking_is_stopped() {
    let same = Guest { plan: "(call $needs (i32.const 0))", ..Guest::default() };
    expect_test::expect![[
        r#"NeedsRepeated: plugin aws-ebs-csi asks for "answer-a" again, which it was told"#
    ]]
    .assert_eq(&said(&same, json!({})).await);
    let more = Guest { plan: "(call $needs (local.get $facts))", ..Guest::default() };
    expect_test::expect!["NeedsUnresolved: plugin aws-ebs-csi still asks for answer-j after 5 answers"]
        .assert_eq(&said(&more, json!({})).await);
    let query = json!({"kind": "k8s.nodes/v9", "spec": {}});
    let unknown = Guest { plan: "(call $needs (i32.const 0))", query, ..Guest::default() };
    assert!(said(&unknown, json!({})).await.starts_with("NeedsDenied: "));
    let query = json!({"kind": "k8s.nodes/v1", "spec": {"all": true}});
    let none = Guest { plan: "(call $needs (i32.const 0))", query, ..Guest::default() };
    assert!(said(&none, json!({})).await.starts_with("NeedsInvalid: "));
}

fn record(digest: &str, config: Value) -> Inventory {
    let value = json!({"module": PLACE, "version": "1", "digest": digest, "config": config, "planHash": "a",
        "complete": true, "objects": [], "removal": []});
    serde_json::from_value(value).expect("a record")
}

/// The record while its plan is being carried out.
fn begun(digest: &str) -> Inventory {
    Inventory { complete: false, ..record(digest, json!({})) }
}

#[test]
fn what_is_being_replaced_is_what_was_carried_out_last() {
    let previous = json!({"version": "0", "digest": "sha256:0", "config": {"a": 1}, "since": 100.0});
    let upgraded = Inventory {
        previous: serde_json::from_value(previous).expect("a component"),
        standing: addons::Standing::Proven,
        stored_plan: Some("a".into()),
        ..begun("sha256:1")
    };
    let (cluster, desired) = (cluster(), desired(json!({})));
    let asked = |digest: &str| {
        let request = request(&desired, &facts(&cluster), digest, Ok(Some(&upgraded)));
        (request.operation, request.installed_version, request.previous_config)
    };
    let expected = (Operation::Upgrade, Some("0".to_owned()), Some(json!({"a": 1})));
    assert_eq!(asked("sha256:1"), expected);
}

/// What a plugin that is going wants to be removed, or why its answer does not count.
async fn removal(guest: &Guest<'_>, operation: Operation) -> String {
    let (plugins, cluster, desired) = (plugins(guest), cluster(), desired(json!({})));
    let Ok(loaded) = plugins.brought(&desired).await else { panic!("it can be loaded") };
    let record = record(&loaded.component.digest, json!({}));
    match plugins.ask_to_remove(&loaded, &desired, &facts(&cluster), &record, operation).await {
        Ok(plan) => plan.removal.iter().map(|it| format!("{} {}", it.kind, it.spec["name"])).collect(),
        Err(why) => why,
    }
}

#[tokio::test]
async fn a_plugin_that_is_going_says_what_is_removed() {
    let delete = |name: &str| json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "kube-system", "name": name, "wait": true});
    // Each operation but the one that is meant traps.
    let of = |number: u8| {
        format!(
            "(if (result i32) (i32.eq (local.get $operation) (i32.const {number})) (then (call $complete)) (else (unreachable)))"
        )
    };
    for (operation, number) in [(Operation::Uninstall, 2), (Operation::DeleteCluster, 3)] {
        let plan = of(number);
        let guest = Guest {
            plan: &plan,
            removal: Some(("k8s.delete/v1", delete("ebs-csi-node"))),
            ..Guest::default()
        };
        assert_eq!(removal(&guest, operation).await, "k8s.delete/v1 \"ebs-csi-node\"");
    }
    let guest = |plan, removal| Guest { plan, removal, ..Guest::default() };
    let others = guest("(call $complete)", Some(("k8s.delete/v1", delete("kube-proxy"))));
    expect_test::expect![[
        r#"step "gone": DaemonSet kube-proxy of apps/v1 in namespace kube-system is not granted"#
    ]]
    .assert_eq(&removal(&others, Operation::Uninstall).await);
    let applies = guest("(call $complete)", Some(("k8s.apply/v1", json!({"objects": []}))));
    assert!(removal(&applies, Operation::Uninstall).await.contains("a removal deletes and waits"));
    assert_eq!(
        removal(&guest("(call $needs (i32.const 0))", None), Operation::Uninstall).await,
        "its plugin asks for more"
    );
    assert!(removal(&guest("(unreachable)", None), Operation::DeleteCluster).await.contains("trapped"));
}

#[tokio::test]
async fn another_component_or_configuration_is_an_upgrade() {
    // Traps unless it is asked for an upgrade.
    let plan = "(if (result i32) (i32.eq (local.get $operation) (i32.const 1)) (then (call $complete)) (else (unreachable)))";
    let guest = Guest { plan, ..Guest::default() };
    let (cluster, desired) = (cluster(), desired(json!({})));
    let Ok(loaded) = plugins(&guest).brought(&desired).await else { panic!("it can be loaded") };
    let this = loaded.component.digest.as_str();
    for (installed, is_upgrade) in [
        (None, false),
        (Some(record(this, json!({}))), false),
        (Some(record("sha256:0", json!({}))), true),
        (Some(record(this, json!({"a": 1}))), true),
        (Some(Inventory { stored_plan: Some("a".into()), ..begun(this) }), true),
        (Some(begun(this)), false),
        (Some(Inventory { plan_hash: String::new(), stored_plan: Some("a".into()), ..begun(this) }), false),
    ] {
        // One that trapped before is not asked again at once.
        let answer = plugins(&guest).ask(&loaded, &desired, &facts(&cluster), Ok(installed.as_ref())).await;
        assert_eq!(matches!(answer.verdict, Verdict::Plan(..)), is_upgrade, "{installed:?}");
    }
}

#[tokio::test]
async fn a_plugin_is_asked_for_the_version_that_is_wanted() {
    let cluster: Cluster =
        serde_json::from_value(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "one", "namespace": "default"}, "spec": {}}))
        .expect("a Cluster");
    let control_plane: KubeadmControlPlane = serde_json::from_value(
        json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
        "metadata": {"name": "one"}, "spec": {"version": "v1.36.0"}}),
    )
    .expect("a KubeadmControlPlane");
    let facts = ClusterFacts {
        cluster: &cluster,
        control_plane: Some(&control_plane),
        aws_cluster: None,
        requested: [(API_SERVER_VERSION, FactValue::Present(json!("v1.35.2")))].into(),
        profiles: Err("no matter".into()),
        queries: Queries::unanswered("nobody is asked"),
    };
    let spec = json!({"clusterName": "one", "cloudProvider": {"aws": {}}});
    let desired = addons::desired(&serde_json::from_value(spec).expect("a spec")).remove(0);
    let plugins = Plugins::load(PluginCalls::default(), None, None).expect("the built-in plugins");
    let Ok(loaded) = plugins.brought(&desired).await else { panic!("it is built in") };
    for (version, expected) in
        [(None, ":v1.35."), (Some("v1.36.3"), ":v1.36."), (Some("v1.34.0"), ":v1.34."), (Some("v1.37.0"), "")]
    {
        match plugins.ask_for(&loaded, &desired, &facts, Ok(None), version).await {
            Verdict::Plan(plan, _) => {
                let text = json!(plan.steps).to_string();
                assert!(!expected.is_empty() && text.contains(expected), "{version:?}: {text}");
            }
            Verdict::Unsupported(message) => {
                assert!(expected.is_empty() && message.contains("v1.37.0"), "{version:?}: {message}");
            }
            _ => panic!("{version:?} has no plan"),
        }
    }
}

#[test]
fn what_goes_wrong_with_a_plugin_has_a_documented_reason() {
    let documented: BTreeSet<&str> =
        crds::conditions::reason::ALL.iter().map(|(reason, _)| *reason).collect();
    let source = include_str!("../../../../plugin/src/error.rs");
    let reasons: Vec<&str> =
        source.lines().filter_map(|line| line.trim().split_once("=> \"")?.1.strip_suffix("\",")).collect();
    assert!(reasons.len() > 15, "{reasons:?}");
    let missing: Vec<&&str> = reasons.iter().filter(|reason| !documented.contains(**reason)).collect();
    assert!(missing.is_empty(), "not in crds/src/conditions.rs: {missing:?}");
}
