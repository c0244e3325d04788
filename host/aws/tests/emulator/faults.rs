//! Throttles, errors, lost replies, hangs and refusals: nothing is made twice, and everybody learns what
//! happened.

use std::time::{Duration, Instant};

use model::{ActionNeeded, Interest, LoadBalancerKind, Outcome, Read};
use serde_json::json;

use crate::bed::{Bed, act, act_all, awaiting, snapshot, until};
use crate::cluster::*;

#[tokio::test]
async fn a_lost_reply_makes_no_second_vpc() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    bed.faults(json!([{"kind": "lost-reply", "action": "CreateVpc", "times": 1}])).await;
    let outcome = act(&region, create(vpc(), &Default::default(), None)).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    assert_eq!(bed.count("CreateVpc").await, 1, "exactly one attempt");
    let shown = until(&region, |it| !it.vpcs.is_empty()).await;
    assert_eq!(shown.vpcs.len(), 1);
}

#[tokio::test]
async fn lost_replies_of_guarded_creations_make_nothing_twice() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let guarded = ["CreateSubnet", "CreateSecurityGroup", "CreateSecret", "CreateLoadBalancer"];
    let faults = guarded.iter().map(|it| json!({"kind": "lost-reply", "action": it, "times": 1})).collect();
    bed.faults(serde_json::Value::Array(faults)).await;
    let all = vec![
        create(subnet("more", "10.0.2.0/24", false), &ids, None),
        create(group("more"), &ids, None),
        create(secret(), &ids, None),
        create(load_balancer(LoadBalancerKind::Classic, true), &ids, None),
    ];
    for (key, outcome) in act_all(&region, all).await {
        assert_eq!(outcome, Outcome::Done, "{key}");
    }
    for (kind, count) in [("subnet", 3), ("security-group", 3), ("secret", 2), ("load-balancer", 1)] {
        assert!(bed.account().await.contains(&(kind.to_owned(), count)), "{kind}: {:?}", bed.account().await);
    }
    let shown = snapshot(&region);
    assert_eq!((shown.subnets.len(), shown.security_groups.len(), shown.load_balancers.len()), (3, 3, 1));
}

/// Where the refusal of a second attempt hid the first one, its token would be given up.
#[tokio::test]
async fn a_lost_reply_is_not_hidden_by_the_throttle_of_another_attempt() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    let address = model::ElasticIp { name: crate::bed::ZONE.into() };
    assert_eq!(act(&region, create(address.clone(), &ids, None)).await, Outcome::Done);
    ids.insert(model::ElasticIp::key(address.name), snapshot(&region).addresses[0].id.clone());
    let table = model::RouteTable {
        name: "t".into(),
        vpc: "main".into(),
        subnets: Default::default(),
        default_route: None,
    };
    let all = || {
        [
            ("RunInstances", create(instance("m1"), &ids, Some("m1"))),
            ("CreateNatGateway", create(nat_gateway(), &ids, Some("nat"))),
            ("CreateRouteTable", create(table.clone(), &ids, Some("table"))),
        ]
    };
    for (call, action) in all() {
        let lost = json!({"kind": "lost-reply", "action": call, "times": 1});
        bed.faults(json!([lost, {"kind": "throttle", "action": call, "times": 9}])).await;
        let outcome = act(&region, action).await;
        assert!(matches!(outcome, Outcome::Unknown { .. }), "{call}: {outcome:?}");
        assert_eq!(bed.count(call).await, 1, "what follows is decided, with the same token");
    }
    bed.faults(json!([])).await;
    for (call, action) in all() {
        assert_eq!(act(&region, action).await, Outcome::Done, "{call}");
    }
    for kind in ["instance", "nat-gateway", "route-table"] {
        assert!(bed.account().await.contains(&(kind.to_owned(), 1)), "{kind}: {:?}", bed.account().await);
    }
}

