//! The add-ons of AWS through the real host call: what they plan for default and other settings, in which
//! order they come and go, and what they refuse.

mod common;

use ::addons::{built_in, grant};
use common::plans::{complete, golden, outline, plan, refused, the_same_each_time};
use common::{OPTIONAL, and_fact, request, with_fact, without_feature};
use contract::{AddOnPlan, FactValue, Failure, Operation, Step};
use expect_test::{Expect, expect, expect_file};
use serde_json::{Value, json};

const VPC_CNI: &str = "aws-vpc-cni";
const EBS: &str = "aws-ebs-csi";
const EFS: &str = "aws-efs-csi";
const CONTROLLER: &str = "aws-load-balancer-controller";
const ALL: [&str; 4] = [VPC_CNI, EBS, EFS, CONTROLLER];

const ROLE: &str = "arn:aws:iam::123456789012:role/add-on";

/// Settings other than the default ones, as many as there are.
fn settings(name: &str) -> Value {
    let tolerations =
        json!([{ "key": "dedicated", "operator": "Equal", "value": "system", "effect": "NoSchedule" }]);
    match name {
        VPC_CNI => json!({
            "roleARN": ROLE, "prefixDelegation": true, "warmENITarget": 0, "warmIPTarget": 4, "minimumIPTarget": 16, "warmPrefixTarget": 2,
            "excludeSNATCIDRs": ["10.1.0.0/16", "10.2.0.0/16"], "mtu": 1500, "podMTU": 1450, "maxENI": 3,
            "nodeSelector": { "pool": "a" }, "logLevel": "Debug", "extraEnv": { "DISABLE_METRICS": "true", "IP_COOLDOWN_PERIOD": "60" },
            "imagePullSecrets": [{ "name": "mirror" }],
            "customNetworking": [{ "zone": "us-east-1a", "subnetID": "subnet-0a", "securityGroupIDs": ["sg-0a"] }],
            "resources": { "cpu": "50m" }, "imageRegistry": "registry.example.com/cni", "imageTag": "v1.23.1",
        }),
        EBS => json!({
            "roleARN": ROLE, "replicas": 1, "resources": { "cpu": "20m", "memory": "64Mi" }, "tolerations": tolerations, "snapshots": true,
            "storageClass": { "name": "fast", "default": "Always", "type": "io2", "iops": 4000, "kmsKeyID": "arn:aws:kms:us-east-1:123456789012:key/k",
                "fsType": "xfs", "reclaimPolicy": "Retain" },
            "storageClasses": [{ "name": "cold", "type": "sc1", "encrypted": false, "reclaimPolicy": "Retain" }],
            "volumeAttachLimit": 20, "nodeSelector": { "pool": "system" }, "logLevel": "Debug",
            "extraArgs": { "batching": "false", "logging-format": "json" },
            "imagePullSecrets": [{ "name": "mirror" }], "imageRegistry": "registry.example.com", "imageTag": "v1.64.0",
        }),
        EFS => json!({
            "roleARN": ROLE, "fileSystemID": "fs-0123456789abcdef0", "deleteDirectories": true, "tagAccessPoints": true, "replicas": 1, "resources": { "memory": "64Mi" },
            "tolerations": tolerations, "nodeSelector": { "pool": "system" }, "logLevel": "Debug",
            "extraArgs": { "adaptive-retry-mode": "false", "vol-metrics-opt-in": "true", "vol-metrics-refresh-period": "60" },
            "storageClass": { "name": "shared", "default": "IfNone", "directoryPermissions": "755", "basePath": "/pods",
                "subPathPattern": "${.PVC.namespace}/${.PVC.name}", "ensureUniqueDirectory": false, "uid": 1000, "gid": 1000,
                "gidRangeStart": 1000, "gidRangeEnd": 2000, "mountOptions": ["iam"], "reclaimPolicy": "Retain" },
            "imagePullSecrets": [{ "name": "mirror" }], "imageRegistry": "registry.example.com", "imageTag": "v3.4.2",
        }),
        _ => json!({
            "roleARN": ROLE, "replicas": 3, "resources": { "cpu": "200m" }, "tolerations": tolerations, "targetType": "ip",
            "ingressClass": { "name": "public", "default": true, "scheme": "internet-facing" }, "serviceMutatorWebhook": true, "waf": true,
            "shield": true, "nodeSelector": { "pool": "system" }, "logLevel": "Debug", "extraArgs": { "sync-period": "1h" },
            "defaultScheme": "internet-facing", "defaultSSLPolicy": "ELBSecurityPolicy-TLS13-1-2-2021-06", "externalManagedTags": ["cost-center"],
            "backendSecurityGroupID": "sg-0b", "imagePullSecrets": [{ "name": "mirror" }], "imageRegistry": "registry.example.com/eks", "imageTag": "v3.5.1",
        }),
    }
}

