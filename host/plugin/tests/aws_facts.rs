//! What the add-ons of AWS make of what they are told about the account, through the real host call: which
//! file system volumes are made on, and which instances have no room for their Pods.

mod common;

use addons::{built_in, grant};
use common::plans::{self, complete, refused};
use common::{and_fact, request};
use contract::{AddOnPlan, FactValue, Operation, Outcome, Request};
use expect_test::expect;
use serde_json::{Value, json};

const VPC_CNI: &str = "aws-vpc-cni";
const EFS: &str = "aws-efs-csi";

/// An EFS file system as the host tells of it.
fn file_system(id: &str, name: &str, tags: Value, state: &str) -> Value {
    json!({ "id": id, "name": name, "tags": tags, "state": state })
}

/// Settings by which the file system of team a is found.
fn by_tags() -> Value {
    json!({ "fileSystemTags": { "team": "a", "stage": "prod" } })
}

/// A request that tells of these file systems.
fn with_file_systems(config: Value, all: Value) -> Request {
    and_fact(request(config), "file-systems", FactValue::Present(all))
}

/// The same request, where the class that volumes are made by is about this file system.
fn and_class(request: Request, file_system: &str) -> Request {
    let class = json!({ "name": "efs", "provisioner": "efs.csi.aws.com", "isDefault": false, "parameters": { "fileSystemId": file_system } });
    and_fact(request, "storage-classes", FactValue::Present(json!([class])))
}

/// The file system that volumes are made on.
fn used(plan: &AddOnPlan) -> &Value {
    let mut objects = plan.steps.iter().filter_map(|step| step.spec["objects"].as_array()).flatten();
    let class = objects.find(|object| object["kind"] == "StorageClass").expect("there is a StorageClass");
    &class["parameters"]["fileSystemId"]
}

#[test]
fn a_file_system_found_by_its_tags_is_as_good_as_one_that_is_named() {
    let of_team = json!({ "team": "a", "stage": "prod", "Name": "data" });
    let all = json!([
        file_system("fs-0000000a", "", json!({ "team": "a" }), "available"),
        file_system("fs-0000000b", "data", of_team.clone(), "available"),
        file_system("fs-0000000c", "", json!({ "team": "b", "stage": "prod" }), "available"),
        file_system("fs-0000000d", "data", of_team, "deleting"),
    ]);
    let (found, named) = (by_tags(), json!({ "fileSystemID": "fs-0000000b" }));
    let plan = complete(EFS, &with_file_systems(found.clone(), all));
    assert_eq!(plan, complete(EFS, &request(named.clone())));
    let looked_at = plan.steps.iter().find(|it| it.kind == "aws.efs-file-system/v1").map(|it| &it.spec);
    assert_eq!(looked_at, Some(&json!({ "fileSystemId": "fs-0000000b" })));
    assert_eq!(used(&plan), "fs-0000000b");
    assert_eq!(grant::authorize(plan.steps.iter().chain(&plan.removal), &built_in::grants(EFS, &found)), []);
    let removal = |config: Value| {
        complete(EFS, &Request { operation: Operation::Uninstall, ..request(config) }).removal
    };
    assert_eq!(removal(found), removal(named));
}

#[test]
fn without_a_class_no_file_system_is_looked_for() {
    let mut config = by_tags();
    config["storageClass"] = json!({ "enabled": false });
    assert_eq!(complete(EFS, &request(config)), complete(EFS, &request(json!({}))));
}

