//! What is read, when, and how often.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{Action, Interest, InternetGateway, Outcome, Read, RouteTable, SecurityGroup, Subnet, Vpc};
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
async fn an_old_read_is_not_shown_as_new_to_who_asks_later() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let before = bed.calls().await.len();
    region.forget("test");
    assert!(region.view().borrow().snapshot.is_none());
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(bed.calls().await.len(), before, "nothing is read for nobody");
    region.interest("test", Interest::default());
    until(&region, |it| it.read_at.len() == 11).await;
    assert_eq!(bed.calls().await.len(), before + 10, "everything but the zones");
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
    let region = bed.swept_by_user().await;
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
async fn nat_gateways_of_an_unmanaged_vpc_are_read_on_demand() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept_by_user().await;
    let mut ids = network(&region).await;
    let address = model::ElasticIp { name: "theirs".into() };
    assert_eq!(act(&region, bare(create(address, &ids, None))).await, Outcome::Done);
    let found = snapshot(&region).addresses[0].clone();
    ids.insert(model::ElasticIp::key("theirs"), found.id);
    let gateway = model::NatGateway {
        name: "theirs".into(),
        subnet: "public".into(),
        elastic_ip: "theirs".into(),
        internet_gateway: "main".into(),
    };
    assert_eq!(act(&region, bare(create(gateway, &ids, Some("theirs")))).await, Outcome::Done);
    let vpc = ids[&Vpc::key("main")].clone();
    let before = bed.count("DescribeNatGateways").await;
    let other = bed.swept().await;
    assert!(snapshot(&other).nat_gateways.is_empty() && snapshot(&other).nat_gateways_read.is_empty());
    assert_eq!(bed.count("DescribeNatGateways").await, before + 1);
    other
        .interest("test", Interest { nat_gateways_of: BTreeSet::from([vpc.clone()]), ..Interest::default() });
    let shown = until(&other, |it| it.nat_gateways_read.contains(&vpc)).await;
    assert_eq!(shown.nat_gateways[0].public_ips, [found.public_ip]);
    assert_eq!(bed.count("DescribeNatGateways").await, before + 3, "by tag and by VPC, once");
}

#[tokio::test]
async fn route_tables_of_an_unmanaged_vpc_are_read_on_demand() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept_by_user().await;
    let mut ids = network(&region).await;
    let empty = RouteTable {
        name: "theirs".into(),
        vpc: "main".into(),
        subnets: BTreeSet::new(),
        default_route: None,
    };
    assert_eq!(act(&region, bare(create(empty.clone(), &ids, Some("theirs")))).await, Outcome::Done);
    let table = snapshot(&region).route_tables[0].id.clone();
    ids.insert(RouteTable::key("theirs"), table.clone());
    let (subnets, default_route) =
        (BTreeSet::from(["public".to_owned()]), Some(InternetGateway::key("main")));
    let leading_out = RouteTable { subnets, default_route, ..empty.clone() };
    assert_eq!(act(&region, update(&table, leading_out, empty, &ids)).await, Outcome::Done);
    let vpc = ids[&Vpc::key("main")].clone();
    let before = bed.count("DescribeRouteTables").await;
    let other = bed.swept().await;
    assert!(snapshot(&other).route_tables.is_empty() && snapshot(&other).route_tables_read.is_empty());
    assert_eq!(bed.count("DescribeRouteTables").await, before + 1);
    other
        .interest("test", Interest { route_tables_of: BTreeSet::from([vpc.clone()]), ..Interest::default() });
    let shown = until(&other, |it| it.route_tables_read.contains(&vpc)).await;
    assert!(
        shown.route_tables.len() == 2 && shown.route_tables.iter().all(|it| it.vpc_id == vpc),
        "{:#?}",
        shown.route_tables
    );
    let main_at = usize::from(!shown.route_tables[0].main);
    let (of_subnet, main) = (&shown.route_tables[1 - main_at], &shown.route_tables[main_at]);
    assert!(
        main.main
            && main.associations.is_empty()
            && main.default_route.is_none()
            && main.internet_gateways.is_empty()
    );
    assert_eq!(
        (of_subnet.main, &of_subnet.default_route),
        (false, &Some(ids[&InternetGateway::key("main")].clone()))
    );
    assert_eq!(of_subnet.associations.keys().collect::<Vec<_>>(), [&ids[&Subnet::key("public")]]);
    assert_eq!(bed.count("DescribeRouteTables").await, before + 3, "by tag and by VPC, once");
}

#[tokio::test]
async fn more_vpcs_than_one_filter_takes_are_deleted_at_once() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let deleting_vpcs: BTreeSet<String> = (0..201).map(|it| format!("vpc-{it:017x}")).collect();
    region.interest("test", Interest { deleting_vpcs: deleting_vpcs.clone(), ..Interest::default() });
    until(&region, |it| it.deleting_vpcs_read.len() == deleting_vpcs.len()).await;
    assert_eq!((bed.count("DescribeNetworkInterfaces").await, region.view().borrow().problems.len()), (2, 0));
}

