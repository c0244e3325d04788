//! The published JSON Schemas and the host's types say the same: what one accepts or refuses, so does the
//! other.

use contract::{
    API_SERVER_VERSION, ApiAnswer, ApplySpec, AwsFact, CertificateSpec, ClusterFact, DeleteSpec,
    EfsFileSystemSpec, FACTS, FieldWaitSpec, FileSystemFact, IamRoleSpec, InstalledFact, InstanceRolesSpec,
    InstanceTypeFact, IpPoolFact, KUBERNETES_VERSION, KubeletVersionsFact, MACHINE_SUBNETS, NodesAnswer,
    OwnObjectAnswer, Query, SecurityGroupRuleSpec, Step, StorageClassFact, SubnetFact, WaitSpec, outputs,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
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

fn query(kind: &str, good: &[Value], bad: &[Value]) {
    let file = format!("queries/{}.json", kind.replace('/', "."));
    for (values, expected) in [(good, true), (bad, false)] {
        for spec in values {
            let read = Query::read(&json!({ "kind": kind, "spec": spec }));
            assert_eq!(read.is_ok(), expected, "the type, for {spec}: {read:?}");
            assert_eq!(accepts(&file, spec), expected, "the schema, for {spec}");
        }
    }
}

#[test]
fn queries_agree() {
    let objects = |field: &str, value: Value| {
        let mut query = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "limit": 10 });
        query[field] = value;
        query
    };
    let mut both = objects("name", json!("a"));
    both["labelSelector"] = json!({ "a": "b" });
    query(
        "k8s.objects/v1",
        &[
            objects("limit", json!(500)),
            objects("namespace", json!("kube-system")),
            objects("name", json!("a")),
            objects("labelSelector", json!({ "app.kubernetes.io/name": "x", "empty": "" })),
            objects("fields", json!(["/spec/replicas", "/metadata/labels/a~1b"])),
        ],
        &[
            both,
            json!({ "apiVersion": "apps/v1", "kind": "Deployment" }),
            objects("limit", json!(0)),
            objects("limit", json!(501)),
            objects("namespace", json!("a/b")),
            objects("name", json!("..")),
            objects("apiVersion", json!("apps/v1/x")),
            objects("labelSelector", json!({ "a": "b,c" })),
            objects("fields", json!(["spec"])),
            objects("fields", json!([""])),
            objects("fieldSelector", json!("a=b")),
        ],
    );
    query("k8s.nodes/v1", &[json!({})], &[json!({ "names": [] }), json!(1)]);
    query(
        "k8s.apis/v1",
        &[json!({}), json!({ "groups": ["", "apps"] })],
        &[json!({ "groups": ["a/b"] }), json!({ "groups": vec!["a"; 17] })],
    );
    query(
        "own-objects/v1",
        &[json!({}), json!({ "kinds": ["Deployment"], "fields": ["/status"] })],
        &[json!({ "kinds": ["a?b"] }), json!({ "fields": ["/"] }), json!({ "names": [] })],
    );
    query("outputs/v1", &[json!({ "plugin": "metrics" })], &[json!({}), json!({ "plugin": "a/b" })]);
}

#[test]
fn answers_to_queries_agree() {
    let nodes = json!({ "count": 2, "ready": 1, "architectures": { "arm64": 2 },
        "taints": [{ "key": "a", "value": "", "effect": "NoSchedule", "count": 1 }] });
    value_of::<NodesAnswer>("queries/answers/k8s.nodes.v1.json", &nodes);
    let api = json!([{ "apiVersion": "apps/v1", "kinds": ["Deployment"] }, { "apiVersion": "v1" }]);
    value_of::<Vec<ApiAnswer>>("queries/answers/k8s.apis.v1.json", &api);
    let own = json!([{ "apiVersion": "v1", "kind": "Namespace", "name": "a", "object": null }]);
    value_of::<Vec<OwnObjectAnswer>>("queries/answers/own-objects.v1.json", &own);
    assert!(accepts(
        "queries/answers/k8s.objects.v1.json",
        &json!([{ "metadata": { "name": "a" }, "spec": {} }])
    ));
    assert!(!accepts("queries/answers/k8s.objects.v1.json", &json!([{ "spec": {} }])));
    assert!(accepts("queries/answers/outputs.v1.json", &json!({ "endpoint": "a" })));
    assert!(!accepts("queries/answers/outputs.v1.json", &json!({ "endpoint": 1 })));
}

