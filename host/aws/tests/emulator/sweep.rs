//! What is read, when, and how often.

use std::collections::BTreeSet;
use std::time::Duration;

use plan::{Action, Interest, Outcome, Read, SecurityGroup, Vpc};
use serde_json::json;

use crate::bed::{Bed, act, act_all, awaiting, snapshot, until};
use crate::cluster::*;

#[tokio::test]
async fn nothing_is_read_before_somebody_is_interested() {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let view = region.view();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(bed.calls().await, Vec::<String>::new());
    assert!(view.borrow().snapshot.is_none());
}

#[tokio::test]
async fn the_first_sweep_reads_each_kind_once_and_the_zones() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let calls = bed.calls().await;
    assert_eq!(calls.len(), 11, "eight kinds of EC2, both kinds of load balancers, zones: {calls:?}");
    assert_eq!(snapshot(&region).zones.first().map(String::as_str), Some("us-east-1a"));
    assert_eq!(snapshot(&region).read_at.len(), 11);
}

#[tokio::test]
async fn only_what_is_awaited_is_read_again() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let before = bed.calls().await.len();
    region.interest("one", awaiting([Read::NatGateways]));
    region.interest("two", awaiting([Read::NatGateways, Read::Instances]));
    tokio::time::sleep(Duration::from_secs(12)).await;
    let mut calls = bed.calls().await.split_off(before);
    calls.sort();
    assert_eq!(calls, ["DescribeInstances", "DescribeNatGateways"], "once, for both");
    region.interest("one", Interest::default());
    region.forget("two");
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(bed.calls().await.len(), before + 2, "nobody awaits anything");
}

#[tokio::test]
async fn all_pages_are_read() {
    let bed = Bed::start(&["--page-size", "2"]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let groups = (0..7).map(|it| create(group(&format!("g{it}")), &ids, None)).collect();
    assert!(act_all(&region, groups).await.iter().all(|it| it.1 == Outcome::Done));
    let before = bed.count("DescribeSecurityGroups").await;
    let other = bed.swept().await;
    assert_eq!(snapshot(&other).security_groups.len(), 9);
    assert_eq!(bed.count("DescribeSecurityGroups").await - before, 5);
}

#[tokio::test]
async fn what_users_brought_is_read_by_its_id() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    assert_eq!(act(&region, bare(create(vpc(), &Default::default(), None))).await, Outcome::Done);
    let id = snapshot(&region).vpcs[0].id.clone();
    let other = bed.swept().await;
    assert!(snapshot(&other).vpcs.is_empty(), "it carries no cluster's tag");
    let ids = BTreeSet::from([id.clone(), "vpc-0123456789abcdef0".to_owned()]);
    other.interest("test", Interest { ids, ..Interest::default() });
    let shown = until(&other, |it| !it.vpcs.is_empty()).await;
    assert_eq!(shown.vpcs[0].id, id, "and one that does not exist harms nobody");
}

#[tokio::test]
async fn nat_gateways_of_a_vpc_that_a_user_brought_are_read_only_when_somebody_wants_them() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    let address = plan::ElasticIp { name: "theirs".into() };
    assert_eq!(act(&region, bare(create(address, &ids, None))).await, Outcome::Done);
    let found = snapshot(&region).addresses[0].clone();
    ids.insert(plan::ElasticIp::key("theirs"), found.id);
    let gateway =
        plan::NatGateway { name: "theirs".into(), subnet: "public".into(), elastic_ip: "theirs".into(), internet_gateway: "main".into() };
    assert_eq!(act(&region, bare(create(gateway, &ids, Some("theirs")))).await, Outcome::Done);
    let vpc = ids[&Vpc::key("main")].clone();
    let before = bed.count("DescribeNatGateways").await;
    let other = bed.swept().await;
    assert!(snapshot(&other).nat_gateways.is_empty() && snapshot(&other).nat_gateways_read.is_empty());
    assert_eq!(bed.count("DescribeNatGateways").await, before + 1);
    other.interest("test", Interest { nat_gateways_of: BTreeSet::from([vpc.clone()]), ..Interest::default() });
    let shown = until(&other, |it| it.nat_gateways_read.contains(&vpc)).await;
    assert_eq!(shown.nat_gateways[0].public_ips, [found.public_ip]);
    assert_eq!(bed.count("DescribeNatGateways").await, before + 3, "by tag and by VPC, once");
}

/// As a user makes it: without a cluster's tag.
fn bare(action: Action) -> Action {
    match action {
        Action::Create { is, ids, client_token, .. } => Action::Create { is, tags: Default::default(), ids, client_token },
        other => other,
    }
}

#[tokio::test]
async fn a_vpc_that_is_deleted_shows_what_stands_in_its_way() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    balancer(&region, plan::LoadBalancerKind::Classic, &mut ids).await;
    let mut foreign = create(group("foreign"), &ids, None);
    if let Action::Create { tags, .. } = &mut foreign {
        tags.retain(|key, _| key == "Name");
    }
    assert_eq!(act(&region, foreign).await, Outcome::Done);
    let other = bed.swept().await;
    assert_eq!(snapshot(&other).security_groups.len(), 2);
    let vpc = ids[&Vpc::key("main")].clone();
    other.interest("test", Interest { deleting_vpcs: BTreeSet::from([vpc.clone()]), ..Interest::default() });
    let shown = until(&other, |it| it.deleting_vpcs_read.contains_key(&vpc)).await;
    assert!(shown.security_groups.iter().any(|it| it.group_name == "c1-foreign"), "{:#?}", shown.security_groups);
    let group = &ids[&SecurityGroup::key("apiserver-lb")];
    assert!(shown.network_interfaces.iter().any(|it| it.groups.contains(group)), "{:#?}", shown.network_interfaces);
    let tags = shown.load_balancers[0].tags.clone().unwrap_or_default();
    assert!(tags.contains_key("cluster.kurator.dev/id"), "{tags:?}");
}

#[tokio::test]
async fn reads_that_lag_hide_nothing_that_was_made_and_show_nothing_that_was_removed() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    bed.faults(json!([{"kind": "read-lag", "seconds": 5.0}])).await;
    let new = vec![create(subnet("more", "10.0.2.0/24", false), &ids, None), create(group("more"), &ids, None)];
    assert!(act_all(&region, new).await.iter().all(|it| it.1 == Outcome::Done));
    region.interest("test", awaiting([Read::Subnets, Read::SecurityGroups]));
    let watched = region.clone();
    let watch = tokio::spawn(async move {
        let mut view = watched.view();
        let mut shows = Vec::new();
        let end = tokio::time::Instant::now() + Duration::from_secs(120);
        while shows.len() < 3 && tokio::time::timeout_at(end, view.changed()).await.is_ok() {
            let snapshot = view.borrow_and_update().snapshot.clone().unwrap();
            shows.push((snapshot.subnets.len(), snapshot.security_groups.len()));
        }
        shows
    });
    let shows = watch.await.unwrap();
    assert!(shows.len() >= 2, "it was read meanwhile: {shows:?}");
    assert!(shows.iter().all(|it| *it == (3, 3)), "{shows:?}");
    let more = snapshot(&region).subnets.iter().find(|it| it.cidr == "10.0.2.0/24").unwrap().id.clone();
    assert_eq!(act(&region, delete(&more, subnet("more", "10.0.2.0/24", false), &ids)).await, Outcome::Done);
    let read = snapshot(&region).read_at[&Read::Subnets];
    let shown = until(&region, |it| it.read_at[&Read::Subnets] > read).await;
    assert!(shown.subnets.iter().all(|it| it.id != more), "{shown:#?}");
}
