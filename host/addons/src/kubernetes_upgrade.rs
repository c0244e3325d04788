//! Whether the add-ons of a cluster support the version of Kubernetes that it is to have, what is said of it before
//! its machines are upgraded, and whether Cluster API is kept from beginning.

use crds::cluster_api::{Cluster, KubeadmControlPlane};
use crds::cluster_plugin::ClusterPluginStatus;
use crds::conditions::{cluster_plugin, reason};
use crds::names::UPGRADE_HOOK_ANNOTATION;
use model::Timestamp;
use model::condition::{ConditionState, merge};

use super::versions::Version;

/// How much is shown of a version that is no version.
const SHOWN: usize = 64;

/// The version of Kubernetes that a cluster is to have, and the one that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubernetesUpgrade {
    wanted: Option<String>,
    is_of_class: bool,
    running: Option<Version>,
}

/// Whether an add-on supports the version that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It would be planned.
    Supported,
    /// It would not be.
    Unsupported {
        /// What is wrong with it.
        why: String,
        /// How it is upgraded to what this operator brings, if that supports it.
        upgrade: Option<String>,
    },
    /// It cannot be planned now, for another reason.
    Unknown(String),
}

/// What is said of the version that a cluster is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether an upgrade may begin.
    pub is_ready: bool,
    reason: &'static str,
    message: String,
}

impl KubernetesUpgrade {
    /// What is wanted is said by the Cluster where it is of a ClusterClass, and by its control plane otherwise.
    pub fn of(
        cluster: &Cluster,
        control_plane: Option<&KubeadmControlPlane>,
        running: Option<&Version>,
    ) -> Self {
        let topology = cluster.spec.topology.as_ref().map(|it| it.version.clone());
        let is_of_class = topology.is_some();
        let wanted = topology.or_else(|| control_plane.map(|it| it.spec.version.clone()));
        Self { wanted, is_of_class, running: running.cloned() }
    }

    /// The version that is wanted, if API servers run and not all of them have it.
    pub fn wanted(&self) -> Option<String> {
        let (wanted, running) = (self.wanted.as_deref()?, self.running.as_ref()?);
        match Version::parse(wanted) {
            Some(version) if version.is_same(running) => None,
            Some(version) => Some(version.to_string()),
            // Its plugins are asked nevertheless, and say that they know no such version.
            None => Some(wanted.chars().filter(char::is_ascii_graphic).take(SHOWN).collect()),
        }
    }

    /// What is said of it, by what each add-on (by its name) says. While no upgrade is wanted that is whether they
    /// support what runs, and what cannot be planned for another reason does not count.
    pub fn readiness(&self, add_ons: &[(&str, &Support)]) -> Readiness {
        let wanted = self.wanted();
        let mut reason = if wanted.is_some() { reason::READY } else { reason::NOT_REQUESTED };
        let mut said = Vec::new();
        let (mut is_unsupported, mut is_unknown) = (false, false);
        for (name, support) in add_ons {
            match support {
                Support::Supported => {}
                Support::Unsupported { why, upgrade: Some(upgrade) } => {
                    said.push(format!("{name}: {why}; what this operator brings supports it: {upgrade}"));
                    reason = reason::UPGRADE_ADD_ON_FIRST;
                }
                Support::Unsupported { why, upgrade: None } => {
                    said.push(format!(
                        "{name}: {why}; nothing that this operator brings supports it: wait for an operator that does"
                    ));
                    is_unsupported = true;
                }
                Support::Unknown(why) if wanted.is_some() => {
                    said.push(format!("{name}: {why}"));
                    is_unknown = true;
                }
                Support::Unknown(_) => {}
            }
        }
        let is_ready = said.is_empty();
        if is_unsupported {
            reason = reason::UNSUPPORTED_KUBERNETES_VERSION;
        } else if is_unknown && reason != reason::UPGRADE_ADD_ON_FIRST {
            reason = reason::NOT_READY;
        }
        let message = match wanted {
            Some(version) if is_ready => format!("all add-ons support Kubernetes {version}"),
            Some(version) => format!("Kubernetes {version} is wanted; {}", said.join("; ")),
            None => said.join("; "),
        };
        Readiness { is_ready, reason, message }
    }

