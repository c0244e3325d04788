//! Which plans wait and which may be carried out, by records and annotations.

use std::collections::BTreeSet;

use contract::Step;
use serde_json::{Value, json};

use super::*;

mod random;

const SUBJECT: Subject<'static> = Subject { namespace: "team", name: "prod", uid: "uid-1", module: "calico" };
/// Steps of each plan.
const STEPS: usize = 3;

fn step(content: Value) -> Step {
    Step { id: content.to_string(), kind: "k8s.apply/v1".into(), spec: content, after: vec![] }
}

fn plan(content: &str) -> AddOnPlan {
    let steps = (0..STEPS).map(|place| step(json!({"content": content, "place": place}))).collect();
    AddOnPlan { steps, removal: vec![], diagnostics: vec![], extra: json!({}) }
}

fn record(component: &str, plan: &AddOnPlan) -> Inventory {
    let value = json!({"module": "calico", "version": "1", "digest": component, "config": {},
        "planHash": plan_hash(plan, ""), "complete": true, "objects": [], "removal": []});
    Inventory { standing: Standing::Proven, ..serde_json::from_value(value).expect("a record") }
}

fn approved(component: &str, plan: &AddOnPlan, serial: u64) -> Inventory {
    let approved = Some(Approved { plan: plan_id(component, plan), serial });
    Inventory { approved, ..record(component, plan) }
}

fn decide(installed: Option<&Inventory>, annotation: Option<&str>, content: &str) -> Decision {
    Approvals { subject: SUBJECT, installed, stored: None, annotation }.decide("sha256:1", &plan(content))
}

fn waits(decision: Decision) -> String {
    match decision {
        Decision::Waits(digest) => digest,
        other => panic!("it does not wait: {other:?}"),
    }
}

#[test]
fn a_plan_waits_for_the_approval_that_names_it() {
    let digest = waits(decide(None, None, "a"));
    let annotation = format!("aws-ebs-csi@sha256:0, calico@{digest}");
    assert_eq!(decide(None, Some(&annotation), "a"), Decision::ApprovedNow);
    assert_ne!(waits(decide(None, Some(&annotation), "b")), digest);
    let other = format!("aws-ebs-csi@{digest}");
    assert_eq!(waits(decide(None, Some(&other), "a")), digest, "it is of another add-on");
    let begun = approved("sha256:1", &plan("a"), 1);
    assert_eq!(decide(Some(&begun), None, "a"), Decision::Approved);
    assert_eq!(SUBJECT.used(&begun), Some(digest));
}

#[test]
fn an_approval_is_of_one_object_one_component_and_one_plan() {
    let of = |subject: Subject<'_>, component: &str, plan: &AddOnPlan| {
        let approvals = Approvals { subject, installed: None, stored: None, annotation: None };
        waits(approvals.decide(component, plan))
    };
    let (first, a) = (of(SUBJECT, "sha256:1", &plan("a")), plan("a"));
    let removal = AddOnPlan { removal: vec![step(json!({}))], ..a.clone() };
    let others = [
        of(Subject { namespace: "other", ..SUBJECT }, "sha256:1", &a),
        of(Subject { name: "other", ..SUBJECT }, "sha256:1", &a),
        of(Subject { uid: "uid-2", ..SUBJECT }, "sha256:1", &a),
        of(Subject { module: "other", ..SUBJECT }, "sha256:1", &a),
        of(SUBJECT, "sha256:2", &a),
        of(SUBJECT, "sha256:1", &plan("b")),
        of(SUBJECT, "sha256:1", &removal),
    ];
    assert!(!others.contains(&first));
    assert_eq!(BTreeSet::from(others).len(), 7);
    let told = AddOnPlan { extra: json!({"a": 1}), ..a };
    assert_eq!(of(SUBJECT, "sha256:1", &told), first, "nothing of that is written");
}

#[test]
fn what_was_approved_before_needs_another_approval_after_a_change() {
    let first = waits(decide(None, None, "a"));
    let changed = approved("sha256:1", &plan("b"), 2);
    let again = waits(decide(Some(&changed), Some(&format!("calico@{first}")), "a"));
    assert_ne!(again, first);
    let uninstalling = Inventory { plan_hash: String::new(), ..approved("sha256:1", &plan("a"), 1) };
    assert_ne!(waits(decide(Some(&uninstalling), Some(&format!("calico@{first}")), "a")), first);
}

#[test]
fn what_was_carried_out_before_anybody_had_to_approve_counts() {
    let a = plan("a");
    assert_eq!(decide(Some(&record("sha256:1", &a)), None, "a"), Decision::Approved);
    waits(decide(Some(&record("sha256:2", &a)), None, "a"));
    // A bundle goes into the hash.
    let bundled = Inventory { plan_hash: plan_hash(&a, "bundle"), ..record("sha256:1", &a) };
    waits(decide(Some(&bundled), None, "a"));
    let with = |installed: &Inventory, content: &str| {
        let stored = Some(&a);
        let approvals = Approvals { subject: SUBJECT, installed: Some(installed), stored, annotation: None };
        (approvals.decide("sha256:1", &plan(content)), approvals.is_stored_approved())
    };
    assert_eq!(with(&bundled, "a"), (Decision::Approved, true));
    assert!(with(&bundled, "b").1, "it is kept while another waits");
    let changing = Inventory { complete: false, ..bundled };
    assert!(!with(&changing, "a").1, "what is stored is of before");
}

#[test]
fn a_record_that_somebody_else_may_have_written_approves_nothing() {
    for standing in [Standing::Unknown, Standing::Foreign] {
        let forged = Inventory { standing, ..approved("sha256:1", &plan("a"), 7) };
        assert_eq!(decide(Some(&forged), None, "a"), decide(None, None, "a"));
        assert_eq!(SUBJECT.used(&forged), None);
        let none = Inventory { approved: None, ..forged };
        waits(decide(Some(&none), None, "a"));
    }
}

#[test]
fn people_are_told_how_to_approve() {
    expect_test::expect!["a changed plan waits for approval, and what was approved is kept meanwhile; status.plugins[].approval has what it changes: to approve, kubectl annotate --overwrite -n team clusterplugin prod cluster.kurator.dev/approve=calico@sha256:0"]
        .assert_eq(&SUBJECT.waiting("sha256:0", Meanwhile::Kept));
}
