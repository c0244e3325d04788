//! Every kind is made, seen as it was made, and removed without a trace.

use model::{
    FoundSource, LoadBalancerKind, Outcome, Read, SecurityGroup, Snapshot, Source, State, Subnet, Vpc,
};

use crate::bed::{Bed, act, act_all, snapshot, until};
use crate::cluster::*;

/// What a snapshot shows, without what differs between one that acted and one that only read.
fn shown(mut snapshot: Snapshot) -> Snapshot {
    snapshot.since = 0.0;
    snapshot.read_at.clear();
    snapshot.deleting_vpcs_read.clear();
    snapshot.network_interfaces.clear();
    snapshot.vpcs.iter_mut().for_each(|it| it.dns_hostnames = None);
    for balancer in &mut snapshot.load_balancers {
        (balancer.attributes, balancer.tags) = (None, None);
    }
    snapshot.subnets.sort_by(|a, b| a.id.cmp(&b.id));
    for group in &mut snapshot.security_groups {
        group.rules.sort_by_key(|it| format!("{it:?}"));
    }
    snapshot.security_groups.sort_by(|a, b| a.id.cmp(&b.id));
    snapshot.addresses.iter_mut().for_each(|it| (it.association_id, it.network_interface_id) = (None, None));
    snapshot
}

async fn lives(kind: LoadBalancerKind) {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    routes(&region, &mut ids).await;
    balancer(&region, kind, &mut ids).await;
    machine(&region, &mut ids).await;

    let other = shown(snapshot(&bed.swept().await).as_ref().clone());
    let ours = shown(snapshot(&region).as_ref().clone());
    assert_eq!(format!("{other:#?}"), format!("{ours:#?}"), "another process sees what this one wrote");
    let balancer = &ours.load_balancers[0];
    assert_eq!(balancer.targets.iter().collect::<Vec<_>>(), [&ours.instances[0].id]);
    let wanted = load_balancer(kind, true).listener.unwrap();
    assert_eq!((balancer.listeners[0].port, balancer.listeners[0].target_port), (6443, 6443));
    assert_eq!(balancer.listeners[0].health_check, Some(wanted.health_check));
    assert_eq!(ours.route_tables[0].default_route.as_ref(), Some(&ours.nat_gateways[0].id));
    assert_eq!(ours.route_tables[0].associations.len(), 1);
    assert!(ours.subnets.iter().any(|it| it.public && it.cidr == "10.0.0.0/24"));
    assert_eq!(snapshot(&region).vpcs[0].dns_hostnames, Some(true));
    let attributes = load_balancer(kind, true).attributes;
    assert_eq!(snapshot(&region).load_balancers[0].attributes, attributes);
    let user = bed.swept_by_user().await;
    let read = user.load_balancer_attributes(&balancer.id).await;
    assert_eq!(Some(read), attributes.map(model::finding::Reading::Found));

    remove_machine(&region, &ids).await;
    remove_balancer(&region, kind, &ids).await;
    remove_routes(&region, &ids).await;
    remove_network(&region, &ids).await;
    assert_eq!(bed.account().await, [], "nothing is left");
    let empty = snapshot(&region);
    assert!(
        empty.vpcs.is_empty() && empty.subnets.is_empty() && empty.security_groups.is_empty(),
        "{empty:#?}"
    );
}

#[tokio::test]
async fn a_cluster_with_a_classic_load_balancer_comes_and_goes() {
    lives(LoadBalancerKind::Classic).await;
}

#[tokio::test]
async fn a_cluster_with_a_network_load_balancer_comes_and_goes() {
    lives(LoadBalancerKind::Network).await;
}

