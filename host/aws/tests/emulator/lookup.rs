//! Images, instance types and what users' filters mean.

use model::finding::Reading;
use model::{ActionNeeded, Filter, ImageQuery, InstanceType, SecurityGroup, Vpc};
use serde_json::json;

use crate::bed::{Bed, IMAGE, act, snapshot};
use crate::cluster::*;

fn query(name: &str, instance_type: &str) -> ImageQuery {
    ImageQuery {
        id: None,
        owner: "819546954734".into(),
        name: name.into(),
        instance_type: instance_type.into(),
    }
}

#[tokio::test]
async fn the_newest_image_of_the_architecture_is_asked_for_once() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let name = "capa-ami-ubuntu-24.04-?1.36.3-*";
    let wanted = query(name, "t3.large");
    let (one, two) = futures::join!(region.image(&wanted), region.image(&wanted));
    assert_eq!(one, two);
    let one = one.unwrap();
    assert_eq!((one.id.as_str(), one.root_device.as_str()), (IMAGE, "/dev/sda1"));
    assert_eq!(bed.calls().await, ["DescribeInstanceTypes", "DescribeImages"]);
    let arm = region.image(&query(name, "m6g.large")).await.unwrap();
    assert_eq!(arm.id, "ami-bed136300000000a1");
}

#[tokio::test]
async fn what_a_type_of_instances_has_is_asked_for_once() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let found = region.instance_type("t3.large").await.unwrap();
    assert_eq!((found.architecture.as_str(), found.cpus, found.memory_mib), ("x86_64", 2, 8192));
    region.image(&query("capa-ami-ubuntu-24.04-?1.36.3-*", "t3.large")).await.unwrap();
    assert_eq!(bed.calls().await, ["DescribeInstanceTypes", "DescribeImages"]);
    assert_eq!(region.instance_type("m6g.large").await.unwrap().architecture, "arm64");
    assert_eq!(region.instance_type("t3.enormous").await.unwrap_err().who, ActionNeeded::SpecAuthor);
}

#[tokio::test]
async fn a_given_image_is_looked_up_by_its_id() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let given = ImageQuery { id: Some(IMAGE.into()), ..query("", "") };
    let image = region.image(&given).await.unwrap();
    assert_eq!((image.id.as_str(), image.root_device.as_str()), (IMAGE, "/dev/sda1"));
    assert_eq!(bed.calls().await, ["DescribeImages"]);
}

#[tokio::test]
async fn a_given_image_is_found_though_it_is_deprecated() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let deprecated = ImageQuery { id: Some("ami-bed13310000000000".into()), ..query("", "") };
    assert_eq!(region.image(&deprecated).await.unwrap().root_device, "/dev/sda1");
    let by_name = region.image(&query("capa-ami-ubuntu-24.04-?1.33.1-*", "t3.large")).await;
    assert_eq!(by_name.unwrap_err().who, ActionNeeded::SpecAuthor, "nobody finds it who does not know it");
}

#[tokio::test]
async fn an_unknown_image_or_instance_type_is_the_authors() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let unknown = ImageQuery { id: Some("ami-0123456789abcdef0".into()), ..query("", "") };
    for wrong in [unknown, query("nothing-*", "t3.large"), query("capa-*", "t3.enormous")] {
        let problem = region.image(&wrong).await.unwrap_err();
        assert_eq!(problem.who, ActionNeeded::SpecAuthor, "{problem:?}");
    }
}

#[tokio::test]
async fn filters_find_subnets_and_groups_once() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    network(&region).await;
    let before = bed.calls().await.len();
    for _ in 0..2 {
        assert_eq!(region.subnets(&[Filter::new("tag:Name", "subnet/public")]).await.unwrap().len(), 1);
        assert_eq!(region.security_groups(&[Filter::new("group-name", "c1-node")]).await.unwrap().len(), 1);
    }
    assert_eq!(bed.calls().await.len(), before + 2);
}

