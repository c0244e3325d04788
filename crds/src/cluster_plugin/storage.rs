//! Settings of what makes volumes. It never holds a version of an add-on: that comes with the plugin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{ContainerResources, Toleration, two, yes};
use crate::metadata::Tags;

/// What makes volumes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The Amazon EBS CSI driver: volumes for one Pod at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<EBSStorage>,
    /// The Amazon EFS CSI driver: volumes for many Pods at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efs: Option<EFSStorage>,
}

/// Settings of the Amazon EBS CSI driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EBSStorage {
    /// IAM role that service account `kube-system/ebs-csi-controller-sa` assumes. When absent, the controller runs on machines of the
    /// control plane and their role must allow what it does, as AWS's policy AmazonEBSCSIDriverPolicyV2 does.
    #[serde(rename = "roleARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$"))]
    pub role_arn: Option<String>,
    /// Copies of the controller, of which one is at work.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 5))]
    pub replicas: i32,
    /// What the driver's container of the controller asks for: 10m of processor time and 40Mi of memory when absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub resources: ContainerResources,
    /// Taints that the controller tolerates beside that of the control plane. What runs on nodes tolerates every taint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// Whether VolumeSnapshots are carried out. The snapshot controller and its CustomResourceDefinitions are the user's to
    /// install, and are waited for.
    #[serde(default)]
    pub snapshots: bool,
    /// The StorageClass that comes with the driver. Its volumes can grow, and are made in the zone of their Pod.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub storage_class: EBSStorageClass,
    /// Registry of the driver's and its sidecars' images. `public.ecr.aws` when absent; the layout below it must be the same as
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image_registry: Option<String>,
    /// Tag of the driver's image. When absent, the newest release known for the cluster's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"))]
    pub image_tag: Option<String>,
}

impl Default for EBSStorage {
    fn default() -> Self {
        Self {
            role_arn: None,
            replicas: two(),
            resources: ContainerResources::default(),
            tolerations: Vec::new(),
            snapshots: false,
            storage_class: EBSStorageClass::default(),
            image_registry: None,
            image_tag: None,
        }
    }
}

/// The StorageClass that comes with the EBS CSI driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EBSStorageClass {
    /// Whether there is one.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Name of the class.
    #[serde(default = "ebs")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Whether claims that name no class get this one. IfNone: when no other class is the default.
    #[serde(rename = "default", default)]
    pub default_class: DefaultClass,
    /// Type of the volumes.
    #[serde(rename = "type", default)]
    pub volume_type: EBSVolumeType,
    /// Operations per second, with types gp3, io1 and io2; the last two need it. What AWS sets for gp3 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 256000))]
    pub iops: Option<i32>,
    /// MiB per second, with type gp3. What AWS sets when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 2000))]
    pub throughput: Option<i32>,
    /// Whether volumes are encrypted.
    #[serde(default = "yes")]
    pub encrypted: bool,
    /// ARN of the KMS key to encrypt with. The account's key for EBS when absent.
    #[serde(rename = "kmsKeyID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub kms_key_id: Option<String>,
    /// What becomes of a volume whose claim is deleted.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
}

impl Default for EBSStorageClass {
    fn default() -> Self {
        Self {
            enabled: true,
            name: ebs(),
            default_class: DefaultClass::default(),
            volume_type: EBSVolumeType::default(),
            iops: None,
            throughput: None,
            encrypted: true,
            kms_key_id: None,
            reclaim_policy: ReclaimPolicy::default(),
        }
    }
}

fn ebs() -> String {
    "ebs".to_owned()
}

/// Type of an EBS volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum EBSVolumeType {
    #[default]
    Gp3,
    Gp2,
    Io2,
    Io1,
    St1,
    Sc1,
}

/// Whether claims that name no class get the class of an add-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DefaultClass {
    #[default]
    IfNone,
    Always,
    Never,
}

/// What becomes of a volume whose claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ReclaimPolicy {
    #[default]
    Delete,
    Retain,
}

/// Settings of the Amazon EFS CSI driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EFSStorage {
    /// IAM role that service account `kube-system/efs-csi-controller-sa` assumes. When absent, the controller runs on machines of the
    /// control plane and their role must allow what it does, as AWS's policy AmazonEFSCSIDriverPolicy does.
    #[serde(rename = "roleARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$"))]
    pub role_arn: Option<String>,
    /// File system on which volumes are made, with mount targets in the cluster's zones that accept tcp 2049 from its machines.
    /// Without it and `fileSystemTags`, only the driver is installed and no StorageClass.
    #[serde(rename = "fileSystemID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^fs-[0-9a-f]{8,40}$"))]
    pub file_system_id: Option<String>,
    /// Tags by which that file system is found, in place of `fileSystemID`: exactly one of the account in the cluster's region has all
    /// of them. The one that was found first stays for as long as it has them.
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub file_system_tags: Tags,
    /// Whether the directory of a volume, and all that is in it, is deleted with the volume.
    #[serde(default)]
    pub delete_directories: bool,
    /// Copies of the controller, of which one is at work.
    #[serde(default = "two")]
    #[schemars(range(min = 1, max = 5))]
    pub replicas: i32,
    /// What the driver's container of the controller asks for: 10m of processor time and 40Mi of memory when absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub resources: ContainerResources,
    /// Taints that the controller tolerates beside that of the control plane. What runs on nodes tolerates every taint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
    /// The StorageClass that comes with the driver when there is a file system. Each volume is a directory that is reached by an
    /// access point of its own.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub storage_class: EFSStorageClass,
    /// Registry of the driver's and its sidecars' images. `public.ecr.aws` when absent; the layout below it must be the same as
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub image_registry: Option<String>,
    /// Tag of the driver's image. When absent, the newest release known for the cluster's Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$"))]
    pub image_tag: Option<String>,
}

impl Default for EFSStorage {
    fn default() -> Self {
        Self {
            role_arn: None,
            file_system_id: None,
            file_system_tags: Tags::new(),
            delete_directories: false,
            replicas: two(),
            resources: ContainerResources::default(),
            tolerations: Vec::new(),
            storage_class: EFSStorageClass::default(),
            image_registry: None,
            image_tag: None,
        }
    }
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
    /// Directory of the file system under which the directories of volumes are. Its root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), regex(pattern = r"^/[A-Za-z0-9._/-]*$"))]
    pub base_path: Option<String>,
    /// First group id that is given to a volume.
    #[serde(default = "first_gid")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub gid_range_start: i32,
    /// Last group id that is given to a volume.
    #[serde(default = "last_gid")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub gid_range_end: i32,
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
            gid_range_start: first_gid(),
            gid_range_end: last_gid(),
            reclaim_policy: ReclaimPolicy::default(),
        }
    }
}

fn efs() -> String {
    "efs".to_owned()
}

fn never() -> DefaultClass {
    DefaultClass::Never
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
