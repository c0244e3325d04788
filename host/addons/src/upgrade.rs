//! Which component serves an add-on: the one that installed it, until somebody consents to the one that this
//! operator brings. Nothing here reads or loads either.

use std::collections::BTreeMap;

use super::{Inventory, Standing};

/// Annotation of a ClusterPlugin with which a user consents to upgrades, such as
/// `calico@sha256:...`; several are separated by commas. An entry is removed when it was used.
pub const UPGRADE_ANNOTATION: &str = "cluster.kurator.dev/upgrade";

/// How much is shown of a version that is read from a record: whoever can write to the cluster wrote it.
const VERSION_CHARACTERS: usize = 64;

/// A component by what it says of itself and by what it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    pub version: String,
    /// `sha256:` and the hash.
    pub digest: String,
}

/// What a user says about upgrades of one add-on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// `spec.upgradePolicy` is `Automatic`.
    pub automatic: bool,
    /// `version` among the settings of the add-on.
    pub pin: Option<String>,
    /// The digest that [`UPGRADE_ANNOTATION`] names for it.
    pub digest: Option<String>,
}

/// What became of the component that installed an add-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// It is loaded, or can be.
    Available,
    /// The cluster does not have it: an operator installed the add-on that did not store components, or
    /// somebody removed it.
    Missing,
    /// What is stored is not what its digest says.
    Damaged,
    /// This operator does not know its digest, and runs nothing that it does not know.
    Unrecognized,
}

/// What serves an add-on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// The component that this operator brings: it installed the add-on, or may.
    Brought,
    /// The component that installed it.
    Installed,
    /// Nothing: the add-on is left as it is. Why.
    Nothing(String),
    /// A version is asked for that nobody has. What to do.
    Unavailable(String),
}

/// The digest of the component that has to serve an add-on unless somebody consents to the one that this
/// operator brings; `None` where that is the same, or where nothing was ever installed whole.
pub fn served_by<'a>(installed: Option<&'a Inventory>, brought: &Component) -> Option<&'a str> {
    let installed = installed.filter(|it| it.digest != brought.digest)?;
    if let Some(previous) = &installed.previous {
        return Some(previous.digest.as_str()).filter(|digest| *digest != brought.digest);
    }
    installed.was_whole().then_some(installed.digest.as_str())
}

/// Decides what serves an add-on. `stored` tells of the component that [`served_by`] names.
pub fn server(
    module: &str,
    installed: Option<&Inventory>,
    brought: &Component,
    consent: &Consent,
    stored: Stored,
) -> Server {
    let is_pinned = |version: &str| consent.pin.as_deref().is_none_or(|pin| pin == version);
    let Some(installed) = installed.filter(|it| served_by(Some(it), brought).is_some()) else {
        if is_pinned(&brought.version) {
            return Server::Brought;
        }
        return Server::Unavailable(unavailable(consent, None, brought));
    };
    if consents(&installed.version, brought, consent) {
        return Server::Brought;
    }
    if !is_pinned(&installed.version) && !is_pinned(&brought.version) {
        let message = unavailable(consent, Some(&shown(&installed.version)), brought);
        return Server::Unavailable(message);
    }
    let why = match stored {
        Stored::Available if installed.standing == Standing::Proven => return Server::Installed,
        Stored::Available => "its record was not written by this operator",
        Stored::Missing => "the component that installed it is not stored in the cluster",
        Stored::Damaged => "the component that is stored in the cluster is not the one that installed it",
        Stored::Unrecognized => "this operator does not know the component that installed it",
    };
    Server::Nothing(left_as_it_is(module, installed, brought, consent.pin.is_some(), why))
}

/// Whether somebody wants what this operator brings in place of what is installed.
fn consents(installed: &str, brought: &Component, consent: &Consent) -> bool {
    match &consent.pin {
        Some(pin) if *pin == brought.version => *pin != installed || consent.names(brought),
        Some(_) => false,
        None => consent.automatic || consent.names(brought),
    }
}

impl Consent {
    fn names(&self, brought: &Component) -> bool {
        self.digest.as_deref() == Some(brought.digest.as_str())
    }
}

/// Digests by the modules that an annotation names.
pub fn consented_digests(annotation: Option<&str>) -> BTreeMap<&str, &str> {
    let entries = annotation.unwrap_or_default().split(',');
    entries.filter_map(|entry| entry.trim().split_once('@')).collect()
}

