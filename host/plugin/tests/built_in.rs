//! The built-in plugins through the real host call: what they plan for each configuration, as text, and what
//! they refuse.

mod common;

use addons::{built_in, grant};
use common::plans::{complete, golden, outline, refused, the_same_each_time};
use common::{LARGEST, load, request, with_fact};
use contract::{FactValue, Operation, Step};
use expect_test::{expect, expect_file};
use plugin::{ConfigSchema, built_in};
use serde_json::{Value, json};

const CCM: &str = "aws-cloud-controller-manager";

#[test]
fn whole_plans() {
    golden(CCM, json!({}), expect_file!["golden/aws-cloud-controller-manager.json"]);
    golden(CCM, ccm_settings(), expect_file!["golden/aws-cloud-controller-manager-settings.json"]);
    golden("calico", json!({}), expect_file!["golden/calico.json"]);
    let mirror =
        json!({ "encapsulation": "IPIP", "mtu": 8981, "imageRegistry": "registry.example.com:5000/mirror" });
    golden("calico", mirror, expect_file!["golden/calico-ipip-mirror.json"]);
    golden("calico", calico_settings(), expect_file!["golden/calico-settings.json"]);
}

/// Every setting of Calico that is another than its default.
fn calico_settings() -> Value {
    json!({
        "encapsulation": "VXLANCrossSubnet", "sourceDestinationCheck": "Disable", "blockSize": 28, "natOutgoing": false, "mtu": 8900,
        "resources": { "cpu": "250m", "memory": "200Mi" }, "typhaResources": { "cpu": "100m" }, "imageRegistry": "registry.example.com",
        "controlPlaneReplicas": 3, "controlPlaneNodeSelector": { "pool": "system" }, "logLevel": "Debug",
        "controlPlaneTolerations": [{ "key": "dedicated", "operator": "Equal", "value": "system", "effect": "NoSchedule" }],
    })
}

/// Every setting of the cloud controller manager.
fn ccm_settings() -> Value {
    json!({
        "resources": { "cpu": "200m" }, "nodeSelector": { "pool": "system" }, "logLevel": "Debug",
        "extraArgs": { "concurrent-service-syncs": "5", "profiling": "false" }, "imagePullSecrets": [{ "name": "mirror" }],
        "imageRegistry": "registry.example.com/aws", "imageTag": "v1.36.2",
    })
}

#[test]
fn everything_they_ask_for_is_granted() {
    let mirror = || json!({ "imageRegistry": "registry.example.com:5000/mirror" });
    for (name, configs) in [
        (CCM, vec![json!({}), mirror(), ccm_settings()]),
        ("calico", vec![json!({}), mirror(), calico_settings()]),
    ] {
        for config in configs {
            let plan = complete(name, &request(config.clone()));
            let denials =
                grant::authorize(plan.steps.iter().chain(&plan.removal), &built_in::grants(name, &config));
            assert_eq!(denials, [], "{name}");
        }
    }
}

