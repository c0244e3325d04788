//! Which component serves an add-on, in every situation.

use serde_json::json;

use super::*;

fn component(version: &str) -> Component {
    Component { version: version.into(), digest: format!("sha256:{version}") }
}

fn installed(version: &str) -> Inventory {
    let record = json!({"module": "calico", "version": version, "digest": format!("sha256:{version}"), "config": {},
        "planHash": "", "complete": true, "objects": [], "removal": [], "storedPlan": "0"});
    Inventory { standing: Standing::Proven, ..serde_json::from_value(record).expect("a record") }
}

fn decided(installed: Option<&Inventory>, consent: &Consent, stored: Stored) -> Server {
    let brought = component("2");
    Situation { module: "calico", installed, brought: &brought, consent, stored, overdue: None }.server()
}

fn pinned(version: &str) -> Consent {
    Consent { pin: Some(version.into()), ..Consent::default() }
}

#[test]
fn what_is_installed_is_served_by_what_installed_it() {
    let none = Consent::default();
    assert_eq!(decided(Some(&installed("1")), &none, Stored::Available), Server::Installed);
    assert_eq!(decided(Some(&installed("2")), &none, Stored::Missing), Server::Brought);
    assert_eq!(decided(None, &none, Stored::Missing), Server::Brought);
}

#[test]
fn another_build_of_the_same_version_is_no_less_another() {
    let rebuilt = Inventory { digest: "sha256:other".into(), ..installed("2") };
    assert_eq!(decided(Some(&rebuilt), &Consent::default(), Stored::Available), Server::Installed);
    assert_eq!(decided(Some(&rebuilt), &pinned("2"), Stored::Available), Server::Installed);
    let named = Consent { digest: Some("sha256:2".into()), ..pinned("2") };
    assert_eq!(decided(Some(&rebuilt), &named, Stored::Available), Server::Upgrade);
}

#[test]
fn consent_is_a_pin_a_policy_or_an_annotation_that_names_the_digest() {
    let annotated = |digest: &str| Consent { digest: Some(digest.into()), ..Consent::default() };
    for (consent, is_upgraded) in [
        (pinned("2"), true),
        (pinned("1"), false),
        (Consent { automatic: true, ..Consent::default() }, true),
        (Consent { automatic: true, ..pinned("1") }, false),
        (annotated("sha256:2"), true),
        (annotated("sha256:3"), false),
        (Consent { digest: Some("sha256:2".into()), ..pinned("1") }, false),
    ] {
        let expected = if is_upgraded { Server::Upgrade } else { Server::Installed };
        assert_eq!(decided(Some(&installed("1")), &consent, Stored::Available), expected, "{consent:?}");
    }
}

#[test]
fn a_version_that_nobody_has_is_refused_with_those_that_there_are() {
    let text = |found| match found {
        Server::Unavailable(message) => message,
        other => format!("{other:?}"),
    };
    expect_test::expect![
        "version 3 is not available: set 1, which is installed, or 2, which this operator brings"
    ]
    .assert_eq(&text(decided(Some(&installed("1")), &pinned("3"), Stored::Available)));
    expect_test::expect!["version 3 is not available: set 2, which this operator brings"]
        .assert_eq(&text(decided(None, &pinned("3"), Stored::Missing)));
}

#[test]
fn without_its_component_an_add_on_is_left_as_it_is_and_says_why() {
    let text = |stored| match decided(Some(&installed("1")), &Consent::default(), stored) {
        Server::Nothing(message) => message,
        other => format!("{other:?}"),
    };
    expect_test::expect!["version 1 is installed and stays, and this operator brings 2: the component that installed it is not stored in the cluster, so changed settings are not applied, what is changed or removed in the cluster is not repaired, and certificates are not renewed, until it is upgraded: to upgrade, annotate this ClusterPlugin with cluster.kurator.dev/upgrade=calico@sha256:2, or set the add-on's version to 2"]
        .assert_eq(&text(Stored::Missing));
    assert!(text(Stored::Damaged).contains("is not the one that installed it"));
    assert!(text(Stored::Unrecognized).contains("does not know the component"));
    let Server::Nothing(pinned) = decided(Some(&installed("1")), &pinned("1"), Stored::Missing) else {
        panic!("it is served");
    };
    assert!(pinned.ends_with("to upgrade, set the add-on's version to 2"), "{pinned}");
    let forged = Inventory { standing: Standing::Unknown, ..installed("1") };
    assert!(matches!(decided(Some(&forged), &Consent::default(), Stored::Available), Server::Nothing(_)));
}

