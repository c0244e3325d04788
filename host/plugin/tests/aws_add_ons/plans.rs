//! Whole plans, that they are the same each time, and that they are granted.

use super::{ALL, CONTROLLER, EBS, EFS, VPC_CNI, settings, uninstall};
use crate::common::plans::{complete, golden, plan, the_same_each_time};
use crate::common::{load, request};
use ::addons::{built_in, grant};
use contract::Outcome;
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
            for plan in [complete(name, &request(config.clone())), uninstall(name, config.clone())] {
                let steps = plan.steps.iter().chain(&plan.removal);
                let denials = grant::authorize(steps, &built_in::grants(name, &config));
                assert!(denials.is_empty(), "{name}: {}", grant::text(&denials));
            }
        }
    }
}

#[test]
fn each_setting_by_itself_is_granted_too() {
    let mut planned = 0;
    for name in ALL {
        for (setting, value) in settings(name).as_object().into_iter().flatten() {
            let config = json!({ (setting.as_str()): value });
            // Some need others.
            let Ok(Outcome::Complete(plan)) = plan(name, &request(config.clone())) else { continue };
            let denials = grant::authorize(&plan.steps, &built_in::grants(name, &config));
            assert!(denials.is_empty(), "{name}, {setting}: {}", grant::text(&denials));
            planned += 1;
        }
    }
    assert!(planned > 40, "{planned}");
}

#[test]
fn what_they_say_that_they_need_is_granted() {
    for plugin in plugin::built_in() {
        let descriptor = load(plugin.name).describe().expect("it answers").value;
        let grants = built_in::grants(plugin.name, &json!({}));
        assert_eq!(grant::denied_requirements(&descriptor.requires, &grants), [], "{}", plugin.name);
        // Nor is it told anything else.
        let named = descriptor.requires["facts"].as_array().cloned().unwrap_or_default();
        assert!(grants.facts.iter().all(|fact| named.contains(&json!(fact))), "{}", plugin.name);
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