#[test]
fn security_group_rules_follow_the_encapsulation_and_come_first() {
    let rules = |encapsulation: &str| -> String {
        let plan = complete(
            "calico",
            &request(json!({ "encapsulation": encapsulation, "sourceDestinationCheck": "DoNothing" })),
        );
        let operator = plan.steps.iter().find(|step| step.id == "operator").expect("there is an operator");
        let rules: Vec<&Step> = plan.steps.iter().filter(|step| step.kind == "aws.sg-rule/v1").collect();
        assert_eq!(operator.after, rules.iter().map(|rule| rule.id.clone()).collect::<Vec<_>>());
        let line = |rule: &&Step| {
            let [group, peer, protocol] =
                ["group", "peer", "protocol"].map(|key| rule.spec[key].as_str().unwrap_or_default());
            format!("{peer} -> {group} {protocol} {}\n", rule.spec["fromPort"])
        };
        rules.iter().map(line).collect()
    };
    expect![[r#"
        control-plane -> control-plane udp 4789
        node -> control-plane udp 4789
        control-plane -> node udp 4789
        node -> node udp 4789
        control-plane -> control-plane tcp 5473
        node -> control-plane tcp 5473
        control-plane -> node tcp 5473
        node -> node tcp 5473
        control-plane -> control-plane tcp 5443
        control-plane -> node tcp 5443
    "#]]
    .assert_eq(&rules("VXLAN"));
    expect![[r#"
        control-plane -> control-plane 4 null
        node -> control-plane 4 null
        control-plane -> node 4 null
        node -> node 4 null
        control-plane -> control-plane tcp 179
        node -> control-plane tcp 179
        control-plane -> node tcp 179
        node -> node tcp 179
        control-plane -> control-plane tcp 5473
        node -> control-plane tcp 5473
        control-plane -> node tcp 5473
        node -> node tcp 5473
        control-plane -> control-plane tcp 5443
        control-plane -> node tcp 5443
    "#]]
    .assert_eq(&rules("IPIP"));
    let all = expect![[r#"
        control-plane -> control-plane -1 null
        node -> control-plane -1 null
        control-plane -> node -1 null
        node -> node -1 null
    "#]];
    all.assert_eq(&rules("VXLANCrossSubnet"));
    all.assert_eq(&rules("None"));
}

#[test]
fn calico_leaves_in_the_order_its_finalizers_need() {
    let mut request = request(json!({}));
    request.operation = Operation::Uninstall;
    let plan = complete("calico", &request);
    assert_eq!(outline(&plan.steps), "");
    expect![[r#"
        apiserver (k8s.delete/v1)
        installation (k8s.delete/v1) after apiserver
        operator (k8s.delete/v1) after installation
        secrets-role-binding (k8s.delete/v1) after operator
        cluster-role-binding (k8s.delete/v1) after operator
        cluster-role (k8s.delete/v1) after cluster-role-binding
        secrets-cluster-role (k8s.delete/v1) after secrets-role-binding
        namespace (k8s.delete/v1) after operator, secrets-role-binding
    "#]]
    .assert_eq(&outline(&plan.removal));
    request.operation = Operation::DeleteCluster;
    assert_eq!(outline(&complete("calico", &request).removal), "");
}

#[test]
fn the_cloud_provider_leaves_program_first() {
    let mut request = request(json!({}));
    request.operation = Operation::DeleteCluster;
    let plan = complete(CCM, &request);
    assert_eq!(outline(&plan.steps), "");
    expect![[r#"
        daemonset (k8s.delete/v1)
        cluster-role-binding (k8s.delete/v1) after daemonset
        cluster-role (k8s.delete/v1) after daemonset
        role-binding (k8s.delete/v1) after daemonset
        service-account (k8s.delete/v1) after daemonset
    "#]]
    .assert_eq(&outline(&plan.removal));
}

#[test]
fn the_cloud_providers_image_follows_version_and_settings() {
    let image = |config: Value, version: &str| {
        let request = with_fact(request(config), "kubernetes-version", FactValue::Present(json!(version)));
        let plan = complete(CCM, &request);
        let daemon_set = plan.steps[0].spec["objects"]
            .as_array()
            .and_then(|objects| objects.last())
            .expect("there are objects");
        daemon_set["spec"]["template"]["spec"]["containers"][0]["image"]
            .as_str()
            .map(str::to_owned)
            .expect("there is an image")
    };
    assert_eq!(image(json!({}), "v1.33.1"), "registry.k8s.io/provider-aws/cloud-controller-manager:v1.33.4");
    let own = json!({ "imageRegistry": "registry.example.com/aws", "imageTag": "v1.37.0" });
    assert_eq!(image(own, "v1.37.2"), "registry.example.com/aws/cloud-controller-manager:v1.37.0");
}

#[test]
fn what_cannot_be_done_is_said() {
    let version = |value| with_fact(request(json!({})), "kubernetes-version", value);
    refused(
        CCM,
        &version(FactValue::Present(json!("v1.37.0"))),
        expect![[r#"
            unsupported UnsupportedKubernetesVersion: no release of the AWS cloud controller manager is known for Kubernetes v1.37.0; known are 1.32 to 1.36. Set imageTag to choose one yourself
        "#]],
    );
    refused(
        CCM,
        &version(FactValue::Unknown("the API server does not answer".to_owned())),
        expect![[r#"
            pending FactUnknown: waiting for fact kubernetes-version: the API server does not answer
        "#]],
    );
    refused(
        CCM,
        &version(FactValue::Absent),
        expect![[r#"
            unsupported FactAbsent: fact kubernetes-version is needed: it is absent
        "#]],
    );
}

#[test]
fn a_wrong_configuration_names_field_and_fix() {
    refused(
        "calico",
        &request(json!({ "mtu": 9000, "imageRegistry": "https://registry.example.com" })),
        expect![[r#"
            invalid MTUTooLarge /mtu: must be at most 8951 with encapsulation VXLAN
            invalid InvalidImageRegistry /imageRegistry: must be a registry and a path without scheme and without a slash at its end, such as registry.example.com/mirror
        "#]],
    );
    refused(
        CCM,
        &request(
            json!({ "extraArgs": { "cloud-config": "/etc/x", "kube-api-qps": "0", "node-monitor-period": "5" } }),
        ),
        expect![[r#"
            invalid UnknownArgument /extraArgs: cloud-config cannot be set here; what can is concurrent-node-syncs, concurrent-service-syncs, kube-api-burst, kube-api-qps, min-resync-period, node-monitor-period, node-status-update-frequency, profiling
            invalid InvalidArgument /extraArgs: kube-api-qps must be a whole number from 1 to 1000
            invalid InvalidArgument /extraArgs: node-monitor-period must be a duration, such as 30s or 1h30m
        "#]],
    );
    let found = load("calico").validate(&request(json!({ "mtu": 9000 }))).expect("it answers").value;
    assert_eq!(found.len(), 1);
    let found = load(CCM).validate(&request(json!({ "imageTags": "v1" }))).expect("it answers").value;
    assert_eq!(found.iter().map(|one| one.code.as_str()).collect::<Vec<_>>(), ["InvalidConfig"]);
}

#[test]
fn settings_of_the_api_are_those_of_the_plugins() {
    let schema = |name: &str| load(name).describe().expect("it answers").value.config_schema;
    let check =
        |schema: &Value, config: Value| ConfigSchema::read(schema).expect("the schema is one").check(&config);
    let calico = crds::cluster_plugin::CalicoNetworking {
        mtu: Some(1400),
        image_registry: Some("registry.example.com".to_owned()),
        ..Default::default()
    };
    let ccm = crds::cluster_plugin::AWSCloudProvider {
        image_registry: Some("registry.example.com".to_owned()),
        image_tag: Some("v1.36.1".to_owned()),
        ..Default::default()
    };
    for (name, config) in [("calico", serde_json::to_value(calico)), (CCM, serde_json::to_value(ccm))] {
        let config = config.expect("settings are JSON");
        assert_eq!(check(&schema(name), config.clone()), [], "{name}");
        complete(name, &request(config));
    }
    assert_eq!(check(&schema("calico"), json!({ "encapsulation": "GRE" })).len(), 1);
    assert_eq!(check(&schema(CCM), json!({ "imageTags": "v1" })).len(), 1);
}

/// The settings of a slot as the API has them.
fn api_schema(path: &str) -> Value {
    let definitions = crds::definitions().expect("definitions are typed");
    let definition =
        definitions.into_iter().find(|one| one.spec.names.kind == "ClusterPlugin").expect("it is defined");
    let schema = serde_json::to_value(&definition.spec.versions[0].schema).expect("a schema is JSON");
    let at = |at: Value, name: &str| at["properties"][name].clone();
    path.split('.').fold(at(schema["openAPIV3Schema"].clone(), "spec"), at)
}

/// What a schema allows, without words about it and what only an API server knows.
fn bounds(schema: &Value) -> Value {
    let mut bounds = serde_json::Map::new();
    const KEYS: [&str; 10] = [
        "enum",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "maxItems",
        "required",
        "minProperties",
        "maxProperties",
    ];
    for key in KEYS {
        if let Some(bound) = schema.get(key) {
            let bound = match bound.as_f64() {
                Some(number) => json!(number),
                None => bound.clone(),
            };
            bounds.insert(key.to_owned(), bound);
        }
    }
    for key in ["type", "items"].into_iter().filter(|key| schema.get(key).is_some()) {
        let inner = if key == "items" { self::bounds(&schema[key]) } else { schema[key].clone() };
        bounds.insert(key.to_owned(), inner);
    }
    // Values of a map; `false` only says that there are no others.
    if schema["additionalProperties"].is_object() {
        bounds.insert("additionalProperties".to_owned(), self::bounds(&schema["additionalProperties"]));
    }
    if let Some(required) = bounds.get_mut("required").and_then(Value::as_array_mut) {
        required.sort_by_key(Value::to_string);
    }
    // An enumeration says its type by its values.
    if bounds.contains_key("enum") {
        bounds.remove("type");
    }
    if let Some(properties) = schema["properties"].as_object() {
        bounds.insert(
            "properties".to_owned(),
            properties.iter().map(|(name, field)| (name.clone(), self::bounds(field))).collect(),
        );
    }
    bounds.into()
}

#[test]
fn the_api_refuses_and_allows_what_the_plugins_do() {
    let slots = [
        ("cloudProvider.aws", CCM),
        ("networking.calico", "calico"),
        ("networking.amazonVPC", "aws-vpc-cni"),
        ("storage.ebs", "aws-ebs-csi"),
        ("storage.efs", "aws-efs-csi"),
        ("ingress.awsLoadBalancerController", "aws-load-balancer-controller"),
    ];
    for (path, name) in slots {
        let plugin = load(name).describe().expect("it answers").value.config_schema;
        let mut api = api_schema(path);
        // Which version is wanted is the host's to look at.
        api["properties"].as_object_mut().expect("properties").remove("version");
        // One list is for all of them.
        api["properties"]["imagePullSecrets"] = api_schema("imagePullSecrets");
        assert_eq!(bounds(&api), bounds(&plugin), "{path}");
    }
}

#[test]
fn what_the_api_fills_in_is_what_the_plugins_do_without() {
    use crds::cluster_plugin::{
        AWSCloudProvider, AWSLoadBalancerController, AmazonVPCNetworking, CalicoNetworking, EBSStorage,
        EFSStorage,
    };
    let filled = |settings: serde_json::Result<Value>| settings.expect("settings are JSON");
    let cases = [
        (CCM, filled(serde_json::to_value(AWSCloudProvider::default()))),
        ("calico", filled(serde_json::to_value(CalicoNetworking::default()))),
        ("aws-vpc-cni", filled(serde_json::to_value(AmazonVPCNetworking::default()))),
        ("aws-ebs-csi", filled(serde_json::to_value(EBSStorage::default()))),
        ("aws-efs-csi", filled(serde_json::to_value(EFSStorage::default()))),
        ("aws-load-balancer-controller", filled(serde_json::to_value(AWSLoadBalancerController::default()))),
    ];
    for (name, config) in cases {
        let schema = load(name).describe().expect("it answers").value.config_schema;
        let schema = ConfigSchema::read(&schema).expect("the schema is one");
        assert_eq!(schema.check(&config), [], "{name}");
        assert_eq!(complete(name, &request(config)), complete(name, &request(json!({}))), "{name}");
    }
}

#[test]
fn the_same_request_gives_the_same_bytes_for_the_same_fuel() {
    for plugin in built_in() {
        the_same_each_time(plugin.name, &request(json!({})));
    }
}

#[test]
fn they_say_who_they_are_and_are_small() {
    for plugin in built_in() {
        let descriptor = load(plugin.name).describe().expect("it answers").value;
        assert_eq!(descriptor.name, plugin.name);
        assert!(plugin.bytes.len() <= LARGEST, "{} has {} bytes", plugin.name, plugin.bytes.len());
        assert_eq!(plugin.digest, load(plugin.name).digest());
    }
}

#[test]
fn each_has_its_entry_in_the_table_of_add_ons() {
    let mut known: Vec<_> = addons::built_in::BUILT_IN.iter().map(|add_on| add_on.name).collect();
    known.sort();
    assert_eq!(known, built_in().iter().map(|plugin| plugin.name).collect::<Vec<_>>());
}
