//! Which release goes with which Kubernetes version, the images that it is released with, and what it needs to be allowed in AWS.

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
pub const KNOWS_ALLOCATABLE_UPDATES: u32 = 33;

/// What the controller does in AWS, as its documented policy allows it (AmazonEBSCSIDriverPolicyV2).
pub const ACTIONS: &[&str] = &[
    "ec2:AttachVolume",
    "ec2:CreateSnapshot",
    "ec2:CreateTags",
    "ec2:CreateVolume",
    "ec2:DeleteSnapshot",
    "ec2:DeleteVolume",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeSnapshots",
    "ec2:DescribeVolumeStatus",
    "ec2:DescribeVolumes",
    "ec2:DescribeVolumesModifications",
    "ec2:DetachVolume",
    "ec2:ModifyVolume",
];

/// What it does with a KMS key that the user names.
pub const KEY_ACTIONS: &[&str] = &["kms:CreateGrant", "kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_as_new_as_the_newest_release() {
        assert_eq!(RELEASES[0].version.trim_start_matches('v'), NEWEST);
    }
}
