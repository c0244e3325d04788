//! What is in a cluster at one time, and what of it is another later.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use end_to_end::add_ons::plugin;
use end_to_end::{Cluster, condition, condition_text};
use sandbox::{Bed, Workload};
use serde_json::Value;

use super::items_of;

/// What comes and goes by itself.
const PASSING: [&str; 8] = [
    "controllerrevisions.apps",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "pods",
    "replicasets.apps",
];
const WORKLOADS: [&str; 2] = ["DaemonSet", "Deployment"];

/// A cluster as it is at one time.
pub struct Seen {
    name: String,
    objects: BTreeMap<String, Value>,
}

impl Seen {
    pub async fn of(bed: &Bed, cluster: &Cluster) -> Result<Seen> {
        let workload: Workload<'_> = bed.workload(&cluster.namespace, &cluster.name).await?;
        let kinds = workload.kubectl(&["api-resources", "--verbs=list", "--output=name"]).await?;
        let kinds: Vec<&str> = kinds.lines().filter(|it| !PASSING.contains(it)).collect();
        let all = workload.kubectl_json(&["get", &kinds.join(","), "--all-namespaces"]).await?;
        let name = |object: &Value| {
            format!("{} {}/{}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
                .replace('"', "")
        };
        let mut objects: BTreeMap<String, Value> = items_of(&all).map(|it| (name(it), it.clone())).collect();
        let ours = [cluster.object(bed, "awscluster", &cluster.name).await?, plugin(bed, cluster).await?];
        let machines = cluster.objects(bed, "awsmachines").await?;
        objects.extend(machines.into_iter().chain(ours).map(|it| (name(&it), it)));
        Ok(Seen { name: cluster.name.clone(), objects })
    }

    /// What the operator wrote in the cluster meanwhile.
    pub fn written(&self, now: &Seen) -> Vec<String> {
        let is_ours = |object: &Value| {
            let managers = object["metadata"]["managedFields"].as_array().into_iter().flatten();
            managers.filter_map(|it| it["manager"].as_str()).any(|it| it.starts_with("cluster-operator"))
        };
        let is_written = |name: &str, object: &Value| {
            let mut changes = Vec::new();
            differences(&self.objects[name], object, String::new(), &mut changes);
            !changes.is_empty()
        };
        let in_cluster =
            now.objects.iter().filter(|(_, object)| is_ours(object) && !is_ours_to_manage(object));
        let written =
            in_cluster.filter(|(name, object)| !self.objects.contains_key(*name) || is_written(name, object));
        written.map(|(name, _)| format!("{}: {name}", self.name)).collect()
    }

    /// Prints what is another now, and what was told on the way. What must not be.
    pub fn compare(&self, now: &Seen, told: &BTreeSet<String>) -> Vec<String> {
        println!("{}: told on the way: {told:#?}", self.name);
        let mut wrong: Vec<String> = told.iter().filter(|it| !it.contains("\"Creating\"")).cloned().collect();
        for (name, before) in &self.objects {
            let Some(after) = now.objects.get(name) else {
                wrong.push(format!("{}: {name} is gone", self.name));
                continue;
            };
            if before["metadata"]["uid"] != after["metadata"]["uid"] {
                wrong.push(format!("{}: {name} is another one", self.name));
            }
            wrong.extend(not_good(before, after).map(|it| format!("{}: {name}: {it}", self.name)));
            let mut changes = Vec::new();
            differences(before, after, String::new(), &mut changes);
            if changes.is_empty() {
                continue;
            }
            let restarts = WORKLOADS.iter().any(|it| before["kind"] == *it)
                && before["spec"]["template"] != after["spec"]["template"];
            println!(
                "{}: {name}{}\n    {}",
                self.name,
                if restarts { ": ITS PODS RESTART" } else { "" },
                changes.join("\n    ")
            );
        }
        for name in now.objects.keys().filter(|it| !self.objects.contains_key(*it)) {
            println!("{}: {name} is new", self.name);
        }
        wrong
    }
}

/// Whether an object is one of the management cluster.
fn is_ours_to_manage(object: &Value) -> bool {
    ["AWSCluster", "AWSMachine", "ClusterPlugin"].iter().any(|kind| object["kind"] == *kind)
}

/// Whether all is well when a condition is True.
pub fn is_good_news(condition: &Value) -> bool {
    condition["type"].as_str().is_some_and(|it| it.ends_with("Ready") || it.ends_with("Available"))
}

/// Conditions that were good and are not any more.
fn not_good<'a>(before: &'a Value, after: &'a Value) -> impl Iterator<Item = String> + 'a {
    let good = before["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|it| is_good_news(it) && it["status"] == "True");
    let kinds = good.filter_map(|it| it["type"].as_str());
    kinds
        .filter(|it| condition(after, it) != "True")
        .map(|it| format!("{it} was True: {}", condition_text(after, it)))
}

/// Paths at which two objects differ, what servers and controllers write aside.
fn differences(before: &Value, after: &Value, path: String, found: &mut Vec<String>) {
    if ["/status", "/metadata/resourceVersion", "/metadata/generation", "/metadata/managedFields"]
        .contains(&path.as_str())
        || before == after
    {
        return;
    }
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            keys.into_iter()
                .for_each(|key| differences(&before[key], &after[key], format!("{path}/{key}"), found));
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            one.iter()
                .zip(other)
                .enumerate()
                .for_each(|(n, (one, other))| differences(one, other, format!("{path}/{n}"), found));
        }
        _ => {
            let short = |it: &Value| it.to_string().chars().take(300).collect::<String>();
            found.push(format!("{path}: {} -> {}", short(before), short(after)));
        }
    }
}
