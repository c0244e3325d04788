//! What a ClusterPlugin says about itself: one line for each add-on, and conditions for its slots and the whole.

use crds::cluster_plugin::{ClusterPluginStatus, PluginPhase, PluginStatus};
use crds::conditions::{READY, cluster_plugin as types, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff;

use super::Slot;
use crate::Timestamp;

/// How one add-on fares.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub slot: Slot,
    pub module: String,
    pub version: String,
    pub digest: String,
    pub phase: PluginPhase,
    /// A word of [`crds::conditions::reason`], or of the plugin host.
    pub reason: String,
    /// What is awaited, or what is wrong and who has to act; of what runs, what should be looked at nevertheless. Empty when nothing.
    pub message: String,
}

/// The whole status. `all` is said of every slot when nothing can be said of a single one (the Cluster is absent or paused).
pub fn status(
    previous: &ClusterPluginStatus,
    generation: Option<i64>,
    now: Timestamp,
    progress: &[Progress],
    all: Option<(&str, &str)>,
) -> ClusterPluginStatus {
    let mut conditions = previous.conditions.clone();
    let mut set = |kind: &str, (status, reason, message): (bool, &str, String)| {
        set_condition(&mut conditions, now, generation, kind, status, reason, message);
    };
    set(types::CLOUD_PROVIDER_READY, of_slot(Slot::CloudProvider, progress, all));
    set(types::NETWORKING_READY, of_slot(Slot::Networking, progress, all));
    set(types::STORAGE_READY, of_slot(Slot::Storage, progress, all));
    set(types::INGRESS_READY, of_slot(Slot::Ingress, progress, all));
    let open: Vec<&Progress> = progress.iter().filter(|it| it.phase != PluginPhase::Running).collect();
    let failed = open.iter().find(|it| it.phase == PluginPhase::Failed);
    let message = || open.iter().map(|it| format!("{}: {}", it.module, it.message)).collect::<Vec<_>>().join("; ");
    set(
        READY,
        match (all, failed.or(open.first())) {
            (Some((reason, message)), _) => (false, reason, message.to_owned()),
            (None, Some(first)) => (false, &first.reason, message()),
            (None, None) => (true, reason::READY, String::new()),
        },
    );
    let progressing = all.is_none() && open.iter().any(|it| it.phase != PluginPhase::Failed);
    set(types::PROGRESSING, if progressing { (true, reason::CREATING, message()) } else { (false, reason::NOT_REQUESTED, String::new()) });
    let plugins = progress.iter().map(|it| PluginStatus {
        name: it.module.clone(),
        version: it.version.clone(),
        digest: it.digest.clone(),
        phase: it.phase,
        waiting_for: if it.phase == PluginPhase::Running { String::new() } else { it.message.clone() },
    });
    ClusterPluginStatus { plugins: plugins.collect(), conditions }
}

/// A slot with several add-ons is as ready as the one that fares worst.
fn of_slot<'a>(slot: Slot, progress: &'a [Progress], all: Option<(&'a str, &str)>) -> (bool, &'a str, String) {
    if let Some((reason, message)) = all {
        return (false, reason, message.to_owned());
    }
    let mine = || progress.iter().filter(|it| it.slot == slot);
    let failed = mine().find(|it| it.phase == PluginPhase::Failed);
    match failed.or_else(|| mine().find(|it| it.phase != PluginPhase::Running)).or_else(|| mine().next()) {
        None => (true, reason::NOT_REQUESTED, String::new()),
        Some(it) => (it.phase == PluginPhase::Running, &it.reason, it.message.clone()),
    }
}

fn set_condition(
    conditions: &mut Vec<Condition>,
    now: Timestamp,
    generation: Option<i64>,
    kind: &str,
    status: bool,
    reason: &str,
    message: String,
) {
    let status = if status { "True" } else { "False" };
    let since = conditions.iter().find(|it| it.type_ == kind && it.status == status).map(|it| it.last_transition_time.clone());
    let condition = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        observed_generation: generation,
        last_transition_time: since.unwrap_or_else(|| Time(jiff::Timestamp::from_second(now as i64).unwrap_or_default())),
    };
    match conditions.iter_mut().find(|it| it.type_ == kind) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(slot: Slot, phase: PluginPhase, message: &str) -> Progress {
        let reason = if phase == PluginPhase::Running { reason::READY } else { reason::CREATING };
        Progress {
            slot,
            module: format!("{slot:?}").to_lowercase(),
            version: "1".into(),
            digest: "sha256:0".into(),
            phase,
            reason: reason.into(),
            message: message.into(),
        }
    }

    fn text(status: &ClusterPluginStatus) -> String {
        let line = |it: &Condition| format!("{}={} {} {:?}\n", it.type_, it.status, it.reason, it.message);
        status.conditions.iter().map(line).collect()
    }

    #[test]
    fn ready_is_when_every_slot_is() {
        let both =
            [progress(Slot::CloudProvider, PluginPhase::Running, ""), progress(Slot::Networking, PluginPhase::Provisioning, "for X")];
        let first = status(&ClusterPluginStatus::default(), Some(1), 10.0, &both, None);
        expect_test::expect![[r#"
            CloudProviderReady=True Ready ""
            NetworkingReady=False Creating "for X"
            StorageReady=True NotRequested ""
            IngressReady=True NotRequested ""
            Ready=False Creating "networking: for X"
            Progressing=True Creating "networking: for X"
        "#]]
        .assert_eq(&text(&first));
        let done = [both[0].clone(), progress(Slot::Networking, PluginPhase::Running, "")];
        let second = status(&first, Some(1), 20.0, &done, None);
        expect_test::expect![[r#"
            CloudProviderReady=True Ready ""
            NetworkingReady=True Ready ""
            StorageReady=True NotRequested ""
            IngressReady=True NotRequested ""
            Ready=True Ready ""
            Progressing=False NotRequested ""
        "#]]
        .assert_eq(&text(&second));
        assert_eq!(second.conditions[0].last_transition_time, first.conditions[0].last_transition_time);
        assert_ne!(second.conditions[1].last_transition_time, first.conditions[1].last_transition_time);
        assert_eq!(status(&second, Some(1), 30.0, &done, None), second);
    }

    #[test]
    fn what_keeps_all_waiting_is_said_of_all() {
        let waiting =
            status(&ClusterPluginStatus::default(), None, 10.0, &[], Some((reason::WAITING_FOR_CLUSTER, "for the Cluster to exist")));
        assert!(text(&waiting).starts_with("CloudProviderReady=False WaitingForCluster \"for the Cluster to exist\"\n"));
    }
}
