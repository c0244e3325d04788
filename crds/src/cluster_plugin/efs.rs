//! Settings of the Amazon EFS CSI driver.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{Arguments, ContainerResources, ControllerSettings, yes};
use super::storage_class::{DefaultClass, ReclaimPolicy, never};
use super::version::VersionPin;
use crate::metadata::Tags;

/// Settings of the Amazon EFS CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EFSStorage {
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// IAM role that service account `kube-system/efs-csi-controller-sa` assumes. When absent, the controller
    /// runs on machines of the control plane and their role must allow what it does, as AWS's policy
    /// AmazonEFSCSIDriverPolicy does.
    #[serde(rename = "roleARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 2048),
        regex(pattern = r"^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$")
    )]
    pub role_arn: Option<String>,
    /// File system on which volumes are made, with mount targets in the cluster's zones that accept tcp 2049
    /// from its machines. Without it and `fileSystemTags`, only the driver is installed and no StorageClass.
    #[serde(rename = "fileSystemID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^fs-[0-9a-f]{8,40}$"))]
    pub file_system_id: Option<String>,
    /// Tags by which that file system is found, in place of `fileSystemID`: exactly one of the account in the
    /// cluster's region has all of them. The one that was found first stays for as long as it has them.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub file_system_tags: Tags,
    /// Whether the directory of a volume, and all that is in it, is deleted with the volume. The controller
    /// mounts the file system for it: where the file system has a policy that asks for IAM, the controller's
    /// role must allow `elasticfilesystem:ClientMount`, `ClientWrite` and `ClientRootAccess`, which AWS's
    /// policy AmazonEFSCSIDriverPolicy does not.
    #[serde(default)]
    pub delete_directories: bool,
    /// Whether access points carry the AWSCluster's `additionalTags`. When absent they do not: AWS's policy
    /// AmazonEFSCSIDriverPolicy lets the driver set no tag but its own `efs.csi.aws.com/cluster`, so this
    /// takes a policy without that condition on `aws:TagKeys`, for `elasticfilesystem:CreateAccessPoint` and
    /// `elasticfilesystem:TagResource`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_access_points: Option<bool>,
    /// Copies, place and log of the controller.
    #[serde(flatten)]
    pub controller: ControllerSettings,
    /// What the driver's container of the controller asks for: 10m of processor time and 40Mi of memory when
    /// absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub resources: ContainerResources,
    /// Further arguments of the driver, by their names without hyphens in front, of these:
    /// adaptive-retry-mode of the controller, and vol-metrics-fs-rate-limit, vol-metrics-opt-in and
    /// vol-metrics-refresh-period (minutes) of what runs on nodes.
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub extra_args: Arguments,
    /// The StorageClass that comes with the driver when there is a file system. Each volume is a directory
    /// that is reached by an access point of its own.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub storage_class: EFSStorageClass,
    /// Registry of the driver's and its sidecars' images. `public.ecr.aws` when absent; the layout below it
    /// must be the same as there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image_registry: Option<String>,
    /// Tag of the driver's image. When absent, the newest release known for the cluster's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"))]
    pub image_tag: Option<String>,
}

/// The StorageClass that comes with the EFS CSI driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EFSStorageClass {
    /// Whether there is one, given a file system.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Name of the class.
    #[serde(default = "efs")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Whether claims that name no class get this one. IfNone: when no other class is the default.
    #[serde(rename = "default", default = "never")]
    pub default_class: DefaultClass,
    /// Permissions of the directories, in octal.
    #[serde(default = "owner_only")]
    #[schemars(length(max = 4), regex(pattern = r"^[0-7]{3,4}$"))]
    pub directory_permissions: String,
    /// Directory of the file system under which the directories of volumes are: at most 59 characters, for
    /// EFS takes paths of 100, and a volume's own directory has 41. Four directories deep at most. The file
    /// system's root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 59), regex(pattern = r"^/[A-Za-z0-9._/-]*$"))]
    pub base_path: Option<String>,
    /// Name of a volume's directory below `basePath`, of text and `${.PVC.namespace}`, `${.PVC.name}` and
    /// `${.PV.name}`; a slash makes a directory in a directory. A claim whose path gets longer than 100
    /// characters gets no volume, and an event that says so. `${.PV.name}` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100), regex(pattern = r"^[A-Za-z0-9._/${}-]+$"))]
    pub sub_path_pattern: Option<String>,
    /// Whether a UUID is put at the end of what `subPathPattern` names; true when absent. With false, a claim
    /// finds the directory of an earlier one of its name, and whatever is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ensure_unique_directory: Option<bool>,
    /// User id that owns the directories, and with which all access to a volume is made, whatever the user in
    /// a container. The volume's group id when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4294967295_i64))]
    pub uid: Option<i64>,
    /// Group id that owns the directories, and with which all access to a volume is made. Each volume gets
    /// one of the range when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4294967295_i64))]
    pub gid: Option<i64>,
    /// First group id that is given to a volume. The driver gives at most 10000 of a range. Of no effect with
    /// `uid` and `gid`.
    #[serde(default = "first_gid")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub gid_range_start: i32,
    /// Last group id that is given to a volume.
    #[serde(default = "last_gid")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub gid_range_end: i32,
    /// Options with which volumes are mounted, such as `iam`, with which a node mounts as the role of its
    /// instance, or `lookupcache=none`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 128), regex(pattern = r"^[A-Za-z0-9_.:=/-]+$")))]
    pub mount_options: Vec<String>,
    /// What becomes of a volume whose claim is deleted.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
}

impl Default for EFSStorageClass {
    fn default() -> Self {
        Self {
            enabled: true,
            name: efs(),
            default_class: never(),
            directory_permissions: owner_only(),
            base_path: None,
            sub_path_pattern: None,
            ensure_unique_directory: None,
            uid: None,
            gid: None,
            gid_range_start: first_gid(),
            gid_range_end: last_gid(),
            mount_options: Vec::new(),
            reclaim_policy: ReclaimPolicy::default(),
        }
    }
}

fn efs() -> String {
    "efs".to_owned()
}

fn owner_only() -> String {
    "700".to_owned()
}

fn first_gid() -> i32 {
    50_000
}

fn last_gid() -> i32 {
    7_000_000
}