#[tokio::test]
async fn rules_of_groups_that_name_each_other_come_change_and_go() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let (node, balancer) = (&ids[&SecurityGroup::key("node")], &ids[&SecurityGroup::key("apiserver-lb")]);
    let of = |id: &str| {
        let mut rules =
            snapshot(&region).security_groups.iter().find(|it| it.id == id).unwrap().rules.clone();
        rules.sort_by_key(|it| it.from_port);
        rules.into_iter().map(|it| (it.protocol, it.from_port, it.source)).collect::<Vec<_>>()
    };

    let first = rules(
        "node",
        vec![rule(22, Source::Cidr("10.0.0.0/8".into())), rule(6443, Source::Group("apiserver-lb".into()))],
    );
    let back = rules("apiserver-lb", vec![rule(6443, Source::Group("node".into()))]);
    let outcomes = act_all(
        &region,
        vec![
            update(node, first.clone(), rules("node", vec![]), &ids),
            update(balancer, back.clone(), rules("apiserver-lb", vec![]), &ids),
        ],
    )
    .await;
    assert!(outcomes.iter().all(|it| it.1 == Outcome::Done), "{outcomes:?}");
    assert_eq!(bed.count("AuthorizeSecurityGroupIngress").await, 2, "one call for each group");

    let mut second = rules(
        "node",
        vec![rule(6443, Source::Group("apiserver-lb".into())), rule(10250, Source::Cidr("::/0".into()))],
    );
    second.rules.insert(model::Rule { protocol: "4".into(), ..rule(-1, Source::Group("node".into())) });
    assert_eq!(act(&region, update(node, second, first, &ids)).await, Outcome::Done);
    let expected = [
        ("4".to_owned(), -1, FoundSource::GroupId(node.clone())),
        ("tcp".to_owned(), 6443, FoundSource::GroupId(balancer.clone())),
        ("tcp".to_owned(), 10250, FoundSource::Cidr("::/0".into())),
    ];
    assert_eq!(of(node), expected);
    region.interest("test", crate::bed::awaiting([Read::SecurityGroups]));
    let before = snapshot(&region).read_at[&Read::SecurityGroups];
    until(&region, |it| it.read_at[&Read::SecurityGroups] > before).await;
    assert_eq!(of(node), expected, "as AWS shows it");

    let refused = act(&region, delete(node, group("node"), &ids)).await;
    assert!(
        matches!(&refused, Outcome::Refused { code, retry: true, .. } if code == "DependencyViolation"),
        "{refused:?}"
    );
    let gone = vec![delete(node, rules("node", vec![]), &ids), delete(balancer, back, &ids)];
    assert!(act_all(&region, gone).await.iter().all(|it| it.1 == Outcome::Done));
    assert!(of(node).is_empty() && of(balancer).is_empty());
    remove_network(&region, &ids).await;
    assert_eq!(bed.account().await, []);
}

#[tokio::test]
async fn rules_that_aws_keeps_in_another_form_are_known_again_and_go() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let node = &ids[&SecurityGroup::key("node")];
    let of = || snapshot(&region).security_groups.iter().find(|it| it.id == *node).unwrap().rules.clone();
    let read = async || {
        region.interest("test", crate::bed::awaiting([Read::SecurityGroups]));
        let before = snapshot(&region).read_at[&Read::SecurityGroups];
        until(&region, |it| it.read_at[&Read::SecurityGroups] > before).await;
        of()
    };
    let of_protocol = |protocol: &str, port: i32, source: Source| model::Rule {
        protocol: protocol.into(),
        ..rule(port, source)
    };
    let wanted = rules(
        "node",
        vec![
            rule(443, Source::Cidr("203.0.113.5/24".into())),
            rule(443, Source::Cidr("2001:DB8::1/32".into())),
            of_protocol("50", 0, Source::Cidr("198.51.100.7/32".into())),
            of_protocol("58", -1, Source::Cidr("::/0".into())),
        ],
    );
    assert_eq!(act(&region, update(node, wanted.clone(), rules("node", vec![]), &ids)).await, Outcome::Done);
    let written = of();
    let kept = read().await;
    assert_eq!(kept.len(), 4, "{kept:#?}");
    for one in &written {
        assert!(kept.iter().any(|it| it.same_traffic(one)), "{one:?} is none of {kept:#?}");
    }
    assert!(kept.iter().any(|it| it.protocol == "icmpv6"), "the emulator answers as AWS does: {kept:#?}");
    assert_eq!(act(&region, update(node, rules("node", vec![]), wanted, &ids)).await, Outcome::Done);
    assert_eq!(of(), [], "the view follows");
    assert_eq!(read().await, []);
}

#[tokio::test]
async fn removing_what_is_gone_is_done() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    remove_network(&region, &ids).await;
    remove_network(&region, &ids).await;
    let gone = vec![delete("", secret(), &ids), delete("i-0123456789abcdef0", instance("m1"), &ids)];
    for (key, outcome) in act_all(&region, gone).await {
        assert_eq!(outcome, Outcome::Done, "{key}");
    }
}

#[tokio::test]
async fn a_second_try_with_the_same_token_finds_the_first() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    for _ in 0..2 {
        assert_eq!(act(&region, create(instance("m1"), &ids, Some("token"))).await, Outcome::Done);
    }
    assert_eq!(snapshot(&region).instances.len(), 1);
    assert!(bed.account().await.contains(&("instance".to_owned(), 1)));
    let other = model::Instance { subnet: "public".into(), ..instance("m1") };
    let mismatch = act(&region, create(other, &ids, Some("token"))).await;
    assert!(matches!(mismatch, Outcome::Unknown { .. }), "{mismatch:?}");
}