/// A value of a type without fields that may be left out of an object.
fn value_of<T: DeserializeOwned>(file: &str, good: &Value) {
    let check = |value: &Value, expected: bool| {
        assert_eq!(T::deserialize(value).is_ok(), expected, "the type, for {value}");
        assert_eq!(accepts(file, value), expected, "the schema, for {value}");
    };
    check(good, true);
    check(&json!(17), false);
    let text = good.to_string();
    check(&serde_json::from_str(&text.replacen('{', "{\"unknown\":1,", 1)).expect("JSON"), false);
}

#[test]
fn outputs_agree() {
    let check = |value: Value, expected: bool| {
        let extra = json!({ "outputs": value });
        assert_eq!(outputs(&extra).is_ok(), expected, "the type, for {extra}");
        assert_eq!(accepts("extra/plan.json", &extra), expected, "the schema, for {extra}");
    };
    check(json!({ "endpoint": "https://example.com", "a-1": "" }), true);
    for wrong in [
        json!([]),
        json!({ "A": "" }),
        json!({ "a": 1 }),
        json!({ "a": "x\ny" }),
        json!({ "a": "x".repeat(1025) }),
    ] {
        check(wrong, false);
    }
    assert!(outputs(&json!({ "later": 1 })).is_ok() && accepts("extra/plan.json", &json!({ "later": 1 })));
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
        k8s.apply.v1.json
        k8s.delete.v1.json
        k8s.wait.v1.json
        kubelet-versions.json
        kubernetes-version.json
        machine-subnets.json
        storage-classes.json
        subnets.json
        tls.certificate.v1.json"#]]
    .assert_eq(&names.join("\n"));
}

/// Files below a folder of `wit/`, by their paths in it.
fn files(folder: &str) -> BTreeMap<String, Vec<u8>> {
    let of = |inside: &str| {
        let path = wit(folder).join(inside);
        let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let names =
            entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
        names.map(|name| format!("{inside}{name}")).collect::<Vec<_>>()
    };
    let paths = ["", "facts/", "steps/"]
        .into_iter()
        .flat_map(of)
        .filter(|it| it.ends_with(".json") || it.ends_with(".wit"));
    paths.map(|path| (path.clone(), fs::read(wit(folder).join(&path)).expect("it can be read"))).collect()
}

#[test]
fn a_released_version_never_changes() {
    let mut hasher = Sha256::new();
    for (path, content) in files("released/0.1.0") {
        hasher.update(format!("{path} {}\n", content.len()));
        hasher.update(content);
    }
    assert_eq!(
        base16(&hasher.finalize()),
        "c8ac11c1ac42216fc3ccad82e3e847f7aa87bcced9585689aeb0c8653dd2b1da"
    );
}

/// What binds of a file of the contract: its text without comments, or its schema without words for people.
fn binding(path: &str, content: &[u8]) -> String {
    fn bare(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, value| name != "description" || !value.is_string());
                fields.values_mut().for_each(bare);
            }
            Value::Array(all) => all.iter_mut().for_each(bare),
            _ => (),
        }
    }
    if path.ends_with(".json") {
        let mut schema: Value = serde_json::from_slice(content).expect("it is JSON");
        bare(&mut schema);
        return schema.to_string();
    }
    let text = String::from_utf8_lossy(content);
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_was_released_is_still_so() {
    let current = files("");
    let moved_on = !String::from_utf8_lossy(&current["cluster-plugin.wit"])
        .contains("package kurator:cluster-plugin@0.1.0;");
    for (path, content) in files("released/0.1.0") {
        // Steps and facts only ever get company; the package changes with its version.
        if path != "cluster-plugin.wit" || !moved_on {
            let current = current.get(&path).map(|current| binding(&path, current));
            assert!(
                current == Some(binding(&path, &content)),
                "{path} was released and is frozen but for its comments: give what changes a new name or version"
            );
        }
    }
}

fn base16(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}
