//! The published JSON Schemas and the host's types say the same: what one accepts or refuses, so does the
//! other.

mod queries;
mod released;

use contract::{
    API_SERVER_VERSION, ApplySpec, AwsFact, CertificateSpec, ClusterFact, DeleteSpec, EfsFileSystemSpec,
    FACTS, FieldWaitSpec, FileSystemFact, IamRoleSpec, InstalledFact, InstanceRolesSpec, InstanceTypeFact,
    IpPoolFact, KUBERNETES_VERSION, KubeletVersionsFact, MACHINE_SUBNETS, SecurityGroupRuleSpec, Step,
    StorageClassFact, SubnetFact, WaitSpec,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn wit(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit").join(file)
}

fn accepts(file: &str, value: &Value) -> bool {
    let schema: Value =
        serde_json::from_slice(&fs::read(wit(file)).expect("there is a schema")).expect("it is JSON");
    assert!(jsonschema::meta::is_valid(&schema), "{file} is no schema");
    jsonschema::validator_for(&schema).expect("it is a schema").is_valid(value)
}

fn step(kind: &str, good: &[Value], bad: &[Value]) {
    let file = format!("steps/{}.json", kind.replace('/', "."));
    for (values, expected) in [(good, true), (bad, false)] {
        for spec in values {
            let step =
                Step { id: "s".to_owned(), kind: kind.to_owned(), spec: spec.clone(), after: Vec::new() };
            assert_eq!(step.typed().is_ok(), expected, "the type, for {spec}");
            assert_eq!(accepts(&file, spec), expected, "the schema, for {spec}");
        }
    }
}

fn fact<T: DeserializeOwned>(key: &str, good: &Value) {
    let file = format!("facts/{key}.json");
    let check = |value: &Value, expected: bool| {
        assert_eq!(T::deserialize(value).is_ok(), expected, "the type, for {value}");
        assert_eq!(accepts(&file, value), expected, "the schema, for {value}");
    };
    check(good, true);
    check(&json!(17), false);
    for field in good.as_object().into_iter().flat_map(|object| object.keys()) {
        let mut less = good.clone();
        less.as_object_mut().map(|object| object.remove(field));
        check(&less, false);
        let mut more = good.clone();
        more["unknown"] = json!(1);
        check(&more, false);
    }
}

/// A fact that is a list of `T`.
fn list<T: DeserializeOwned>(key: &str, good: &Value) {
    fact::<Vec<T>>(key, &json!([]));
    let file = format!("facts/{key}.json");
    let check = |element: Value, expected: bool| {
        let value = json!([element]);
        assert_eq!(
            serde_json::from_value::<Vec<T>>(value.clone()).is_ok(),
            expected,
            "the type, for {value}"
        );
        assert_eq!(accepts(&file, &value), expected, "the schema, for {value}");
    };
    check(good.clone(), true);
    for field in good.as_object().into_iter().flat_map(|object| object.keys()) {
        let mut less = good.clone();
        less.as_object_mut().map(|object| object.remove(field));
        check(less, false);
    }
    let mut more = good.clone();
    more["unknown"] = json!(1);
    check(more, false);
}

#[test]
fn steps_about_objects_agree() {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    step(
        ApplySpec::KIND,
        &[
            json!({ "objects": [] }),
            json!({ "objects": [object], "prune": "orphan" }),
            json!({ "objects": [object], "caBundleFrom": "certificate" }),
        ],
        &[
            json!({}),
            json!({ "objects": [], "caBundleFrom": 1 }),
            json!({ "objects": [{}] }),
            json!({ "objects": [], "prune": "never" }),
            json!({ "objects": [], "force": true }),
        ],
    );
    let wait = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "namespace": "n", "name": "a", "condition": "available-deployment", "timeoutSeconds": 60 });
    let with = |field: &str, value: Value| {
        let mut changed = wait.clone();
        changed[field] = value;
        changed
    };
    step(
        WaitSpec::KIND,
        &[wait.clone(), with("condition", json!("gone")), with("condition", json!("exists"))],
        &[
            with("kind", json!("DaemonSet")),
            with("condition", json!("fast")),
            with("timeoutSeconds", json!(-1)),
            with("cel", json!("true")),
        ],
    );
    let delete = json!({ "apiVersion": "v1", "kind": "Namespace", "name": "a", "wait": true });
    step(
        DeleteSpec::KIND,
        &[delete],
        &[json!({ "apiVersion": "v1", "kind": "Namespace", "name": "a" }), json!({ "name": "a", "wait": 1 })],
    );
    step(
        CertificateSpec::KIND,
        &[json!({ "namespace": "n", "secretName": "s", "dnsNames": ["a.n.svc"] })],
        &[json!({ "namespace": "n" })],
    );
}

