//! What keeps add-ons from being planned.

use super::{ALL, CONTROLLER, EBS, EFS, ROLE, VPC_CNI};
use crate::common::plans::{complete, plan, refused};
use crate::common::{OPTIONAL, request, with_fact, without_feature};
use contract::{FactValue, Failure};
use expect_test::expect;
use serde_json::{Value, json};

#[test]
fn an_unknown_kubernetes_version_needs_a_tag_that_the_user_chose() {
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
fn settings_of_the_vpc_cni_that_contradict_each_other() {
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
}

#[test]
fn settings_of_the_load_balancer_controller_that_contradict() {
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
}

#[test]
fn settings_of_the_ebs_driver_that_contradict_each_other() {
    refused(
        EBS,
        &request(json!({ "extraArgs": { "aws-sdk-debug-log": "true", "logging-format": "xml" } })),
        expect![[r#"
        invalid UnknownArgument /extraArgs: aws-sdk-debug-log cannot be set here; what can is batching, enable-node-local-volumes, logging-format, warn-on-invalid-tag
        invalid InvalidArgument /extraArgs: logging-format must be one of text, json
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
}

#[test]
fn settings_of_the_efs_driver_that_contradict_each_other() {
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
}

#[test]
fn a_registry_is_named_without_scheme() {
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
