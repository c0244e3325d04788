//! Which release goes with which Kubernetes version, where its images are, and what it needs to be allowed in
//! AWS.

use plugin_sdk::versions::Release;

/// As of 2026-08. Each release works with every Kubernetes version that was supported when it came out.
pub const RELEASES: [Release<()>; 1] = [Release { kubernetes: (32, 36), version: "v1.23.0", with: () }];

/// Version of the plugin: the newest release it knows.
pub const NEWEST: &str = "1.23.0";

/// The registry from which every region of a partition may pull. Pulling takes credentials of AWS, which the
/// kubelet gets from its credential provider.
pub fn registry(partition: &str) -> &'static str {
    match partition {
        "aws-cn" => "961992271922.dkr.ecr.cn-northwest-1.amazonaws.com.cn",
        "aws-us-gov" => "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com",
        _ => "602401143452.dkr.ecr.us-west-2.amazonaws.com",
    }
}

/// What the CNI calls, by its sources (`pkg/awsutils` of v1.23.0). AWS's policy AmazonEKS_CNI_Policy allows
/// two things beside it that this release never does: `ec2:DescribeTags`, which its metrics helper alone
/// calls, and `ec2:DescribeSecurityGroups`, of a feature that was taken back.
pub const ACTIONS: &[&str] = &[
    "ec2:AssignPrivateIpAddresses",
    "ec2:AttachNetworkInterface",
    "ec2:CreateNetworkInterface",
    "ec2:CreateTags",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DetachNetworkInterface",
    "ec2:ModifyNetworkInterfaceAttribute",
    "ec2:UnassignPrivateIpAddresses",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_as_new_as_the_newest_release() {
        assert_eq!(RELEASES[0].version.trim_start_matches('v'), NEWEST);
    }
}
