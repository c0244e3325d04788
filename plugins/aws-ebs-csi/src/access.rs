//! The service accounts of the EBS CSI driver and what they may do. The program of the nodes has no rights in
//! AWS.

use crate::objects::NAMESPACE;
use plugin_sdk::objects::{
    READ, cluster_role, cluster_role_binding, role, role_binding, rule, service_account,
};
use plugin_sdk::steps::Object;
use serde_json::Value;

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const STORAGE: &str = "storage.k8s.io";
const SNAPSHOT: &str = "snapshot.storage.k8s.io";
const LEASES: &str = "ebs-csi-leases-role";

pub const CONTROLLER: &str = "ebs-csi-controller-sa";
pub const NODE: &str = "ebs-csi-node-sa";

/// ClusterRole, its ClusterRoleBinding, and whose it is. One per sidecar, so that each right can be traced to
/// the program that wants it.
const ROLES: [(&str, &str, &str); 5] = [
    ("ebs-external-provisioner-role", "ebs-csi-provisioner-binding", CONTROLLER),
    ("ebs-external-attacher-role", "ebs-csi-attacher-binding", CONTROLLER),
    ("ebs-external-resizer-role", "ebs-csi-resizer-binding", CONTROLLER),
    ("ebs-external-snapshotter-role", "ebs-csi-snapshotter-binding", CONTROLLER),
    ("ebs-csi-node-role", "ebs-csi-node-getter-binding", NODE),
];
const SNAPSHOTTER: &str = ROLES[3].0;

/// All of it; what only the sidecar for snapshots needs is left out without it.
pub fn objects(snapshots: bool) -> Vec<Value> {
    let mut all = vec![service_account(NAMESPACE, CONTROLLER), service_account(NAMESPACE, NODE)];
    let roles = ROLES.into_iter().filter(|(role, ..)| snapshots || *role != SNAPSHOTTER);
    for (role, binding, account) in roles {
        all.push(cluster_role(role, rules(role)));
        all.push(cluster_role_binding(binding, role, NAMESPACE, account));
    }
    let leases = rule(
        "coordination.k8s.io",
        &["leases"],
        &["create", "delete", "get", "list", "patch", "update", "watch"],
    );
    all.push(role(NAMESPACE, LEASES, vec![leases]));
    all.push(role_binding(NAMESPACE, LEASES, LEASES, CONTROLLER));
    all
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

/// Names of it all, for the removal: bindings before what they bind.
pub fn references() -> Vec<Object<'static>> {
    let cluster_wide =
        |kind: &'static str, name: &'static str| Object { api_version: RBAC, kind, namespace: None, name };
    let local = |api_version: &'static str, kind: &'static str, name: &'static str| Object {
        api_version,
        kind,
        namespace: Some(NAMESPACE),
        name,
    };
    let mut all: Vec<Object<'static>> =
        ROLES.iter().map(|(_, binding, _)| cluster_wide("ClusterRoleBinding", binding)).collect();
    all.extend(ROLES.iter().map(|(role, ..)| cluster_wide("ClusterRole", role)));
    all.extend([
        local(RBAC, "RoleBinding", LEASES),
        local(RBAC, "Role", LEASES),
        local("v1", "ServiceAccount", CONTROLLER),
        local("v1", "ServiceAccount", NODE),
    ]);
    all
}
