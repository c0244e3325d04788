//! What single settings and facts do to the objects of add-ons.

use super::{ALL, CONTROLLER, EBS, EFS, ROLE, VPC_CNI, comes_after, object, settings, step};
use crate::common::plans::{complete, refused};
use crate::common::{and_fact, request, with_fact, without_feature};
use ::addons::{built_in, grant};
use contract::FactValue;
use expect_test::expect;
use serde_json::{Value, json};

#[test]
fn pods_reach_each_other_and_not_etcd() {
    let plan = complete(VPC_CNI, &request(json!({})));
    let rules =
        plan.steps.iter().filter(|step| step.kind == "aws.sg-rule/v1").fold(String::new(), |text, rule| {
            let [group, peer, protocol] =
                ["group", "peer", "protocol"].map(|key| rule.spec[key].as_str().unwrap_or_default());
            text + &format!(
                "{peer} -> {group} {protocol} {} {}\n",
                rule.spec["fromPort"], rule.spec["toPort"]
            )
        });
    expect![[r#"
        node -> node -1 null null
        control-plane -> node -1 null null
        control-plane -> control-plane -1 null null
        node -> control-plane tcp 0 2378
        node -> control-plane tcp 2381 65535
        node -> control-plane udp 0 65535
    "#]]
    .assert_eq(&rules);
}

#[test]
fn webhooks_come_after_their_server_and_trust_the_hosts_authority() {
    let plan = complete(CONTROLLER, &request(json!({})));
    let webhooks = step(&plan, "webhooks");
    assert!(comes_after(&plan.steps, webhooks, "controller-available"));
    assert_eq!(webhooks.spec["caBundleFrom"], "certificate");
    let certificate = &step(&plan, "certificate").spec;
    let mounted =
        &object(&plan, "Deployment")["spec"]["template"]["spec"]["volumes"][0]["secret"]["secretName"];
    assert_eq!(certificate["secretName"], *mounted);
    let service = &object(&plan, "Service")["metadata"]["name"];
    let host = format!("{}.kube-system.svc", service.as_str().unwrap_or_default());
    assert_eq!(certificate["dnsNames"][0], host.as_str());
}

#[test]
fn services_wait_for_the_controller_only_when_asked_for() {
    let hooks = |config: Value| -> Vec<Value> {
        let plan = complete(CONTROLLER, &request(config));
        object(&plan, "MutatingWebhookConfiguration")["webhooks"].as_array().cloned().unwrap_or_default()
    };
    let of_services =
        |hooks: Vec<Value>| hooks.into_iter().find(|hook| hook["rules"][0]["resources"][0] == "services");
    assert_eq!(of_services(hooks(json!({}))), None);
    let hook = of_services(hooks(json!({ "serviceMutatorWebhook": true }))).expect("there is one");
    assert_eq!(hook["namespaceSelector"]["matchExpressions"][0]["values"], json!(["kube-system"]));
}

#[test]
fn the_storage_class_is_the_default_unless_another_is() {
    let is_default = |config: Value, classes: Option<Value>| {
        let mut request = request(config);
        if let Some(classes) = classes {
            request = and_fact(request, "storage-classes", FactValue::Present(classes));
        }
        let plan = complete(EBS, &request);
        object(&plan, "StorageClass")["metadata"]["annotations"]["storageclass.kubernetes.io/is-default-class"]
            == "true"
    };
    let class = |name: &str, is_default: bool| {
        Some(json!([{ "name": name, "provisioner": "p", "isDefault": is_default }]))
    };
    assert!(is_default(json!({}), None));
    assert!(is_default(json!({}), class("other", false)));
    assert!(is_default(json!({}), class("ebs", true)));
    assert!(!is_default(json!({}), class("other", true)));
    assert!(is_default(json!({ "storageClass": { "default": "Always" } }), class("other", true)));
    assert!(!is_default(json!({ "storageClass": { "default": "Never" } }), None));
    refused(
        EBS,
        &and_fact(request(json!({})), "storage-classes", FactValue::Unknown("timeout".to_owned())),
        expect![[r#"
        pending FactUnknown: waiting for fact storage-classes: timeout
    "#]],
    );
}

#[test]
fn fields_of_newer_kubernetes_are_left_out_for_older() {
    let field = |version: &str| {
        let request = with_fact(request(json!({})), "kubernetes-version", FactValue::Present(json!(version)));
        object(&complete(EBS, &request), "CSIDriver")["spec"]["nodeAllocatableUpdatePeriodSeconds"].clone()
    };
    assert_eq!(field("v1.32.9"), Value::Null);
    assert_eq!(field("v1.33.0"), 10);
}

#[test]
fn snapshots_wait_for_their_definitions() {
    let waits = |config: Value| {
        let plan = complete(EBS, &request(config));
        let containers =
            object(&plan, "Deployment")["spec"]["template"]["spec"]["containers"].as_array().map(Vec::len);
        (plan.steps.iter().filter(|step| step.spec["condition"] == "crd-established").count(), containers)
    };
    assert_eq!(waits(json!({})), (0, Some(5)));
    assert_eq!(waits(json!({ "snapshots": true })), (3, Some(6)));
}

#[test]
fn a_file_system_is_looked_at_by_hosts_that_can() {
    let config = json!({ "fileSystemID": "fs-01234567" });
    let ids =
        |request| -> Vec<String> { complete(EFS, &request).steps.into_iter().map(|step| step.id).collect() };
    let looked_at = "file-system".to_owned();
    assert!(ids(request(config.clone())).contains(&looked_at));
    let without = ids(without_feature(request(config), "aws.efs-file-system/v1"));
    assert!(!without.contains(&looked_at) && without.contains(&"storage-class".to_owned()));
    assert!(!ids(request(json!({}))).contains(&"storage-class".to_owned()));
}

#[test]
fn volumes_and_interfaces_carry_the_clusters_tags() {
    let tags = json!({ "team": "a", "kubernetes.io/cluster/prod": "owned" });
    let aws = json!({ "region": "eu-west-1", "partition": "aws", "vpcId": "vpc-1", "zones": ["eu-west-1a", "eu-west-1b"], "tags": tags });
    let request = with_fact(request(json!({})), "aws", FactValue::Present(aws));
    let args = |name: &str| {
        object(&complete(name, &request), "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
            .to_string()
    };
    assert!(args(EBS).contains(r#""--extra-tags=team=a""#));
    assert!(args(EBS).contains(r#""--k8s-tag-cluster-id=prod""#));
    assert!(!args(EFS).contains("--tags"), "AWS's policy for the driver lets it set no tag but its own");
    assert!(args(CONTROLLER).contains(r#""--default-tags=team=a""#));
    assert!(args(CONTROLLER).contains(r#""--aws-region=eu-west-1","--aws-vpc-id=vpc-1""#));
    let env = object(&complete(VPC_CNI, &request), "DaemonSet")["spec"]["template"]["spec"]["containers"][0]
        ["env"]
        .clone();
    assert!(env.as_array().is_some_and(|env| {
        env.contains(&json!({ "name": "ADDITIONAL_ENI_TAGS", "value": r#"{"team":"a"}"# }))
    }));
}

#[test]
fn whatever_makes_pods_pulls_with_the_secrets_that_are_granted() {
    for name in ALL {
        let plan = complete(name, &request(settings(name)));
        let objects = plan.steps.iter().filter_map(|step| step.spec["objects"].as_array()).flatten();
        let pods: Vec<&Value> = objects.filter_map(|object| object.pointer("/spec/template/spec")).collect();
        assert!(
            !pods.is_empty()
                && pods.iter().all(|pod| pod["imagePullSecrets"] == json!([{ "name": "mirror" }])),
            "{name}"
        );
        let mut config = settings(name);
        config["imagePullSecrets"] = json!([{ "name": "other" }]);
        let denials = grant::authorize(&plan.steps, &built_in::grants(name, &config));
        assert!(denials.iter().any(|denial| denial.message.starts_with("Secret mirror ")), "{name}");
    }
}

#[test]
fn tags_that_others_manage_are_not_set_by_the_controller() {
    let aws = json!({ "region": "eu-west-1", "partition": "aws", "vpcId": "vpc-1", "zones": ["a", "b"], "tags": { "team": "a", "cost": "1" } });
    let args = |config: Value| {
        let request = with_fact(request(config), "aws", FactValue::Present(aws.clone()));
        object(&complete(CONTROLLER, &request), "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"].to_string()
    };
    assert!(args(json!({})).contains(r#""--default-tags=cost=1,team=a""#));
    let managed = args(json!({ "externalManagedTags": ["cost", "owner"] }));
    assert!(managed.contains(r#""--default-tags=team=a","--external-managed-tags=cost,owner""#), "{managed}");
}

#[test]
fn a_range_of_pods_beside_the_vpcs_addresses_is_told_of() {
    let codes = |ranges: Value| -> Vec<String> {
        let cluster = json!({ "name": "prod", "namespace": "default", "podCIDRs": ranges, "serviceCIDRs": [],
            "controlPlaneEndpoint": { "host": "h", "port": 6443 } });
        let request = with_fact(request(json!({ "roleARN": ROLE })), "cluster", FactValue::Present(cluster));
        complete(VPC_CNI, &request).diagnostics.into_iter().map(|found| found.code).collect()
    };
    assert_eq!(codes(json!(["192.168.0.0/16"])), ["PodCIDR"]);
    assert_eq!(codes(json!([])), [""; 0]);
}

#[test]
fn images_come_from_the_registry_of_the_partition() {
    let image = |partition: &str| {
        let aws = json!({ "region": "r", "partition": partition, "vpcId": "vpc-1", "zones": ["a", "b"], "tags": {} });
        let plan = complete(VPC_CNI, &with_fact(request(json!({})), "aws", FactValue::Present(aws)));
        assert_eq!(grant::authorize(&plan.steps, &built_in::grants(VPC_CNI, &json!({}))), []);
        object(&plan, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]["image"]
            .as_str()
            .map(str::to_owned)
            .unwrap_or_default()
    };
    assert_eq!(image("aws"), "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1.23.0");
    assert_eq!(
        image("aws-cn"),
        "961992271922.dkr.ecr.cn-northwest-1.amazonaws.com.cn/amazon-k8s-cni:v1.23.0"
    );
    assert_eq!(
        image("aws-us-gov"),
        "013241004608.dkr.ecr.us-gov-west-1.amazonaws.com/amazon-k8s-cni:v1.23.0"
    );
}

#[test]
fn subnets_without_tags_are_told_of() {
    let codes = |config: Value, schemes: Value| -> Vec<String> {
        let subnets = json!([{ "id": "subnet-1", "zone": "us-east-1a", "loadBalancerSchemes": schemes }]);
        let request = and_fact(request(config), "subnets", FactValue::Present(subnets));
        complete(CONTROLLER, &request)
            .diagnostics
            .into_iter()
            .map(|found| found.code)
            .filter(|code| code == "UntaggedSubnets")
            .collect()
    };
    assert_eq!(codes(json!({}), json!(["internal"])).len(), 0);
    assert_eq!(codes(json!({}), json!([])).len(), 1);
    assert_eq!(
        codes(json!({ "ingressClass": { "scheme": "internet-facing" } }), json!(["internal"])).len(),
        1
    );
}
