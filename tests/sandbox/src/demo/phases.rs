//! The phases of the demo's cluster, in order, and how each is known to be over. Pure but for their numbers.

use std::time::Duration;

use super::Shape;
use super::snapshot::{Snapshot, condition, message};

/// How often the world is looked at.
pub const POLL: Duration = Duration::from_millis(1500);

/// One phase.
pub struct Phase {
    pub title: &'static str,
    /// On a busy machine with two cores.
    pub timeout: Duration,
    /// What to read when it fails, below the logs' directory.
    pub log: &'static str,
    /// Fails with what is awaited while the phase is not over.
    pub check: fn(&Snapshot, &Shape) -> Result<(), String>,
}

/// From apply to a cluster that works.
pub const CREATE: [Phase; 5] = [
    Phase {
        title: "network and load balancer",
        timeout: Duration::from_secs(300),
        log: "operator.log",
        check: infrastructure,
    },
    Phase {
        title: "control plane",
        timeout: Duration::from_secs(600),
        log: "machine-*-console.log",
        check: control_plane,
    },
    Phase { title: "add-ons", timeout: Duration::from_secs(600), log: "operator.log", check: add_ons },
    Phase { title: "nodes", timeout: Duration::from_secs(600), log: "machine-*-kubelet.log", check: nodes },
    Phase {
        title: "everything available",
        timeout: Duration::from_secs(600),
        log: "capi-controlplane.log",
        check: available,
    },
];

/// From delete to an empty account.
pub const DELETE: [Phase; 3] = [
    Phase {
        title: "add-ons and machines are removed",
        timeout: Duration::from_secs(900),
        log: "operator.log",
        check: machines_gone,
    },
    Phase {
        title: "the cluster is gone",
        timeout: Duration::from_secs(600),
        log: "operator.log",
        check: cluster_gone,
    },
    Phase {
        title: "the AWS account is empty",
        timeout: Duration::from_secs(60),
        log: "aws-calls.jsonl",
        check: account_empty,
    },
];

fn infrastructure(snapshot: &Snapshot, _: &Shape) -> Result<(), String> {
    let object = snapshot.one("AWSCluster").ok_or("there is no AWSCluster")?;
    when(object["status"]["initialization"]["provisioned"] == true, || message(object, "Ready"))
}

fn control_plane(snapshot: &Snapshot, _: &Shape) -> Result<(), String> {
    let object = snapshot.one("Cluster").ok_or("there is no Cluster")?;
    when(object["status"]["initialization"]["controlPlaneInitialized"] == true, || {
        message(object, "ControlPlaneInitialized")
    })
}

fn add_ons(snapshot: &Snapshot, _: &Shape) -> Result<(), String> {
    let object = snapshot.one("ClusterPlugin").ok_or("there is no ClusterPlugin")?;
    when(condition(object, "Ready") == "True", || message(object, "Ready"))
}

fn nodes(snapshot: &Snapshot, shape: &Shape) -> Result<(), String> {
    let wanted = shape.control_planes + shape.workers;
    let ready = snapshot.nodes.iter().filter(|node| condition(node, "Ready") == "True").count();
    when(u32::try_from(ready) == Ok(wanted), || format!("{ready} of {wanted} Nodes are Ready"))
}

fn available(snapshot: &Snapshot, _: &Shape) -> Result<(), String> {
    let object = snapshot.one("Cluster").ok_or("there is no Cluster")?;
    when(condition(object, "Available") == "True", || message(object, "Available"))
}

fn machines_gone(snapshot: &Snapshot, _: &Shape) -> Result<(), String> {
    snapshot.read()?;
    let left = snapshot.objects("Machine").count() + snapshot.objects("AWSMachine").count();
    when(left == 0, || match snapshot.one("ClusterPlugin") {
        Some(object) => message(object, "Ready"),
        None => format!("{left} Machines and AWSMachines are left"),
    })
}

fn cluster_gone(snapshot: &Snapshot, _: &Shape) -> Result<(), String> {
    snapshot.read()?;
    when(snapshot.one("Cluster").is_none(), || match snapshot.one("AWSCluster") {
        Some(object) => message(object, "Ready"),
        None => "the Cluster has finalizers left".to_owned(),
    })
}

fn account_empty(snapshot: &Snapshot, _: &Shape) -> Result<(), String> {
    let account = snapshot.account.as_ref().ok_or("the emulator does not answer")?;
    let left: Vec<String> = account
        .iter()
        .filter(|(_, ids)| !ids.is_empty())
        .map(|(kind, ids)| format!("{kind} {}", ids.join(" ")))
        .collect();
    when(left.is_empty(), || format!("left: {}", left.join(", ")))
}

fn when(over: bool, waiting: impl FnOnce() -> String) -> Result<(), String> {
    if over { Ok(()) } else { Err(waiting()) }
}