    /// Whether Cluster API is to be kept from beginning an upgrade. It looks only when an upgrade begins, and begins
    /// at once: so it is kept always, until one is wanted that the add-ons are ready for, and again when that is
    /// over.
    pub fn is_held(&self, readiness: &Readiness, has_add_ons: bool) -> bool {
        self.is_of_class && has_add_ons && !(readiness.is_ready && self.wanted().is_some())
    }
}

/// Whether Cluster API is kept from beginning upgrades of a Cluster by us.
pub fn has_hold(cluster: &Cluster) -> bool {
    cluster.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(UPGRADE_HOOK_ANNOTATION))
}

/// The status with what is said of upgrades of Kubernetes; without, where nothing is known of them.
pub fn with_readiness(
    mut status: ClusterPluginStatus,
    readiness: Option<&Readiness>,
    generation: Option<i64>,
    now: Timestamp,
) -> ClusterPluginStatus {
    const TYPE: &str = cluster_plugin::KUBERNETES_UPGRADE_READY;
    let state = readiness.map(|it| {
        (TYPE, ConditionState { status: it.is_ready, reason: it.reason, message: it.message.clone() })
    });
    status.conditions = merge(&status.conditions, state.into_iter().collect(), generation, now, &[TYPE]);
    status
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(topology: Option<&str>) -> Cluster {
        let topology = topology.map(|version| json!({"version": version})).unwrap_or(Value::Null);
        let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": "prod"}, "spec": {"topology": topology}});
        serde_json::from_value(object).expect("a Cluster")
    }

    fn upgrade(topology: Option<&str>, control_plane: &str, running: Option<&str>) -> KubernetesUpgrade {
        let object = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "prod"}, "spec": {"version": control_plane}});
        let control_plane = serde_json::from_value(object).expect("a KubeadmControlPlane");
        let running = running.map(|it| Version::parse(it).expect("a version"));
        KubernetesUpgrade::of(&cluster(topology), Some(&control_plane), running.as_ref())
    }

    fn old(upgrade: Option<&str>) -> Support {
        let why = "1.0 does not support Kubernetes v1.37.0".to_owned();
        Support::Unsupported { why, upgrade: upgrade.map(str::to_owned) }
    }

    fn said(upgrade: &KubernetesUpgrade, add_ons: &[(&str, &Support)]) -> String {
        let Readiness { is_ready, reason, message } = upgrade.readiness(add_ons);
        format!("{is_ready} {reason} {message:?}")
    }

    #[test]
    fn an_upgrade_is_wanted_while_an_api_server_has_another_version() {
        let wanted = |topology, control_plane, running| upgrade(topology, control_plane, running).wanted();
        assert_eq!(wanted(None, "v1.37.0", Some("v1.36.3")).as_deref(), Some("v1.37.0"));
        assert_eq!(wanted(Some("v1.37.0"), "v1.36.3", Some("v1.36.3")).as_deref(), Some("v1.37.0"));
        assert_eq!(wanted(Some("v1.36.3"), "v1.36.3", Some("v1.36.3")), None);
        assert_eq!(wanted(None, "v1.36.3+build.2", Some("v1.36.3+build.1")), None);
        assert_eq!(wanted(None, "v1.37.0", None), None, "it is being made");
        assert_eq!(wanted(None, "latest\n", Some("v1.36.3")).as_deref(), Some("latest"));
    }

    #[test]
    fn an_add_on_that_does_not_support_it_is_named_with_what_to_do() {
        let one = upgrade(None, "v1.37.0", Some("v1.36.3"));
        let (ready, by_upgrade, never) = (Support::Supported, old(Some("annotate")), old(None));
        let later = Support::Unknown("waits for a fact".into());
        expect_test::expect![[r#"
            true Ready "all add-ons support Kubernetes v1.37.0"
            false UpgradeAddOnFirst "Kubernetes v1.37.0 is wanted; ccm: 1.0 does not support Kubernetes v1.37.0; what this operator brings supports it: annotate"
            false UnsupportedKubernetesVersion "Kubernetes v1.37.0 is wanted; ccm: 1.0 does not support Kubernetes v1.37.0; nothing that this operator brings supports it: wait for an operator that does; ebs: 1.0 does not support Kubernetes v1.37.0; what this operator brings supports it: annotate"
            false NotReady "Kubernetes v1.37.0 is wanted; ebs: waits for a fact"
            false UpgradeAddOnFirst "Kubernetes v1.37.0 is wanted; ccm: 1.0 does not support Kubernetes v1.37.0; what this operator brings supports it: annotate; ebs: waits for a fact"
        "#]]
        .assert_eq(
            &[
                said(&one, &[("calico", &ready)]),
                said(&one, &[("calico", &ready), ("ccm", &by_upgrade)]),
                said(&one, &[("ccm", &never), ("ebs", &by_upgrade)]),
                said(&one, &[("calico", &ready), ("ebs", &later)]),
                said(&one, &[("ccm", &by_upgrade), ("ebs", &later)]),
            ]
            .map(|it| it + "\n")
            .concat(),
        );
    }

    #[test]
    fn without_an_upgrade_it_is_about_what_runs() {
        let none = upgrade(None, "v1.37.0", Some("v1.37.0"));
        let later = Support::Unknown("the API server does not answer".into());
        assert_eq!(said(&none, &[("ebs", &later)]), r#"true NotRequested """#);
        assert!(said(&none, &[("ccm", &old(None))]).starts_with("false UnsupportedKubernetesVersion"));
    }

    #[test]
    fn only_an_upgrade_that_the_add_ons_are_ready_for_may_begin() {
        let held = |topology: Option<&str>, control_plane: &str, running: Option<&str>, support: Support| {
            let upgrade = upgrade(topology, control_plane, running);
            upgrade.is_held(&upgrade.readiness(&[("ccm", &support)]), true)
        };
        let (old_version, new_version) = (Some("v1.36.3"), Some("v1.37.0"));
        assert!(held(old_version, "v1.36.3", None, Support::Supported), "it is being made");
        assert!(held(old_version, "v1.36.3", old_version, Support::Supported), "before one is wanted");
        assert!(held(new_version, "v1.36.3", old_version, old(None)), "the cloud provider is not ready");
        assert!(!held(new_version, "v1.36.3", old_version, Support::Supported), "it may begin");
        assert!(!held(new_version, "v1.37.0", old_version, Support::Supported), "it has begun");
        assert!(held(new_version, "v1.37.0", new_version, Support::Supported), "before the next one");
        assert!(!held(None, "v1.37.0", old_version, old(None)), "of no class: it is only said");
        let one = upgrade(old_version, "v1.36.3", old_version);
        assert!(!one.is_held(&one.readiness(&[]), false), "nothing to be ready for");
    }

    #[test]
    fn the_condition_comes_and_goes_beside_the_others() {
        let ready = upgrade(None, "v1.37.0", Some("v1.36.3")).readiness(&[]);
        let other = merge(
            &[],
            vec![("Ready", ConditionState { status: true, reason: "Ready", message: String::new() })],
            None,
            1.0,
            &[],
        );
        let before = ClusterPluginStatus { conditions: other, ..ClusterPluginStatus::default() };
        let types = |status: &ClusterPluginStatus| {
            status.conditions.iter().map(|it| it.type_.clone()).collect::<Vec<_>>().join(" ")
        };
        let with = with_readiness(before.clone(), Some(&ready), Some(1), 10.0);
        assert_eq!(types(&with), "KubernetesUpgradeReady Ready");
        assert_eq!(with_readiness(with.clone(), Some(&ready), Some(1), 20.0), with);
        assert_eq!(with_readiness(with, None, Some(1), 30.0), before);
    }
}
