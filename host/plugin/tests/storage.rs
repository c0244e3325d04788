//! Settings of the EBS and EFS drivers through the real host call: tags of volumes and access points, what
//! roles are asked about, and paths. Whole plans are with those of the other add-ons of AWS.

mod common;

use common::plans::{complete, plan};
use common::{load, request, with_fact};
use contract::{AddOnPlan, FactValue, Failure, Request, Step};
use expect_test::expect;
use plugin::ConfigSchema;
use serde_json::{Value, json};

const VPC_CNI: &str = "aws-vpc-cni";
const EBS: &str = "aws-ebs-csi";
const EFS: &str = "aws-efs-csi";
const CONTROLLER: &str = "aws-load-balancer-controller";

const ROLE: &str = "arn:aws:iam::123456789012:role/add-on";

fn step<'a>(plan: &'a AddOnPlan, id: &str) -> &'a Step {
    plan.steps.iter().find(|step| step.id == id).unwrap_or_else(|| panic!("there is no step {id}"))
}

/// The first object of this kind among those that the plan applies.
fn object<'a>(plan: &'a AddOnPlan, kind: &str) -> &'a Value {
    let mut objects = plan.steps.iter().filter_map(|step| step.spec["objects"].as_array()).flatten();
    objects.find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

/// With these tags of the cluster.
fn tagged(config: Value, tags: Value) -> Request {
    let aws = json!({ "region": "eu-west-1", "partition": "aws", "vpcId": "vpc-1", "zones": ["eu-west-1a"], "tags": tags });
    with_fact(request(config), "aws", FactValue::Present(aws))
}

#[test]
fn tags_that_would_stop_the_ebs_controller_are_refused_by_name() {
    for (tags, key) in [
        (json!({ "CSIVolumeName": "a" }), "CSIVolumeName"),
        (json!({ "CSIVolumeSnapshotName": "a" }), "CSIVolumeSnapshotName"),
        (json!({ "ebs.csi.aws.com/cluster": "true", "team": "a" }), "ebs.csi.aws.com/cluster"),
        (json!({ "claim": "{{ .PVCName }}" }), "claim"),
    ] {
        let Err(Failure::Invalid(problems)) = plan(EBS, &tagged(json!({}), tags)) else {
            panic!("{key} is not refused")
        };
        let text = &problems[0].message;
        assert!(
            problems.len() == 1
                && text.starts_with(&format!("spec.additionalTags of the AWSCluster has {key}")),
            "{text}"
        );
    }
    // What the driver is never told cannot stop it, and other add-ons take all of them.
    complete(EBS, &tagged(json!({}), json!({ "aws:x": "{{", "a=b": "{{", "team": "a" })));
    for name in [VPC_CNI, EFS, CONTROLLER] {
        complete(name, &tagged(json!({}), json!({ "CSIVolumeName": "a" })));
    }
}

