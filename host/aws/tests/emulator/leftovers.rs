//! What controllers inside a cluster left, found by its tags and removed, and what is left alone.

use std::time::Duration;

use aws::Region;
use infra::gc::{ClusterIdentity, Leftover, LeftoverKind, Sweep, order};
use model::{ActionNeeded, Ids, Outcome, SecurityGroup, Subnet, Vpc};
use serde_json::json;

use crate::administrator::Administrator;
use crate::bed::{Bed, act};
use crate::cluster::*;

pub const CLOUD_PROVIDER: (&str, &str) = ("kubernetes.io/cluster/c1", "owned");
pub const CONTROLLER: (&str, &str) = ("elbv2.k8s.aws/cluster", "c1");
/// On every interface that the Amazon VPC CNI makes.
const CNI: (&str, &str) = ("node.k8s.amazonaws.com/instance_id", "i-0123456789abcdef0");
pub const UNTAGGED: (&str, &str) = ("team", "shop");

/// Ids of one VPC with a public and a private subnet, in two zones.
pub struct Network {
    pub vpc: String,
    pub subnets: [String; 2],
    pub node: String,
}

/// The VPC of the cluster c1, and a subnet in another zone that a user put there: application load balancers
/// want two.
pub async fn own(region: &Region, admin: &Administrator) -> (Network, Ids) {
    let ids = network(region).await;
    let id = |key| ids[&key].clone();
    let vpc = id(Vpc::key("main"));
    let subnets = [id(Subnet::key("private")), admin.subnet(&vpc, "10.0.9.0/24", "us-east-1b").await];
    (Network { vpc, subnets, node: id(SecurityGroup::key("node")) }, ids)
}

/// A VPC that something else made.
async fn foreign(admin: &Administrator) -> Network {
    let vpc = admin.vpc("10.1.0.0/16").await;
    let subnets = [
        admin.subnet(&vpc, "10.1.0.0/24", "us-east-1a").await,
        admin.subnet(&vpc, "10.1.1.0/24", "us-east-1b").await,
    ];
    let node = admin.group(&vpc, "node", UNTAGGED).await;
    Network { vpc, subnets, node }
}

/// What the cloud provider and the AWS Load Balancer Controller make, and the VPC CNI. The suffix keeps names
/// apart.
pub async fn leave(
    admin: &Administrator,
    network: &Network,
    cloud_provider: (&str, &str),
    controller: (&str, &str),
    suffix: &str,
) {
    let elb = admin.group(&network.vpc, &format!("k8s-elb-a{suffix}"), cloud_provider).await;
    admin.let_in(&network.node, &elb).await;
    admin.classic_load_balancer(&format!("a{suffix}"), &network.subnets[0], &elb, cloud_provider).await;
    let traffic = admin.group(&network.vpc, &format!("k8s-traffic-{suffix}"), controller).await;
    admin.let_in(&network.node, &traffic).await;
    let balancer = admin
        .load_balancer(&format!("k8s-shop-{suffix}"), "application", &network.subnets, &traffic, controller)
        .await;
    let group = admin.target_group(&format!("k8s-shop-web-{suffix}"), &network.vpc, controller).await;
    admin.listener(&balancer, &group, controller).await;
    admin.target_group(&format!("k8s-shop-old-{suffix}"), &network.vpc, controller).await;
    admin.interface(&network.subnets[0], &network.node, "aws-K8S-i-0123456789abcdef0", CNI).await;
}

/// The cluster c1, as it looks for what its controllers left.
fn whose() -> ClusterIdentity {
    ClusterIdentity {
        cluster: "c1".into(),
        id: "0f4a8a0e".into(),
        owner: "default/c1".into(),
        owns_vpc: true,
    }
}

/// Everything that is left; it can be read.
async fn all_left(region: &Region, vpc: &str) -> Vec<Leftover> {
    let look = region.leftovers(&whose(), vpc).await;
    assert_eq!(look.unread, None);
    look.left
}

fn kinds(left: &[Leftover]) -> Vec<(LeftoverKind, usize)> {
    let mut res: Vec<(LeftoverKind, usize)> = Vec::new();
    let mut all: Vec<LeftoverKind> = left.iter().map(|it| it.kind).collect();
    all.sort();
    for kind in all {
        match res.last_mut().filter(|it| it.0 == kind) {
            Some(it) => it.1 += 1,
            None => res.push((kind, 1)),
        }
    }
    res
}

