//! The CSI driver of Amazon EFS.

use serde_json::Value;

use super::builder::{
    APPLY, COORDINATION, CRITICAL, DELETE, EFS_FILE_SYSTEM, IAM_ROLE_WITH_TAGS, OWN_AND_PATCH, Objects, READ,
    Rights, STORAGE, STS, SYSTEM, WAIT, chosen, grant, pods, rights, texts,
};
use super::{BuiltIn, CsiDriver, to_value};
use crds::plugin_module::PodGrants;

use crate::Slot;
use crate::grant::{Grants, RBAC};

pub const ADD_ON: BuiltIn = BuiltIn {
    name: "aws-efs-csi",
    slot: Slot::Storage,
    path: "spec.storage.efs",
    settings: |spec| spec.storage.as_ref()?.efs.as_ref().map(to_value),
    image_path: "",
    grants,
    driver: Some(CsiDriver { name: "efs.csi.aws.com", in_tree: None }),
};

fn grants(config: &Value) -> Grants {
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["efs-csi-controller-sa", "efs-csi-node-sa"]),
        ("apps", &["Deployment"], SYSTEM, &["efs-csi-controller"]),
        ("apps", &["DaemonSet"], SYSTEM, &["efs-csi-node"]),
        (RBAC, &["ClusterRole"], "", &["efs-csi-external-provisioner-role", "efs-csi-node-role"]),
        (RBAC, &["ClusterRoleBinding"], "", &["efs-csi-provisioner-binding", "efs-csi-node-binding"]),
        (RBAC, &["Role", "RoleBinding"], SYSTEM, &["efs-csi-leases-role"]),
        ("storage.k8s.io", &["CSIDriver"], "", &["efs.csi.aws.com"]),
        ("storage.k8s.io", &["StorageClass"], "", &[chosen(config, "/storageClass/name", "efs")]),
    ];
    let registries = ["public.ecr.aws/efs-csi-driver", "public.ecr.aws/csi-components"];
    let allowed: &[Rights<'_>] = &[
        ("", &[""], &["persistentvolumes"], &["create", "delete", "get", "list", "patch", "watch"]),
        ("", &[""], &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
        ("", &[""], &["nodes"], &["get", "list", "patch", "watch"]),
        ("", &[""], &["events"], &["create", "list", "patch", "watch"]),
        ("", &[STORAGE], &["csinodes", "storageclasses"], READ),
        (SYSTEM, &[COORDINATION], &["leases"], OWN_AND_PATCH),
    ];
    let rest = grant(&[APPLY, WAIT, DELETE, IAM_ROLE_WITH_TAGS, EFS_FILE_SYSTEM], &registries, objects);
    let host_paths = ["/etc/amazon/efs", "/var/amazon/efs", "/var/lib/kubelet", "/var/run/efs"];
    let fields = ["hostNetwork", "mountPropagation", "privileged"];
    let pods =
        PodGrants { token_audiences: texts(&[STS]), ..pods(config, &fields, &host_paths, &["*"], CRITICAL) };
    Grants {
        facts: texts(&["api-server-version", "file-systems", "storage-classes"]),
        annotations: texts(&["storageclass.kubernetes.io/is-default-class"]),
        rights: rights(allowed),
        pods,
        ..rest
    }
}