async fn types(region: &aws::Region, names: &[&str]) -> Vec<InstanceType> {
    match region.instance_types(&names.iter().map(|it| (*it).to_owned()).collect()).await {
        Reading::Found(found) => found,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn instance_types_are_read_in_one_call_and_never_again() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let room = |name: &str, interfaces: u32, addresses: u32, nitro: bool| InstanceType {
        name: name.into(),
        interfaces,
        addresses_per_interface: addresses,
        nitro,
    };
    let found = types(&region, &["t3.small", "p4d.24xlarge", "t2.small", "m5.metal"]).await;
    let p4d = room("p4d.24xlarge", 15, 50, true);
    let expected = [
        room("m5.metal", 15, 50, true),
        p4d.clone(),
        room("t2.small", 3, 4, false),
        room("t3.small", 3, 4, true),
    ];
    assert_eq!(found, expected, "of four network cards the default one counts");
    assert_eq!(bed.calls().await, ["DescribeInstanceTypes"]);
    assert_eq!(types(&region, &["p4d.24xlarge"]).await, [p4d]);
    region.image(&query("capa-ami-ubuntu-24.04-?1.36.3-*", "t3.small")).await.unwrap();
    assert_eq!(bed.count("DescribeInstanceTypes").await, 1, "its architecture is known too");
    assert_eq!(types(&region, &["t3.small", "t3.large"]).await.len(), 2);
    assert_eq!(bed.count("DescribeInstanceTypes").await, 2);
}

#[tokio::test]
async fn an_instance_type_that_does_not_exist_hides_no_other() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let found = types(&region, &["t3.enormous", "t3.small"]).await;
    assert_eq!(found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["t3.small"]);
}

#[tokio::test]
async fn instance_types_that_may_not_be_read_name_the_permission() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    bed.faults(json!([{"kind": "access-denied", "action": "DescribeInstanceTypes"}])).await;
    let denied = Reading::AccessDenied { permission: "ec2:DescribeInstanceTypes".into() };
    assert_eq!(region.instance_types(&["t3.small".to_owned()].into()).await, denied);
    bed.faults(json!([])).await;
    assert_eq!(types(&region, &["t3.small"]).await.len(), 1, "what failed is not remembered");
}

#[tokio::test]
async fn filters_find_what_a_user_made_in_the_vpc_alone() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept_by_user().await;
    let mut ids = network(&region).await;
    let vpc_id = ids[&Vpc::key("main")].clone();
    assert_eq!(
        act(&region, bare(create(vpc(), &Default::default(), None), "theirs")).await,
        model::Outcome::Done
    );
    let other = snapshot(&region).vpcs.iter().find(|it| it.id != vpc_id).unwrap().id.clone();
    let users = SecurityGroup { group_name: "web-servers".into(), ..group("web") };
    for vpc in [vpc_id.clone(), other] {
        ids.insert(Vpc::key("main"), vpc);
        assert_eq!(
            act(&region, bare(create(users.clone(), &ids, None), "corp-web")).await,
            model::Outcome::Done
        );
    }
    let fresh = bed.swept().await;
    assert!(snapshot(&fresh).security_groups.iter().all(|it| it.group_name != "web-servers"));
    let in_vpc = Filter::new("vpc-id", &vpc_id);
    for question in [Filter::new("group-name", "web-?ervers"), Filter::new("tag:Name", "corp-*")] {
        let found = fresh.security_groups(&[question, in_vpc.clone()]).await.unwrap();
        assert_eq!(
            found.iter().map(|it| (it.group_name.as_str(), it.vpc_id == vpc_id)).collect::<Vec<_>>(),
            [("web-servers", true)]
        );
    }
    assert!(
        fresh
            .subnets(&[Filter::new("subnet-id", "subnet-0123456789abcdef0"), in_vpc])
            .await
            .unwrap()
            .is_empty()
    );
    let problem = fresh.security_groups(&[Filter::new("no-such-filter", "x")]).await.unwrap_err();
    assert_eq!(problem.who, ActionNeeded::SpecAuthor, "{problem:?}");
}

/// As a user makes it: with a name, and without a cluster's tag.
fn bare(action: model::Action, name: &str) -> model::Action {
    match action {
        model::Action::Create { is, ids, client_token, until, .. } => model::Action::Create {
            is,
            tags: model::Tags::from([("Name".into(), name.into())]),
            ids,
            client_token,
            until,
        },
        other => other,
    }
}
