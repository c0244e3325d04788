//! Which versions of Kubernetes run in a cluster, by what Cluster API says of its machines: what its control plane
//! is to have is another thing until the last of them was upgraded.

use std::cmp::Ordering;
use std::fmt;

use contract::{FactValue, KubeletVersionsFact};
use crds::cluster_api::{KubeadmControlPlane, Machine};
use crds::names::CONTROL_PLANE_LABEL;
use serde_json::json;

/// How long a version may be: that of a kubelet is written by the machine.
const LENGTH: usize = 64;

/// A version of Kubernetes, such as `v1.36.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(semver::Version);

impl Version {
    /// `None` when the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let text = Some(text).filter(|it| it.len() <= LENGTH)?;
        semver::Version::parse(text.strip_prefix('v').unwrap_or(text)).ok().map(Version)
    }

    /// Major and minor version.
    pub fn minor(&self) -> (u64, u64) {
        (self.0.major, self.0.minor)
    }

    /// Builds of a version are in no order.
    fn order(&self, other: &Version) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }

    /// Whether they differ in no more than their builds.
    pub fn is_same(&self, other: &Version) -> bool {
        self.order(other) == Ordering::Equal
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// The versions that run in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningVersions {
    /// Of the oldest API server; `None` before the first machine of the control plane.
    pub api_server: Option<Version>,
    /// Of the oldest kubelet and the newest one; `None` before the first machine.
    pub kubelets: Option<(Version, Version)>,
}

impl RunningVersions {
    /// Every machine counts until it is gone, also one that is being deleted or does not start: what it runs, or
    /// will run, is its own version.
    pub fn of<'a>(
        control_plane: Option<&KubeadmControlPlane>,
        machines: impl Iterator<Item = &'a Machine>,
    ) -> Self {
        let (mut api_servers, mut kubelets) = (reported(control_plane), Vec::new());
        for machine in machines {
            let kubelet = kubelet(machine);
            let labels = machine.metadata.labels.as_ref();
            if labels.is_some_and(|it| it.contains_key(CONTROL_PLANE_LABEL)) {
                api_servers.extend(api_server(wanted(machine), kubelet.clone()));
            }
            kubelets.extend(kubelet.or_else(|| wanted(machine)));
        }
        let lowest = |all: &[Version]| all.iter().min_by(|a, b| a.order(b)).cloned();
        let highest = kubelets.iter().max_by(|a, b| a.order(b)).cloned();
        Self { api_server: lowest(&api_servers), kubelets: lowest(&kubelets).zip(highest) }
    }

    /// The value of fact `api-server-version`.
    pub fn api_server_fact(&self) -> FactValue {
        self.api_server
            .as_ref()
            .map_or(FactValue::Absent, |version| FactValue::Present(json!(version.to_string())))
    }

    /// The value of fact `kubelet-versions`.
    pub fn kubelets_fact(&self) -> FactValue {
        let Some((lowest, highest)) = &self.kubelets else { return FactValue::Absent };
        let fact = KubeletVersionsFact { lowest: lowest.to_string(), highest: highest.to_string() };
        FactValue::Present(json!(fact))
    }
}

/// What the control plane says of its machines.
fn reported(control_plane: Option<&KubeadmControlPlane>) -> Vec<Version> {
    let Some(status) = control_plane.and_then(|it| it.status.as_ref()) else { return Vec::new() };
    let versions = status.versions.iter().map(|it| it.version.as_str());
    versions.chain(status.version.as_deref()).filter_map(Version::parse).collect()
}

fn wanted(machine: &Machine) -> Option<Version> {
    Version::parse(machine.spec.version.as_deref()?)
}

fn kubelet(machine: &Machine) -> Option<Version> {
    Version::parse(machine.status.as_ref()?.node_info.as_ref()?.kubelet_version.as_deref()?)
}

