//! The service accounts, the StorageClass and the CSIDriver of the EFS CSI driver. Left out is the right to
//! read Secrets, which only file systems of other accounts need.

use crate::config::StorageClass;
use plugin_sdk::objects::{
    READ, cluster_role, cluster_role_binding, role, role_binding, rule, service_account,
};
use plugin_sdk::settings;
use plugin_sdk::steps::Object;
use serde_json::{Value, json};

pub const NAMESPACE: &str = "kube-system";
pub const DRIVER: &str = "efs.csi.aws.com";
pub const CONTROLLER: &str = "efs-csi-controller";
pub const NODE: &str = "efs-csi-node";
pub const CONTROLLER_ACCOUNT: &str = "efs-csi-controller-sa";
pub const NODE_ACCOUNT: &str = "efs-csi-node-sa";

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const STORAGE: &str = "storage.k8s.io";
const PROVISIONER_ROLE: &str = "efs-csi-external-provisioner-role";
const PROVISIONER_BINDING: &str = "efs-csi-provisioner-binding";
const NODE_ROLE: &str = "efs-csi-node-role";
const NODE_BINDING: &str = "efs-csi-node-binding";
const LEASES: &str = "efs-csi-leases-role";

pub const DEPLOYMENT: Object<'static> =
    Object { api_version: "apps/v1", kind: "Deployment", namespace: Some(NAMESPACE), name: CONTROLLER };
pub const DAEMON_SET: Object<'static> =
    Object { api_version: "apps/v1", kind: "DaemonSet", namespace: Some(NAMESPACE), name: NODE };
pub const CSI_DRIVER: Object<'static> =
    Object { api_version: "storage.k8s.io/v1", kind: "CSIDriver", namespace: None, name: DRIVER };

/// The service accounts and what they may do.
pub fn access() -> Vec<Value> {
    let provisioner = vec![
        rule("", &["persistentvolumes"], &["create", "delete", "get", "list", "patch", "watch"]),
        rule("", &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
        rule("", &["nodes"], READ),
        rule("", &["events"], &["create", "list", "patch", "watch"]),
        rule(STORAGE, &["csinodes", "storageclasses"], READ),
    ];
    // It takes away the taint with which nodes may start, and learns from them where it is.
    let node = vec![
        rule("", &["nodes"], &["get", "list", "patch", "watch"]),
        rule(STORAGE, &["csinodes"], &["get"]),
    ];
    let leases = rule(
        "coordination.k8s.io",
        &["leases"],
        &["create", "delete", "get", "list", "patch", "update", "watch"],
    );
    vec![
        service_account(NAMESPACE, CONTROLLER_ACCOUNT),
        service_account(NAMESPACE, NODE_ACCOUNT),
        cluster_role(PROVISIONER_ROLE, provisioner),
        cluster_role_binding(PROVISIONER_BINDING, PROVISIONER_ROLE, NAMESPACE, CONTROLLER_ACCOUNT),
        cluster_role(NODE_ROLE, node),
        cluster_role_binding(NODE_BINDING, NODE_ROLE, NAMESPACE, NODE_ACCOUNT),
        role(NAMESPACE, LEASES, vec![leases]),
        role_binding(NAMESPACE, LEASES, LEASES, CONTROLLER_ACCOUNT),
    ]
}

/// Names of what [`access`] makes, for the removal: bindings before what they bind.
pub fn references() -> [Object<'static>; 8] {
    let cluster_wide =
        |kind: &'static str, name: &'static str| Object { api_version: RBAC, kind, namespace: None, name };
    let local = |api_version: &'static str, kind: &'static str, name: &'static str| Object {
        api_version,
        kind,
        namespace: Some(NAMESPACE),
        name,
    };
    [
        cluster_wide("ClusterRoleBinding", PROVISIONER_BINDING),
        cluster_wide("ClusterRoleBinding", NODE_BINDING),
        cluster_wide("ClusterRole", PROVISIONER_ROLE),
        cluster_wide("ClusterRole", NODE_ROLE),
        local(RBAC, "RoleBinding", LEASES),
        local(RBAC, "Role", LEASES),
        local("v1", "ServiceAccount", CONTROLLER_ACCOUNT),
        local("v1", "ServiceAccount", NODE_ACCOUNT),
    ]
}

pub fn csi_driver() -> Value {
    json!({
        "apiVersion": CSI_DRIVER.api_version, "kind": CSI_DRIVER.kind, "metadata": { "name": DRIVER },
        "spec": { "attachRequired": false },
    })
}

/// Volumes of this class are directories of the file system, each reached by an access point of its own.
pub fn storage_class(file_system: &str, class: &StorageClass, is_default: bool) -> Value {
    let (first, last) = class.gids();
    let mut parameters = json!({
        "provisioningMode": "efs-ap",
        "fileSystemId": file_system,
        "directoryPerms": class.directory_permissions.as_deref().unwrap_or("700"),
        "gidRangeStart": first.to_string(),
        "gidRangeEnd": last.to_string(),
    });
    let numbers =
        [("uid", class.uid), ("gid", class.gid)].map(|(name, id)| (name, id.map(|it| it.to_string())));
    let texts = [("basePath", &class.base_path), ("subPathPattern", &class.sub_path_pattern)]
        .map(|(name, text)| (name, text.clone()));
    let unique =
        class.ensure_unique_directory.filter(|_| class.sub_path_pattern.is_some()).map(|it| it.to_string());
    for (name, value) in numbers.into_iter().chain(texts).chain([("ensureUniqueDirectory", unique)]) {
        if let Some(value) = value {
            parameters[name] = value.into();
        }
    }
    let mut object = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": settings::class_metadata(class.name(), is_default),
        "provisioner": DRIVER,
        "parameters": parameters,
        "reclaimPolicy": class.reclaim_policy.unwrap_or_default().as_str(),
        // A file system is reached from every zone.
        "volumeBindingMode": "Immediate",
    });
    if !class.mount_options.is_empty() {
        object["mountOptions"] = class.mount_options.clone().into();
    }
    object
}
