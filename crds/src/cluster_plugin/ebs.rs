//! Settings of the Amazon EBS CSI driver.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{Arguments, ContainerResources, ControllerSettings, yes};
use super::storage_class::{DefaultClass, ReclaimPolicy, never};
use super::version::VersionPin;

/// Settings of the Amazon EBS CSI driver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EBSStorage {
    /// Which version is wanted.
    #[serde(flatten)]
    pub pin: VersionPin,
    /// IAM role that service account `kube-system/ebs-csi-controller-sa` assumes. When absent, the controller
    /// runs on machines of the control plane and their role must allow what it does, as AWS's policy
    /// AmazonEBSCSIDriverPolicyV2 does.
    #[serde(rename = "roleARN", default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 2048),
        regex(pattern = r"^arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+$")
    )]
    pub role_arn: Option<String>,
    /// Copies, place and log of the controller.
    #[serde(flatten)]
    pub controller: ControllerSettings,
    /// What the driver's container of the controller asks for: 10m of processor time and 40Mi of memory when
    /// absent.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub resources: ContainerResources,
    /// Further arguments of the driver's container of the controller, by their names without hyphens in
    /// front, of these: batching, enable-node-local-volumes, logging-format, warn-on-invalid-tag.
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub extra_args: Arguments,
    /// Whether VolumeSnapshots are carried out. The snapshot controller and its CustomResourceDefinitions are
    /// the user's to install, and are waited for.
    #[serde(default)]
    pub snapshots: bool,
    /// The StorageClass that comes with the driver. Its volumes can grow, and are made in the zone of their
    /// Pod.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub storage_class: EBSStorageClass,
    /// More StorageClasses, beside `storageClass`. Their names differ from its and from each other's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub storage_classes: Vec<EBSMoreStorageClass>,
    /// Volumes that each node takes at most. When absent, what the driver knows of the instance's type, less
    /// what is attached when the node starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub volume_attach_limit: Option<i32>,
    /// Attachments of each node that are not for volumes of claims, the root volume among them; excludes
    /// `volumeAttachLimit`. When absent, what is attached when the node starts, which counts volumes of
    /// claims too where the driver starts late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 256))]
    pub reserved_volume_attachments: Option<i32>,
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
    /// The volumes.
    #[serde(flatten)]
    pub volumes: EBSVolumes,
}

impl Default for EBSStorageClass {
    fn default() -> Self {
        Self {
            enabled: true,
            name: ebs(),
            default_class: DefaultClass::default(),
            volumes: EBSVolumes::default(),
        }
    }
}

fn ebs() -> String {
    "ebs".to_owned()
}

/// Another StorageClass of the EBS CSI driver. Its volumes can grow, and are made in the zone of their Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EBSMoreStorageClass {
    /// Name of the class.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Whether claims that name no class get this one. IfNone: when no other class is the default.
    #[serde(rename = "default", default = "never")]
    pub default_class: DefaultClass,
    /// The volumes.
    #[serde(flatten)]
    pub volumes: EBSVolumes,
}

/// What the volumes of a StorageClass are like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EBSVolumes {
    /// Type of the volumes.
    #[serde(rename = "type", default)]
    pub volume_type: EBSVolumeType,
    /// Operations per second, with types gp3, io1 and io2; the last two need it. What AWS sets for gp3 when
    /// absent.
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
    /// File system that volumes are formatted with. `ext4` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_type: Option<EBSFileSystemType>,
    /// What becomes of a volume whose claim is deleted.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
}

impl Default for EBSVolumes {
    fn default() -> Self {
        Self {
            volume_type: EBSVolumeType::default(),
            iops: None,
            throughput: None,
            encrypted: true,
            kms_key_id: None,
            fs_type: None,
            reclaim_policy: ReclaimPolicy::default(),
        }
    }
}

/// File system of an EBS volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum EBSFileSystemType {
    Ext4,
    Xfs,
    Ext3,
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
