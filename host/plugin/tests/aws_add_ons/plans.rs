//! Whole plans, that they are the same each time, and that they are granted.

use super::{ALL, CONTROLLER, EBS, EFS, VPC_CNI, settings};
use crate::common::plans::{complete, golden, the_same_each_time};
use crate::common::request;
use ::addons::{built_in, grant};
use expect_test::expect_file;
use serde_json::{Value, json};

#[test]
fn whole_plans_with_default_settings() {
    golden(VPC_CNI, json!({}), expect_file!["../golden/aws-vpc-cni.json"]);
    golden(EBS, json!({}), expect_file!["../golden/aws-ebs-csi.json"]);
    golden(EFS, json!({}), expect_file!["../golden/aws-efs-csi.json"]);
    golden(CONTROLLER, json!({}), expect_file!["../golden/aws-load-balancer-controller.json"]);
}

#[test]
fn whole_plans_with_other_settings() {
    golden(VPC_CNI, settings(VPC_CNI), expect_file!["../golden/aws-vpc-cni-settings.json"]);
    golden(EBS, settings(EBS), expect_file!["../golden/aws-ebs-csi-settings.json"]);
    golden(EFS, settings(EFS), expect_file!["../golden/aws-efs-csi-settings.json"]);
    golden(
        CONTROLLER,
        settings(CONTROLLER),
        expect_file!["../golden/aws-load-balancer-controller-settings.json"],
    );
}

#[test]
fn the_same_settings_give_the_same_bytes_for_the_same_fuel() {
    for name in ALL {
        the_same_each_time(name, &request(settings(name)));
    }
}

#[test]
fn everything_they_ask_for_is_granted() {
    for name in ALL {
        for config in [json!({}), settings(name)] {
            let plan = complete(name, &request(config.clone()));
            let denials =
                grant::authorize(plan.steps.iter().chain(&plan.removal), &built_in::grants(name, &config));
            assert_eq!(denials, [], "{name}");
        }
    }
}

#[test]
fn a_registry_that_nobody_named_is_denied() {
    for name in ALL {
        let plan = complete(name, &request(settings(name)));
        let mut config = settings(name);
        config["imageRegistry"] = Value::Null;
        let denials = grant::authorize(&plan.steps, &built_in::grants(name, &config));
        assert!(denials.iter().any(|denial| denial.message.contains("registry.example.com")), "{name}");
    }
}
