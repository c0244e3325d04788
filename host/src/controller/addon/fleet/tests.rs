//! One cluster and another, with what their statuses say and what this process remembers.

use serde_json::{Value, json};

use super::*;

const LABELLED: bool = true;

fn brought() -> Component {
    Component { version: "2".into(), digest: "sha256:2".into() }
}

fn name(cluster: &str) -> ObjectName {
    ObjectName::new("default", cluster)
}

/// A ClusterPlugin with Calico of version 1, whose users want what the operator brings.
fn plugin(status: &Value) -> ClusterPlugin {
    let mut calico = json!({"name": "calico", "version": "1", "digest": "sha256:1", "phase": "Running",
        "available": {"version": "2", "digest": "sha256:2"}});
    json_patch(&mut calico, status);
    let value = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin", "metadata": {"name": "a"},
        "spec": {"clusterName": "a", "networking": {"calico": {}}, "upgradePolicy": "Automatic"},
        "status": {"plugins": [calico]}});
    serde_json::from_value(value).expect("a ClusterPlugin")
}

fn json_patch(object: &mut Value, patch: &Value) {
    for (key, value) in patch.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
}

fn waiting() -> ClusterPlugin {
    plugin(&json!({}))
}

fn upgrading() -> ClusterPlugin {
    plugin(
        &json!({"version": "2", "digest": "sha256:2", "phase": "Updating", "upgradingFrom": "1", "available": null}),
    )
}

fn failed() -> ClusterPlugin {
    plugin(
        &json!({"failedUpgrade": {"version": "2", "digest": "sha256:2", "message": "it awaited a DaemonSet"}}),
    )
}

fn unreachable(mut plugin: ClusterPlugin) -> ClusterPlugin {
    let condition = json!({"type": "Ready", "status": "False", "reason": reason::UNREACHABLE, "message": "",
        "lastTransitionTime": "2027-01-15T08:00:00Z"});
    let status = plugin.status.as_mut().expect("a status");
    status.conditions.push(serde_json::from_value(condition).expect("a condition"));
    plugin
}

