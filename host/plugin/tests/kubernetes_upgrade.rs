//! Upgrades of Kubernetes, machine by machine: what the built-in plugins plan at each moment, by the facts that the
//! operator makes of Cluster API's objects. Nothing but the machines changes.

mod common;

use addons::kubernetes_upgrade::{KubernetesUpgrade, Support};
use addons::versions::{RunningVersions, Version};
use common::plans::{complete, plan};
use common::{and_fact, request, with_fact};
use contract::{AddOnPlan, FactValue, Failure, KubeletVersionsFact, Outcome, Request};
use crds::cluster_api::{Cluster, KubeadmControlPlane, Machine};
use plugin::built_in;
use serde_json::{Value, json};

const CCM: &str = "aws-cloud-controller-manager";
const EBS: &str = "aws-ebs-csi";

/// What Cluster API has of a cluster whose control plane is to be of another version.
struct World {
    /// `spec.version` of the control plane.
    wanted: &'static str,
    machines: Vec<Machine>,
    made: usize,
}

impl World {
    fn new(version: &'static str) -> World {
        let mut world = World { wanted: version, machines: Vec::new(), made: 0 };
        for _ in 0..3 {
            world.make(true, version, true);
        }
        for _ in 0..2 {
            world.make(false, version, true);
        }
        world
    }

    /// A machine that is made; when it `runs` it has a Node.
    fn make(&mut self, is_control_plane: bool, version: &str, runs: bool) -> String {
        let name = format!("machine-{}", self.made);
        self.made += 1;
        let labels = if is_control_plane {
            json!({"cluster.x-k8s.io/cluster-name": "prod", "cluster.x-k8s.io/control-plane": ""})
        } else {
            json!({"cluster.x-k8s.io/cluster-name": "prod"})
        };
        let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": name, "labels": labels},
            "spec": {"clusterName": "prod", "version": version}});
        self.machines.push(serde_json::from_value(machine).expect("a Machine"));
        if runs {
            self.run(&name);
        }
        name
    }

    fn run(&mut self, name: &str) {
        let machine = self.machine(name);
        let version = machine.spec.version.clone();
        let status = json!({"nodeRef": {"name": name}, "nodeInfo": {"kubeletVersion": version}});
        machine.status = Some(serde_json::from_value(status).expect("a status"));
    }

    fn machine(&mut self, name: &str) -> &mut Machine {
        self.machines.iter_mut().find(|it| it.metadata.name.as_deref() == Some(name)).expect("the machine")
    }

    fn remove(&mut self, name: &str) {
        self.machines.retain(|it| it.metadata.name.as_deref() != Some(name));
    }

    fn of(&self, is_control_plane: bool) -> impl Iterator<Item = &Machine> {
        let is = move |it: &&Machine| {
            let labels = it.metadata.labels.as_ref().expect("labels");
            labels.contains_key("cluster.x-k8s.io/control-plane") == is_control_plane
        };
        self.machines.iter().filter(is)
    }

    /// The first machine that has another version than this.
    fn outdated(&self, is_control_plane: bool, version: &str) -> Option<String> {
        let found = self.of(is_control_plane).find(|it| it.spec.version.as_deref() != Some(version));
        found.and_then(|it| it.metadata.name.clone())
    }

    /// What Cluster API makes of the machines that it sees; it may be one step behind.
    fn control_plane(&self, reported: &[Machine]) -> KubeadmControlPlane {
        let is_control_plane = |it: &&Machine| {
            it.metadata.labels.as_ref().is_some_and(|it| it.contains_key("cluster.x-k8s.io/control-plane"))
        };
        let mut versions: Vec<&str> =
            reported.iter().filter(is_control_plane).filter_map(|it| it.spec.version.as_deref()).collect();
        versions.sort_unstable();
        versions.dedup();
        let all: Vec<Value> = versions.iter().map(|it| json!({"version": it})).collect();
        let object = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": {"name": "prod"}, "spec": {"version": self.wanted},
            "status": {"version": versions.first(), "versions": all}});
        serde_json::from_value(object).expect("a KubeadmControlPlane")
    }

    /// The lowest version of the API servers that are there, told without the code under test.
    fn oldest(&self) -> u32 {
        self.of(true)
            .map(|it| minor(it.spec.version.as_deref().expect("a version")))
            .min()
            .expect("a machine")
    }
}

