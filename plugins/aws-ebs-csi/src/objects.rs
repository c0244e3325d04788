//! The StorageClass, the CSIDriver and the budget for disruptions of the EBS CSI driver.

use crate::config::StorageClass;
use plugin_sdk::settings;
use plugin_sdk::steps::Object;
use serde_json::{Value, json};

pub const NAMESPACE: &str = "kube-system";
pub const DRIVER: &str = "ebs.csi.aws.com";
pub const CONTROLLER: &str = "ebs-csi-controller";
pub const NODE: &str = "ebs-csi-node";

pub const DEPLOYMENT: Object<'static> =
    Object { api_version: "apps/v1", kind: "Deployment", namespace: Some(NAMESPACE), name: CONTROLLER };
pub const DAEMON_SET: Object<'static> =
    Object { api_version: "apps/v1", kind: "DaemonSet", namespace: Some(NAMESPACE), name: NODE };
pub const CSI_DRIVER: Object<'static> =
    Object { api_version: "storage.k8s.io/v1", kind: "CSIDriver", namespace: None, name: DRIVER };
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
    json!({ "apiVersion": CSI_DRIVER.api_version, "kind": CSI_DRIVER.kind, "metadata": { "name": DRIVER }, "spec": spec })
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
        "provisioner": DRIVER,
        "parameters": parameters,
        "reclaimPolicy": class.reclaim_policy.unwrap_or_default().as_str(),
        // A volume is of one zone, so the Pod is placed first.
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
}