#[test]
fn an_installation_that_was_never_whole_goes_on() {
    let begun = Inventory { complete: false, stored_plan: None, ..installed("1") };
    assert_eq!(decided(Some(&begun), &Consent::default(), Stored::Missing), Server::Brought);
    let changing = Inventory { complete: false, ..installed("1") };
    assert_eq!(decided(Some(&changing), &Consent::default(), Stored::Available), Server::Installed);
}

#[test]
fn an_earlier_record_that_was_being_changed_is_left_too() {
    let none = Consent::default();
    let marks = vec!["mark".to_owned()];
    let changing = Inventory {
        complete: false,
        stored_plan: None,
        plan_hash: "a".into(),
        marks: marks.clone(),
        ..installed("1")
    };
    assert!(matches!(decided(Some(&changing), &none, Stored::Missing), Server::Nothing(_)));
    let uninstalling = Inventory { plan_hash: String::new(), ..changing };
    assert_eq!(decided(Some(&uninstalling), &none, Stored::Missing), Server::Brought, "asked for again");
}

/// The record of an upgrade from version 1 to this version.
fn upgrading(version: &str) -> Inventory {
    let begun = Inventory { complete: false, stored_plan: None, ..installed(version) };
    let succession = installed("1").succession(&begun.digest, None, 10.0);
    Inventory { previous: succession.previous, ..begun }
}

#[test]
fn an_upgrade_that_another_operator_finds_is_undone() {
    let begun = upgrading("1.5");
    assert_eq!(served_by(Some(&begun), &component("2")), Some("sha256:1"));
    assert_eq!(served_by(Some(&begun), &component("1")), None, "it is what this operator brings");
    assert_eq!(served_by(Some(&begun), &component("1.5")), None, "it goes on");
    let decided = |brought: &str, consent: &Consent| {
        let brought = component(brought);
        let (installed, stored) = (Some(&begun), Stored::Available);
        Situation { module: "calico", installed, brought: &brought, consent, stored, overdue: None }.server()
    };
    let none = Consent::default();
    assert!(matches!(decided("2", &none), Server::Undo(_)));
    assert!(matches!(decided("1", &none), Server::Undo(_)));
    assert_eq!(decided("1.5", &none), Server::Brought);
    assert_eq!(decided("2", &Consent { automatic: true, ..none }), Server::Upgrade);
    let forged = Inventory { standing: Standing::Unknown, ..begun.clone() };
    assert!(!matches!(self::decided(Some(&forged), &Consent::default(), Stored::Missing), Server::Undo(_)));
}

#[test]
fn an_upgrade_is_undone_when_late_or_pinned_back() {
    let decided = |installed: &Inventory, consent: &Consent, overdue: Option<&str>| {
        let (brought, installed, stored) = (component("2"), Some(installed), Stored::Available);
        Situation { module: "calico", installed, brought: &brought, consent, stored, overdue }.server()
    };
    let (none, begun) = (Consent::default(), upgrading("2"));
    assert_eq!(decided(&begun, &none, None), Server::Brought);
    assert_eq!(decided(&begun, &none, Some("DaemonSet a")), Server::Undo("DaemonSet a".into()));
    assert!(matches!(decided(&begun, &pinned("1"), None), Server::Undo(_)));
    assert_eq!(decided(&begun, &pinned("2"), None), Server::Brought);
    let without = Inventory { previous: None, ..begun.clone() };
    assert_eq!(decided(&without, &none, Some("DaemonSet a")), Server::Brought, "nothing is stored");

    let succession = begun.succession("sha256:1", Some("DaemonSet a"), 20.0);
    let back = Inventory {
        complete: false,
        stored_plan: succession.stored_plan,
        undone: succession.undone,
        ..installed("1")
    };
    let automatic = Consent { automatic: true, ..Consent::default() };
    let named = Consent { digest: Some("sha256:2".into()), ..Consent::default() };
    assert_eq!(decided(&back, &automatic, None), Server::Undo("DaemonSet a".into()), "it is finished");
    assert_eq!(decided(&back, &named, None), Server::Upgrade);
    let undone = back.undone.clone().map(|undone| UndoneUpgrade { is_complete: true, ..undone });
    let after = Inventory { complete: true, undone, ..back };
    for consent in [&automatic, &pinned("2"), &none] {
        assert_eq!(decided(&after, consent, None), Server::Installed, "{consent:?}: not tried again");
    }
    assert_eq!(decided(&after, &named, None), Server::Upgrade);
    expect_test::expect!["the upgrade to 2 (sha256:2) was not whole in time and was undone; it awaited: DaemonSet a; it is not tried again until it is asked for: annotate this ClusterPlugin with cluster.kurator.dev/upgrade=calico@sha256:2"]
        .assert_eq(&undone_text(&after));
}

fn undone_text(record: &Inventory) -> String {
    record.undone.as_ref().map(|it| undone("calico", it)).unwrap_or_default()
}
