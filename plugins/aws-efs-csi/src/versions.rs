//! Which release goes with which Kubernetes version, the images that it is released with, and what it needs
//! to be allowed in AWS.

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
    with: Sidecars {
        provisioner: "v6.3.0-eksbuild.2",
        liveness: "v2.19.0-eksbuild.5",
        registrar: "v2.17.0-eksbuild.5",
    },
}];

/// Version of the plugin: the newest release it knows.
pub const NEWEST: &str = "3.4.1";

/// When an action is needed.
#[derive(Clone, Copy, Debug)]
pub enum Needed {
    Always,
    ToMake,
    ToTag,
    /// In place of a list of access points when the class says which user and group id volumes get.
    ForFixedIds,
    /// What a policy of a file system can ask of the controller when it mounts the file system to delete
    /// directories: it does so as its role.
    ToMount,
}

/// What the controller calls in AWS, by `pkg/driver/controller.go` of the release; sorted. Left out is what
/// it calls only for file systems of other accounts (DescribeMountTargets, ec2:DescribeAvailabilityZones) and
/// for S3 Files.
pub const ACTIONS: [(&str, Needed); 8] = [
    ("elasticfilesystem:ClientMount", Needed::ToMount),
    ("elasticfilesystem:ClientRootAccess", Needed::ToMount),
    ("elasticfilesystem:ClientWrite", Needed::ToMount),
    ("elasticfilesystem:CreateAccessPoint", Needed::ToMake),
    ("elasticfilesystem:DeleteAccessPoint", Needed::Always),
    ("elasticfilesystem:DescribeAccessPoints", Needed::Always),
    ("elasticfilesystem:DescribeFileSystems", Needed::ForFixedIds),
    ("elasticfilesystem:TagResource", Needed::ToTag),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_as_new_as_the_newest_release() {
        assert_eq!(RELEASES[0].version.trim_start_matches('v'), NEWEST);
    }
}
