//! One look at everything: the objects of the management cluster, the Nodes of the workload cluster, and the
//! AWS account.
//!
//! What cannot be read at the moment is missing from the snapshot; the phases' deadlines are what fails.

use std::time::Duration;

use serde_json::Value;

use crate::bed::Bed;
use crate::emulator::{Account, State};

/// The kinds that are shown, in one question.
const KINDS: &str = "clusters.cluster.x-k8s.io,machines.cluster.x-k8s.io,kubeadmcontrolplanes.controlplane.cluster.x-k8s.io,\
                     awsclusters.infrastructure.cluster.x-k8s.io,awsmachines.infrastructure.cluster.x-k8s.io,\
                     clusterplugins.cluster.kurator.dev";
/// An API server that goes away may not stop the show.
const WORKLOAD_TIMEOUT: Duration = Duration::from_secs(5);

/// A line of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub branch: &'static str,
    pub name: String,
    pub state: String,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// `None` when the management cluster did not answer.
    objects: Option<Vec<Value>>,
    pub nodes: Vec<Value>,
    /// `None` when the emulator did not answer.
    pub account: Option<Account>,
    pub rows: Vec<Row>,
}

impl Snapshot {
    /// Looks at everything that belongs to the cluster `name`.
    pub async fn take(bed: &Bed, namespace: &str, name: &str) -> Self {
        let management = ["get", KINDS, "--namespace", namespace];
        let emulator = bed.emulator();
        let (objects, account, state) =
            tokio::join!(bed.kubectl_json(&management), emulator.account(), emulator.world());
        let objects = objects.ok().and_then(|list| list["items"].as_array().cloned());
        let mut snapshot = Self { objects, account: account.ok(), ..Self::default() };
        if snapshot.api_answers() {
            snapshot.nodes = nodes(bed, namespace, name).await;
        }
        snapshot.rows = snapshot.rows(&state.unwrap_or_default());
        snapshot
    }

    /// Whether the management cluster was read at all: nothing seen is not the same as nothing there.
    pub fn read(&self) -> Result<(), String> {
        self.objects.as_ref().map(drop).ok_or_else(|| "the management cluster does not answer".to_owned())
    }

    /// The objects of a kind.
    pub fn objects<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.iter().flatten().filter(move |object| object["kind"] == kind)
    }

    /// The first object of a kind.
    pub fn one(&self, kind: &str) -> Option<&Value> {
        self.objects.iter().flatten().find(|object| object["kind"] == kind)
    }

    fn api_answers(&self) -> bool {
        let initialized =
            |cluster: &Value| cluster["status"]["initialization"]["controlPlaneInitialized"] == true;
        let stays = |machine: &Value| machine["metadata"]["deletionTimestamp"].is_null();
        self.one("Cluster").is_some_and(initialized) && self.objects("AWSMachine").any(stays)
    }

    fn rows(&self, state: &State) -> Vec<Row> {
        let mut rows = Vec::new();
        for kind in ["Cluster", "AWSCluster", "KubeadmControlPlane"] {
            rows.extend(self.objects(kind).map(|object| row("Cluster", kind, object_state(object))));
        }
        for (kind, ids) in self.account.iter().flatten().filter(|(_, ids)| !ids.is_empty()) {
            match kind.as_str() {
                "instance" => rows
                    .extend(ids.iter().map(|id| row("AWS", format!("instance {id}"), instance(state, id)))),
                "load-balancer" => {
                    rows.extend(ids.iter().map(|id| {
                        row("AWS", format!("load-balancer {}", short(id)), load_balancer(state, id))
                    }))
                }
                _ => rows.push(row(
                    "AWS",
                    kind.clone(),
                    ids.iter().map(|id| short(id)).collect::<Vec<_>>().join(" "),
                )),
            }
        }
        rows.extend(
            self.objects("Machine").map(|machine| row("Machines", name(machine), object_state(machine))),
        );
        rows.extend(self.nodes.iter().map(|node| row("Nodes", name(node), node_state(node))));
        for plugin in self
            .objects("ClusterPlugin")
            .filter_map(|object| object["status"]["plugins"].as_array())
            .flatten()
        {
            let text = |field: &str| plugin[field].as_str().unwrap_or_default();
            rows.push(row(
                "Plugins",
                format!("{} {}", text("name"), text("version")),
                with_reason(text("phase"), text("waitingFor")),
            ));
        }
        rows
    }
}

