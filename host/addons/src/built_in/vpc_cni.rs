//! The Amazon VPC CNI, which gives Pods addresses of the VPC.

use serde_json::Value;

use super::builder::{
    APPLY, DELETE, IAM_ROLE, Objects, READ, Rights, SECURITY_GROUP_RULE, SYSTEM, WAIT, grant, rights,
};
use super::{BuiltIn, to_value};
use crate::Slot;
use crate::grant::{Grants, RBAC};

pub const ADD_ON: BuiltIn = BuiltIn {
    name: "aws-vpc-cni",
    slot: Slot::Networking,
    path: "spec.networking.amazonVPC",
    settings: |spec| spec.networking.as_ref()?.amazon_vpc.as_ref().map(to_value),
    image_path: "",
    grants,
    driver: None,
};

fn grants(_: &Value) -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["aws-node"]),
        ("apps", &["DaemonSet"], SYSTEM, &["aws-node"]),
        (RBAC, &["ClusterRole", "ClusterRoleBinding"], "", &["aws-node"]),
        ("apiextensions.k8s.io", &["CustomResourceDefinition"], "", &["eniconfigs.crd.k8s.amazonaws.com"]),
        // They have names of zones.
        ("crd.k8s.amazonaws.com", &["ENIConfig"], "", &[]),
    ];
    // One for each partition.
    let registries = [
        "602401143452.dkr.ecr.us-west-2.amazonaws.com",
        "961992271922.dkr.ecr.cn-northwest-1.amazonaws.com.cn",
        "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com",
    ];
    let allowed: &[Rights<'_>] = &[
        ("", &["crd.k8s.amazonaws.com"], &["eniconfigs"], READ),
        ("", &[""], &["namespaces", "nodes", "pods"], READ),
        ("", &["", "events.k8s.io"], &["events"], &["create", "list", "patch"]),
        ("", &["vpcresources.k8s.aws"], &["cninodes"], &["get", "list", "patch", "watch"]),
    ];
    let rest = grant(&[APPLY, WAIT, DELETE, SECURITY_GROUP_RULE, IAM_ROLE], &registries, objects);
    Grants { rights: rights(allowed), host: true, ..rest }
}