#[test]
fn waits_for_fields_agree() {
    let wait = |condition: Value| json!({ "apiVersion": "example.com/v1", "kind": "Thing", "name": "a", "conditions": [condition] });
    let is = |operator: &str, value: Value| {
        wait(json!({ "path": "/status/phase", "operator": operator, "value": value }))
    };
    let at = |path: &str| wait(json!({ "path": path, "operator": "Exists" }));
    let from = |operator: &str| wait(json!({ "path": "/a", "operator": operator, "valueFrom": "/b" }));
    let many = |count: usize| {
        let mut all = at("/a");
        all["conditions"] = json!(vec![json!({ "path": "/a", "operator": "Exists" }); count]);
        all
    };
    let mut timed = at("/a");
    timed["timeoutSeconds"] = json!(60);
    step(
        FieldWaitSpec::KIND,
        &[
            is("Equals", json!("Ready")),
            is("NotEquals", json!(true)),
            is("GreaterOrEqual", json!(3)),
            is("In", json!(["a", 1, false])),
            at("/status/conditions/[type=Ready]/status"),
            at("/metadata/annotations/a.b~1c"),
            at(&"/a".repeat(16)),
            from("Equals"),
            from("GreaterOrEqual"),
            many(16),
            timed,
        ],
        &[
            is("Equals", json!({})),
            is("Equals", json!("x".repeat(513))),
            is("GreaterOrEqual", json!("3")),
            is("In", json!([])),
            is("In", json!("a")),
            is("Exists", json!(1)),
            is("Matches", json!(".*")),
            at("status"),
            at("/"),
            at("/[type=Ready]"),
            at("/a/[b]"),
            at("/a/[=b]"),
            at(&"/a".repeat(17)),
            from("In"),
            from("Exists"),
            many(0),
            many(17),
            wait(json!({ "path": "/a", "operator": "Equals" })),
            wait(json!({ "path": "/a", "operator": "Equals", "value": 1, "valueFrom": "/b" })),
            wait(json!({ "path": "/a", "operator": "Exists", "cel": "true" })),
        ],
    );
}

#[test]
fn steps_about_aws_agree() {
    let rule = |protocol: &str, from: Value, to: Value| {
        let mut rule =
            json!({ "group": "node", "protocol": protocol, "peer": "control-plane", "description": "" });
        for (field, port) in [("fromPort", from), ("toPort", to)] {
            if !port.is_null() {
                rule[field] = port;
            }
        }
        rule
    };
    step(
        SecurityGroupRuleSpec::KIND,
        &[
            rule("tcp", json!(1), json!(2)),
            rule("4", json!(null), json!(null)),
            rule("-1", json!(null), json!(null)),
        ],
        &[
            rule("tcp", json!(null), json!(null)),
            rule("udp", json!(1), json!(null)),
            rule("4", json!(1), json!(2)),
            rule("udp", json!(70000), json!(70000)),
            rule("icmp", json!(null), json!(null)),
            json!({ "group": "sg-1", "protocol": "-1", "peer": "node", "description": "" }),
        ],
    );
    step(
        IamRoleSpec::KIND,
        &[
            json!({ "roleArn": "arn", "trust": "irsa", "namespace": "n", "serviceAccount": "s", "actions": ["ec2:AttachVolume"], "mode": "check" }),
        ],
        &[json!({ "roleArn": "arn", "trust": "anyone", "actions": [], "mode": "check" })],
    );
    let role =
        |action: Value| json!({ "roleArn": "arn", "trust": "node", "actions": [action], "mode": "check" });
    step(
        IamRoleSpec::KIND_WITH_TAGS,
        &[
            role(json!({ "action": "ec2:AttachVolume" })),
            role(
                json!({ "action": "ec2:CreateTags", "tags": { "a": "b", "c": null }, "createAction": "CreateVolume", "advice": "sometimes" }),
            ),
        ],
        &[
            role(json!("ec2:AttachVolume")),
            role(json!({})),
            role(json!({ "action": "a", "tags": ["a"] })),
            role(json!({ "action": "a", "on": "b" })),
        ],
    );
    step(
        InstanceRolesSpec::KIND,
        &[json!({ "actions": ["ec2:DescribeInstances"] })],
        &[json!({}), json!({ "actions": [1] }), json!({ "actions": [], "roleArn": "arn" })],
    );
    step(
        EfsFileSystemSpec::KIND,
        &[json!({ "fileSystemId": "fs-1" })],
        &[json!({}), json!({ "fileSystemId": "fs-1", "tags": {} })],
    );
}

