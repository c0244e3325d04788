//! The add-ons of AWS through the real host call: what they plan for default and other settings, in which
//! order they come and go, and what they refuse.

#[path = "../common/mod.rs"]
mod common;
mod objects;
mod order;
mod plans;
mod refusals;
mod roles;

use common::plans::{complete, outline};
use common::request;
use contract::{AddOnPlan, Operation, Step};
use expect_test::Expect;
use serde_json::{Value, json};

const VPC_CNI: &str = "aws-vpc-cni";
const EBS: &str = "aws-ebs-csi";
const EFS: &str = "aws-efs-csi";
const CONTROLLER: &str = "aws-load-balancer-controller";
const ALL: [&str; 4] = [VPC_CNI, EBS, EFS, CONTROLLER];

const ROLE: &str = "arn:aws:iam::123456789012:role/add-on";

/// Settings other than the default ones, as many as there are.
fn settings(name: &str) -> Value {
    let tolerations =
        json!([{ "key": "dedicated", "operator": "Equal", "value": "system", "effect": "NoSchedule" }]);
    match name {
        VPC_CNI => json!({
            "roleARN": ROLE, "prefixDelegation": true, "warmENITarget": 0, "warmIPTarget": 4, "minimumIPTarget": 16, "warmPrefixTarget": 2,
            "excludeSNATCIDRs": ["10.1.0.0/16", "10.2.0.0/16"], "mtu": 1500, "podMTU": 1450, "maxENI": 3,
            "nodeSelector": { "pool": "a" }, "logLevel": "Debug", "extraEnv": { "DISABLE_METRICS": "true", "IP_COOLDOWN_PERIOD": "60" },
            "imagePullSecrets": [{ "name": "mirror" }],
            "customNetworking": [{ "zone": "us-east-1a", "subnetID": "subnet-0a", "securityGroupIDs": ["sg-0a"] }],
            "resources": { "cpu": "50m" }, "imageRegistry": "registry.example.com/cni", "imageTag": "v1.23.1",
        }),
        EBS => json!({
            "roleARN": ROLE, "replicas": 1, "resources": { "cpu": "20m", "memory": "64Mi" }, "tolerations": tolerations, "snapshots": true,
            "storageClass": { "name": "fast", "default": "Always", "type": "io2", "iops": 4000, "kmsKeyID": "arn:aws:kms:us-east-1:123456789012:key/k",
                "fsType": "xfs", "reclaimPolicy": "Retain" },
            "storageClasses": [{ "name": "cold", "type": "sc1", "encrypted": false, "reclaimPolicy": "Retain" }],
            "volumeAttachLimit": 20, "nodeSelector": { "pool": "system" }, "logLevel": "Debug",
            "extraArgs": { "batching": "false", "logging-format": "json" },
            "imagePullSecrets": [{ "name": "mirror" }], "imageRegistry": "registry.example.com", "imageTag": "v1.64.0",
        }),
        EFS => json!({
            "roleARN": ROLE, "fileSystemID": "fs-0123456789abcdef0", "deleteDirectories": true, "tagAccessPoints": true, "replicas": 1, "resources": { "memory": "64Mi" },
            "tolerations": tolerations, "nodeSelector": { "pool": "system" }, "logLevel": "Debug",
            "extraArgs": { "adaptive-retry-mode": "false", "vol-metrics-opt-in": "true", "vol-metrics-refresh-period": "60" },
            "storageClass": { "name": "shared", "default": "IfNone", "directoryPermissions": "755", "basePath": "/pods",
                "subPathPattern": "${.PVC.namespace}/${.PVC.name}", "ensureUniqueDirectory": false, "uid": 1000, "gid": 1000,
                "gidRangeStart": 1000, "gidRangeEnd": 2000, "mountOptions": ["iam"], "reclaimPolicy": "Retain" },
            "imagePullSecrets": [{ "name": "mirror" }], "imageRegistry": "registry.example.com", "imageTag": "v3.4.2",
        }),
        _ => json!({
            "roleARN": ROLE, "replicas": 3, "resources": { "cpu": "200m" }, "tolerations": tolerations, "targetType": "ip",
            "ingressClass": { "name": "public", "default": true, "scheme": "internet-facing" }, "serviceMutatorWebhook": true, "waf": true,
            "shield": true, "nodeSelector": { "pool": "system" }, "logLevel": "Debug", "extraArgs": { "sync-period": "1h" },
            "defaultScheme": "internet-facing", "defaultSSLPolicy": "ELBSecurityPolicy-TLS13-1-2-2021-06", "externalManagedTags": ["cost-center"],
            "backendSecurityGroupID": "sg-0b", "imagePullSecrets": [{ "name": "mirror" }], "imageRegistry": "registry.example.com/eks", "imageTag": "v3.5.1",
        }),
    }
}

fn step<'a>(plan: &'a AddOnPlan, id: &str) -> &'a Step {
    plan.steps.iter().find(|step| step.id == id).unwrap_or_else(|| panic!("there is no step {id}"))
}

/// The first object of this kind among those that the plan applies.
fn object<'a>(plan: &'a AddOnPlan, kind: &str) -> &'a Value {
    let mut objects = plan.steps.iter().filter_map(|step| step.spec["objects"].as_array()).flatten();
    objects.find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

fn uninstall(name: &str, config: Value) -> AddOnPlan {
    let mut request = request(config);
    request.operation = Operation::Uninstall;
    complete(name, &request)
}

fn check(steps: &[Step], expected: Expect) {
    expected.assert_eq(&outline(steps));
}

/// Whether a step comes after another one, with others in between or without.
fn comes_after(steps: &[Step], step: &Step, id: &str) -> bool {
    step.after.iter().any(|before| {
        before == id || steps.iter().any(|other| other.id == *before && comes_after(steps, other, id))
    })
}