/// A machine that is upgraded in place has the new version before it runs it. No kubelet is newer than the API
/// server beside it, so while it is of an older minor version, that one counts. It says nothing finer: builds have
/// patch versions and suffixes of their own.
fn api_server(wanted: Option<Version>, kubelet: Option<Version>) -> Option<Version> {
    match (wanted, kubelet) {
        (Some(wanted), Some(kubelet)) if kubelet.minor() < wanted.minor() => Some(kubelet),
        (Some(wanted), _) => Some(wanted),
        (None, kubelet) => kubelet,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn machine(is_control_plane: bool, version: Value, kubelet: Value) -> Machine {
        let labels = if is_control_plane { json!({CONTROL_PLANE_LABEL: ""}) } else { json!({}) };
        let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": "m", "labels": labels},
            "spec": {"clusterName": "prod", "version": version},
            "status": {"nodeInfo": {"kubeletVersion": kubelet}}});
        serde_json::from_value(object).expect("a Machine")
    }

    fn control_plane(status: Value) -> KubeadmControlPlane {
        let object = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "prod"}, "spec": {"version": "v1.36.0"}, "status": status});
        serde_json::from_value(object).expect("a KubeadmControlPlane")
    }

    fn running(status: Value, machines: &[Machine]) -> (Option<String>, Option<String>) {
        let all = RunningVersions::of(Some(&control_plane(status)), machines.iter());
        let range = all.kubelets.map(|(lowest, highest)| format!("{lowest}-{highest}"));
        (all.api_server.map(|it| it.to_string()), range)
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn the_oldest_api_server_counts_and_not_what_is_wanted() {
        let old = machine(true, json!("v1.35.2"), json!("v1.35.2"));
        let new = machine(true, json!("v1.36.0"), Value::Null);
        let worker = machine(false, json!("v1.34.9"), json!("v1.34.9"));
        let all = [old, new.clone(), worker.clone()];
        assert_eq!(running(json!({}), &all), (some("v1.35.2"), some("v1.34.9-v1.36.0")));
        assert_eq!(running(json!({}), &[new, worker]), (some("v1.36.0"), some("v1.34.9-v1.36.0")));
    }

    #[test]
    fn machines_count_that_only_the_control_plane_has_seen() {
        let new = machine(true, json!("v1.36.0"), Value::Null);
        assert_eq!(running(json!({"version": "v1.35.2"}), std::slice::from_ref(&new)).0, some("v1.35.2"));
        let both = json!({"versions": [{"version": "v1.35.10"}, {"version": "v1.35.9"}]});
        assert_eq!(running(both, &[new]).0, some("v1.35.9"), "by number, and not by letters");
        assert_eq!(RunningVersions::of(None, std::iter::empty()), RunningVersions::default());
        assert_eq!(RunningVersions::default().api_server_fact(), FactValue::Absent);
        assert_eq!(RunningVersions::default().kubelets_fact(), FactValue::Absent);
    }

    #[test]
    fn a_machine_that_is_upgraded_in_place_counts_as_what_it_runs() {
        let begun = machine(true, json!("v1.36.0"), json!("v1.35.2"));
        assert_eq!(running(json!({"version": "v1.36.0"}), &[begun]).0, some("v1.35.2"));
        let built_by_others = machine(true, json!("v1.36.0"), json!("v1.36.0-eks-0123abc"));
        assert_eq!(running(json!({}), &[built_by_others]).0, some("v1.36.0"));
    }

    #[test]
    fn no_machine_says_of_itself_that_it_is_newer_than_it_was_made() {
        for kubelet in ["v1.99.0", "v1.36.7", "v18446744073709551615.0.0"] {
            assert_eq!(
                running(json!({}), &[machine(true, json!("v1.36.0"), json!(kubelet))]).0,
                some("v1.36.0")
            );
        }
    }

    #[test]
    fn what_is_no_version_counts_as_none() {
        let long = format!("v1.36.0-{}", "a".repeat(100));
        for text in [
            "",
            "v",
            "1",
            "v1.36",
            "v1.36.x",
            "latest",
            "v1.036.0",
            "v99999999999999999999.0.0",
            "v1.36.0\n",
            &long,
        ] {
            assert_eq!(Version::parse(text), None, "{text:?}");
            let all = [machine(true, json!(text), json!(text)), machine(true, json!("v1.36.0"), json!(text))];
            assert_eq!(running(json!({"version": text}), &all), (some("v1.36.0"), some("v1.36.0-v1.36.0")));
        }
        assert_eq!(running(json!({}), &[machine(true, Value::Null, Value::Null)]), (None, None));
        assert_eq!(running(json!({}), &[machine(true, Value::Null, json!("v1.35.0"))]).0, some("v1.35.0"));
    }

    #[test]
    fn a_candidate_is_older_and_builds_are_the_same() {
        let of = |text: &str| Version::parse(text).expect("a version");
        assert_eq!(of("v1.36.0-rc.1").order(&of("v1.36.0")), Ordering::Less);
        assert!(of("v1.34.0+rke2r1").is_same(&of("1.34.0")) && !of("v1.34.0-rc.0").is_same(&of("v1.34.0")));
        assert_eq!(of("1.34.0+rke2r1").to_string(), "v1.34.0+rke2r1");
        let all =
            [machine(true, json!("v1.36.0-rc.1"), Value::Null), machine(true, json!("v1.36.0"), Value::Null)];
        assert_eq!(running(json!({}), &all).0, some("v1.36.0-rc.1"));
    }
}
