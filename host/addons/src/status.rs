//! What a ClusterPlugin says about itself: one line for each add-on, and conditions for its slots and the
//! whole.

use std::collections::BTreeMap;

use crds::cluster_plugin::{
    AvailablePlugin, ClusterPluginStatus, FailedUpgrade, PluginApproval, PluginPhase, PluginStatus,
};
use crds::conditions::{READY, cluster_plugin as types, reason};

use super::Slot;
use model::Timestamp;
use model::condition::{ConditionState, merge, shorten, time};

/// How one add-on fares.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub slot: Slot,
    pub module: String,
    /// Its PluginModule, where its plugin does not come with the host.
    pub registered: Option<String>,
    pub version: String,
    pub digest: String,
    pub phase: PluginPhase,
    /// A word of [`crds::conditions::reason`], or of the plugin host.
    pub reason: String,
    /// What is awaited, or what is wrong and who has to act; of what runs, what should be looked at
    /// nevertheless. Empty when nothing.
    pub message: String,
    /// What the operator brings in its place.
    pub available: Option<AvailablePlugin>,
    /// How far an upgrade of it is; `None` when that is not known, as where its record cannot be read.
    pub upgrade: Option<UpgradeProgress>,
    /// Its plan that waits until somebody approves of it.
    pub approval: Option<PluginApproval>,
    /// What its plugin tells of what is installed, by name; `None` when that is not known, as where its record
    /// cannot be read.
    pub outputs: Option<BTreeMap<String, String>>,
    /// When something of it that somebody changed was last set back, if that was since this program began.
    pub repaired: Option<Timestamp>,
}

/// How far an upgrade of an add-on is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpgradeProgress {
    /// The version before, while it is under way.
    pub from: Option<String>,
    /// The upgrade that was or is undone, or should be and cannot.
    pub failed: Option<FailedUpgrade>,
}

/// The whole status. `all` is said of every slot when nothing can be said of a single one (the Cluster is
/// absent or paused).
pub fn status(
    previous: &ClusterPluginStatus,
    generation: Option<i64>,
    now: Timestamp,
    progress: &[Progress],
    all: Option<(&str, &str)>,
) -> ClusterPluginStatus {
    let open: Vec<&Progress> = progress.iter().filter(|it| it.phase != PluginPhase::Running).collect();
    let failed = open.iter().find(|it| it.phase == PluginPhase::Failed);
    let message = || open.iter().map(named).collect::<Vec<_>>().join("; ");
    let ready = match (all, failed.or(open.first())) {
        (Some((reason, message)), _) => ConditionState { status: false, reason, message: message.to_owned() },
        (None, Some(first)) => ConditionState { status: false, reason: &first.reason, message: message() },
        (None, None) => ConditionState { status: true, reason: reason::READY, message: String::new() },
    };
    let progressing = if all.is_none() && open.iter().any(|it| it.phase != PluginPhase::Failed) {
        ConditionState { status: true, reason: reason::CREATING, message: message() }
    } else {
        ConditionState { status: false, reason: reason::NOT_REQUESTED, message: String::new() }
    };
    let said = vec![
        (types::CLOUD_PROVIDER_READY, of_slot(Slot::CloudProvider, progress, all)),
        (types::NETWORKING_READY, of_slot(Slot::Networking, progress, all)),
        (types::STORAGE_READY, of_slot(Slot::Storage, progress, all)),
        (types::INGRESS_READY, of_slot(Slot::Ingress, progress, all)),
        (types::PLUGINS_READY, of_slot(Slot::Other, progress, all)),
        (READY, ready),
        (types::PROGRESSING, progressing),
    ];
    let ours: Vec<&str> = said.iter().map(|(kind, _)| *kind).collect();
    let conditions = merge(&previous.conditions, said, generation, now, &ours);
    let upgrade = |it: &Progress| {
        let before = previous.plugins.iter().find(|before| before.name == it.module);
        it.upgrade.clone().unwrap_or_else(|| UpgradeProgress {
            from: before.and_then(|before| before.upgrading_from.clone()),
            failed: before.and_then(|before| before.failed_upgrade.clone()),
        })
    };
    let outputs = |it: &Progress| {
        let before = previous.plugins.iter().find(|before| before.name == it.module);
        it.outputs.clone().unwrap_or_else(|| before.map(|it| it.outputs.clone()).unwrap_or_default())
    };
    let plugins = progress.iter().map(|it| (it, upgrade(it))).map(|(it, upgrade)| PluginStatus {
        name: it.module.clone(),
        module: it.registered.clone(),
        version: it.version.clone(),
        digest: it.digest.clone(),
        phase: it.phase,
        waiting_for: if it.phase == PluginPhase::Running { String::new() } else { shorten(&it.message) },
        upgrading_from: upgrade.from,
        available: it.available.clone(),
        failed_upgrade: upgrade.failed,
        approval: it.approval.clone(),
        outputs: outputs(it),
    });
    let repaired = progress.iter().filter_map(|it| it.repaired).max_by(f64::total_cmp).map(time);
    let last_repair_time = repaired.max(previous.last_repair_time.clone());
    ClusterPluginStatus { plugins: plugins.collect(), conditions, last_repair_time }
}