/// Sweeps as the controller does. How many looks it took.
pub async fn sweep(region: &Region, vpc: &str) -> usize {
    let (mut sweep, mut looks) = (Sweep::default(), 0);
    let mut now = 0.0;
    while sweep.is_due(now) || !sweep.is_over() {
        now = sweep.next().unwrap_or(now);
        looks += 1;
        assert!(looks < 12, "never over: {:?}", sweep.text());
        sweep.found(region.leftovers(&whose(), vpc).await, now);
        assert_eq!(sweep.unread(), None);
        loop {
            let next = sweep.removable();
            if next.is_empty() {
                break;
            }
            for it in next {
                let result = region.delete_leftover(&it).await;
                assert!(
                    !matches!(&result, Err(problem) if problem.who != ActionNeeded::None),
                    "{it}: {result:?}"
                );
                sweep.removed(&it, result, now);
            }
        }
        sweep.done(now);
        tokio::time::sleep(Duration::from_millis(if sweep.is_over() { 0 } else { 1000 })).await;
        now = sweep.next().unwrap_or(now);
        if sweep.next().is_none() {
            break;
        }
    }
    looks
}

#[tokio::test]
async fn everything_that_was_left_is_swept_and_the_network_can_go() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let (network, ids) = own(&region, &bed.administrator()).await;
    leave(&bed.administrator(), &network, CLOUD_PROVIDER, CONTROLLER, "1").await;
    let left = all_left(&region, &network.vpc).await;
    let expected = [
        (LeftoverKind::ClassicLoadBalancer, 1),
        (LeftoverKind::LoadBalancer, 1),
        (LeftoverKind::TargetGroup, 2),
        (LeftoverKind::SecurityGroupRules, 1),
        (LeftoverKind::SecurityGroup, 2),
        (LeftoverKind::NetworkInterface, 1),
    ];
    assert_eq!(kinds(&left), expected);
    assert_eq!(region.load_balancers_of("c1", &network.vpc).await.unwrap().len(), 2);
    sweep(&region, &network.vpc).await;
    assert_eq!(all_left(&region, &network.vpc).await, vec![]);
    assert_eq!(region.load_balancers_of("c1", &network.vpc).await, Ok(vec![]));
    bed.administrator().delete_subnet(&network.subnets[1]).await;
    remove_network(&region, &ids).await;
    assert_eq!(bed.account().await, vec![], "nothing at all is left");
}

#[tokio::test]
async fn what_others_made_is_left_alone() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let admin = bed.administrator();
    let (network, _) = own(&region, &bed.administrator()).await;
    // A cluster of the same name elsewhere, another cluster here, and things of nobody's.
    leave(&admin, &foreign(&admin).await, CLOUD_PROVIDER, CONTROLLER, "2").await;
    let (prod, prod_controller) =
        (("kubernetes.io/cluster/prod", "owned"), ("elbv2.k8s.aws/cluster", "prod"));
    let node = admin.group(&network.vpc, "prod-node", prod).await;
    let beside = |node: &str| Network {
        vpc: network.vpc.clone(),
        subnets: network.subnets.clone(),
        node: node.to_owned(),
    };
    leave(&admin, &beside(&node), prod, prod_controller, "3").await;
    let users = admin.group(&network.vpc, "users", UNTAGGED).await;
    leave(&admin, &beside(&users), UNTAGGED, UNTAGGED, "4").await;
    admin.interface(&network.subnets[1], &network.node, "bastion", UNTAGGED).await;
    let named = ("cluster.k8s.amazonaws.com/name", "prod");
    admin.interface(&network.subnets[1], &network.node, "aws-K8S-i-0123456789abcdef1", named).await;
    let before = bed.account().await;
    assert_eq!(all_left(&region, &network.vpc).await, vec![]);
    assert_eq!(sweep(&region, &network.vpc).await, 1);
    assert_eq!(bed.account().await, before);
}

#[tokio::test]
async fn a_look_that_finds_nothing_takes_four_calls() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let (network, _) = own(&region, &bed.administrator()).await;
    let before = bed.calls().await.len();
    assert_eq!(sweep(&region, &network.vpc).await, 1);
    let mut calls = bed.calls().await.split_off(before);
    calls.sort();
    assert_eq!(
        calls,
        ["DescribeNetworkInterfaces", "DescribeSecurityGroups", "GetResources", "GetResources"]
    );
}

#[tokio::test]
async fn pages_of_the_tagging_api_are_all_read() {
    let bed = Bed::start(&["--page-size", "1"]).await;
    let region = bed.swept().await;
    let (network, _) = own(&region, &bed.administrator()).await;
    leave(&bed.administrator(), &network, CLOUD_PROVIDER, CONTROLLER, "1").await;
    assert_eq!(all_left(&region, &network.vpc).await.len(), 8);
}

