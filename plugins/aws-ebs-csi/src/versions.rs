//! Which release goes with which Kubernetes version, the images that it is released with, and what it needs
//! to be allowed in AWS.

use plugin_sdk::versions::Release;

/// Tags of the images beside the driver's, below `csi-components/`.
#[derive(Clone, Copy, Debug)]
pub struct Sidecars {
    pub provisioner: &'static str,
    pub attacher: &'static str,
    pub snapshotter: &'static str,
    pub resizer: &'static str,
    pub liveness: &'static str,
    pub registrar: &'static str,
}

/// As of 2026-08. Release v1.64.0 is out, but its manifests still name the image of v1.63.1.
pub const RELEASES: [Release<Sidecars>; 1] = [Release {
    kubernetes: (32, 36),
    version: "v1.63.1",
    with: Sidecars {
        provisioner: "v6.3.0-eksbuild.4",
        attacher: "v4.12.0-eksbuild.5",
        snapshotter: "v8.6.0-eksbuild.5",
        resizer: "v2.2.1-eksbuild.3",
        liveness: "v2.19.0-eksbuild.5",
        registrar: "v2.17.0-eksbuild.5",
    },
}];

/// Version of the plugin: the newest release it knows.
pub const NEWEST: &str = "1.63.1";

/// The first minor version of Kubernetes 1 that knows `nodeAllocatableUpdatePeriodSeconds` of a CSIDriver.
const KNOWS_ALLOCATABLE_UPDATES: u32 = 33;

/// The first minor version of Kubernetes 1 that serves VolumeAttributesClasses as `storage.k8s.io/v1`.
const SERVES_ATTRIBUTES_CLASSES: u32 = 34;

/// What a version of Kubernetes has that not all have.
#[derive(Clone, Copy, Debug)]
pub struct Kubernetes {
    /// The attacher may have a node's limit of volumes looked at again.
    pub updates_allocatable: bool,
    /// VolumeAttributesClasses are served in their beta version at most.
    pub has_only_beta_attributes: bool,
}

impl Kubernetes {
    pub fn of(minor: Option<u32>) -> Kubernetes {
        Kubernetes {
            updates_allocatable: minor.is_some_and(|minor| minor >= KNOWS_ALLOCATABLE_UPDATES),
            has_only_beta_attributes: minor.is_some_and(|minor| minor < SERVES_ATTRIBUTES_CLASSES),
        }
    }
}

/// When an action is needed.
#[derive(Clone, Copy, Debug)]
pub enum Needed {
    Always,
    ForCopies,
    ToMakeVolumes,
    ToTagVolumes,
    ForSnapshots,
    ToMakeSnapshots,
    ToTagSnapshots,
    /// With a KMS key that the user names.
    ForKeys,
}

/// What the controller calls in AWS, by `pkg/cloud/cloud.go` of the release; sorted. Left out is what it
/// calls only for objects that a user writes with parameters of their own: DescribeVolumeStatus
/// (`blockAttachUntilInitialized`), EnableFastSnapshotRestores and LockSnapshot (classes of snapshots),
/// DeleteTags (a VolumeAttributesClass); and DescribeInstanceTypes, for which it has a table when it may not
/// ask.
pub const ACTIONS: [(&str, Needed); 18] = [
    ("ec2:AttachVolume", Needed::Always),
    ("ec2:CopyVolumes", Needed::ForCopies),
    ("ec2:CreateSnapshot", Needed::ToMakeSnapshots),
    ("ec2:CreateTags", Needed::ToTagSnapshots),
    ("ec2:CreateTags", Needed::ToTagVolumes),
    ("ec2:CreateVolume", Needed::ToMakeVolumes),
    ("ec2:DeleteSnapshot", Needed::ForSnapshots),
    ("ec2:DeleteVolume", Needed::Always),
    ("ec2:DescribeAvailabilityZones", Needed::Always),
    ("ec2:DescribeInstances", Needed::Always),
    ("ec2:DescribeSnapshots", Needed::ForSnapshots),
    ("ec2:DescribeVolumes", Needed::Always),
    ("ec2:DescribeVolumesModifications", Needed::Always),
    ("ec2:DetachVolume", Needed::Always),
    ("ec2:ModifyVolume", Needed::Always),
    ("kms:CreateGrant", Needed::ForKeys),
    ("kms:Decrypt", Needed::ForKeys),
    ("kms:GenerateDataKeyWithoutPlaintext", Needed::ForKeys),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_as_new_as_the_newest_release() {
        assert_eq!(RELEASES[0].version.trim_start_matches('v'), NEWEST);
    }
}
