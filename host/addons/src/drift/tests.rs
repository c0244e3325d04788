//! What is seen of objects that somebody changed, and what is done about it; the answers of a real API server
//! are in `end-to-end/tests/repair.rs`.

use crds::cluster_plugin::Drift as Setting;
use serde_json::json;

use super::*;
use crate::ObjectRef;

const MANAGER: &str = "cluster-operator-calico";

fn entry(manager: &str, operation: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
}

fn object(uid: &str, entries: &[Value]) -> Writers {
    Writers::of(&json!({"metadata": {"uid": uid, "managedFields": entries}}))
}

/// What our last apply made ours in the examples.
fn applied() -> Value {
    json!({"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}, "f:ports": {
        "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}}}, "f:args": {}}})
}

fn ours(fields: Value) -> Value {
    entry(MANAGER, "Apply", fields)
}

/// Our fields without the one at this JSON pointer.
fn lacking(above: &str, name: &str) -> Value {
    let mut res = applied();
    res.pointer_mut(above)
        .and_then(Value::as_object_mut)
        .and_then(|it| it.remove(name))
        .expect("it was there");
    res
}

fn name() -> ObjectRef {
    ObjectRef {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("kube-system".into()),
        name: "a".into(),
    }
}

fn told(seen: Option<&Writers>) -> String {
    let before = object("1", &[ours(applied())]);
    let mark = before.mark(MANAGER);
    assert_eq!(compare(&mark, Some(&before), MANAGER), Compared::Same);
    assert_eq!(compare(&mark, seen, MANAGER), Compared::Different);
    drift(&mark, seen, Some(&before), MANAGER).told(&name())
}

#[test]
fn what_was_done_to_an_object_is_told_with_field_and_manager() {
    let by = |manager: &str, fields: Value| entry(manager, "Update", fields);
    let label = lacking("/f:metadata/f:labels", "f:app");
    let taken = json!({"f:metadata": {"f:labels": {"f:app": {}}}});
    let port = lacking("/f:spec/f:ports", "k:{\"port\":80,\"protocol\":\"TCP\"}");
    let evil = "evil\u{202e}\"\n".to_owned() + &"x".repeat(1000);
    let cases = [
        told(None),
        told(Some(&object("1", &[ours(label.clone()), by("kubectl-edit", taken.clone())]))),
        told(Some(&object(
            "1",
            &[ours(label.clone()), by("kubectl-edit", taken.clone()), by("helm", taken.clone())],
        ))),
        told(Some(&object("1", &[ours(label.clone()), entry("other", "Apply", taken.clone())]))),
        told(Some(&object("1", &[ours(port)]))),
        told(Some(&object(
            "1",
            &[ours(lacking("/f:spec", "f:args")), by("kubectl-patch", json!({"f:spec": {"f:args": {}}}))],
        ))),
        told(Some(&object("1", &[by("kubectl-replace", applied())]))),
        told(Some(&object("1", &[]))),
        told(Some(&object("2", &[by("kubectl-create", json!({}))]))),
        told(Some(&object("1", &[ours(label), by(&evil, taken)]))),
    ];
    expect_test::expect![[r#"
        Deployment kube-system/a was deleted
        .metadata.labels.app of Deployment kube-system/a was changed by "kubectl-edit"
        .metadata.labels.app of Deployment kube-system/a was changed by "helm" and "kubectl-edit"
        .metadata.labels.app of Deployment kube-system/a was changed by "other"
        .spec.ports[port=80,protocol=TCP].name, .spec.ports[port=80,protocol=TCP].port of Deployment kube-system/a was changed by somebody
        .spec.args of Deployment kube-system/a was changed by "kubectl-patch"
        .metadata.labels.app, .spec.args, .spec.ports[port=80,protocol=TCP].name and 2 more of Deployment kube-system/a was changed by "kubectl-replace"
        .metadata.labels.app, .spec.args, .spec.ports[port=80,protocol=TCP].name and 2 more of Deployment kube-system/a was changed by somebody
        Deployment kube-system/a was made anew by "kubectl-create"
        .metadata.labels.app of Deployment kube-system/a was changed by "evil?'?xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...""#]]
    .assert_eq(&cases.join("\n"));
}

#[test]
fn what_is_not_ours_may_change() {
    let mark = object("1", &[ours(applied())]).mark(MANAGER);
    let status = json!({"manager": "controller", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}});
    let other = entry("kubectl-rollout", "Update", json!({"f:spec": {"f:template": {}}}));
    assert_eq!(
        compare(&mark, Some(&object("1", &[status, ours(applied()), other])), MANAGER),
        Compared::Same
    );
    let reordered: Value = serde_json::from_str(
        r#"{"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:port": {}, "f:name": {}, ".": {}}}, "f:args": {}, "f:replicas": {}},
            "f:metadata": {"f:labels": {"f:app": {}, ".": {}}}}"#,
    )
    .unwrap();
    assert_eq!(compare(&mark, Some(&object("1", &[ours(reordered)])), MANAGER), Compared::Same);
}

#[test]
fn an_apply_in_our_name_is_seen_by_its_time() {
    let mark = object("1", &[ours(applied())]).mark(MANAGER);
    let mut later = ours(applied());
    later["time"] = "2026-01-01T00:00:01Z".into();
    assert_eq!(compare(&mark, Some(&object("1", &[later])), MANAGER), Compared::Different);
}

#[test]
fn what_an_autoscaler_sets_is_left_to_it_and_the_rest_is_not() {
    let before = object("1", &[ours(applied())]);
    let mark = before.mark(MANAGER);
    let scale = json!({"manager": "kube-controller-manager", "operation": "Update", "subresource": "scale",
        "fieldsV1": {"f:spec": {"f:replicas": {}}}});
    let scaled = object("1", &[ours(lacking("/f:spec", "f:replicas")), scale.clone()]);
    let found = drift(&mark, Some(&scaled), Some(&before), MANAGER);
    assert_eq!(found.change, Change::Scaled);
    let deployment = json!({"spec": {"replicas": 2, "args": ["a"]}});
    assert_eq!(without(&deployment, &found.left), json!({"spec": {"args": ["a"]}}));

    let mut left = lacking("/f:spec", "f:replicas");
    left["f:spec"].as_object_mut().unwrap().remove("f:args");
    let edited =
        object("1", &[ours(left), scale, entry("kubectl-edit", "Update", json!({"f:spec": {"f:args": {}}}))]);
    let found = drift(&mark, Some(&edited), Some(&before), MANAGER);
    assert_eq!(found.told(&name()), ".spec.args of Deployment kube-system/a was changed by \"kubectl-edit\"");
    assert_eq!(without(&deployment, &found.left), json!({"spec": {"args": ["a"]}}));

    let by_hand = entry("kubectl-edit", "Update", json!({"f:spec": {"f:replicas": {}}}));
    let edited = object("1", &[ours(lacking("/f:spec", "f:replicas")), by_hand]);
    assert_eq!(drift(&mark, Some(&edited), Some(&before), MANAGER).left, []);
}

#[test]
fn what_is_being_deleted_or_was_never_told_is_not_compared() {
    let deleted =
        Writers::of(&json!({"metadata": {"uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(compare("0", Some(&deleted), MANAGER), Compared::Going);
    let nothing = Writers::default().mark(MANAGER);
    assert_eq!(
        (nothing.as_str(), compare(&nothing, Some(&object("1", &[ours(applied())])), MANAGER)),
        (UNTOLD, Compared::Same)
    );
    assert_eq!(compare(UNTOLD, None, MANAGER), Compared::Different);
}

#[test]
fn where_a_dry_run_is_refused_the_last_writer_is_named_and_no_field() {
    let mark = object("1", &[ours(applied())]).mark(MANAGER);
    let mut later = entry("kubectl-edit", "Update", json!({}));
    later["time"] = "2026-01-02T00:00:00Z".into();
    let seen = object("1", &[entry("helm", "Update", json!({})), later]);
    assert_eq!(
        drift(&mark, Some(&seen), None, MANAGER).told(&name()),
        "Deployment kube-system/a was changed by \"kubectl-edit\""
    );
}

#[test]
fn sets_without_end_are_compared_and_shown_in_part() {
    let many: serde_json::Map<String, Value> =
        (0..100_000).map(|it| (format!("f:{it}"), json!({}))).collect();
    let would = object("1", &[ours(json!({"f:data": many}))]);
    let mark = would.mark(MANAGER);
    let told = drift(&mark, Some(&object("1", &[])), Some(&would), MANAGER).told(&name());
    assert_eq!(
        told,
        ".data.0, .data.1, .data.10 and many more of Deployment kube-system/a was changed by somebody"
    );
}

/// What is done from second to second while somebody changes an object, each time as this manager.
fn life(setting: Setting, seconds: u32, change: impl Fn(u32) -> Option<(Change, &'static str)>) -> String {
    let (mut history, mut res) = (History::default(), Vec::new());
    for second in 0..seconds {
        let now = 1e9 + f64::from(second);
        let Some((change, by)) = change(second) else {
            history.is_same();
            continue;
        };
        let drift = Drift { change, by: by.into(), left: vec![] };
        match history.decide(setting, &drift, now) {
            Decision::Repair => {
                history.repaired(&drift, now);
                res.push(format!("{second} repair"));
            }
            Decision::Stop if res.last().is_none_or(|it| !it.ends_with("stop")) => {
                res.push(format!("{second} stop"))
            }
            Decision::Warn if res.is_empty() => res.push(format!("{second} warn")),
            _ => (),
        }
    }
    res.join(", ")
}

fn field() -> Change {
    Change::Fields(".data.a".into())
}

#[test]
fn edits_that_come_fast_are_not_answered_one_by_one() {
    let minute = life(Setting::Correct, 3600, |second| (second < 60).then_some((field(), "kubectl")));
    assert_eq!(minute, "0 repair, 30 repair");
    let hours = life(Setting::Correct, 3 * 3600, |_| Some((field(), "kubectl")));
    assert_eq!(
        hours, "0 repair, 30 repair, 90 repair, 91 stop",
        "it stays so while the object is not as it was"
    );
    let others = life(Setting::Correct, 3600, |second| {
        Some((field(), ["a", "b", "c", "d", "e", "f", "g", "h"][second as usize % 8]))
    });
    assert!(others.matches("repair").count() <= 10, "{others}");
    let deleted = life(Setting::Correct, 3600, |_| Some((Change::Gone, "")));
    assert_eq!(
        deleted,
        "0 repair, 30 repair, 90 repair, 210 repair, 450 repair, 930 repair, 1530 repair, 2130 repair, 2730 repair, 3330 repair"
    );
}

#[test]
fn who_was_left_alone_is_not_for_ever() {
    let until = |end: u32, begin: u32| {
        life(Setting::Correct, 4000, move |second| {
            (second < end || second >= begin).then_some((field(), "kubectl"))
        })
    };
    assert_eq!(
        until(100, 2000),
        "0 repair, 30 repair, 90 repair, 91 stop, 2000 repair, 2030 repair, 2090 repair, 2091 stop"
    );
    let slowly = life(Setting::Correct, 3600, |second| (second % 700 == 0).then_some((field(), "kubectl")));
    assert_eq!(
        slowly, "0 repair, 700 repair, 1400 repair, 2100 stop, 2800 repair, 3500 repair",
        "three in an hour"
    );
    let another = life(Setting::Correct, 4000, |second| {
        Some((field(), if second < 2000 { "kubectl" } else { "helm" }))
    });
    assert_eq!(
        another,
        "0 repair, 30 repair, 90 repair, 91 stop, 2000 repair, 2240 repair, 2720 repair, 2721 stop"
    );
}

#[test]
fn what_the_api_server_refuses_is_tried_further() {
    let (mut history, mut tried) = (History::default(), Vec::new());
    let drift = Drift { change: Change::Anew, by: "kubectl".into(), left: vec![] };
    for second in 0..2000 {
        if history.decide(Setting::Correct, &drift, f64::from(second)) == Decision::Repair {
            history.repaired(&drift, f64::from(second));
            history.refused();
            tried.push(second);
        }
    }
    assert_eq!(tried, [0, 30, 90, 210, 450, 930, 1530]);
}

#[test]
fn nothing_is_set_back_where_it_is_only_to_be_said() {
    assert_eq!(life(Setting::Warn, 100, |_| Some((field(), "kubectl"))), "0 warn");
    assert_eq!(life(Setting::Off, 100, |_| Some((field(), "kubectl"))), "");
}
