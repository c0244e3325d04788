//! Which release goes with which Kubernetes version, the images that it is released with, and what it needs to be allowed in AWS.

use plugin_sdk::versions::Release;

/// Tags of the images beside the driver's, below `csi-components/`.
#[derive(Clone, Copy, Debug)]
pub struct Sidecars {
    pub provisioner: &'static str,
    pub liveness: &'static str,
    pub registrar: &'static str,
}

/// As of 2026-08.
pub const RELEASES: [Release<Sidecars>; 1] = [Release {
    kubernetes: (32, 36),
    version: "v3.4.1",
    with: Sidecars { provisioner: "v6.3.0-eksbuild.2", liveness: "v2.19.0-eksbuild.5", registrar: "v2.17.0-eksbuild.5" },
}];

/// Version of the plugin: the newest release it knows.
pub const NEWEST: &str = "3.4.1";

/// What the controller does in AWS, as its documented policy allows it (AmazonEFSCSIDriverPolicy). What only S3 Files need is left out.
pub const ACTIONS: &[&str] = &[
    "ec2:DescribeAvailabilityZones",
    "elasticfilesystem:CreateAccessPoint",
    "elasticfilesystem:DeleteAccessPoint",
    "elasticfilesystem:DescribeAccessPoints",
    "elasticfilesystem:DescribeFileSystems",
    "elasticfilesystem:DescribeMountTargets",
    "elasticfilesystem:TagResource",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_as_new_as_the_newest_release() {
        assert_eq!(RELEASES[0].version.trim_start_matches('v'), NEWEST);
    }
}
