//! The cloud provider of AWS: the cloud controller manager, which completes Nodes.

use serde_json::Value;

use super::builder::{
    APPLY, COORDINATION, DELETE, Objects, Rights, SYSTEM, WAIT, grant, pods, rights, texts,
};
use super::{BuiltIn, to_value};
use crate::Slot;
use crate::grant::{Grants, ObjectGrant, RBAC};

pub const ADD_ON: BuiltIn = BuiltIn {
    name: "aws-cloud-controller-manager",
    slot: Slot::CloudProvider,
    path: "spec.cloudProvider.aws",
    settings: |spec| {
        let provider = &spec.cloud_provider;
        provider.none.is_none().then(|| to_value(&provider.aws.clone().unwrap_or_default()))
    },
    image_path: "/provider-aws",
    grants,
    driver: None,
};

fn grants(config: &Value) -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["cloud-controller-manager"]),
        ("apps", &["DaemonSet"], SYSTEM, &["aws-cloud-controller-manager"]),
        (RBAC, &["RoleBinding"], SYSTEM, &["cloud-controller-manager:apiserver-authentication-reader"]),
        (RBAC, &["ClusterRole", "ClusterRoleBinding"], "", &["system:cloud-controller-manager"]),
    ];
    let allowed: &[Rights<'_>] = &[
        ("", &[""], &["nodes"], &["*"]),
        ("", &[""], &["nodes/status"], &["patch"]),
        ("", &[""], &["services", "services/status"], &["list", "patch", "update", "watch"]),
        ("", &[""], &["events"], &["create", "patch", "update"]),
        ("", &[""], &["serviceaccounts"], &["create", "get", "list", "watch"]),
        // Of each of its controllers.
        ("", &[""], &["serviceaccounts/token"], &["create"]),
        ("", &[""], &["persistentvolumes"], &["get", "list", "update", "watch"]),
        ("", &[""], &["endpoints"], &["create", "get", "list", "update", "watch"]),
        ("", &[COORDINATION], &["leases"], &["create", "get", "list", "update", "watch"]),
        ("", &["authentication.k8s.io"], &["tokenreviews"], &["create"]),
        ("", &["authorization.k8s.io"], &["subjectaccessreviews"], &["create"]),
    ];
    let reader = ObjectGrant {
        group: RBAC.into(),
        kinds: vec!["Role".into()],
        namespaces: vec![SYSTEM.into()],
        names: vec!["extension-apiserver-authentication-reader".into()],
        unread: false,
    };
    let rest = grant(&[APPLY, WAIT, DELETE], &["registry.k8s.io/provider-aws"], objects);
    let pods = pods(config, &["hostNetwork"], &[], &["*"], &["system-node-critical"]);
    Grants {
        facts: texts(&["api-server-version"]),
        rights: rights(allowed),
        roles: vec![reader],
        pods,
        ..rest
    }
}