#[test]
fn access_points_carry_the_clusters_tags_only_when_asked_for() {
    let of = |config: Value| {
        let plan = complete(EFS, &tagged(config, json!({ "team": "a" })));
        let args =
            object(&plan, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
        let actions = step(&plan, "role").spec["actions"].as_array().cloned().unwrap_or_default();
        let create = actions.into_iter().find(|it| it["action"] == "elasticfilesystem:CreateAccessPoint");
        (args.contains("--tags=team:a"), create.map(|it| it["tags"].clone()).unwrap_or_default())
    };
    assert_eq!(of(json!({ "roleARN": ROLE })), (false, json!({ "efs.csi.aws.com/cluster": "true" })));
    let both = json!({ "efs.csi.aws.com/cluster": "true", "team": "a" });
    assert_eq!(of(json!({ "roleARN": ROLE, "tagAccessPoints": true })), (true, both));
}

#[test]
fn roles_are_asked_about_what_the_settings_need() {
    let of = |name: &str, mut config: Value| -> String {
        config["roleARN"] = ROLE.into();
        let plan = complete(name, &request(config));
        let actions = step(&plan, "role").spec["actions"].as_array().cloned().unwrap_or_default();
        let text = |it: &Value| match it["advice"].as_str() {
            Some(when) => format!("{} only {when}", it["action"].as_str().unwrap_or_default()),
            None => it["action"].as_str().unwrap_or_default().to_owned(),
        };
        actions.iter().map(text).collect::<Vec<_>>().join("\n")
    };
    expect![[r#"
        ec2:AttachVolume
        ec2:CopyVolumes only when a claim is a copy of another one
        ec2:CreateTags
        ec2:CreateVolume
        ec2:DeleteVolume
        ec2:DescribeAvailabilityZones
        ec2:DescribeInstances
        ec2:DescribeVolumes
        ec2:DescribeVolumesModifications
        ec2:DetachVolume
        ec2:ModifyVolume"#]]
    .assert_eq(&of(EBS, json!({})));
    expect![[r#"
        ec2:AttachVolume
        ec2:CopyVolumes only when a claim is a copy of another one
        ec2:CreateSnapshot
        ec2:CreateTags
        ec2:CreateTags
        ec2:CreateVolume
        ec2:DeleteSnapshot
        ec2:DeleteVolume
        ec2:DescribeAvailabilityZones
        ec2:DescribeInstances
        ec2:DescribeSnapshots
        ec2:DescribeVolumes
        ec2:DescribeVolumesModifications
        ec2:DetachVolume
        ec2:ModifyVolume
        kms:CreateGrant
        kms:Decrypt
        kms:GenerateDataKeyWithoutPlaintext"#]]
    .assert_eq(&of(EBS, json!({ "snapshots": true, "storageClasses": [{ "name": "a", "kmsKeyID": "k" }] })));
    expect![[r#"
        elasticfilesystem:CreateAccessPoint
        elasticfilesystem:DeleteAccessPoint
        elasticfilesystem:DescribeAccessPoints
        elasticfilesystem:TagResource"#]]
    .assert_eq(&of(EFS, json!({})));
    expect![[r#"
        elasticfilesystem:ClientMount only to delete directories on a file system whose policy asks for IAM
        elasticfilesystem:ClientRootAccess only to delete directories on a file system whose policy asks for IAM
        elasticfilesystem:ClientWrite only to delete directories on a file system whose policy asks for IAM
        elasticfilesystem:CreateAccessPoint
        elasticfilesystem:DeleteAccessPoint
        elasticfilesystem:DescribeAccessPoints
        elasticfilesystem:DescribeFileSystems
        elasticfilesystem:TagResource"#]]
    .assert_eq(&of(EFS, json!({ "deleteDirectories": true, "storageClass": { "uid": 1, "gid": 1 } })));
}

#[test]
fn a_base_path_without_room_for_a_volume_is_refused() {
    let text = |characters: usize| {
        let path = "/".to_owned() + &"a".repeat(characters - 1);
        let config = json!({ "fileSystemID": "fs-01234567", "storageClass": { "basePath": path } });
        let schema = load(EFS).describe().expect("it answers").value.config_schema;
        let schema = ConfigSchema::read(&schema).expect("a schema");
        schema.check(&config).into_iter().map(|it| format!("{}: {}", it.path, it.message)).next()
    };
    assert_eq!(text(59), None);
    let said = text(60).expect("it is refused");
    assert!(said.contains("/storageClass/basePath"), "{said}");
}

/// The containers of the Pods of a plan's Deployment or DaemonSet.
fn containers(plan: &AddOnPlan, kind: &str) -> Vec<Value> {
    object(plan, kind)["spec"]["template"]["spec"]["containers"]
        .as_array()
        .cloned()
        .expect("it has containers")
}

#[test]
fn beta_attributes_classes_are_read_where_there_are_no_others() {
    let with = |version: &str| {
        let plan = complete(
            EBS,
            &with_fact(request(json!({})), "kubernetes-version", FactValue::Present(json!(version))),
        );
        let has = |it: &Value| it["env"].to_string().contains("ENABLE_VAC_FALLBACK");
        containers(&plan, "Deployment")
            .into_iter()
            .filter(has)
            .map(|it| it["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(with("v1.33.4"), ["csi-provisioner", "csi-resizer"]);
    assert_eq!(with("v1.34.0"), [""; 0]);
}

#[test]
fn what_runs_on_nodes_changes_only_for_what_is_about_nodes() {
    let nodes = |name: &str, config: Value| containers(&complete(name, &request(config)), "DaemonSet");
    for name in [EBS, EFS] {
        let config =
            json!({ "logLevel": "Debug", "nodeSelector": { "pool": "system" }, "resources": { "cpu": "1" } });
        assert_eq!(nodes(name, config), nodes(name, json!({})), "{name}");
    }
    assert_eq!(nodes(EFS, json!({ "extraArgs": { "adaptive-retry-mode": "false" } })), nodes(EFS, json!({})));
    let metrics = complete(EFS, &request(json!({ "extraArgs": { "vol-metrics-opt-in": "true" } })));
    let has =
        |kind: &str| containers(&metrics, kind)[0]["args"].to_string().contains("--vol-metrics-opt-in=true");
    assert_eq!((has("Deployment"), has("DaemonSet")), (false, true));
}