#[test]
fn the_file_system_in_use_stays_when_another_gets_its_tags() {
    let tags = &by_tags()["fileSystemTags"];
    let all = || {
        json!([
            file_system("fs-0000000a", "", tags.clone(), "available"),
            file_system("fs-0000000b", "old", tags.clone(), "available")
        ])
    };
    for (in_use, other) in [("fs-0000000a", "fs-0000000b (old)"), ("fs-0000000b", "fs-0000000a")] {
        let plan = complete(EFS, &and_class(with_file_systems(by_tags(), all()), in_use));
        assert_eq!(used(&plan), in_use);
        let said =
            plan.diagnostics.iter().find(|it| it.code == "SeveralFileSystems").map(|it| it.message.clone());
        let expected =
            format!("volumes are made on {in_use} as before, although others have these tags too: {other}");
        assert_eq!(said, Some(expected));
    }
    // One that lost the tags is not held on to.
    let moved = json!([
        file_system("fs-0000000a", "", json!({}), "available"),
        file_system("fs-0000000b", "", tags.clone(), "available")
    ]);
    let plan = complete(EFS, &and_class(with_file_systems(by_tags(), moved), "fs-0000000a"));
    assert_eq!(used(&plan), "fs-0000000b");
    refused(
        EFS,
        &and_fact(
            with_file_systems(by_tags(), all()),
            "storage-classes",
            FactValue::Unknown("timeout".to_owned()),
        ),
        expect![[r#"
            pending FactUnknown: waiting for fact storage-classes: timeout
        "#]],
    );
}

#[test]
fn the_file_system_in_use_stays_while_it_cannot_be_looked_for() {
    for unclear in
        [FactValue::Unknown("no answer in time".to_owned()), FactValue::Denied("no permission".to_owned())]
    {
        let mut known = and_class(and_fact(request(by_tags()), "file-systems", unclear), "fs-0000000a");
        known.previous_config = Some(by_tags());
        let plan = complete(EFS, &known);
        assert_eq!(used(&plan), "fs-0000000a");
        assert_eq!(plan.diagnostics.iter().filter(|it| it.code == "FileSystemsUnknown").count(), 1);
        // It was found by other tags: whether it has these nobody knows.
        known.previous_config = Some(json!({ "fileSystemTags": { "team": "b" } }));
        assert!(!matches!(plans::plan(EFS, &known), Ok(Outcome::Complete(_))));
    }
}

#[test]
fn tags_that_find_no_file_system_or_several_say_what_to_do() {
    let tags = &by_tags()["fileSystemTags"];
    let going = file_system("fs-0000000a", "", tags.clone(), "deleting");
    refused(
        EFS,
        &with_file_systems(by_tags(), json!([going])),
        expect![[r#"
            invalid NoFileSystem /fileSystemTags: no file system in us-east-1 has the tags stage=prod, team=a; create or tag one, or name one with fileSystemID
        "#]],
    );
    let several: Vec<Value> = (1..=2)
        .map(|it| file_system(&format!("fs-0000000{it}"), "data", tags.clone(), "available"))
        .collect();
    refused(
        EFS,
        &and_class(with_file_systems(by_tags(), several.into()), "fs-0000000f"),
        expect![[r#"
            invalid SeveralFileSystems /fileSystemTags: several file systems have these tags: fs-00000001 (data), fs-00000002 (data); give the id of one as fileSystemID in place of fileSystemTags, or tags that only one has
        "#]],
    );
    let many: Vec<Value> =
        (1..=7).map(|it| file_system(&format!("fs-0000000{it}"), "", tags.clone(), "available")).collect();
    refused(
        EFS,
        &with_file_systems(by_tags(), many.into()),
        expect![[r#"
            invalid SeveralFileSystems /fileSystemTags: several file systems have these tags: fs-00000001, fs-00000002, fs-00000003, fs-00000004, fs-00000005 and 2 more; give the id of one as fileSystemID in place of fileSystemTags, or tags that only one has
        "#]],
    );
}

#[test]
fn file_systems_that_cannot_be_looked_for_are_waited_for_or_named() {
    let told = |value: FactValue| and_fact(request(by_tags()), "file-systems", value);
    refused(
        EFS,
        &told(FactValue::Unknown("no answer in time".to_owned())),
        expect![[r#"
            pending FileSystemsUnknown: the file systems that have these tags could not be looked for: no answer in time
        "#]],
    );
    let unknown = FactValue::Unknown("no answer in time".to_owned());
    let Ok(Outcome::Pending(waits)) = plans::plan(EFS, &told(unknown)) else { panic!("it waits") };
    assert_eq!(waits.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["/fileSystemTags"]);
    refused(
        EFS,
        &told(FactValue::Denied(
            "this operator has no permission elasticfilesystem:DescribeFileSystems".to_owned(),
        )),
        expect![[r#"
            unsupported FileSystemsDenied: the file systems that have these tags could not be looked for: this operator has no permission elasticfilesystem:DescribeFileSystems; grant it, or name the file system with fileSystemID, which does without
        "#]],
    );
    refused(
        EFS,
        &request(by_tags()),
        expect![[r#"
            unsupported UnsupportedHost: fileSystemTags needs fact file-systems, which cluster-operator 0.1.0 does not give
        "#]],
    );
}

/// What is said about Pods that do not fit, for instances of these types.
fn too_many_pods(config: Value, types: FactValue) -> String {
    let plan = complete(VPC_CNI, &and_fact(request(config), "instance-types", types));
    plan.diagnostics
        .iter()
        .filter(|it| it.code == "TooManyPods")
        .map(|it| format!("{}\n", it.message))
        .collect()
}

#[test]
fn an_instance_type_that_admits_more_pods_than_fit_is_warned_of() {
    let instance_type = |name: &str, addresses: u32, nitro: bool, max_pods: Value| {
        let mut it =
            json!({ "name": name, "interfaces": 3, "addressesPerInterface": addresses, "nitro": nitro });
        if !max_pods.is_null() {
            it["maxPods"] = max_pods;
        }
        it
    };
    let types = FactValue::Present(json!([
        instance_type("t2.small", 4, false, json!(110)),
        instance_type("t3.micro", 2, true, json!(110)),
        instance_type("t3.large", 12, true, json!(35)),
        instance_type("t3.medium", 6, true, json!(null)),
        instance_type("t3.small", 4, true, json!(110)),
    ]));
    expect![[r#"
        instance type t2.small has room for 11 Pods where Pods have addresses of the VPC, but its kubelet lets in 110: Pods beyond that stay in ContainerCreating; set the kubelet's max-pods to 11 or less
        instance type t3.micro has room for 5 Pods where Pods have addresses of the VPC, but its kubelet lets in 110: Pods beyond that stay in ContainerCreating; set the kubelet's max-pods to 5 or less, or to 50 or less with prefixDelegation
        instance type t3.small has room for 11 Pods where Pods have addresses of the VPC, but its kubelet lets in 110: Pods beyond that stay in ContainerCreating; set the kubelet's max-pods to 11 or less, or use prefixDelegation
    "#]]
    .assert_eq(&too_many_pods(json!({}), types.clone()));
    expect![[r#"
        instance type t2.small has room for 11 Pods where Pods have addresses of the VPC, but its kubelet lets in 110: Pods beyond that stay in ContainerCreating; set the kubelet's max-pods to 11 or less; prefixDelegation does nothing for a type that is not of the Nitro system
        instance type t3.micro has room for 50 Pods where Pods have addresses of the VPC, but its kubelet lets in 110: Pods beyond that stay in ContainerCreating; set the kubelet's max-pods to 50 or less
    "#]]
    .assert_eq(&too_many_pods(json!({ "prefixDelegation": true }), types));
}

#[test]
fn instance_types_that_are_not_known_keep_no_network_from_a_cluster() {
    let unclear = [
        FactValue::Absent,
        FactValue::Unknown("timeout".to_owned()),
        FactValue::Denied("no permission".to_owned()),
        FactValue::Present(json!([])),
        FactValue::Present(json!("nonsense")),
    ];
    for value in unclear {
        let request = and_fact(request(json!({})), "instance-types", value.clone());
        assert_eq!(complete(VPC_CNI, &request), complete(VPC_CNI, &common::request(json!({}))), "{value:?}");
    }
}