async fn nodes(bed: &Bed, namespace: &str, name: &str) -> Vec<Value> {
    let ask = async {
        let nodes = bed.workload(namespace, name).await.ok()?.kubectl_json(&["get", "nodes"]).await.ok()?;
        nodes["items"].as_array().cloned()
    };
    tokio::time::timeout(WORKLOAD_TIMEOUT, ask).await.ok().flatten().unwrap_or_default()
}

/// Status of a condition; empty when the object has none.
pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    find(object, kind).and_then(|found| found["status"].as_str()).unwrap_or_default()
}

/// What a condition says, in one line.
pub fn message(object: &Value, kind: &str) -> String {
    let Some(found) = find(object, kind) else {
        return format!("{} has no condition {kind} yet", name(object));
    };
    let (reason, text) =
        (found["reason"].as_str().unwrap_or_default(), found["message"].as_str().unwrap_or_default());
    with_reason(reason, text)
}

fn find<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn object_state(object: &Value) -> String {
    let deleting = !object["metadata"]["deletionTimestamp"].is_null();
    let phase = object["status"]["phase"].as_str();
    let word =
        if deleting { "Deleting" } else { phase.unwrap_or(if ready(object) { "Ready" } else { "NotReady" }) };
    if ready(object) && !deleting {
        return word.to_owned();
    }
    let said = ["Ready", "Available"].into_iter().find(|kind| find(object, kind).is_some());
    with_reason(word, &said.map(|kind| message(object, kind)).unwrap_or_default())
}

fn ready(object: &Value) -> bool {
    ["Ready", "Available"].iter().any(|kind| condition(object, kind) == "True")
}

fn node_state(node: &Value) -> String {
    if condition(node, "Ready") == "True" {
        "Ready".to_owned()
    } else {
        with_reason("NotReady", &message(node, "Ready"))
    }
}

fn instance(state: &State, id: &str) -> String {
    let Some(found) = state.instances.iter().find(|instance| instance.id == id) else { return String::new() };
    format!("{} {} {}", found.state, found.private_ip.as_deref().unwrap_or_default(), found.instance_type)
}

fn load_balancer(state: &State, id: &str) -> String {
    let found =
        state.load_balancers.iter().find(|found| found.name == id || found.arn.as_deref() == Some(id));
    found
        .map(|found| format!("{} {}, {} registered", found.kind, found.state, found.targets.len()))
        .unwrap_or_default()
}

/// The part of an ARN that people recognize.
fn short(id: &str) -> &str {
    if id.starts_with("arn:") { id.rsplit(':').next().unwrap_or(id) } else { id }
}

fn row(branch: &'static str, name: impl Into<String>, state: impl Into<String>) -> Row {
    Row { branch, name: name.into(), state: state.into() }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Joins a word and its explanation into one line.
fn with_reason(word: &str, explanation: &str) -> String {
    let lines: Vec<&str> = explanation.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { word.to_owned() } else { format!("{word}: {}", lines.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_that_is_not_ready_says_why() {
        let conditions = json!([{ "type": "Ready", "status": "False", "reason": "Creating", "message": "* vpc: creating\n" }]);
        let object = json!({ "metadata": { "name": "a" }, "status": { "conditions": conditions } });
        assert_eq!(object_state(&object), "NotReady: Creating: * vpc: creating");
    }

    #[test]
    fn a_ready_object_is_said_in_one_word() {
        let conditions = json!([{ "type": "Ready", "status": "True" }]);
        let object = json!({ "metadata": {}, "status": { "phase": "Running", "conditions": conditions } });
        assert_eq!(object_state(&object), "Running");
    }

    #[test]
    fn a_cluster_that_was_not_read_does_not_count_as_gone() {
        assert!(Snapshot::default().read().is_err());
    }
}