#[tokio::test]
async fn what_has_the_name_or_range_already_is_ours_or_refused() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let again =
        vec![create(subnet("public", "10.0.0.0/24", false), &ids, None), create(group("node"), &ids, None)];
    for (key, outcome) in act_all(&region, again).await {
        assert_eq!(outcome, Outcome::Done, "{key}");
    }
    assert_eq!((snapshot(&region).subnets.len(), snapshot(&region).security_groups.len()), (2, 2));
    let mut foreign = vec![
        create(subnet("public", "10.0.0.0/24", false), &ids, None),
        create(subnet("public", "10.0.0.0/25", false), &ids, None),
        create(group("node"), &ids, None),
    ];
    for action in &mut foreign {
        if let model::Action::Create { tags, .. } = action {
            tags.insert("cluster.kurator.dev/id".into(), "another".into());
        }
    }
    for (key, outcome) in act_all(&region, foreign).await {
        assert!(
            matches!(&outcome, Outcome::Refused { who: model::ActionNeeded::SpecAuthor, .. }),
            "{key}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn instances_are_terminated_together_and_a_bad_id_fails_alone() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let names = ["m1", "m2", "m3"];
    act_all(&region, names.iter().map(|it| create(instance(it), &ids, Some(it))).collect()).await;
    let made: Vec<String> = snapshot(&region).instances.iter().map(|it| it.id.clone()).collect();
    assert_eq!(made.len(), 3);
    act_all(&region, made[..2].iter().map(|it| delete(it, instance("m"), &ids)).collect()).await;
    assert_eq!(bed.count("TerminateInstances").await, 1);
    let last = [made[2].as_str(), "i-0123456789abcdef0"];
    let outcomes = act_all(&region, last.iter().map(|it| delete(it, instance("m"), &ids)).collect()).await;
    assert!(outcomes.iter().all(|it| it.1 == Outcome::Done), "{outcomes:?}");
    assert_eq!(bed.count("TerminateInstances").await, 4, "two together, refused, then each alone");
    assert!(snapshot(&region).instances.iter().all(|it| it.status.state == "shutting-down"));
}

#[tokio::test]
async fn a_protected_instance_is_named_and_holds_up_no_other() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    act_all(&region, ["m1", "m2", "m3"].iter().map(|it| create(instance(it), &ids, Some(it))).collect())
        .await;
    let made: Vec<String> = snapshot(&region).instances.iter().map(|it| it.id.clone()).collect();
    bed.administrator().protect(&made[1]).await;
    let outcomes = act_all(&region, made.iter().map(|it| delete(it, instance(it), &ids)).collect()).await;
    for (key, outcome) in outcomes {
        if key.name != made[1] {
            assert_eq!(outcome, Outcome::Done);
            continue;
        }
        assert!(
            matches!(&outcome, Outcome::Refused { code, message, .. }
                if code == "OperationNotPermitted" && message.contains(&made[1])),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn what_is_recorded_is_confirmed_or_absent() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let other = bed.swept().await;
    let confirm = |key: model::Key, id: &str| model::Action::Confirm { key, id: id.to_owned() };
    let all = vec![
        confirm(Vpc::key("main"), "vpc-0123456789abcdef0"),
        confirm(Subnet::key("public"), &ids[&Subnet::key("public")]),
        confirm(model::LoadBalancer::key("apiserver"), "c1-apiserver"),
        confirm(model::Instance::key("m1"), "i-0123456789abcdef0"),
    ];
    for (key, outcome) in act_all(&other, all).await {
        assert_eq!(outcome, Outcome::Done, "{key}");
    }
    let absent: Vec<String> = snapshot(&other).absent.keys().cloned().collect();
    assert_eq!(absent, ["c1-apiserver", "i-0123456789abcdef0", "vpc-0123456789abcdef0"]);
    assert_eq!(snapshot(&other).vpcs[0].state, State::Ready);
}

#[tokio::test]
async fn a_token_whose_nat_gateway_is_deleted_shows_it_as_going() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    routes(&region, &mut ids).await;
    remove_routes(&region, &ids).await;
    assert_eq!(act(&region, create(nat_gateway(), &ids, Some("nat"))).await, Outcome::Done);
    let shown: Vec<State> = snapshot(&region).nat_gateways.iter().map(|it| it.state).collect();
    assert_eq!(shown, [State::Deleting]);
}

#[tokio::test]
async fn target_groups_still_in_use_after_their_listener_go_next_time() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let (ids, admin) = (network(&region).await, bed.administrator());
    let vpc_id = ids[&Vpc::key("main")].clone();
    let subnets =
        [ids[&Subnet::key("private")].clone(), admin.subnet(&vpc_id, "10.0.9.0/24", "us-east-1b").await];
    let tag = ROLE_TAG;
    let balancer = admin
        .load_balancer("c1-apiserver", "application", &subnets, &ids[&SecurityGroup::key("node")], tag)
        .await;
    let group = admin.target_group("apiserver-target-x1y2z", &vpc_id, tag).await;
    admin.listener(&balancer, &group, tag).await;
    bed.faults(serde_json::json!([
        {"kind": "quota", "action": "DeleteTargetGroup", "code": "ResourceInUse", "times": 1},
    ]))
    .await;
    let theirs = model::LoadBalancer {
        kind: LoadBalancerKind::Application,
        ..load_balancer(LoadBalancerKind::Network, false)
    };
    let refused = act(&region, delete(&balancer, theirs.clone(), &ids)).await;
    assert!(
        matches!(&refused, Outcome::Refused { code, retry: true, .. } if code == "ResourceInUse"),
        "{refused:?}"
    );
    assert_eq!(act(&region, delete(&balancer, theirs, &ids)).await, Outcome::Done);
    let left = bed.account().await;
    assert!(!left.iter().any(|it| ["load-balancer", "target-group"].contains(&it.0.as_str())), "{left:?}");
}