/// A slot with several add-ons is as ready as the one that fares worst.
fn of_slot<'a>(slot: Slot, progress: &'a [Progress], all: Option<(&'a str, &str)>) -> ConditionState<'a> {
    if let Some((reason, message)) = all {
        return ConditionState { status: false, reason, message: message.to_owned() };
    }
    let mine = || progress.iter().filter(|it| it.slot == slot);
    let failed = mine().find(|it| it.phase == PluginPhase::Failed);
    if let Some(it) = failed.or_else(|| mine().find(|it| it.phase != PluginPhase::Running)) {
        return ConditionState { status: false, reason: &it.reason, message: it.message.clone() };
    }
    // What should be looked at nevertheless is said of each of them.
    match mine().find(|it| it.reason != reason::READY).or_else(|| mine().next()) {
        None => ConditionState { status: true, reason: reason::NOT_REQUESTED, message: String::new() },
        Some(first) => {
            let said: Vec<&Progress> = mine().filter(|it| !it.message.is_empty()).collect();
            let message = match said.as_slice() {
                [alone] if mine().count() == 1 => alone.message.clone(),
                several => several.iter().map(named).collect::<Vec<_>>().join("; "),
            };
            ConditionState { status: true, reason: &first.reason, message }
        }
    }
}

/// What is said of an add-on, with its name.
fn named(add_on: &&Progress) -> String {
    let Progress { module, message, .. } = add_on;
    if message.starts_with(module) { message.clone() } else { format!("{module}: {message}") }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

    use super::*;

    fn progress(slot: Slot, phase: PluginPhase, message: &str) -> Progress {
        let reason = if phase == PluginPhase::Running { reason::READY } else { reason::CREATING };
        Progress {
            slot,
            module: format!("{slot:?}").to_lowercase(),
            registered: None,
            version: "1".into(),
            digest: "sha256:0".into(),
            phase,
            reason: reason.into(),
            message: message.into(),
            available: None,
            upgrade: None,
            approval: None,
            outputs: None,
            repaired: None,
        }
    }

    fn text(status: &ClusterPluginStatus) -> String {
        let line = |it: &Condition| format!("{}={} {} {:?}\n", it.type_, it.status, it.reason, it.message);
        status.conditions.iter().map(line).collect()
    }

    #[test]
    fn ready_is_when_every_slot_is() {
        let both = [
            progress(Slot::CloudProvider, PluginPhase::Running, ""),
            progress(Slot::Networking, PluginPhase::Provisioning, "for X"),
        ];
        let first = status(&ClusterPluginStatus::default(), Some(1), 10.0, &both, None);
        expect_test::expect![[r#"
            CloudProviderReady=True Ready ""
            IngressReady=True NotRequested ""
            NetworkingReady=False Creating "for X"
            PluginsReady=True NotRequested ""
            Progressing=True Creating "networking: for X"
            Ready=False Creating "networking: for X"
            StorageReady=True NotRequested ""
        "#]]
        .assert_eq(&text(&first));
        let done = [both[0].clone(), progress(Slot::Networking, PluginPhase::Running, "")];
        let second = status(&first, Some(1), 20.0, &done, None);
        expect_test::expect![[r#"
            CloudProviderReady=True Ready ""
            IngressReady=True NotRequested ""
            NetworkingReady=True Ready ""
            PluginsReady=True NotRequested ""
            Progressing=False NotRequested ""
            Ready=True Ready ""
            StorageReady=True NotRequested ""
        "#]]
        .assert_eq(&text(&second));
        assert_eq!(second.conditions[0].last_transition_time, first.conditions[0].last_transition_time);
        assert_ne!(second.conditions[2].last_transition_time, first.conditions[2].last_transition_time);
        assert_eq!(status(&second, Some(1), 30.0, &done, None), second);
    }

    #[test]
    fn a_message_without_end_is_cut_before_the_api_server_refuses_it() {
        let endless = progress(Slot::Storage, PluginPhase::Failed, &"ä".repeat(100_000));
        let said = status(&ClusterPluginStatus::default(), None, 10.0, &[endless], None);
        let longest =
            said.conditions.iter().map(|it| &it.message).chain(said.plugins.iter().map(|it| &it.waiting_for));
        assert!(longest.map(|it| it.chars().count()).max().is_some_and(|it| it > 1000 && it < 32_768));
    }

    #[test]
    fn an_add_on_that_a_message_begins_with_is_not_named_twice() {
        let kept = progress(Slot::Networking, PluginPhase::Failed, "networking stays");
        let other = progress(Slot::Storage, PluginPhase::Pending, "waits");
        let said = status(&ClusterPluginStatus::default(), None, 10.0, &[kept, other], None);
        assert_eq!(
            said.conditions.iter().find(|it| it.type_ == READY).unwrap().message,
            "networking stays; storage: waits"
        );
    }

    #[test]
    fn a_slot_says_what_fails_where_another_version_stays_installed() {
        let kept = |slot| Progress {
            reason: reason::UPGRADE_AVAILABLE.into(),
            ..progress(slot, PluginPhase::Running, "version 1.0 is installed and stays")
        };
        let beside = Progress { module: "ebs".into(), ..progress(Slot::Storage, PluginPhase::Running, "") };
        let all = [kept(Slot::Networking), beside, kept(Slot::Storage)];
        let said = status(&ClusterPluginStatus::default(), None, 10.0, &all, None);
        let of = |kind: &str| {
            said.conditions
                .iter()
                .find(|it| it.type_ == kind)
                .map(|it| (it.status.as_str(), it.reason.as_str(), it.message.as_str()))
                .unwrap()
        };
        let text = "version 1.0 is installed and stays";
        assert_eq!(of(types::NETWORKING_READY), ("True", reason::UPGRADE_AVAILABLE, text));
        assert_eq!(
            of(types::STORAGE_READY),
            ("True", reason::UPGRADE_AVAILABLE, format!("storage: {text}").as_str())
        );
    }

    #[test]
    fn the_last_repair_is_remembered_when_nobody_knows_of_it_any_more() {
        let at = |time| Progress { repaired: time, ..progress(Slot::Storage, PluginPhase::Running, "") };
        let told = |previous: &ClusterPluginStatus, all: &[Progress]| status(previous, None, 10.0, all, None);
        let seconds = |it: &ClusterPluginStatus| it.last_repair_time.as_ref().map(|it| it.0.as_second());
        let first = told(&ClusterPluginStatus::default(), &[at(None), at(Some(5.5)), at(Some(3.0))]);
        assert_eq!(seconds(&first), Some(5));
        assert_eq!(seconds(&told(&first, &[at(None)])), Some(5));
        assert_eq!(seconds(&told(&first, &[at(Some(7.0))])), Some(7));
        assert_eq!(seconds(&told(&ClusterPluginStatus::default(), &[at(None)])), None);
    }

    #[test]
    fn a_failed_upgrade_is_remembered_while_nothing_is_known() {
        let failed =
            FailedUpgrade { version: "2".into(), digest: "sha256:2".into(), message: "for X".into() };
        let said = |previous: &ClusterPluginStatus, upgrade| {
            let all = [Progress { upgrade, ..progress(Slot::Storage, PluginPhase::Running, "") }];
            status(previous, None, 10.0, &all, None)
        };
        let upgrade = UpgradeProgress { from: None, failed: Some(failed.clone()) };
        let first = said(&ClusterPluginStatus::default(), Some(upgrade));
        assert_eq!(said(&first, None).plugins[0].failed_upgrade, Some(failed));
        assert_eq!(said(&first, Some(UpgradeProgress::default())).plugins[0].failed_upgrade, None);
    }

    #[test]
    fn outputs_stay_while_nothing_is_known() {
        let outputs = BTreeMap::from([("endpoint".to_owned(), "https://example.com".to_owned())]);
        let said = |previous: &ClusterPluginStatus, outputs| {
            let all = [Progress { outputs, ..progress(Slot::Storage, PluginPhase::Running, "") }];
            status(previous, None, 10.0, &all, None)
        };
        let first = said(&ClusterPluginStatus::default(), Some(outputs.clone()));
        assert_eq!(said(&first, None).plugins[0].outputs, outputs);
        assert_eq!(said(&first, Some(BTreeMap::new())).plugins[0].outputs, BTreeMap::new());
    }

    #[test]
    fn what_keeps_all_waiting_is_said_of_all() {
        let waiting = status(
            &ClusterPluginStatus::default(),
            None,
            10.0,
            &[],
            Some((reason::WAITING_FOR_CLUSTER, "for the Cluster to exist")),
        );
        assert!(
            text(&waiting)
                .starts_with("CloudProviderReady=False WaitingForCluster \"for the Cluster to exist\"\n")
        );
    }
}