#[tokio::test]
async fn a_creation_whose_time_is_over_is_not_sent() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let timed = |seconds: f64| match create(vpc(), &Default::default(), None) {
        model::Action::Create { is, tags, ids, client_token, .. } => {
            let now =
                std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
            model::Action::Create { is, tags, ids, client_token, until: Some(now + seconds) }
        }
        other => other,
    };
    let outcome = act(&region, timed(-1.0)).await;
    assert!(matches!(&outcome, Outcome::Refused { retry: true, who: ActionNeeded::None, .. }), "{outcome:?}");
    assert_eq!(bed.count("CreateVpc").await, 0);
    assert_eq!(act(&region, timed(10.0)).await, Outcome::Done);
}

#[tokio::test]
async fn what_is_denied_together_is_not_tried_one_by_one() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    act_all(&region, ["m1", "m2", "m3"].iter().map(|it| create(instance(it), &ids, Some(it))).collect())
        .await;
    let instances: Vec<String> = snapshot(&region).instances.iter().map(|it| it.id.clone()).collect();
    bed.faults(json!([{"kind": "access-denied", "action": "TerminateInstances"}])).await;
    let outcomes =
        act_all(&region, instances.iter().map(|it| delete(it, instance("m"), &ids)).collect()).await;
    assert!(
        outcomes.iter().all(|it| matches!(&it.1, Outcome::Refused { who: ActionNeeded::CloudAdmin, .. })),
        "{outcomes:?}"
    );
    assert_eq!(bed.count("TerminateInstances").await, 1);
}

#[tokio::test]
async fn throttles_and_errors_of_reads_are_ridden_out() {
    let bed = Bed::start(&["--seed", "7"]).await;
    let throttle = json!({"kind": "throttle", "action": "Describe*", "probability": 0.2});
    bed.faults(json!([throttle, {"kind": "error", "action": "Describe*", "probability": 0.1}])).await;
    let region = bed.region().await;
    region.interest("test", Interest::default());
    // Zones are read beside the rest.
    until(&region, |it| it.read_at.len() == 11 && !it.zones.is_empty()).await;
    assert!(bed.calls().await.len() > 11, "some were answered with a fault");
}

#[tokio::test]
async fn a_throttled_creation_without_a_token_may_be_tried_again() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    bed.faults(json!([{"kind": "throttle", "action": "AllocateAddress"}])).await;
    let address = model::ElasticIp { name: "a".into() };
    let outcome = act(&region, create(address, &Default::default(), None)).await;
    assert!(matches!(&outcome, Outcome::Refused { retry: true, who: ActionNeeded::None, .. }), "{outcome:?}");
    assert_eq!(bed.count("AllocateAddress").await, 1);
}

#[tokio::test]
async fn a_kind_that_may_not_be_read_names_the_permission_it_lacks() {
    let bed = Bed::start(&[]).await;
    bed.faults(json!([{"kind": "access-denied", "action": "DescribeAddresses"}])).await;
    let region = bed.region().await;
    let waiting = awaiting([Read::Addresses]);
    region.interest("test", waiting.clone());
    let mut view = region.view();
    let reads = |it: &aws::View| it.snapshot.as_ref().map(|it| it.read_at.len()).unwrap_or_default();
    let shown = tokio::time::timeout(Duration::from_secs(20), view.wait_for(|it| reads(it) == 10))
        .await
        .unwrap()
        .unwrap()
        .clone();
    assert!(!shown.snapshot.as_ref().unwrap().read_at.contains_key(&Read::Addresses));
    let problem = shown.problem(&waiting).unwrap();
    assert_eq!((problem.code.as_str(), problem.who), ("UnauthorizedOperation", ActionNeeded::CloudAdmin));
    assert!(problem.message.contains("ec2:DescribeAddresses"), "{problem:?}");
    assert_eq!(shown.problem(&awaiting([Read::Vpcs])), None, "nobody else is told");
    bed.faults(json!([])).await;
    let shown = tokio::time::timeout(Duration::from_secs(20), view.wait_for(|it| reads(it) == 11))
        .await
        .unwrap()
        .unwrap();
    assert!(shown.problems.is_empty());
}