fn minor(version: &str) -> u32 {
    version.split('.').nth(1).and_then(|it| it.parse().ok()).expect("a minor version")
}

/// What a plugin is asked at this moment.
fn asked(world: &World, control_plane: &KubeadmControlPlane) -> Request {
    let running = RunningVersions::of(Some(control_plane), world.machines.iter());
    let request = with_fact(
        request(json!({})),
        "kubernetes-version",
        FactValue::Present(json!(control_plane.spec.version)),
    );
    let request = and_fact(request, "api-server-version", running.api_server_fact());
    and_fact(request, KubeletVersionsFact::KEY, running.kubelets_fact())
}

fn image(plan: &AddOnPlan) -> String {
    let objects = plan.steps[0].spec["objects"].as_array().expect("objects");
    let daemon_set = objects.iter().find(|it| it["kind"] == "DaemonSet").expect("a DaemonSet");
    daemon_set["spec"]["template"]["spec"]["containers"][0]["image"].as_str().expect("an image").to_owned()
}

/// The plans of all built-in plugins, by what has them rolled out when it changes, and the minor version of the cloud provider's image.
struct Plans {
    all: Vec<(&'static str, String)>,
    cloud_provider: u32,
}

fn plans(request: &Request) -> Plans {
    let cloud_provider = minor(image(&complete(CCM, request)).split_once(':').expect("a tag").1);
    let hash = |name| addons::plan_hash(&complete(name, request), "");
    Plans { all: built_in().iter().map(|it| (it.name, hash(it.name))).collect(), cloud_provider }
}

/// How often each add-on's plan changed, by what was planned at each moment.
fn changes(moments: &[Plans], name: &str) -> usize {
    let of = |plans: &Plans| plans.all.iter().find(|(it, _)| *it == name).expect("it is built in").1.clone();
    moments.windows(2).filter(|pair| of(&pair[0]) != of(&pair[1])).count()
}

/// Rolls one machine after another, as Cluster API does: a new one comes first, and then an old one goes. What is
/// planned is written down, and held against the versions of the machines, at every moment.
struct Rollout {
    world: World,
    moments: Vec<Plans>,
    reported: Vec<Machine>,
}

impl Rollout {
    fn new(from: &'static str) -> Rollout {
        let world = World::new(from);
        let reported = world.machines.clone();
        let mut rollout = Rollout { world, moments: Vec::new(), reported };
        rollout.look();
        rollout
    }

    /// Asks twice: as long as the control plane's own status is behind, and once it is not.
    fn look(&mut self) {
        for reported in [self.reported.clone(), self.world.machines.clone()] {
            let control_plane = self.world.control_plane(&reported);
            let plans = plans(&asked(&self.world, &control_plane));
            assert!(
                plans.cloud_provider <= self.world.oldest(),
                "the cloud provider is of 1.{}, and an API server of 1.{}",
                plans.cloud_provider,
                self.world.oldest()
            );
            self.moments.push(plans);
        }
        self.reported.clone_from(&self.world.machines);
    }

    fn replace_one(&mut self, is_control_plane: bool, old: &str) {
        let new = self.world.make(is_control_plane, self.world.wanted, false);
        self.look();
        self.world.run(&new);
        self.look();
        self.world.remove(old);
        self.look();
    }

    fn replace_all(&mut self, is_control_plane: bool) {
        while let Some(old) = self.world.outdated(is_control_plane, self.world.wanted) {
            self.replace_one(is_control_plane, &old);
        }
    }

