//! The plans of the built-in plugins as they are stored: granted by what is built in, and by no less.

use std::path::Path;

use serde::Deserialize;

use super::*;
use crate::built_in;

/// Plans, each with the plugin and what of its configuration has to do with grants.
fn plans() -> Vec<(&'static str, Value, Vec<Step>)> {
    let tolerations = json!([{"key": "dedicated", "operator": "Equal", "value": "system"}]);
    let settings = |registry: &str| {
        json!({"imageRegistry": registry, "imagePullSecrets": [{"name": "mirror"}], "nodeSelector": {"pool": "system"},
            "tolerations": tolerations})
    };
    let with = |mut settings: Value, more: Value| {
        settings.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
        settings
    };
    let mirror = || settings("registry.example.com");
    let no_taints = |registry: &str| with(settings(registry), json!({"tolerations": []}));
    let classes = json!({"storageClass": {"name": "fast"}, "storageClasses": [{"name": "cold"}]});
    let ipip = json!({"encapsulation": "IPIP", "imageRegistry": "registry.example.com:5000/mirror"});
    let bare = json!({"encapsulation": "VXLANCrossSubnet", "imageRegistry": "registry.example.com"});
    let all = [
        ("aws-cloud-controller-manager", "", json!({})),
        ("aws-cloud-controller-manager", "-settings", no_taints("registry.example.com/aws")),
        ("aws-ebs-csi", "", json!({})),
        ("aws-ebs-csi", "-settings", with(mirror(), classes)),
        ("aws-efs-csi", "", json!({})),
        ("aws-efs-csi", "-settings", with(mirror(), json!({"storageClass": {"name": "shared"}}))),
        ("aws-load-balancer-controller", "", json!({})),
        (
            "aws-load-balancer-controller",
            "-settings",
            with(mirror(), json!({"ingressClass": {"name": "public"}})),
        ),
        ("aws-vpc-cni", "", json!({})),
        ("aws-vpc-cni", "-settings", no_taints("registry.example.com/cni")),
        ("calico", "", json!({})),
        ("calico", "-ipip-mirror", ipip),
        ("calico", "-settings", bare),
    ];
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin/tests/golden");
    let stored = std::fs::read_dir(&directory).expect("plans are stored").count();
    assert_eq!(stored, all.len(), "a plan that is stored is not judged");
    let read = |(name, suffix, config): (&'static str, &str, Value)| {
        let text = std::fs::read_to_string(directory.join(format!("{name}{suffix}.json"))).expect("a plan");
        let plan: Value = serde_json::from_str(&text).expect("a plan is JSON");
        let steps = ["steps", "removal"].map(|it| Vec::<Step>::deserialize(&plan[it]).expect("steps"));
        (name, config, steps.concat())
    };
    all.into_iter().map(read).collect()
}

#[test]
fn every_plan_of_a_built_in_plugin_is_granted() {
    for (name, config, steps) in plans() {
        let denials = authorize(&steps, &built_in::grants(name, &config));
        assert!(denials.is_empty(), "{name}: {}", text(&denials));
    }
}

#[test]
fn what_denials_name_is_all_that_a_plan_needs() {
    for (name, config, steps) in plans() {
        assert!(!authorize(&steps, &Grants::default()).is_empty());
        let needed = needed(&steps);
        let denials = authorize(&steps, &needed);
        assert!(denials.is_empty(), "{name}: {}", text(&denials));
        // What is built in and what is needed have all in common that is needed.
        let both = narrowed(&built_in::grants(name, &config), &needed);
        let denials = authorize(&steps, &both);
        assert!(denials.is_empty(), "{name}: {}", text(&denials));
    }
}

/// Lists of grants that are written out for each plugin, and of which each item has to be needed.
const LISTS: [&str; 15] = [
    "/pods/fields",
    "/pods/hostPaths",
    "/pods/capabilities",
    "/pods/tolerations",
    "/pods/nodeLabels",
    "/pods/priorityClasses",
    "/pods/tokenAudiences",
    "/fields",
    "/labels",
    "/annotations",
    "/certificates",
    "/securityGroupRules",
    "/objects",
    "/roles",
    "/webhooks",
];

#[test]
fn built_in_plugins_are_granted_no_more_than_they_need() {
    let all = plans();
    for add_on in built_in::BUILT_IN {
        let of: Vec<_> = all.iter().filter(|(name, ..)| *name == add_on.name).collect();
        let is_needed = |without: &dyn Fn(&mut Value) -> bool| {
            of.iter().any(|(name, config, steps)| {
                let mut grants = serde_json::to_value(built_in::grants(name, config)).expect("JSON");
                let is_there = without(&mut grants);
                let grants: Grants = serde_json::from_value(grants).expect("grants");
                is_there && !authorize(steps, &grants).is_empty()
            })
        };
        // Made only where the configuration names a file system.
        let is_seldom = |item: &Value| add_on.name == "aws-efs-csi" && item["names"] == json!(["efs"]);
        for list in LISTS {
            let items = of.iter().flat_map(|(name, config, _)| {
                let grants = serde_json::to_value(built_in::grants(name, config)).expect("JSON");
                grants.pointer(list).and_then(Value::as_array).cloned().unwrap_or_default()
            });
            for item in items.filter(|it| !is_seldom(it)) {
                let without = |grants: &mut Value| {
                    let items = grants.pointer_mut(list).and_then(Value::as_array_mut);
                    items.is_some_and(|items| {
                        let before = items.len();
                        items.retain(|it| *it != item);
                        items.len() < before
                    })
                };
                assert!(is_needed(&without), "{}: {list} has {item}, which no plan needs", add_on.name);
            }
        }
        let without = |grants: &mut Value| {
            grants.pointer_mut("/pods/controlPlane").is_some_and(|it| {
                *it = false.into();
                true
            })
        };
        assert!(is_needed(&without), "{}: no Pod of it is sent to the control plane", add_on.name);
    }
}

/// Where in a value there are objects with fields, as JSON pointers; maps of labels and amounts have none.
fn objects_in(value: &Value, at: &str, res: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                objects_in(item, &format!("{at}/{place}"), res);
            }
        }
        Value::Object(fields) => {
            let name = at.rsplit('/').next().unwrap_or_default();
            if !["labels", "limits", "matchLabels", "nodeSelector", "requests"].contains(&name) {
                res.push(at.to_owned());
                for (field, inner) in fields {
                    objects_in(inner, &format!("{at}/{}", field.replace('~', "~0").replace('/', "~1")), res);
                }
            }
        }
        _ => (),
    }
}

#[test]
fn a_field_of_a_newer_kubernetes_is_denied_wherever_it_is() {
    let mut tried = 0;
    for (name, config, steps) in plans() {
        let grants = built_in::grants(name, &config);
        let objects = steps.iter().filter_map(|it| it.spec["objects"].as_array()).flatten();
        let made_pods = objects.filter(|it| it.pointer("/spec/template/spec/serviceAccountName").is_some());
        for object in made_pods {
            let mut places = Vec::new();
            objects_in(object, "", &mut places);
            for place in places {
                let mut object = object.clone();
                let fields = object.pointer_mut(&place).and_then(Value::as_object_mut);
                fields.expect("an object").insert("surprise".to_owned(), json!({"privileged": true}));
                let denials = authorize([&applying(vec![object])], &grants);
                assert_eq!(denials.len(), 1, "{name}, {place}: {}", text(&denials));
                assert!(
                    denials[0].message.contains("surprise") && denials[0].grant.is_none(),
                    "{name}, {place}"
                );
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
}