#[test]
fn facts_agree() {
    fact::<ClusterFact>(
        ClusterFact::KEY,
        &json!({ "name": "n", "namespace": "d", "podCIDRs": [], "serviceCIDRs": [], "controlPlaneEndpoint": { "host": "h", "port": 6443 } }),
    );
    fact::<AwsFact>(
        AwsFact::KEY,
        &json!({ "region": "r", "partition": "aws", "vpcId": "v", "zones": ["z"], "tags": { "a": "b" } }),
    );
    fact::<InstalledFact>(InstalledFact::KEY, &json!({ "version": "1", "digest": "sha256:00" }));
    list::<StorageClassFact>(
        StorageClassFact::KEY,
        &json!({ "name": "n", "provisioner": "p", "isDefault": true, "parameters": { "a": "b" } }),
    );
    list::<FileSystemFact>(
        FileSystemFact::KEY,
        &json!({ "id": "fs-1", "name": "", "tags": { "a": "" }, "state": "available" }),
    );
    let instance_type =
        json!({ "name": "t3.small", "interfaces": 3, "addressesPerInterface": 4, "nitro": true });
    list::<InstanceTypeFact>(InstanceTypeFact::KEY, &instance_type);
    for (pods, expected) in [(json!(110), true), (json!(-1), false), (json!("110"), false)] {
        let mut known = instance_type.clone();
        known["maxPods"] = pods;
        let known = json!([known]);
        assert_eq!(
            serde_json::from_value::<Vec<InstanceTypeFact>>(known.clone()).is_ok(),
            expected,
            "the type, for {known}"
        );
        assert_eq!(accepts("facts/instance-types.json", &known), expected, "the schema, for {known}");
    }
    list::<SubnetFact>(
        SubnetFact::KEY,
        &json!({ "id": "subnet-1", "zone": "z", "loadBalancerSchemes": ["internal"] }),
    );
    list::<IpPoolFact>(
        IpPoolFact::KEY,
        &json!({ "name": "n", "cidr": "192.168.0.0/16", "blockSize": 26, "managed": true }),
    );
    fact::<Vec<String>>(MACHINE_SUBNETS, &json!(["subnet-1"]));
    fact::<String>(KUBERNETES_VERSION, &json!("v1.36.3"));
    fact::<String>(API_SERVER_VERSION, &json!("v1.35.2"));
    fact::<KubeletVersionsFact>(
        KubeletVersionsFact::KEY,
        &json!({ "lowest": "v1.35.2", "highest": "v1.36.3-eks-0123abc" }),
    );
}

#[test]
fn every_fact_has_a_schema() {
    let named = fs::read_dir(wit("facts")).expect("the folder is there");
    let names = named.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    let keys: std::collections::BTreeSet<String> =
        names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
    assert_eq!(keys, FACTS.iter().map(|key| (*key).to_owned()).collect());
}

#[test]
fn every_schema_is_one_of_these() {
    let mut names: Vec<String> = ["steps", "facts", "queries", "queries/answers", "extra"]
        .iter()
        .flat_map(|folder| fs::read_dir(wit(folder)).expect("the folder is there"))
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".json"))
        .collect();
    names.sort();
    expect_test::expect![[r#"
        api-server-version.json
        aws.efs-file-system.v1.json
        aws.iam-role.v1.json
        aws.iam-role.v2.json
        aws.instance-roles.v1.json
        aws.json
        aws.sg-rule.v1.json
        cluster.json
        file-systems.json
        installed.json
        instance-types.json
        ip-pools.json
        k8s.apis.v1.json
        k8s.apis.v1.json
        k8s.apply.v1.json
        k8s.delete.v1.json
        k8s.nodes.v1.json
        k8s.nodes.v1.json
        k8s.objects.v1.json
        k8s.objects.v1.json
        k8s.wait.v1.json
        k8s.wait.v2.json
        kubelet-versions.json
        kubernetes-version.json
        machine-subnets.json
        outputs.v1.json
        outputs.v1.json
        own-objects.v1.json
        own-objects.v1.json
        plan.json
        storage-classes.json
        subnets.json
        tls.certificate.v1.json"#]]
    .assert_eq(&names.join("\n"));
}
