//! The CSI driver of Amazon EBS.

use serde_json::Value;

use super::builder::{
    APPLY, COORDINATION, CRITICAL, DELETE, IAM_ROLE_WITH_TAGS, OWN_AND_PATCH, Objects, READ, Rights, STORAGE,
    STS, SYSTEM, WAIT, chosen, grant, pods, rights, texts, unread,
};
use super::{BuiltIn, CsiDriver, to_value};
use crds::plugin_module::PodGrants;

use crate::Slot;
use crate::grant::{Grants, RBAC};

pub const ADD_ON: BuiltIn = BuiltIn {
    name: "aws-ebs-csi",
    slot: Slot::Storage,
    path: "spec.storage.ebs",
    settings: |spec| spec.storage.as_ref()?.ebs.as_ref().map(to_value),
    image_path: "",
    grants,
    driver: Some(CsiDriver { name: "ebs.csi.aws.com", in_tree: Some("kubernetes.io/aws-ebs") }),
};

fn grants(config: &Value) -> Grants {
    let more = config.get("storageClasses").and_then(Value::as_array).into_iter().flatten();
    let classes: Vec<&str> = [chosen(config, "/storageClass/name", "ebs")]
        .into_iter()
        .chain(more.filter_map(|it| it.get("name")?.as_str()))
        .collect();
    let roles = [
        "ebs-external-provisioner-role",
        "ebs-external-attacher-role",
        "ebs-external-resizer-role",
        "ebs-external-snapshotter-role",
        "ebs-csi-node-role",
    ];
    let bindings = [
        "ebs-csi-provisioner-binding",
        "ebs-csi-attacher-binding",
        "ebs-csi-resizer-binding",
        "ebs-csi-snapshotter-binding",
        "ebs-csi-node-getter-binding",
    ];
    let objects: &[Objects<'_>] = &[
        ("", &["ServiceAccount"], SYSTEM, &["ebs-csi-controller-sa", "ebs-csi-node-sa"]),
        ("apps", &["Deployment"], SYSTEM, &["ebs-csi-controller"]),
        ("apps", &["DaemonSet"], SYSTEM, &["ebs-csi-node"]),
        (RBAC, &["ClusterRole"], "", &roles),
        (RBAC, &["ClusterRoleBinding"], "", &bindings),
        (RBAC, &["Role", "RoleBinding"], SYSTEM, &["ebs-csi-leases-role"]),
        ("storage.k8s.io", &["CSIDriver"], "", &["ebs.csi.aws.com"]),
        ("storage.k8s.io", &["StorageClass"], "", &classes),
    ];
    let snapshot = "snapshot.storage.k8s.io";
    let allowed: &[Rights<'_>] = &[
        ("", &[""], &["persistentvolumes"], &["create", "delete", "get", "list", "patch", "watch"]),
        ("", &[""], &["persistentvolumeclaims"], &["get", "list", "update", "watch"]),
        ("", &[""], &["persistentvolumeclaims/status"], &["patch"]),
        ("", &[""], &["pods"], READ),
        ("", &[""], &["nodes"], &["get", "list", "patch", "watch"]),
        ("", &[""], &["events"], &["create", "list", "patch", "update", "watch"]),
        (
            "",
            &[STORAGE],
            &["csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"],
            READ,
        ),
        ("", &[STORAGE], &["volumeattachments", "volumeattachments/status"], &["patch"]),
        ("", &[snapshot], &["volumesnapshots"], &["get", "list", "update", "watch"]),
        ("", &[snapshot], &["volumesnapshotclasses"], READ),
        ("", &[snapshot], &["volumesnapshotcontents"], &["get", "list", "patch", "update", "watch"]),
        ("", &[snapshot], &["volumesnapshotcontents/status"], &["patch", "update"]),
        (SYSTEM, &[COORDINATION], &["leases"], OWN_AND_PATCH),
    ];
    let registries = ["public.ecr.aws/ebs-csi-driver", "public.ecr.aws/csi-components"];
    let mut rest = grant(&[APPLY, WAIT, DELETE, IAM_ROLE_WITH_TAGS], &registries, objects);
    rest.objects.extend(unread(&[("policy", &["PodDisruptionBudget"], SYSTEM, &["ebs-csi-controller"])]));
    let host_paths = ["/dev", "/var/lib/kubelet"];
    let pods = PodGrants {
        token_audiences: texts(&[STS]),
        ..pods(config, &["mountPropagation", "privileged"], &host_paths, &["*"], CRITICAL)
    };
    Grants {
        facts: texts(&["api-server-version", "storage-classes"]),
        annotations: texts(&["storageclass.kubernetes.io/is-default-class"]),
        rights: rights(allowed),
        pods,
        ..rest
    }
}
