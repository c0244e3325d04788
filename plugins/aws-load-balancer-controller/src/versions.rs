//! Which release goes with which Kubernetes version, and what it needs to be allowed in AWS.

use plugin_sdk::versions::Release;

/// As of 2026-08.
pub const RELEASES: [Release<()>; 1] = [Release { kubernetes: (32, 36), version: "v3.5.0", with: () }];

/// Version of the plugin: the newest release it knows.
pub const NEWEST: &str = "3.5.0";

/// What the controller does in AWS for Ingresses and Services, as its documented policy allows it. Left out
/// is what only optional features need: addresses of customers' own pools, certificates of IAM, Cognito,
/// trust stores, reserved capacity.
pub const ACTIONS: &[&str] = &[
    "acm:DescribeCertificate",
    "acm:ListCertificates",
    "ec2:AuthorizeSecurityGroupIngress",
    "ec2:CreateSecurityGroup",
    "ec2:CreateTags",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteTags",
    "ec2:DescribeAccountAttributes",
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeInstances",
    "ec2:DescribeInternetGateways",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeTags",
    "ec2:DescribeVpcPeeringConnections",
    "ec2:DescribeVpcs",
    "ec2:GetSecurityGroupsForVpc",
    "ec2:RevokeSecurityGroupIngress",
    "elasticloadbalancing:AddListenerCertificates",
    "elasticloadbalancing:AddTags",
    "elasticloadbalancing:CreateListener",
    "elasticloadbalancing:CreateLoadBalancer",
    "elasticloadbalancing:CreateRule",
    "elasticloadbalancing:CreateTargetGroup",
    "elasticloadbalancing:DeleteListener",
    "elasticloadbalancing:DeleteLoadBalancer",
    "elasticloadbalancing:DeleteRule",
    "elasticloadbalancing:DeleteTargetGroup",
    "elasticloadbalancing:DeregisterTargets",
    "elasticloadbalancing:DescribeListenerAttributes",
    "elasticloadbalancing:DescribeListenerCertificates",
    "elasticloadbalancing:DescribeListeners",
    "elasticloadbalancing:DescribeLoadBalancerAttributes",
    "elasticloadbalancing:DescribeLoadBalancers",
    "elasticloadbalancing:DescribeRules",
    "elasticloadbalancing:DescribeSSLPolicies",
    "elasticloadbalancing:DescribeTags",
    "elasticloadbalancing:DescribeTargetGroupAttributes",
    "elasticloadbalancing:DescribeTargetGroups",
    "elasticloadbalancing:DescribeTargetHealth",
    "elasticloadbalancing:ModifyListener",
    "elasticloadbalancing:ModifyListenerAttributes",
    "elasticloadbalancing:ModifyLoadBalancerAttributes",
    "elasticloadbalancing:ModifyRule",
    "elasticloadbalancing:ModifyTargetGroup",
    "elasticloadbalancing:ModifyTargetGroupAttributes",
    "elasticloadbalancing:RegisterTargets",
    "elasticloadbalancing:RemoveListenerCertificates",
    "elasticloadbalancing:RemoveTags",
    "elasticloadbalancing:SetIpAddressType",
    "elasticloadbalancing:SetRulePriorities",
    "elasticloadbalancing:SetSecurityGroups",
    "elasticloadbalancing:SetSubnets",
    "iam:CreateServiceLinkedRole",
];

/// What it does beside that when web ACLs can be put on load balancers.
pub const WAF_ACTIONS: &[&str] = &[
    "elasticloadbalancing:SetWebAcl",
    "wafv2:AssociateWebACL",
    "wafv2:DisassociateWebACL",
    "wafv2:GetWebACL",
    "wafv2:GetWebACLForResource",
];

/// What it does beside that when Shield Advanced can protect load balancers.
pub const SHIELD_ACTIONS: &[&str] = &[
    "shield:CreateProtection",
    "shield:DeleteProtection",
    "shield:DescribeProtection",
    "shield:GetSubscriptionState",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_is_as_new_as_the_newest_release() {
        assert_eq!(RELEASES[0].version.trim_start_matches('v'), NEWEST);
    }
}
