//! IAM roles of add-ons.

use super::{ALL, CONTROLLER, EBS, EFS, ROLE, VPC_CNI, comes_after, object, step};
use crate::common::plans::{complete, refused};
use crate::common::request;
use expect_test::expect;
use serde_json::json;

#[test]
fn a_role_reaches_its_pods_by_a_token_and_is_checked_first() {
    let accounts = [
        (VPC_CNI, "aws-node"),
        (EBS, "ebs-csi-controller-sa"),
        (EFS, "efs-csi-controller-sa"),
        (CONTROLLER, CONTROLLER),
    ];
    for (name, account) in accounts {
        let plan = complete(name, &request(json!({ "roleARN": ROLE })));
        let role = step(&plan, "role");
        assert_eq!(role.spec["serviceAccount"], account);
        assert_eq!(role.spec["mode"], "check");
        let actions = role.spec["actions"].as_array().into_iter().flatten();
        let actions: Vec<&str> =
            actions.filter_map(|it| it.as_str().or_else(|| it["action"].as_str())).collect();
        assert!(
            actions.iter().all(|action| action.split_once(':').is_some_and(|(_, name)| !name.contains('*'))),
            "{name}"
        );
        assert!(actions.is_sorted(), "{name}");
        let pod = &object(&plan, if name == VPC_CNI { "DaemonSet" } else { "Deployment" })["spec"]["template"]
            ["spec"];
        assert_eq!(pod["serviceAccountName"], account);
        let token = &pod["volumes"].as_array().and_then(|all| all.last()).expect("there are volumes")["projected"]
            ["sources"][0];
        assert_eq!(token["serviceAccountToken"]["audience"], "sts.amazonaws.com");
        let env = pod["containers"][0]["env"].as_array().expect("there are variables");
        assert!(env.contains(&json!({ "name": "AWS_ROLE_ARN", "value": ROLE })), "{name}");
        assert_eq!(env.iter().filter(|one| one["name"] == "AWS_REGION").count(), 1, "{name}");
        // The role comes before whatever uses it.
        let uses = plan.steps.iter().find(|step| {
            step.spec["objects"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| &one["spec"]["template"]["spec"] == pod))
        });
        assert!(comes_after(&plan.steps, uses.expect("the Pod is applied"), "role"), "{name}");
        assert!(plan.diagnostics.iter().all(|found| found.code != "InstanceRole"), "{name}");
    }
}

#[test]
fn without_a_role_the_user_is_told_whose_rights_count() {
    for name in ALL {
        let plan = complete(name, &request(json!({})));
        assert_eq!(plan.diagnostics.iter().filter(|found| found.code == "InstanceRole").count(), 1, "{name}");
        assert!(plan.steps.iter().all(|step| !step.kind.starts_with("aws.iam-role/")), "{name}");
    }
}

#[test]
fn roles_are_asked_for_what_the_pinned_releases_call() {
    let actions = |name: &str| {
        step(&complete(name, &request(json!({ "roleARN": ROLE }))), "role").spec["actions"].to_string()
    };
    for never in ["ec2:DescribeTags", "ec2:DescribeSecurityGroups"] {
        assert!(!actions(VPC_CNI).contains(never), "{never}");
    }
    for called in ["elasticloadbalancing:SetRulePriorities", "elasticloadbalancing:ModifyListenerAttributes"]
    {
        assert!(actions(CONTROLLER).contains(called), "{called}");
    }
}

#[test]
fn a_role_of_another_partition_is_refused() {
    for name in ALL {
        refused(
            name,
            &request(json!({ "roleARN": "arn:aws-cn:iam::123456789012:role/r" })),
            expect![[r#"
                invalid OtherPartition /roleARN: is of partition aws-cn, but the cluster runs in partition aws
            "#]],
        );
    }
}