#[tokio::test]
async fn a_read_that_hangs_keeps_no_other_back() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    bed.faults(json!([{"kind": "hang", "action": "DescribeAddresses", "seconds": 60.0}])).await;
    let before = snapshot(&region).read_at.clone();
    region.interest("test", awaiting([Read::Addresses, Read::Vpcs]));
    let start = Instant::now();
    let first = until(&region, |it| it.read_at[&Read::Vpcs] > before[&Read::Vpcs]).await.read_at[&Read::Vpcs];
    until(&region, |it| it.read_at[&Read::Vpcs] > first).await;
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    assert_eq!(snapshot(&region).read_at[&Read::Addresses], before[&Read::Addresses]);
}

#[tokio::test]
async fn an_unreadable_vpc_holds_up_the_deletion_of_no_other() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let mut ids = network(&region).await;
    balancer(&region, LoadBalancerKind::Classic, &mut ids).await;
    let (with, without) =
        (ids[&model::Vpc::key("main")].clone(), bed.administrator().vpc("10.1.0.0/16").await);
    let deleting = |vpc: &String| Interest { deleting_vpcs: [vpc.clone()].into(), ..Interest::default() };
    bed.faults(json!([{"kind": "access-denied", "service": "elb", "action": "DescribeTags"}])).await;
    region.interest("one", deleting(&with));
    region.interest("other", deleting(&without));
    let shown = until(&region, |it| it.deleting_vpcs_read.contains_key(&without)).await;
    let view = region.view().borrow().clone();
    assert!(!shown.deleting_vpcs_read.contains_key(&with));
    assert_eq!(view.problem(&deleting(&with)).map(|it| it.who), Some(ActionNeeded::CloudAdmin), "{view:?}");
    assert_eq!(view.problem(&deleting(&without)), None);
    bed.faults(json!([])).await;
    until(&region, |it| it.deleting_vpcs_read.contains_key(&with)).await;
    assert_eq!(region.view().borrow().problem(&deleting(&with)), None);
}

#[tokio::test]
async fn refusals_say_who_has_to_act() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let ids = network(&region).await;
    let launch = |change: fn(&mut model::Launch)| {
        let mut res = instance("m1");
        change(res.launch.as_mut().unwrap());
        create(res, &ids, None)
    };
    let image = launch(|it| it.image = "ami-0123456789abcdef0".into());
    let profile = launch(|it| it.iam_instance_profile = Some("nobody".into()));
    let key = launch(|it| it.key_name = Some("nobody".into()));
    for (action, expected) in [
        (image, ActionNeeded::SpecAuthor),
        (profile, ActionNeeded::CloudAdmin),
        (key, ActionNeeded::SpecAuthor),
    ] {
        let outcome = act(&region, action).await;
        assert!(
            matches!(&outcome, Outcome::Refused { who, .. } if *who == expected),
            "{expected:?}: {outcome:?}"
        );
    }
    bed.faults(json!([
        {"kind": "quota", "action": "AllocateAddress"},
        {"kind": "access-denied", "action": "CreateVpc"},
    ]))
    .await;
    for action in [create(model::ElasticIp { name: "a".into() }, &ids, None), create(vpc(), &ids, None)] {
        let outcome = act(&region, action).await;
        assert!(matches!(&outcome, Outcome::Refused { who: ActionNeeded::CloudAdmin, .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_holds_nobody_for_ever() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    bed.faults(json!([{"kind": "hang", "action": "CreateVpc", "seconds": 60.0, "times": 1}])).await;
    let start = Instant::now();
    let outcome = act(&region, create(vpc(), &Default::default(), None)).await;
    assert!(matches!(outcome, Outcome::Unknown { .. }), "{outcome:?}");
    assert!((14..25).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert_eq!(bed.count("CreateVpc").await, 1);
}