    fn finish(mut self) -> Vec<Plans> {
        self.replace_all(true);
        let last = self.moments.last().expect("a moment").cloud_provider;
        assert_eq!(last, minor(self.world.wanted), "the last API server is upgraded");
        let before_workers = self.moments.len();
        self.replace_all(false);
        for moment in &self.moments[before_workers..] {
            assert_eq!(moment.cloud_provider, last);
        }
        self.moments
    }
}

/// How often each plan changes: at first nothing may, whatever the control plane wants.
fn upgraded(from: &'static str, to: &'static str) -> Vec<Plans> {
    let mut rollout = Rollout::new(from);
    rollout.world.wanted = to;
    rollout.look();
    assert!(built_in().iter().all(|it| changes(&rollout.moments, it.name) == 0), "nothing was upgraded yet");
    rollout.finish()
}

fn ensure_changed(moments: &[Plans], changed: &[&str]) {
    for add_on in built_in() {
        let expected = usize::from(changed.contains(&add_on.name));
        assert_eq!(changes(moments, add_on.name), expected, "how often the plan of {} changed", add_on.name);
    }
}

#[test]
fn the_cloud_provider_changes_once_and_after_the_last_api_server() {
    ensure_changed(&upgraded("v1.35.2", "v1.36.0"), &[CCM]);
}

#[test]
fn a_newer_feature_is_used_when_every_api_server_has_it() {
    // How often limits of volumes are looked at, and then classes of attributes.
    ensure_changed(&upgraded("v1.32.9", "v1.33.0"), &[CCM, EBS]);
    ensure_changed(&upgraded("v1.33.4", "v1.34.0"), &[CCM, EBS]);
}

#[test]
fn a_new_patch_changes_no_plan() {
    ensure_changed(&upgraded("v1.36.0", "v1.36.3"), &[]);
}

#[test]
fn a_machine_that_fails_or_is_lost_in_between_changes_nothing_else() {
    let mut rollout = Rollout::new("v1.35.2");
    rollout.world.wanted = "v1.36.0";
    rollout.look();
    // A new one never runs, and is replaced.
    let failed = rollout.world.make(true, "v1.36.0", false);
    rollout.look();
    rollout.world.remove(&failed);
    rollout.look();
    // An old one is lost while a new one starts.
    let old = rollout.world.outdated(true, "v1.36.0").expect("an old machine");
    let new = rollout.world.make(true, "v1.36.0", false);
    rollout.world.remove(&old);
    rollout.look();
    rollout.world.run(&new);
    rollout.look();
    // A new one that ran is lost, and a worker is made that is still of the old version.
    rollout.world.remove(&new);
    rollout.world.make(false, "v1.35.2", true);
    rollout.look();
    // The last old one hangs while it is being deleted: it may still answer.
    while rollout.world.of(true).filter(|it| it.spec.version.as_deref() == Some("v1.35.2")).count() > 1 {
        let old = rollout.world.outdated(true, "v1.36.0").expect("an old machine");
        rollout.replace_one(true, &old);
    }
    let last = rollout.world.outdated(true, "v1.36.0").expect("the last old machine");
    rollout.world.make(true, "v1.36.0", true);
    let deleted: Machine = serde_json::from_value({
        let mut object = serde_json::to_value(&*rollout.world.machine(&last)).expect("a Machine is JSON");
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        object
    })
    .expect("a Machine");
    *rollout.world.machine(&last) = deleted;
    rollout.look();
    assert_eq!(rollout.moments.last().map(|it| it.cloud_provider), Some(35));
    rollout.world.remove(&last);
    rollout.look();
    ensure_changed(&rollout.finish(), &[CCM]);
}

#[test]
fn a_machine_upgraded_in_place_counts_when_it_runs_the_version() {
    let mut rollout = Rollout::new("v1.35.2");
    rollout.world.wanted = "v1.36.0";
    let names: Vec<String> = rollout.world.of(true).filter_map(|it| it.metadata.name.clone()).collect();
    for name in &names {
        rollout.world.machine(name).spec.version = Some("v1.36.0".to_owned());
        let plans = plans(&asked(&rollout.world, &rollout.world.control_plane(&rollout.world.machines)));
        assert_eq!(plans.cloud_provider, 35, "{name} does not run it yet");
        rollout.moments.push(plans);
        rollout.world.run(name);
    }
    rollout.look();
    ensure_changed(&rollout.moments, &[CCM]);
}

#[test]
fn a_cluster_without_a_machine_is_planned_for_what_it_is_to_be() {
    let world = World { machines: Vec::new(), ..World::new("v1.35.2") };
    let control_plane = world.control_plane(&[]);
    assert_eq!(RunningVersions::of(Some(&control_plane), std::iter::empty()), RunningVersions::default());
    assert_eq!(plans(&asked(&world, &control_plane)).cloud_provider, 35);
}

/// What is said before an upgrade, by what the built-in plugins answer for the version that is wanted.
fn readiness(world: &World, topology: Option<&str>) -> (bool, bool) {
    let control_plane = world.control_plane(&world.machines);
    let topology = topology.map_or(Value::Null, |it| json!({"version": it}));
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": "prod"},
        "spec": {"topology": topology}});
    let cluster: Cluster = serde_json::from_value(cluster).expect("a Cluster");
    let running = RunningVersions::of(Some(&control_plane), world.machines.iter()).api_server;
    let upgrade = KubernetesUpgrade::of(&cluster, Some(&control_plane), running.as_ref());
    let version = upgrade.wanted().or(running.as_ref().map(Version::to_string)).expect("a version");
    let mut request = asked(world, &control_plane);
    for key in ["kubernetes-version", "api-server-version"] {
        request = with_fact(request, key, FactValue::Present(json!(version)));
    }
    let support = |name| match plan(name, &request) {
        Ok(Outcome::Complete(_)) => Support::Supported,
        Err(Failure::Unsupported(one)) => Support::Unsupported { why: one.message, upgrade: None },
        other => panic!("{name} answers {other:?}"),
    };
    let said: Vec<(&str, Support)> = built_in().iter().map(|it| (it.name, support(it.name))).collect();
    let said: Vec<(&str, &Support)> = said.iter().map(|(name, support)| (*name, support)).collect();
    let readiness = upgrade.readiness(&said);
    (readiness.is_ready, upgrade.is_held(&readiness, true))
}