/// The annotation without what was used: `None` where nothing was, `Some("")` where nothing remains.
pub fn unused_consent(annotation: Option<&str>, module: &str, installed: &str) -> Option<String> {
    let annotation = annotation?;
    let used = format!("{module}@{installed}");
    let entries = annotation.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let remaining: Vec<&str> = entries.filter(|entry| *entry != used).collect();
    let remaining = remaining.join(",");
    (annotation.split(',').any(|entry| entry.trim() == used)).then_some(remaining)
}

/// What is said of an add-on that is served by what installed it while this operator brings another.
pub fn available(module: &str, installed: &Inventory, brought: &Component, is_pinned: bool) -> String {
    format!(
        "{} is installed and is served by the component that installed it; this operator brings {}: {}",
        shown(&installed.version),
        other(&installed.version, brought),
        how_to(module, installed, brought, is_pinned)
    )
}

fn left_as_it_is(
    module: &str,
    installed: &Inventory,
    brought: &Component,
    is_pinned: bool,
    why: &str,
) -> String {
    format!(
        "version {} is installed and stays, and this operator brings {}: {why}, so changed settings are not applied, what is changed \
         or removed in the cluster is not repaired, and certificates are not renewed, until it is upgraded: {}",
        shown(&installed.version),
        other(&installed.version, brought),
        how_to(module, installed, brought, is_pinned)
    )
}

fn unavailable(consent: &Consent, installed: Option<&str>, brought: &Component) -> String {
    let pin: String = consent.pin.iter().map(|pin| shown(pin)).collect();
    let installed =
        installed.map(|version| format!("{version}, which is installed, or ")).unwrap_or_default();
    format!("version {pin} is not available: set {installed}{}, which this operator brings", brought.version)
}

fn other(installed: &str, brought: &Component) -> String {
    if installed == brought.version {
        return "another build of it".to_owned();
    }
    brought.version.clone()
}

/// How an add-on is upgraded to what this operator brings. A version that is pinned counts before the annotation.
pub fn how_to(module: &str, installed: &Inventory, brought: &Component, is_pinned: bool) -> String {
    let annotation =
        format!("annotate this ClusterPlugin with {UPGRADE_ANNOTATION}={module}@{}", brought.digest);
    if installed.version == brought.version {
        return format!("to upgrade, {annotation}");
    }
    if is_pinned {
        return format!("to upgrade, set the add-on's version to {}", brought.version);
    }
    format!("to upgrade, {annotation}, or set the add-on's version to {}", brought.version)
}

fn shown(version: &str) -> String {
    version.chars().filter(char::is_ascii_graphic).take(VERSION_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
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
        server("calico", installed, &component("2"), consent, stored)
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
        assert_eq!(decided(Some(&rebuilt), &named, Stored::Available), Server::Brought);
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
            let expected = if is_upgraded { Server::Brought } else { Server::Installed };
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

    #[test]
    fn an_upgrade_that_another_operator_finds_goes_back() {
        let previous =
            crate::Previous { version: "1".into(), digest: "sha256:1".into(), stored_plan: "0".into() };
        let begun = Inventory {
            complete: false,
            stored_plan: None,
            marks: vec!["mark".to_owned()],
            previous: Some(previous),
            ..installed("1.5")
        };
        assert_eq!(served_by(Some(&begun), &component("2")), Some("sha256:1"));
        assert_eq!(served_by(Some(&begun), &component("1")), None, "it is what this operator brings");
        assert_eq!(served_by(Some(&begun), &component("1.5")), None, "it goes on");
    }

    #[test]
    fn consent_is_used_up_by_what_it_named() {
        let annotation = Some("calico@sha256:2, aws-ebs-csi@sha256:5");
        assert_eq!(
            consented_digests(annotation),
            BTreeMap::from([("calico", "sha256:2"), ("aws-ebs-csi", "sha256:5")])
        );
        assert_eq!(unused_consent(annotation, "calico", "sha256:2").as_deref(), Some("aws-ebs-csi@sha256:5"));
        assert_eq!(unused_consent(annotation, "calico", "sha256:1"), None);
        assert_eq!(unused_consent(Some("calico@sha256:2"), "calico", "sha256:2").as_deref(), Some(""));
        assert_eq!(unused_consent(None, "calico", "sha256:2"), None);
    }
}