#[tokio::test]
async fn what_something_uses_is_nobodys_fault_and_what_is_gone_is_done() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let (network, _) = own(&region, &bed.administrator()).await;
    leave(&bed.administrator(), &network, CLOUD_PROVIDER, CONTROLLER, "1").await;
    let left = all_left(&region, &network.vpc).await;
    let group = left.iter().find(|it| it.kind == LeftoverKind::SecurityGroup).unwrap();
    let problem = region.delete_leftover(group).await.unwrap_err();
    assert_eq!((problem.code.as_str(), problem.who), ("DependencyViolation", ActionNeeded::None));
    let target_group = left.iter().find(|it| it.name == "k8s-shop-web-1").unwrap();
    let problem = region.delete_leftover(target_group).await.unwrap_err();
    assert_eq!((problem.code.as_str(), problem.who), ("ResourceInUse", ActionNeeded::None));
    sweep(&region, &network.vpc).await;
    for it in &left {
        assert_eq!(region.delete_leftover(it).await, Ok(()), "{it}");
    }
}

#[tokio::test]
async fn the_rules_of_our_own_stay_where_those_of_a_leftover_are_revoked() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let (network, ids) = own(&region, &bed.administrator()).await;
    let own_rule = rule(6443, model::Source::Cidr("10.0.0.0/16".into()));
    let wanted = rules("node", vec![own_rule]);
    assert_eq!(act(&region, update(&network.node, wanted, rules("node", vec![]), &ids)).await, Outcome::Done);
    leave(&bed.administrator(), &network, CLOUD_PROVIDER, CONTROLLER, "1").await;
    let left = all_left(&region, &network.vpc).await;
    assert!(
        order(&left).iter().all(|it| it.kind != LeftoverKind::SecurityGroup),
        "not before the rules that name it"
    );
    sweep(&region, &network.vpc).await;
    let filter = model::Filter { name: "group-id".into(), values: vec![network.node] };
    let shown = region.security_groups(&[filter]).await.unwrap();
    let ports: Vec<i32> = shown[0].rules.iter().map(|it| it.from_port).collect();
    assert_eq!(ports, [6443]);
}

#[tokio::test]
async fn who_may_not_read_tags_is_told_so() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let (network, _) = own(&region, &bed.administrator()).await;
    bed.faults(json!([{"kind": "access-denied", "action": "GetResources"}])).await;
    leave(&bed.administrator(), &network, CLOUD_PROVIDER, CONTROLLER, "1").await;
    let look = region.leftovers(&whose(), &network.vpc).await;
    let problem = look.unread.clone().unwrap();
    assert_eq!(problem.who, ActionNeeded::CloudAdmin);
    assert!(problem.message.contains("tag:GetResources"), "{problem:?}");
    let rest = [
        (LeftoverKind::SecurityGroupRules, 1),
        (LeftoverKind::SecurityGroup, 2),
        (LeftoverKind::NetworkInterface, 1),
    ];
    assert_eq!(kinds(&look.left), rest, "what is found without tags of the tagging API");
    let mut sweep = Sweep::default();
    sweep.found(look, 0.0);
    assert!(!sweep.is_unknown() && sweep.text().unwrap().contains("tag:GetResources"));
}

#[tokio::test]
async fn a_read_that_may_go_better_by_itself_concludes_nothing() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let (network, _) = own(&region, &bed.administrator()).await;
    bed.faults(json!([
        {"kind": "access-denied", "action": "GetResources"},
        {"kind": "throttle", "action": "DescribeNetworkInterfaces"},
    ]))
    .await;
    let look = region.leftovers(&whose(), &network.vpc).await;
    assert_eq!(look.unread.as_ref().map(|it| it.who), Some(ActionNeeded::None), "{look:?}");
    let mut sweep = Sweep::default();
    sweep.found(look, 0.0);
    assert!(sweep.is_unknown());
}

#[tokio::test]
async fn a_subnet_of_another_cluster_of_this_name_is_a_sign() {
    let bed = Bed::start(&[]).await;
    let region = bed.swept().await;
    let admin = bed.administrator();
    let network = foreign(&admin).await;
    let brought = ClusterIdentity { owns_vpc: false, ..whose() };
    let calls = bed.calls().await.len();
    assert_eq!(region.leftovers(&brought, &network.vpc).await.sign, None);
    assert_eq!(bed.calls().await.len() - calls, 4, "where nothing is left, nobody asks for signs");
    leave(&admin, &network, CLOUD_PROVIDER, CONTROLLER, "1").await;
    let look = region.leftovers(&brought, &network.vpc).await;
    assert_eq!((look.sign, look.unread), (None, None));
    admin.tag(&network.subnets[1], CLOUD_PROVIDER).await;
    let look = region.leftovers(&brought, &network.vpc).await;
    let expected = format!("{} has the tag kubernetes.io/cluster/c1=owned", network.subnets[1]);
    assert_eq!(look.sign, Some(expected));
    let mut sweep = Sweep::default();
    sweep.found(look, 0.0);
    assert_eq!(sweep.removable(), vec![]);
}
