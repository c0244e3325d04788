//! The StorageClass, the CSIDriver and the budget for disruptions of the EBS CSI driver.

use crate::config::StorageClass;
use plugin_sdk::csi::{Driver, NAMESPACE, Role};
use plugin_sdk::settings;
use plugin_sdk::steps::Object;
use serde_json::{Value, json};

const CONTROLLER: &str = "ebs-csi-controller";
const CONTROLLER_ACCOUNT: &str = "ebs-csi-controller-sa";
const NODE_ACCOUNT: &str = "ebs-csi-node-sa";

pub const DRIVER: Driver = Driver {
    name: "ebs.csi.aws.com",
    controller: CONTROLLER,
    node: "ebs-csi-node",
    controller_account: CONTROLLER_ACCOUNT,
    node_account: NODE_ACCOUNT,
    leases: "ebs-csi-leases-role",
    // One per sidecar, so that each right can be traced to the program that wants it.
    roles: &[
        of_controller("ebs-external-provisioner-role", "ebs-csi-provisioner-binding"),
        of_controller("ebs-external-attacher-role", "ebs-csi-attacher-binding"),
        of_controller("ebs-external-resizer-role", "ebs-csi-resizer-binding"),
        of_controller("ebs-external-snapshotter-role", "ebs-csi-snapshotter-binding"),
        Role { name: "ebs-csi-node-role", binding: "ebs-csi-node-getter-binding", account: NODE_ACCOUNT },
    ],
};

const fn of_controller(name: &'static str, binding: &'static str) -> Role {
    Role { name, binding, account: CONTROLLER_ACCOUNT }
}

pub const BUDGET: Object<'static> = Object {
    api_version: "policy/v1",
    kind: "PodDisruptionBudget",
    namespace: Some(NAMESPACE),
    name: CONTROLLER,
};

/// Tells Kubernetes what the driver can do. `updates_allocatable` when Kubernetes knows the field: others
/// refuse it.
pub fn csi_driver(updates_allocatable: bool) -> Value {
    let mut spec = json!({ "attachRequired": true, "podInfoOnMount": false, "fsGroupPolicy": "File" });
    if updates_allocatable {
        spec["nodeAllocatableUpdatePeriodSeconds"] = 10.into();
    }
    let Object { api_version, kind, name, .. } = DRIVER.csi_driver();
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

pub fn budget() -> Value {
    json!({
        "apiVersion": BUDGET.api_version, "kind": BUDGET.kind,
        "metadata": { "name": CONTROLLER, "namespace": NAMESPACE },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": CONTROLLER } } },
    })
}

pub fn storage_class(class: &StorageClass, is_default: bool) -> Value {
    let mut parameters = json!({
        "type": class.volume_type(),
        "encrypted": if class.is_encrypted() { "true" } else { "false" },
        "csi.storage.k8s.io/fstype": class.fs_type(),
    });
    let more = [
        ("iops", class.iops.map(|it| it.to_string())),
        ("throughput", class.throughput.map(|it| it.to_string())),
    ];
    for (name, value) in more.into_iter().chain([("kmsKeyId", class.kms_key_id.clone())]) {
        if let Some(value) = value {
            parameters[name] = value.into();
        }
    }
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": settings::class_metadata(class.name(), is_default),
        "provisioner": DRIVER.name,
        "parameters": parameters,
        "reclaimPolicy": class.reclaim_policy.unwrap_or_default().as_str(),
        // A volume is of one zone, so the Pod is placed first.
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
}
