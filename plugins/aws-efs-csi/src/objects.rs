//! The service accounts, the StorageClass and the CSIDriver of the EFS CSI driver. Left out is the right to
//! read Secrets, which only file systems of other accounts need.

use crate::storage_class::StorageClass;
use plugin_sdk::csi::{Driver, Role};
use plugin_sdk::objects::{READ, rule};
use plugin_sdk::settings;
use plugin_sdk::steps::Object;
use serde_json::{Value, json};

const CONTROLLER_ACCOUNT: &str = "efs-csi-controller-sa";
const NODE_ACCOUNT: &str = "efs-csi-node-sa";
const STORAGE: &str = "storage.k8s.io";
const NODE_ROLE: &str = "efs-csi-node-role";

pub const DRIVER: Driver = Driver {
    name: "efs.csi.aws.com",
    controller: "efs-csi-controller",
    node: "efs-csi-node",
    controller_account: CONTROLLER_ACCOUNT,
    node_account: NODE_ACCOUNT,
    leases: "efs-csi-leases-role",
    roles: &[
        Role {
            name: "efs-csi-external-provisioner-role",
            binding: "efs-csi-provisioner-binding",
            account: CONTROLLER_ACCOUNT,
        },
        Role { name: NODE_ROLE, binding: "efs-csi-node-binding", account: NODE_ACCOUNT },
    ],
};

/// What a ClusterRole of the driver allows.
pub fn rules(role: &str) -> Vec<Value> {
    if role == NODE_ROLE {
        // It takes away the taint with which nodes may start, and learns from them where it is.
        return vec![
            rule("", &["nodes"], &["get", "list", "patch", "watch"]),
            rule(STORAGE, &["csinodes"], &["get"]),
        ];
    }
    vec![
        rule("", &["persistentvolumes"], &["create", "delete", "get", "list", "patch", "watch"]),
        rule("", &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
        rule("", &["nodes"], READ),
        rule("", &["events"], &["create", "list", "patch", "watch"]),
        rule(STORAGE, &["csinodes", "storageclasses"], READ),
    ]
}

pub fn csi_driver() -> Value {
    let Object { api_version, kind, name, .. } = DRIVER.csi_driver();
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": { "name": name },
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
        "provisioner": DRIVER.name,
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
