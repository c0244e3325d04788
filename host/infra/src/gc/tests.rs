//! What is taken for a leftover, in which order it goes, and when it is looked for.

mod signs;
mod sweep;

use expect_test::expect;

use super::*;
use model::{ActionNeeded, FoundInstance, FoundSubnet, InstanceStatus, Problem, State};

const CLASSIC: LoadBalancerKind = LoadBalancerKind::Classic;

fn tags(all: &[(&str, &str)]) -> Tags {
    all.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn by_cloud_provider() -> Tags {
    tags(&[("kubernetes.io/cluster/prod", "owned")])
}

fn by_controller() -> Tags {
    tags(&[("elbv2.k8s.aws/cluster", "prod")])
}

fn ours() -> Tags {
    tags(&[
        ("sigs.k8s.io/cluster-api-provider-aws/cluster/prod", "owned"),
        ("kubernetes.io/cluster/prod", "owned"),
    ])
}

fn balancer(kind: LoadBalancerKind, id: &str, vpc_id: &str, tags: Tags) -> FoundLoadBalancer {
    FoundLoadBalancer {
        id: id.into(),
        name: id.into(),
        kind,
        dns_name: String::new(),
        vpc_id: vpc_id.into(),
        internal: false,
        state: State::Ready,
        subnets: Default::default(),
        groups: Default::default(),
        listeners: vec![],
        targets: Default::default(),
        attributes: None,
        target_groups: vec![],
        tags: Some(tags),
    }
}

fn target_group(arn: &str, vpc_id: &str, tags: Tags) -> FoundTargetGroup {
    FoundTargetGroup { arn: arn.into(), name: arn.into(), vpc_id: vpc_id.into(), tags }
}

fn group(id: &str, name: &str, vpc_id: &str, tags: Tags, sources: &[&str]) -> FoundSecurityGroup {
    let rule = |source: &&str| FoundRule {
        protocol: "-1".into(),
        from_port: -1,
        to_port: -1,
        source: FoundSource::GroupId(source.to_string()),
        description: String::new(),
    };
    let rules = sources.iter().map(rule).collect();
    FoundSecurityGroup {
        id: id.into(),
        vpc_id: vpc_id.into(),
        group_name: name.into(),
        description: String::new(),
        rules,
        tags,
    }
}

fn interface(id: &str, vpc_id: &str, groups: &[&str], tags: Tags) -> FoundNetworkInterface {
    FoundNetworkInterface {
        id: id.into(),
        vpc_id: vpc_id.into(),
        subnet_id: "subnet-1".into(),
        groups: groups.iter().map(|it| it.to_string()).collect(),
        status: "available".into(),
        description: "aws-K8S-i-0123456789abcdef0".into(),
        interface_type: "interface".into(),
        requester_managed: false,
        attached_instance: None,
        tags,
    }
}

fn left(found: &Found) -> Vec<Leftover> {
    leftovers("prod", "vpc-1", found)
}

fn names(left: &[Leftover]) -> String {
    left.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A cluster whose controllers left one of each.
fn one_of_each() -> Found {
    Found {
        load_balancers: vec![
            balancer(CLASSIC, "a0123", "vpc-1", by_cloud_provider()),
            balancer(LoadBalancerKind::Application, "k8s-shop", "vpc-1", by_controller()),
        ],
        target_groups: vec![target_group("k8s-shop-web", "vpc-1", by_controller())],
        security_groups: vec![
            group("sg-node", "prod-node", "vpc-1", ours(), &["sg-elb", "sg-node", "sg-user"]),
            group("sg-elb", "k8s-elb-a0123", "vpc-1", by_cloud_provider(), &["sg-elb"]),
            group("sg-traffic", "k8s-traffic-prod", "vpc-1", by_controller(), &[]),
        ],
        network_interfaces: vec![interface("eni-1", "vpc-1", &["sg-node"], tags(&[]))],
    }
}

#[test]
fn one_of_each_goes_in_order() {
    let mut left = left(&one_of_each());
    let mut waves = Vec::new();
    while !left.is_empty() {
        let wave = order(&left);
        assert!(!wave.is_empty(), "stuck with {}", names(&left));
        waves.push(names(&wave));
        left.retain(|it| !wave.contains(it));
    }
    expect![[r#"
        load-balancer/a0123, load-balancer/k8s-shop, network-interface/eni-1
        target-group/k8s-shop-web, security-group-rules/prod-node, security-group/k8s-traffic-prod
        security-group/k8s-elb-a0123"#]]
    .assert_eq(&waves.join("\n"));
}

#[test]
fn only_the_rules_that_name_a_leftover_are_revoked() {
    let left = left(&one_of_each());
    let rules = left.iter().find(|it| it.kind == LeftoverKind::SecurityGroupRules).unwrap();
    let sources: Vec<&FoundSource> = rules.rules.iter().map(|it| &it.source).collect();
    assert_eq!((rules.id.as_str(), sources), ("sg-node", vec![&FoundSource::GroupId("sg-elb".into())]));
}

#[test]
fn what_lies_in_another_vpc_is_left_alone() {
    let mut found = one_of_each();
    found.load_balancers.iter_mut().for_each(|it| it.vpc_id = "vpc-2".into());
    found.target_groups.iter_mut().for_each(|it| it.vpc_id = "vpc-2".into());
    found.security_groups.iter_mut().for_each(|it| it.vpc_id = "vpc-2".into());
    found.network_interfaces.iter_mut().for_each(|it| it.vpc_id = "vpc-2".into());
    assert_eq!(left(&found), vec![]);
    let nowhere =
        Found { target_groups: vec![target_group("function", "", by_controller())], ..Found::default() };
    assert_eq!(left(&nowhere), vec![]);
    assert_eq!(leftovers("prod", "", &nowhere), vec![], "a VPC that is not known is none");
}

#[test]
fn what_carries_no_tag_or_anothers_is_left_alone() {
    let others = [
        tags(&[]),
        ours(),
        tags(&[("kubernetes.io/cluster/prod", "shared")]),
        tags(&[("kubernetes.io/cluster/prod-2", "owned")]),
        tags(&[("elbv2.k8s.aws/cluster", "prod-2")]),
        tags(&[
            ("sigs.k8s.io/cluster-api-provider-aws/cluster/other", "owned"),
            ("kubernetes.io/cluster/prod", "owned"),
        ]),
    ];
    for tags in others {
        let mut found = one_of_each();
        found.load_balancers.iter_mut().for_each(|it| it.tags = Some(tags.clone()));
        found.target_groups.iter_mut().for_each(|it| it.tags = tags.clone());
        found.security_groups.iter_mut().for_each(|it| it.tags = tags.clone());
        found.network_interfaces.clear();
        assert_eq!(left(&found), vec![], "{tags:?}");
    }
    let unread = Found {
        load_balancers: vec![FoundLoadBalancer { tags: None, ..one_of_each().load_balancers.remove(0) }],
        ..Found::default()
    };
    assert_eq!(left(&unread), vec![]);
}

#[test]
fn a_group_that_a_user_brought_for_load_balancers_stays() {
    let found = Found {
        security_groups: vec![group("sg-1", "load-balancers", "vpc-1", by_cloud_provider(), &[])],
        ..Found::default()
    };
    assert_eq!(left(&found), vec![]);
}

#[test]
fn interfaces_are_of_the_cluster_they_name_or_carry_groups_of() {
    let of = |change: &dyn Fn(&mut FoundNetworkInterface)| {
        let mut found = one_of_each();
        change(&mut found.network_interfaces[0]);
        left(&found).iter().any(|it| it.kind == LeftoverKind::NetworkInterface)
    };
    let named = |name: &str| {
        tags(&[("node.k8s.amazonaws.com/instance_id", "i-1"), ("cluster.k8s.amazonaws.com/name", name)])
    };
    assert!(of(&|_| {}));
    assert!(of(&|it| (it.tags, it.groups) = (named("prod"), Default::default())));
    assert!(!of(&|it| it.tags = named("prod-2")), "also in our groups");
    assert!(!of(&|it| it.groups = ["sg-user".to_owned()].into()));
    assert!(!of(&|it| it.description = "bastion".into()), "nobody says that the CNI made it");
    assert!(!of(&|it| it.status = "in-use".into()));
    assert!(!of(&|it| it.attached_instance = Some("i-1".into())));
    assert!(!of(&|it| it.requester_managed = true));
    assert!(!of(&|it| it.tags = ours()));
}

fn annotated(annotations: &[(&str, &str)]) -> Result<Collected, model::Invalid> {
    Collected::of(Some(&tags(annotations)))
}

const GC: &str = "aws.cluster.x-k8s.io/external-resource-gc";
const TASKS: &str = "aws.cluster.x-k8s.io/external-resource-tasks-gc";

#[test]
fn annotations_say_what_goes_with_the_cluster() {
    assert_eq!(Collected::of(None), Ok(Collected::default()));
    for yes in ["true", "True", "1"] {
        assert_eq!(annotated(&[(GC, yes)]), Ok(Collected::default()), "{yes}");
    }
    for no in ["false", "FALSE", "0"] {
        assert_eq!(annotated(&[(GC, no), (TASKS, "load-balancer")]), Ok(Collected::NOTHING), "{no}");
    }
    let some = annotated(&[(GC, "true"), (TASKS, "load-balancer, security-group")]).expect("two kinds");
    let kinds = [
        LeftoverKind::ClassicLoadBalancer,
        LeftoverKind::LoadBalancer,
        LeftoverKind::TargetGroup,
        LeftoverKind::SecurityGroup,
    ];
    assert_eq!(kinds.map(|it| some.has(it)), [true, true, false, true]);
    assert_eq!(annotated(&[(TASKS, "")]), Ok(Collected::default()), "nothing is said");
    let refused = |annotations: &[(&str, &str)]| annotated(annotations).expect_err("no choice").to_string();
    expect![[
        r#"metadata.annotations[aws.cluster.x-k8s.io/external-resource-gc]: "no" is neither true nor false"#
    ]]
    .assert_eq(&refused(&[(GC, "no")]));
    expect![[
        r#"metadata.annotations[aws.cluster.x-k8s.io/external-resource-tasks-gc]: "volume" is none of load-balancer, target-group, security-group"#
    ]]
    .assert_eq(&refused(&[(TASKS, "load-balancer,volume")]));
}