fn step<'a>(plan: &'a AddOnPlan, id: &str) -> &'a Step {
    plan.steps.iter().find(|step| step.id == id).unwrap_or_else(|| panic!("there is no step {id}"))
}

/// The first object of this kind among those that the plan applies.
fn object<'a>(plan: &'a AddOnPlan, kind: &str) -> &'a Value {
    let mut objects = plan.steps.iter().filter_map(|step| step.spec["objects"].as_array()).flatten();
    objects.find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

fn uninstall(name: &str, config: Value) -> AddOnPlan {
    let mut request = request(config);
    request.operation = Operation::Uninstall;
    complete(name, &request)
}

fn check(steps: &[Step], expected: Expect) {
    expected.assert_eq(&outline(steps));
}

#[test]
fn whole_plans_with_default_settings() {
    golden(VPC_CNI, json!({}), expect_file!["golden/aws-vpc-cni.json"]);
    golden(EBS, json!({}), expect_file!["golden/aws-ebs-csi.json"]);
    golden(EFS, json!({}), expect_file!["golden/aws-efs-csi.json"]);
    golden(CONTROLLER, json!({}), expect_file!["golden/aws-load-balancer-controller.json"]);
}

#[test]
fn whole_plans_with_other_settings() {
    golden(VPC_CNI, settings(VPC_CNI), expect_file!["golden/aws-vpc-cni-settings.json"]);
    golden(EBS, settings(EBS), expect_file!["golden/aws-ebs-csi-settings.json"]);
    golden(EFS, settings(EFS), expect_file!["golden/aws-efs-csi-settings.json"]);
    golden(
        CONTROLLER,
        settings(CONTROLLER),
        expect_file!["golden/aws-load-balancer-controller-settings.json"],
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

#[test]
fn rules_rights_and_certificates_come_before_objects() {
    let steps = |name: &str| complete(name, &request(settings(name))).steps;
    check(
        &steps(VPC_CNI),
        expect![[r#"
        sg-node-to-node (aws.sg-rule/v1)
        sg-control-plane-to-node (aws.sg-rule/v1)
        sg-control-plane-to-control-plane (aws.sg-rule/v1)
        sg-tcp-below-etcd-node-to-control-plane (aws.sg-rule/v1)
        sg-tcp-above-etcd-node-to-control-plane (aws.sg-rule/v1)
        sg-udp-node-to-control-plane (aws.sg-rule/v1)
        role (aws.iam-role/v1)
        eniconfig-crd (k8s.apply/v1) after sg-node-to-node, sg-control-plane-to-node, sg-control-plane-to-control-plane, sg-tcp-below-etcd-node-to-control-plane, sg-tcp-above-etcd-node-to-control-plane, sg-udp-node-to-control-plane, role
        eniconfig-crd-established (k8s.wait/v1) after eniconfig-crd
        objects (k8s.apply/v1) after eniconfig-crd-established
        running (k8s.wait/v1) after objects
    "#]],
    );
    check(
        &steps(EBS),
        expect![[r#"
        role (aws.iam-role/v2)
        volumesnapshotclasses-crd (k8s.wait/v1)
        volumesnapshotcontents-crd (k8s.wait/v1)
        volumesnapshots-crd (k8s.wait/v1)
        driver (k8s.apply/v1) after role, volumesnapshotclasses-crd, volumesnapshotcontents-crd, volumesnapshots-crd
        controller-available (k8s.wait/v1) after driver
        nodes-ready (k8s.wait/v1) after driver
        storage-class (k8s.apply/v1) after driver
        storage-class-cold (k8s.apply/v1) after driver
    "#]],
    );
    check(
        &steps(EFS),
        expect![[r#"
        role (aws.iam-role/v2)
        driver (k8s.apply/v1) after role
        controller-available (k8s.wait/v1) after driver
        nodes-ready (k8s.wait/v1) after driver
        file-system (aws.efs-file-system/v1)
        storage-class (k8s.apply/v1) after driver, file-system
    "#]],
    );
    check(
        &steps(CONTROLLER),
        expect![[r#"
        certificate (tls.certificate/v1)
        sg-webhook-control-plane-to-node (aws.sg-rule/v1)
        sg-webhook-control-plane-to-control-plane (aws.sg-rule/v1)
        role (aws.iam-role/v1)
        crds (k8s.apply/v1)
        target-group-binding-crd (k8s.wait/v1) after crds
        ingress-class-params-crd (k8s.wait/v1) after crds
        controller (k8s.apply/v1) after certificate, sg-webhook-control-plane-to-node, sg-webhook-control-plane-to-control-plane, role, target-group-binding-crd, ingress-class-params-crd
        controller-available (k8s.wait/v1) after controller
        webhooks (k8s.apply/v1) after certificate, controller-available
        ingress-class (k8s.apply/v1) after controller-available, webhooks
    "#]],
    );
}

#[test]
fn they_leave_in_an_order_that_strands_nothing() {
    check(
        &uninstall(VPC_CNI, json!({})).removal,
        expect![[r#"
        daemonset (k8s.delete/v1)
        cluster-role-binding (k8s.delete/v1) after daemonset
        cluster-role (k8s.delete/v1) after daemonset
        service-account (k8s.delete/v1) after daemonset
    "#]],
    );
    check(
        &uninstall(EBS, json!({})).removal,
        expect![[r#"
        storage-class (k8s.delete/v1)
        controller (k8s.delete/v1) after storage-class
        nodes (k8s.delete/v1) after controller
        csi-driver (k8s.delete/v1) after nodes
        budget (k8s.delete/v1) after controller
        clusterrolebinding-ebs-csi-provisioner-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-attacher-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-resizer-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-snapshotter-binding (k8s.delete/v1) after nodes
        clusterrolebinding-ebs-csi-node-getter-binding (k8s.delete/v1) after nodes
        clusterrole-ebs-external-provisioner-role (k8s.delete/v1) after nodes
        clusterrole-ebs-external-attacher-role (k8s.delete/v1) after nodes
        clusterrole-ebs-external-resizer-role (k8s.delete/v1) after nodes
        clusterrole-ebs-external-snapshotter-role (k8s.delete/v1) after nodes
        clusterrole-ebs-csi-node-role (k8s.delete/v1) after nodes
        rolebinding-ebs-csi-leases-role (k8s.delete/v1) after nodes
        role-ebs-csi-leases-role (k8s.delete/v1) after nodes
        serviceaccount-ebs-csi-controller-sa (k8s.delete/v1) after nodes
        serviceaccount-ebs-csi-node-sa (k8s.delete/v1) after nodes
    "#]],
    );
    check(
        &uninstall(EFS, settings(EFS)).removal,
        expect![[r#"
        storage-class (k8s.delete/v1)
        controller (k8s.delete/v1) after storage-class
        nodes (k8s.delete/v1) after controller
        csi-driver (k8s.delete/v1) after nodes
        clusterrolebinding-efs-csi-provisioner-binding (k8s.delete/v1) after nodes
        clusterrolebinding-efs-csi-node-binding (k8s.delete/v1) after nodes
        clusterrole-efs-csi-external-provisioner-role (k8s.delete/v1) after nodes
        clusterrole-efs-csi-node-role (k8s.delete/v1) after nodes
        rolebinding-efs-csi-leases-role (k8s.delete/v1) after nodes
        role-efs-csi-leases-role (k8s.delete/v1) after nodes
        serviceaccount-efs-csi-controller-sa (k8s.delete/v1) after nodes
        serviceaccount-efs-csi-node-sa (k8s.delete/v1) after nodes
    "#]],
    );
    check(
        &uninstall(CONTROLLER, json!({})).removal,
        expect![[r#"
        mutating-webhooks (k8s.delete/v1)
        validating-webhooks (k8s.delete/v1)
        ingress-class (k8s.delete/v1) after mutating-webhooks, validating-webhooks
        ingress-class-params (k8s.delete/v1) after ingress-class
        controller (k8s.delete/v1) after ingress-class-params
        poddisruptionbudget-aws-load-balancer-controller (k8s.delete/v1) after controller
        service-aws-load-balancer-webhook-service (k8s.delete/v1) after controller
        secret-aws-load-balancer-tls (k8s.delete/v1) after controller
        clusterrolebinding-aws-load-balancer-controller-rolebinding (k8s.delete/v1) after controller
        clusterrole-aws-load-balancer-controller-role (k8s.delete/v1) after controller
        rolebinding-aws-load-balancer-controller-leader-election-rolebinding (k8s.delete/v1) after controller
        role-aws-load-balancer-controller-leader-election-role (k8s.delete/v1) after controller
        serviceaccount-aws-load-balancer-controller (k8s.delete/v1) after controller
    "#]],
    );
    for name in ALL {
        assert!(uninstall(name, json!({})).steps.is_empty(), "{name}");
        let installed = complete(name, &request(settings(name))).removal;
        assert_eq!(installed, uninstall(name, settings(name)).removal, "{name}");
    }
}

#[test]
fn the_network_stays_until_the_machines_go() {
    let mut request = request(json!({}));
    request.operation = Operation::DeleteCluster;
    assert!(complete(VPC_CNI, &request).removal.is_empty());
    assert!(!complete(CONTROLLER, &request).removal.is_empty());
}

#[test]
fn removing_deletes_every_object_but_definitions() {
    for name in ALL {
        let plan = complete(name, &request(settings(name)));
        let removed: Vec<(&Value, &Value)> =
            plan.removal.iter().map(|step| (&step.spec["kind"], &step.spec["name"])).collect();
        for object in plan.steps.iter().filter_map(|step| step.spec["objects"].as_array()).flatten() {
            let (kind, object_name) = (&object["kind"], &object["metadata"]["name"]);
            let stays = kind == "CustomResourceDefinition" || kind == "ENIConfig";
            assert_eq!(!stays, removed.contains(&(kind, object_name)), "{name}: {kind} {object_name}");
        }
    }
}

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

fn comes_after(steps: &[Step], step: &Step, id: &str) -> bool {
    step.after.iter().any(|before| {
        before == id || steps.iter().any(|other| other.id == *before && comes_after(steps, other, id))
    })
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
fn webhooks_come_when_somebody_answers_and_trust_the_hosts_certificate() {
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
fn services_wait_for_the_controller_only_when_asked_for_and_never_in_kube_system() {
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

#[test]
fn an_unknown_kubernetes_version_is_unsupported_unless_a_tag_is_chosen() {
    let version = |config: Value| {
        with_fact(request(config), "kubernetes-version", FactValue::Present(json!("v1.37.0")))
    };
    refused(
        VPC_CNI,
        &version(json!({})),
        expect![[r#"
        unsupported UnsupportedKubernetesVersion: no release of the Amazon VPC CNI is known for Kubernetes v1.37.0; known are 1.32 to 1.36. Set imageTag to choose one yourself
    "#]],
    );
    refused(
        EBS,
        &version(json!({})),
        expect![[r#"
        unsupported UnsupportedKubernetesVersion: no release of the Amazon EBS CSI driver is known for Kubernetes v1.37.0; known are 1.32 to 1.36. Set imageTag to choose one yourself
    "#]],
    );
    refused(
        EFS,
        &version(json!({})),
        expect![[r#"
        unsupported UnsupportedKubernetesVersion: no release of the Amazon EFS CSI driver is known for Kubernetes v1.37.0; known are 1.32 to 1.36. Set imageTag to choose one yourself
    "#]],
    );
    refused(
        CONTROLLER,
        &version(json!({})),
        expect![[r#"
        unsupported UnsupportedKubernetesVersion: no release of the AWS Load Balancer Controller is known for Kubernetes v1.37.0; known are 1.32 to 1.36. Set imageTag to choose one yourself
    "#]],
    );
    for name in ALL {
        complete(name, &version(json!({ "imageTag": "v9" })));
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

#[test]
fn a_host_that_cannot_do_what_is_needed_is_told_so() {
    refused(
        CONTROLLER,
        &without_feature(request(json!({})), "tls.certificate/v1"),
        expect![[r#"
        unsupported UnsupportedHost: a webhook needs steps of kind tls.certificate/v1, which cluster-operator 0.1.0 does not carry out
    "#]],
    );
    for name in ALL {
        let kind = if [EBS, EFS].contains(&name) { "aws.iam-role/v2" } else { "aws.iam-role/v1" };
        let request = without_feature(request(json!({ "roleARN": ROLE })), kind);
        let Err(Failure::Unsupported(problem)) = plan(name, &request) else {
            panic!("{name} does without {kind}")
        };
        assert!(
            problem.message.contains(&format!("roleARN needs steps of kind {kind}")),
            "{name}: {}",
            problem.message
        );
    }
    for name in [VPC_CNI, EBS, EFS] {
        complete(
            name,
            &OPTIONAL.iter().fold(request(json!({})), |request, kind| without_feature(request, kind)),
        );
    }
}

#[test]
fn settings_that_contradict_each_other_name_field_and_fix() {
    let subnet = |zone: &str| json!({ "zone": zone, "subnetID": "subnet-0a" });
    refused(
        VPC_CNI,
        &request(json!({ "warmIPTarget": 4 })),
        expect![[r#"
        invalid IncompleteTarget /warmIPTarget: needs minimumIPTarget beside it: with one alone the CNI asks EC2 for every single address
    "#]],
    );
    refused(
        VPC_CNI,
        &request(json!({ "prefixDelegation": true, "warmPrefixTarget": 0 })),
        expect![[r#"
        invalid NoWarmTarget /warmPrefixTarget: must be at least 1 with prefixDelegation, unless warmIPTarget and minimumIPTarget are set
    "#]],
    );
    refused(
        VPC_CNI,
        &request(json!({ "customNetworking": [subnet("us-east-1a"), subnet("us-east-1a")] })),
        expect![[r#"
        invalid DuplicateZone /customNetworking/1/zone: zone us-east-1a has a subnet already
    "#]],
    );
    refused(
        VPC_CNI,
        &request(json!({ "customNetworking": [subnet("eu-west-1a")] })),
        expect![[r#"
        invalid UnknownZone /customNetworking/0/zone: the cluster has no subnet in zone eu-west-1a; its zones are us-east-1a
    "#]],
    );
    refused(
        VPC_CNI,
        &request(
            json!({ "externalSNAT": true, "excludeSNATCIDRs": ["10.0.0.0/8", "fd00::/8"], "mtu": 1500, "podMTU": 1501 }),
        ),
        expect![[r#"
        invalid UnusedRanges /excludeSNATCIDRs: has no effect with externalSNAT, which keeps the address of Pods in all packets; remove one of them
        invalid InvalidRange /excludeSNATCIDRs/1: must be an IPv4 range, such as 10.0.0.0/16
        invalid MTUTooLarge /podMTU: must be at most 1500, which is the largest packet of a network interface (mtu)
    "#]],
    );
    refused(
        VPC_CNI,
        &request(
            json!({ "maxENI": 1, "customNetworking": [subnet("us-east-1a")], "extraEnv": { "CLUSTER_NAME": "other" } }),
        ),
        expect![[r#"
        invalid TooFewInterfaces /maxENI: must be at least 2 with customNetworking, where the first network interface of a node has no addresses for Pods
        invalid UnknownArgument /extraEnv: CLUSTER_NAME cannot be set here; what can is AWS_EXTERNAL_SERVICE_CIDRS, AWS_MANAGE_ENIS_NON_SCHEDULABLE, AWS_VPC_K8S_CNI_RANDOMIZESNAT, DISABLE_INTROSPECTION, DISABLE_LEAKED_ENI_CLEANUP, DISABLE_METRICS, ENABLE_BANDWIDTH_PLUGIN, ENABLE_SUBNET_DISCOVERY, IP_COOLDOWN_PERIOD
    "#]],
    );
    refused(
        CONTROLLER,
        &request(
            json!({ "externalManagedTags": ["team", "elbv2.k8s.aws/cluster"], "extraArgs": { "sync-period": "often" } }),
        ),
        expect![[r#"
        invalid InvalidArgument /extraArgs: sync-period must be a duration, such as 30s or 1h30m
        invalid ReservedTag /externalManagedTags/1: is a key that AWS, Kubernetes or the controller sets itself, or has a comma or quote
    "#]],
    );
    refused(
        EBS,
        &request(json!({ "extraArgs": { "aws-sdk-debug-log": "true", "logging-format": "xml" } })),
        expect![[r#"
        invalid UnknownArgument /extraArgs: aws-sdk-debug-log cannot be set here; what can is batching, enable-node-local-volumes, logging-format, warn-on-invalid-tag
        invalid InvalidArgument /extraArgs: logging-format must be one of text, json
    "#]],
    );
    refused(
        EFS,
        &request(
            json!({ "extraArgs": { "delete-access-point-root-dir": "true", "vol-metrics-refresh-period": "0" } }),
        ),
        expect![[r#"
            invalid UnknownArgument /extraArgs: delete-access-point-root-dir cannot be set here; what can is adaptive-retry-mode, vol-metrics-fs-rate-limit, vol-metrics-opt-in, vol-metrics-refresh-period
            invalid InvalidArgument /extraArgs: vol-metrics-refresh-period must be a whole number from 1 to 10080
        "#]],
    );
    refused(
        EBS,
        &request(json!({ "storageClass": { "type": "io2" } })),
        expect![[r#"
        invalid MissingIOPS /storageClass/iops: must be set for volumes of type io1 or io2
    "#]],
    );
    refused(
        EBS,
        &request(json!({ "storageClass": { "type": "st1", "iops": 100, "throughput": 125 } })),
        expect![[r#"
        invalid UnsuitableType /storageClass/iops: can be set only for volumes of type gp3, io1 or io2
        invalid UnsuitableType /storageClass/throughput: can be set only for volumes of type gp3
    "#]],
    );
    refused(
        EBS,
        &request(json!({ "storageClass": { "encrypted": false, "kmsKeyID": "k" } })),
        expect![[r#"
        invalid UnusedKey /storageClass/kmsKeyID: has no effect on volumes that are not encrypted; remove it, or encrypted
    "#]],
    );
    refused(
        EBS,
        &request(json!({ "volumeAttachLimit": 20, "reservedVolumeAttachments": 2 })),
        expect![[r#"
            invalid LimitAndReservation /reservedVolumeAttachments: excludes volumeAttachLimit, which is what is left after all reservations; remove one of them
        "#]],
    );
    refused(
        EBS,
        &request(json!({
            "storageClass": { "default": "Always" },
            "storageClasses": [{ "name": "ebs", "type": "gp2", "throughput": 125 }, { "name": "other", "default": "Always" }],
        })),
        expect![[r#"
            invalid UnsuitableType /storageClasses/0/throughput: can be set only for volumes of type gp3
            invalid DuplicateName /storageClasses/0/name: there is a class of the name ebs already; choose another
            invalid SeveralDefaults /storageClasses/1/default: only one class can be the default, and storageClass is
        "#]],
    );
    refused(
        EFS,
        &request(json!({ "storageClass": { "basePath": "/a/b/c/d/e" } })),
        expect![[r#"
        invalid PathTooDeep /storageClass/basePath: makes paths of 6 directories, and EFS takes 5 at most
    "#]],
    );
    refused(
        EFS,
        &request(
            json!({ "storageClass": { "basePath": "/".to_owned() + &"a".repeat(58), "subPathPattern": "web/${.PVC.name}" } }),
        ),
        expect![[r#"
            invalid PathTooLong /storageClass/subPathPattern: makes paths of at least 102 characters, and EFS takes 100: shorten it by 2
        "#]],
    );
    refused(
        EFS,
        &request(json!({ "storageClass": { "subPathPattern": "${.PVC.uid}" } })),
        expect![[r#"
        invalid UnknownVariable /storageClass/subPathPattern: can name ${.PVC.namespace}, ${.PVC.name} and ${.PV.name}, and nothing else with $ and braces
    "#]],
    );
    refused(
        EFS,
        &request(
            json!({ "storageClass": { "mountOptions": ["iam", "accesspoint=fsap-0123456789abcdef0"] } }),
        ),
        expect![[r#"
        invalid ReservedOption /storageClass/mountOptions/1: accesspoint is the driver's to set: it is another for each volume; remove it
    "#]],
    );
    refused(
        EFS,
        &request(json!({ "storageClass": { "gidRangeStart": 8000000 } })),
        expect![[r#"
        invalid EmptyRange /storageClass/gidRangeEnd: must be above gidRangeStart, which is 8000000
    "#]],
    );
    refused(
        EFS,
        &request(json!({ "fileSystemID": "fs-0123456789abcdef0", "fileSystemTags": { "team": "a" } })),
        expect![[r#"
        invalid NamedAndFound /fileSystemTags: excludes fileSystemID: keep fileSystemID to name the file system, or fileSystemTags to have it found
    "#]],
    );
    for name in ALL {
        refused(
            name,
            &request(json!({ "imageRegistry": "https://registry.example.com" })),
            expect![[r#"
                invalid InvalidImageRegistry /imageRegistry: must be a registry and a path without scheme and without a slash at its end, such as registry.example.com/mirror
            "#]],
        );
    }
}