struct Management(Vec<(&'static str, ClusterPlugin, bool)>);

impl Management {
    fn of(plugins: Vec<(&'static str, ClusterPlugin)>) -> Management {
        Management(plugins.into_iter().map(|(name, plugin)| (name, plugin, false)).collect())
    }

    fn ask<'a>(&self, fleet: &'a FleetUpgrades, cluster: &str) -> Result<Reservation<'a>, String> {
        let seen = self.0.iter().map(|(cluster, plugin, is_first)| Seen {
            name: name(cluster),
            plugin,
            is_first: *is_first,
            is_paused: plugin.annotations().contains_key("cluster.x-k8s.io/paused"),
        });
        fleet.reserve(seen.collect(), &name(cluster), "calico", &brought())
    }

    fn may(&self, fleet: &FleetUpgrades, cluster: &str) -> bool {
        self.ask(fleet, cluster).is_ok()
    }
}

#[test]
fn what_was_begun_counts_at_once_and_until_it_ends() {
    let (all, fleet) = (Management::of(vec![("a", waiting()), ("b", waiting())]), FleetUpgrades::new(1));
    assert!(all.may(&fleet, "a") && all.may(&fleet, "b"), "what was not kept was not begun");
    all.ask(&fleet, "a").expect("the first").keep();
    assert!(!all.may(&fleet, "b") && all.may(&fleet, "a"));
    assert!(!all.may(&fleet, "b"), "asking once more took nothing away");
    fleet.looked_at(&name("a"), "calico", FoundUpgrade::UnderWay { digest: "sha256:2".into() });
    assert!(!all.may(&fleet, "b"));
    fleet.looked_at(&name("a"), "calico", FoundUpgrade::None);
    assert!(all.may(&fleet, "b"));
}

#[test]
fn a_cluster_that_does_not_answer_keeps_nobody_back() {
    let (all, fleet) = (Management::of(vec![("a", waiting()), ("b", waiting())]), FleetUpgrades::new(1));
    all.ask(&fleet, "a").expect("the first").keep();
    fleet.stop_awaiting(&name("a"));
    assert!(all.may(&fleet, "b"));
    fleet.looked_at(&name("a"), "calico", FoundUpgrade::UnderWay { digest: "sha256:2".into() });
    assert!(!all.may(&fleet, "b"), "it answers again");
}

#[test]
fn what_an_earlier_process_began_is_known_by_the_statuses() {
    let fleet = FleetUpgrades::new(1);
    let with = |plugin| Management::of(vec![("a", plugin), ("b", waiting())]);
    assert!(!with(upgrading()).may(&fleet, "b"));
    assert!(with(unreachable(upgrading())).may(&fleet, "b"));
    assert!(with(plugin(&json!({"phase": "Updating"}))).may(&fleet, "b"), "other settings are no upgrade");
    let mut paused = upgrading();
    paused.annotations_mut().insert("cluster.x-k8s.io/paused".into(), String::new());
    assert!(with(paused).may(&fleet, "b"));
}

#[test]
fn a_failure_stops_the_others_at_once_and_until_it_is_over() {
    let (before, fleet) = (Management::of(vec![("a", waiting()), ("b", waiting())]), FleetUpgrades::new(3));
    before.ask(&fleet, "a").expect("the first").keep();
    let why = "it awaited a DaemonSet".to_owned();
    fleet.looked_at(&name("a"), "calico", FoundUpgrade::Failed { digest: "sha256:2".into(), why });
    assert!(before.may(&fleet, "a"), "it may be tried again there");
    assert!(before.ask(&fleet, "b").is_err_and(|why| why.contains("default/a (it awaited a DaemonSet)")));
    let said = Management::of(vec![("a", failed()), ("b", waiting())]);
    assert!(!said.may(&fleet, "b"));
    assert!(fleet.attempts().is_empty(), "from now on the status counts");
    assert!(said.may(&fleet, "a"), "it may be tried again there");
    let mut pinned = failed();
    pinned.spec.networking = serde_json::from_value(json!({"calico": {"version": "1"}})).expect("settings");
    assert!(Management::of(vec![("a", pinned), ("b", waiting())]).may(&fleet, "b"));
    assert!(Management::of(vec![("b", waiting())]).may(&fleet, "b"), "its cluster is gone");
}

#[test]
fn who_names_the_digest_despite_failures_begins() {
    let annotated = |value: &str| {
        let mut plugin = waiting();
        plugin.annotations_mut().insert(DESPITE_FAILURES_ANNOTATION.into(), value.into());
        Management::of(vec![("a", failed()), ("b", plugin)])
    };
    let fleet = FleetUpgrades::new(1);
    assert!(annotated("calico@sha256:2").may(&fleet, "b"));
    assert!(!annotated("calico@sha256:3").may(&fleet, "b"));
}

#[test]
fn labelled_clusters_are_awaited_where_they_are_to_be_upgraded() {
    let fleet = FleetUpgrades::new(3);
    let may = |labelled: ClusterPlugin| {
        Management(vec![("a", labelled, LABELLED), ("b", waiting(), false)]).may(&fleet, "b")
    };
    assert!(!may(waiting()) && !may(upgrading()));
    let mut manual = waiting();
    manual.spec.upgrade_policy = UpgradePolicy::Manual;
    assert!(may(manual), "it is not consented to");
    let mut paused = waiting();
    paused.annotations_mut().insert("cluster.x-k8s.io/paused".into(), String::new());
    assert!(may(paused));
}

#[test]
fn what_is_remembered_of_a_cluster_ends_with_its_cluster_plugin() {
    let (all, fleet) = (Management::of(vec![("a", waiting()), ("b", waiting())]), FleetUpgrades::new(1));
    all.ask(&fleet, "a").expect("the first").keep();
    fleet.evict(&name("a"));
    assert!(all.may(&fleet, "b"));
}
