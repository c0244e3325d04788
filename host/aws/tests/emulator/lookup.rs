//! Images and what users' filters mean.

use aws::Filter;
use plan::{ImageQuery, Who};

use crate::bed::{Bed, IMAGE};
use crate::cluster::*;

fn query(name: &str, instance_type: &str) -> ImageQuery {
    ImageQuery { id: None, owner: "819546954734".into(), name: name.into(), instance_type: instance_type.into() }
}

#[tokio::test]
async fn the_newest_image_of_the_right_architecture_is_found_and_asked_for_once() {
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
    assert_eq!(region.instance_type("t3.enormous").await.unwrap_err().who, Who::Author);
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
async fn an_unknown_image_or_instance_type_is_the_authors() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let unknown = ImageQuery { id: Some("ami-0123456789abcdef0".into()), ..query("", "") };
    for wrong in [unknown, query("nothing-*", "t3.large"), query("capa-*", "t3.enormous")] {
        let problem = region.image(&wrong).await.unwrap_err();
        assert_eq!(problem.who, Who::Author, "{problem:?}");
    }
}

#[tokio::test]
async fn filters_find_subnets_and_groups_once() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    network(&region).await;
    let before = bed.calls().await.len();
    let named = |name: &str, value: &str| vec![Filter { name: name.into(), values: vec![value.into()] }];
    for _ in 0..2 {
        assert_eq!(region.subnets(&named("tag:Name", "subnet/public")).await.unwrap().len(), 1);
        assert_eq!(region.security_groups(&named("group-name", "c1-node")).await.unwrap().len(), 1);
    }
    assert_eq!(bed.calls().await.len(), before + 2);
}
