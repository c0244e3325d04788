//! The service accounts of the EBS CSI driver and what they may do. The program of the nodes has no rights in
//! AWS.

use crate::objects::DRIVER;
use plugin_sdk::objects::{READ, rule};
use serde_json::Value;

const STORAGE: &str = "storage.k8s.io";
const SNAPSHOT: &str = "snapshot.storage.k8s.io";
const SNAPSHOTTER: &str = "ebs-external-snapshotter-role";

/// All of it; what only the sidecar for snapshots needs is left out without it.
pub fn objects(snapshots: bool) -> Vec<Value> {
    let roles = DRIVER.roles.iter().filter(|role| snapshots || role.name != SNAPSHOTTER);
    DRIVER.access(roles, rules)
}

fn rules(role: &str) -> Vec<Value> {
    let events = rule("", &["events"], &["create", "list", "patch", "update", "watch"]);
    match role {
        "ebs-external-provisioner-role" => {
            vec![
                rule("", &["persistentvolumes"], &["create", "delete", "get", "list", "patch", "watch"]),
                rule("", &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
                rule(STORAGE, &["csinodes", "storageclasses", "volumeattachments"], READ),
                rule(STORAGE, &["volumeattributesclasses"], &["get"]),
                rule("", &["nodes"], READ),
                events,
                // It looks for snapshots that nobody protects any more wherever a cluster has them, also when
                // it makes none.
                rule(SNAPSHOT, &["volumesnapshots"], &["get", "list", "update", "watch"]),
                rule(SNAPSHOT, &["volumesnapshotcontents"], &["get", "list"]),
            ]
        }
        "ebs-external-attacher-role" => vec![
            rule("", &["persistentvolumes"], &["get", "list", "patch", "watch"]),
            rule(STORAGE, &["csinodes"], READ),
            rule(STORAGE, &["volumeattachments"], &["get", "list", "patch", "watch"]),
            rule(STORAGE, &["volumeattachments/status"], &["patch"]),
        ],
        "ebs-external-resizer-role" => vec![
            rule("", &["persistentvolumes"], &["get", "list", "patch", "watch"]),
            rule("", &["persistentvolumeclaims", "pods"], READ),
            rule("", &["persistentvolumeclaims/status"], &["patch"]),
            rule(STORAGE, &["volumeattributesclasses"], READ),
            events,
        ],
        SNAPSHOTTER => vec![
            rule(SNAPSHOT, &["volumesnapshotclasses"], READ),
            rule(SNAPSHOT, &["volumesnapshotcontents"], &["get", "list", "patch", "update", "watch"]),
            rule(SNAPSHOT, &["volumesnapshotcontents/status"], &["patch", "update"]),
            events,
        ],
        _ => vec![
            // It takes away the taint with which nodes may start, and learns from them where it is.
            rule("", &["nodes"], &["get", "list", "patch", "watch"]),
            rule(STORAGE, &["csinodes"], &["get"]),
            rule(STORAGE, &["volumeattachments"], READ),
        ],
    }
}