#[tokio::test]
async fn an_unreadable_network_load_balancer_holds_up_nothing_else() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    balancer(&region, model::LoadBalancerKind::Network, &mut ids).await;
    machine(&region, &mut ids).await;
    let failing = |action: &str| {
        let code = "HealthUnavailable";
        json!({"kind": "error", "service": "elbv2", "action": action, "code": code})
    };
    bed.faults(json!([failing("DescribeTargetHealth")])).await;
    let other = bed.swept().await;
    let shown = snapshot(&other).load_balancers[0].clone();
    assert_eq!((shown.state, shown.listeners.len(), shown.targets.len()), (model::State::Ready, 1, 0));
    bed.faults(json!([failing("DescribeListeners")])).await;
    let third = bed.swept().await;
    let shown = snapshot(&third).load_balancers[0].clone();
    assert_eq!(
        (shown.state, shown.listeners.len()),
        (model::State::Creating, 0),
        "what it listens on is not known: it is given nothing"
    );
    bed.faults(json!([])).await;
    for region in [&other, &third] {
        region.interest("test", awaiting([Read::TargetGroups]));
        let is_whole = |it: &model::FoundLoadBalancer| {
            it.state == model::State::Ready && it.listeners.len() == 1 && it.targets.len() == 1
        };
        until(region, |it| it.load_balancers.iter().all(is_whole)).await;
    }
}

#[tokio::test]
async fn what_was_just_made_is_not_taken_for_gone() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    bed.faults(json!([{"kind": "read-lag", "seconds": 5.0}])).await;
    let new = vec![
        create(subnet("more", "10.0.2.0/24", false), &ids, None),
        create(group("more"), &ids, None),
        create(load_balancer(model::LoadBalancerKind::Classic, true), &ids, None),
    ];
    assert!(act_all(&region, new).await.iter().all(|it| it.1 == Outcome::Done));
    let shown = snapshot(&region);
    let more = shown.subnets.iter().find(|it| it.cidr == "10.0.2.0/24").unwrap().id.clone();
    let group_id = shown.security_groups.iter().find(|it| it.group_name == "c1-more").unwrap().id.clone();
    let deletions = || {
        vec![
            delete(&more, subnet("more", "10.0.2.0/24", false), &ids),
            delete(&group_id, group("more"), &ids),
            delete(&shown.load_balancers[0].id, load_balancer(model::LoadBalancerKind::Classic, true), &ids),
        ]
    };
    for (key, outcome) in act_all(&region, deletions()).await {
        assert!(
            matches!(&outcome, Outcome::Refused { retry: true, who: model::ActionNeeded::None, .. }),
            "{key}: {outcome:?}"
        );
    }
    let still = snapshot(&region);
    assert_eq!(
        (still.subnets.len(), still.security_groups.len(), still.load_balancers.len()),
        (3, 3, 1),
        "it is there still"
    );
    tokio::time::sleep(Duration::from_secs(6)).await;
    for (key, outcome) in act_all(&region, deletions()).await {
        assert_eq!(outcome, Outcome::Done, "{key}");
    }
    let left: Vec<(String, usize)> = bed.account().await;
    let count = |kind: &str| left.iter().find(|it| it.0 == kind).map_or(0, |it| it.1);
    assert_eq!((count("subnet"), count("security-group"), count("load-balancer")), (2, 2, 0), "{left:?}");
}

/// As a user makes it: without a cluster's tag.
fn bare(action: Action) -> Action {
    match action {
        Action::Create { is, ids, client_token, until, .. } => {
            Action::Create { is, tags: Default::default(), ids, client_token, until }
        }
        other => other,
    }
}

#[tokio::test]
async fn a_vpc_that_is_deleted_shows_what_stands_in_its_way() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept_by_user().await;
    let mut ids = network(&region).await;
    balancer(&region, model::LoadBalancerKind::Classic, &mut ids).await;
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
    assert!(
        shown.security_groups.iter().any(|it| it.group_name == "c1-foreign"),
        "{:#?}",
        shown.security_groups
    );
    let group = &ids[&SecurityGroup::key("apiserver-lb")];
    assert!(
        shown.network_interfaces.iter().any(|it| it.groups.contains(group)),
        "{:#?}",
        shown.network_interfaces
    );
    let tags = shown.load_balancers[0].tags.clone().unwrap_or_default();
    assert!(tags.contains_key("cluster.kurator.dev/id"), "{tags:?}");
}

#[tokio::test]
async fn reads_that_lag_hide_nothing_made_and_show_nothing_removed() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    bed.faults(json!([{"kind": "read-lag", "seconds": 5.0}])).await;
    let new =
        vec![create(subnet("more", "10.0.2.0/24", false), &ids, None), create(group("more"), &ids, None)];
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