#[tokio::test]
async fn a_network_load_balancer_made_without_groups_is_given_none() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let wanted = load_balancer(LoadBalancerKind::Network, true);
    let bare =
        model::LoadBalancer { groups: Default::default(), ..load_balancer(LoadBalancerKind::Network, false) };
    assert_eq!(act(&region, create(bare.clone(), &ids, None)).await, Outcome::Done);
    region.interest("test", crate::bed::awaiting([Read::LoadBalancers]));
    let arn =
        until(&region, |it| it.load_balancers[0].state == State::Ready).await.load_balancers[0].id.clone();
    assert_eq!(act(&region, update(&arn, wanted, bare, &ids)).await, Outcome::Done);
    let found = snapshot(&region).load_balancers[0].clone();
    assert_eq!((found.groups.len(), found.listeners.len(), bed.count("SetSecurityGroups").await), (0, 1, 0));
}

#[tokio::test]
async fn what_is_left_of_a_removed_load_balancer_is_found_by_its_arn() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    balancer(&region, LoadBalancerKind::Network, &mut ids).await;
    let arn = ids[&model::LoadBalancer::key("apiserver")].clone();
    bed.administrator().delete_load_balancer(&arn).await;
    let left = |account: Vec<(String, usize)>| account.iter().any(|it| it.0 == "target-group");
    assert!(left(bed.account().await));
    for _ in 0..2 {
        let outcome = act(&region, delete(&arn, load_balancer(LoadBalancerKind::Network, false), &ids)).await;
        assert_eq!(outcome, Outcome::Done, "also when nothing is left");
    }
    assert!(!left(bed.account().await));
}

#[tokio::test]
async fn a_load_balancer_comes_to_a_zone_and_is_taken_off_it() {
    for kind in [LoadBalancerKind::Classic, LoadBalancerKind::Network] {
        let bed = Bed::start(&[]).await;
        let region = bed.swept().await;
        let mut ids = network(&region).await;
        balancer(&region, kind, &mut ids).await;
        let (id, vpc_id) =
            (ids[&model::LoadBalancer::key("apiserver")].clone(), ids[&Vpc::key("main")].clone());
        let other = bed.administrator().subnet(&vpc_id, "10.0.9.0/24", "us-east-1b").await;
        ids.insert(Subnet::key("other"), other.clone());
        let one = load_balancer(kind, true);
        let both =
            model::LoadBalancer { subnets: ["public", "other"].map(str::to_owned).into(), ..one.clone() };
        assert_eq!(act(&region, update(&id, both.clone(), one.clone(), &ids)).await, Outcome::Done);
        assert_eq!(snapshot(&bed.swept().await).load_balancers[0].subnets.len(), 2, "{kind:?}");
        let off = model::LoadBalancer { leaving: [String::from("other")].into(), ..one };
        assert_eq!(act(&region, update(&id, off, both, &ids)).await, Outcome::Done);
        for shown in [snapshot(&region), snapshot(&bed.swept().await)] {
            assert_eq!(
                shown.load_balancers[0].subnets,
                [ids[&Subnet::key("public")].clone()].into(),
                "{kind:?}"
            );
        }
    }
}