#[test]
fn an_upgrade_that_nobody_supports_is_said_and_held_before() {
    let mut world = World::new("v1.36.0");
    assert_eq!(readiness(&world, None), (true, false));
    assert_eq!(readiness(&world, Some("v1.36.0")), (true, true), "none is wanted yet");
    assert_eq!(readiness(&world, Some("v1.36.3")), (true, false), "a patch is supported");
    assert_eq!(readiness(&world, Some("v1.37.0")), (false, true));
    world.wanted = "v1.37.0";
    assert_eq!(readiness(&world, None), (false, false), "of no class: it is only said");
    // What runs is planned as before, until the last API server is gone.
    let request = asked(&world, &world.control_plane(&world.machines));
    assert_eq!(plans(&request).cloud_provider, 36);
}

#[test]
fn a_supported_upgrade_is_let_go_and_the_next_one_is_held_again() {
    let mut world = World::new("v1.35.2");
    let topology = Some("v1.36.0");
    assert_eq!(readiness(&world, topology), (true, false), "it may begin");
    world.wanted = "v1.36.0";
    for _ in 0..3 {
        assert_eq!(readiness(&world, topology), (true, false), "it goes on");
        let old = world.outdated(true, "v1.36.0").expect("an old machine");
        world.make(true, "v1.36.0", true);
        world.remove(&old);
    }
    assert_eq!(readiness(&world, topology), (true, true));
}
