//! What is taken for a leftover, in which order it goes, and when it is looked for.

use expect_test::{Expect, expect};

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

#[test]
fn a_vpc_that_a_cluster_of_the_same_name_uses_too_is_not_swept() {
    let with_id = |id: &str| {
        let mut res = ours();
        res.insert(ID_TAG.into(), id.into());
        res
    };
    let snapshot = |vpc_id: &str, tags: Tags| Snapshot {
        security_groups: vec![
            group("sg-1", "prod-node", "vpc-1", with_id("id-1"), &[]),
            group("sg-2", "prod-2-node", vpc_id, tags, &[]),
        ]
        .into(),
        ..Snapshot::default()
    };
    let sign = |snapshot: &Snapshot| serves_another(snapshot, "vpc-1", "prod", "id-1", "default/prod");
    let another = sign(&snapshot("vpc-1", with_id("id-2"))).expect("a sign");
    assert!(another.starts_with("sg-2 has the tag") && !another.contains("id-2"), "{another}");
    assert_eq!(sign(&snapshot("vpc-2", with_id("id-2"))), None, "elsewhere");
    assert_eq!(sign(&snapshot("vpc-1", ours())), None, "made before there were ids");
    let owned_by = |owner: &str| {
        Tags::from_iter(with_id("id-1").into_iter().chain([(OWNER_TAG.to_owned(), owner.to_owned())]))
    };
    assert!(
        sign(&snapshot("vpc-1", owned_by("other/prod"))).is_some_and(|it| it.contains("other/prod")),
        "the id was copied"
    );
    assert_eq!(sign(&snapshot("vpc-1", owned_by("default/prod"))), None);
    assert_eq!(sign(&snapshot("vpc-1", tags(&[(ID_TAG, "id-2")]))), None, "of another name");
}

fn whose(owns_vpc: bool) -> Whose {
    Whose { cluster: "prod".into(), id: "id-1".into(), owner: "default/prod".into(), owns_vpc }
}

fn subnet(vpc_id: &str, tags: Tags) -> FoundSubnet {
    let (id, zone, cidr) = ("subnet-1".into(), "us-east-1a".into(), "10.0.0.0/24".into());
    FoundSubnet { id, vpc_id: vpc_id.into(), zone, cidr, public: false, state: State::Ready, tags }
}

fn instance(state: &str, tags: Tags) -> FoundInstance {
    let status = InstanceStatus {
        state: state.into(),
        zone: "us-east-1a".into(),
        private_ip: None,
        private_dns_name: None,
        public_ip: None,
        public_dns_name: None,
        reason: None,
        parts: Default::default(),
    };
    let (vpc_id, subnet_id) = (Some("vpc-1".into()), Some("subnet-1".into()));
    let (id, instance_type, image) = ("i-1".into(), "t3.large".into(), "ami-1".into());
    let (client_token, profile, groups) = Default::default();
    FoundInstance { id, vpc_id, subnet_id, client_token, instance_type, image, profile, groups, status, tags }
}

#[test]
fn what_other_programs_mark_a_cluster_with_is_a_sign_of_another_one() {
    let of_subnet = |vpc_id: &str, tags: Tags| {
        let found = Neighbours { subnets: vec![subnet(vpc_id, tags)], ..Neighbours::default() };
        whose(false).sign("vpc-1", &found)
    };
    for (key, value) in [
        ("kubernetes.io/cluster/prod", "owned"),
        ("alpha.eksctl.io/cluster-name", "prod"),
        ("eks:cluster-name", "prod"),
        ("KubernetesCluster", "prod"),
        ("sigs.k8s.io/cluster-api-provider-aws/cluster/prod", "owned"),
    ] {
        let expected = format!("has the tag {key}={value}");
        assert_eq!(of_subnet("vpc-1", tags(&[(key, value)])), Some(format!("subnet-1 {expected}")));
        assert_eq!(of_subnet("vpc-2", tags(&[(key, value)])), None, "elsewhere");
        let with_instance = |state: &str| {
            let found = Neighbours {
                instances: vec![instance(state, tags(&[(key, value)]))],
                ..Neighbours::default()
            };
            whose(false).sign("vpc-1", &found)
        };
        assert_eq!(with_instance("running"), Some(format!("i-1 {expected}")));
        assert_eq!(with_instance("terminated"), None);
        let marked = tags(&[(key, value), (ID_TAG, "id-1"), (OWNER_TAG, "default/prod")]);
        assert_eq!(of_subnet("vpc-1", marked), None, "it is the cluster's own");
    }
    for (key, value) in [
        ("kubernetes.io/cluster/prod", "shared"),
        ("kubernetes.io/cluster/prod-2", "owned"),
        ("KubernetesCluster", "prod-2"),
    ] {
        assert_eq!(of_subnet("vpc-1", tags(&[(key, value)])), None, "{key}={value}");
    }
    let taken_over = Neighbours { subnets: vec![subnet("vpc-1", ours())], ..Neighbours::default() };
    assert_eq!(
        whose(true).sign("vpc-1", &taken_over),
        None,
        "what another provider made in a VPC that was taken over"
    );
    let mut of_eks = interface("eni-1", "vpc-1", &[], tags(&[]));
    of_eks.description = "Amazon EKS prod".into();
    let found = |it: &FoundNetworkInterface| Neighbours {
        network_interfaces: vec![it.clone()],
        ..Neighbours::default()
    };
    assert_eq!(
        whose(false).sign("vpc-1", &found(&of_eks)).as_deref(),
        Some("eni-1 is described as \"Amazon EKS prod\"")
    );
    of_eks.description = "Amazon EKS prod-2".into();
    assert_eq!(whose(false).sign("vpc-1", &found(&of_eks)), None);
}

#[test]
fn what_may_be_another_clusters_is_neither_removed_nor_forgotten() {
    let mut sweep = Sweep::default();
    sweep.found(
        Look { sign: Some("subnet-1 has the tag kubernetes.io/cluster/prod=owned".into()), ..all_of_it() },
        0.0,
    );
    sweep.done(0.0);
    assert_eq!(sweep.removable(), vec![]);
    assert!(!sweep.is_over() && sweep.is_doubtful("a0123") && sweep.next().is_some());
    let text = sweep.text().unwrap_or_default();
    for part in ["subnet-1 has the tag", "load-balancer/a0123", "force-delete"] {
        assert!(text.contains(part), "{text}");
    }
    sweep.found(all_of_it(), 5.0);
    assert!(!sweep.removable().is_empty() && !sweep.is_doubtful("a0123"));
}

fn problem(code: &str, who: ActionNeeded) -> Problem {
    Problem { code: code.into(), message: format!("tag:GetResources: {code}"), who }
}

fn all_of_it() -> Look {
    Look { left: left(&one_of_each()), ..Look::default() }
}

fn unread(problem: Problem) -> Look {
    Look { unread: Some(problem), ..Look::default() }
}

fn check_text(sweep: &Sweep, expected: Expect) {
    expected.assert_eq(&sweep.text().unwrap_or_default());
}

#[test]
fn a_cluster_without_leftovers_is_looked_at_once() {
    let mut sweep = Sweep::default();
    assert!(sweep.is_due(0.0) && sweep.is_unknown() && !sweep.is_over());
    check_text(&sweep, expect!["looking for what the cluster's own controllers left in AWS"]);
    sweep.found(Look::default(), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over() && !sweep.is_due(1e9));
    check_text(&sweep, expect![""]);
}

#[test]
fn after_something_was_removed_it_looks_again_until_nothing_is_left() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    check_text(
        &sweep,
        expect![
            "after what the cluster's own controllers left: load-balancer/a0123, load-balancer/k8s-shop, target-group/k8s-shop-web, security-group-rules/prod-node, security-group/k8s-elb-a0123, 2 more"
        ],
    );
    while let Some(next) = sweep.removable().first() {
        sweep.removed(next, Ok(()), 1.0);
    }
    sweep.done(1.0);
    assert!(sweep.is_over() && !sweep.is_due(5.9) && sweep.is_due(6.0));
    sweep.found(Look::default(), 6.0);
    sweep.done(6.0);
    assert!(sweep.is_over() && sweep.next().is_none());
}

#[test]
fn what_is_refused_is_tried_again_ever_later_and_named() {
    let mut sweep = Sweep::default();
    let mut at = 0.0;
    let mut pauses = Vec::new();
    for _ in 0..9 {
        sweep.found(all_of_it(), at);
        for it in sweep.removable() {
            sweep.removed(&it, Err(problem("DependencyViolation", ActionNeeded::None)), at);
        }
        assert_eq!(sweep.removable(), vec![], "not twice in one look");
        sweep.done(at);
        assert!(!sweep.is_over());
        pauses.push(sweep.next().unwrap() - at);
        at = sweep.next().unwrap();
    }
    assert_eq!(pauses, [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]);
    check_text(
        &sweep,
        expect![
            "after what the cluster's own controllers left: load-balancer/a0123 (tag:GetResources: DependencyViolation), load-balancer/k8s-shop (tag:GetResources: DependencyViolation), target-group/k8s-shop-web, security-group-rules/prod-node, security-group/k8s-elb-a0123, 2 more"
        ],
    );
}

#[test]
fn a_denied_read_is_said_and_holds_nothing_up() {
    let mut sweep = Sweep::default();
    sweep.found(unread(problem("AccessDenied", ActionNeeded::CloudAdmin)), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over() && !sweep.is_unknown());
    check_text(
        &sweep,
        expect![
            "what the cluster's own controllers left in AWS cannot be looked for, and may stay: grant what is missing, or look yourself (tag:GetResources: AccessDenied)"
        ],
    );
}

#[test]
fn what_could_be_read_beside_a_denied_read_is_removed() {
    let interface = left(&one_of_each()).pop().unwrap();
    let mut sweep = Sweep::default();
    let problem = problem("AccessDenied", ActionNeeded::CloudAdmin);
    sweep.found(Look { left: vec![interface.clone()], unread: Some(problem), ..Look::default() }, 0.0);
    assert!(!sweep.is_over() && !sweep.is_unknown());
    check_text(
        &sweep,
        expect![
            "what the cluster's own controllers left in AWS cannot be looked for, and may stay: grant what is missing, or look yourself (tag:GetResources: AccessDenied); after what the cluster's own controllers left: network-interface/eni-1"
        ],
    );
    assert_eq!(sweep.removable(), std::slice::from_ref(&interface));
    sweep.removed(&interface, Ok(()), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over());
}

#[test]
fn a_read_that_fails_otherwise_is_tried_again_first() {
    let mut sweep = Sweep::default();
    sweep.found(unread(problem("Throttling", ActionNeeded::None)), 0.0);
    sweep.done(0.0);
    assert!(!sweep.is_over() && sweep.is_unknown() && sweep.is_due(5.0));
    check_text(
        &sweep,
        expect![
            "what the cluster's own controllers left in AWS cannot be looked for yet: tag:GetResources: Throttling"
        ],
    );
    sweep.found(Look::default(), 5.0);
    assert!(sweep.is_over());
}

#[test]
fn a_read_that_never_answers_is_given_up_and_said() {
    let mut sweep = Sweep::default();
    for look in 0..7 {
        sweep.found(unread(problem("DispatchFailure", ActionNeeded::None)), f64::from(look));
        assert!(sweep.is_unknown());
    }
    sweep.found(unread(problem("DispatchFailure", ActionNeeded::None)), 7.0);
    assert!(sweep.is_over() && sweep.text().is_some_and(|it| it.contains("cannot be looked for")));
}

#[test]
fn nothing_is_concluded_from_problems_other_than_refusals() {
    for code in ["DependencyThrottle", "PaginationTokenExpiredException", "ExpiredToken", "AuthFailure"] {
        let mut sweep = Sweep::default();
        sweep.found(unread(problem(code, ActionNeeded::CloudAdmin)), 0.0);
        sweep.done(0.0);
        assert!(!sweep.is_over() && sweep.is_unknown() && sweep.is_due(5.0), "{code}");
    }
    for code in ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"] {
        let mut sweep = Sweep::default();
        sweep.found(unread(problem(code, ActionNeeded::CloudAdmin)), 0.0);
        assert!(sweep.is_over(), "{code}");
    }
}

#[test]
fn what_was_known_is_not_forgotten_when_it_may_not_be_read_any_more() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    sweep.done(0.0);
    let (interface, rest) = (left(&one_of_each()).pop().unwrap(), left(&one_of_each()).len() - 1);
    sweep.removed(&interface, Ok(()), 0.0);
    let denied = Some(problem("AccessDenied", ActionNeeded::CloudAdmin));
    sweep.found(Look { left: vec![interface.clone()], unread: denied.clone(), ..Look::default() }, 5.0);
    assert!(!sweep.is_over());
    let mut removed = 0;
    while let Some(next) = sweep.removable().first() {
        sweep.removed(next, Ok(()), 5.0);
        removed += 1;
    }
    assert_eq!(removed, rest + 1, "each once, what is gone too: removing that is done at once");
    sweep.found(Look { unread: denied, ..Look::default() }, 10.0);
    assert!(sweep.is_over());
}

#[test]
fn looks_that_nobody_answers_forget_nothing_when_they_are_given_up() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    for look in 1..9 {
        sweep.found(unread(problem("DispatchFailure", ActionNeeded::None)), f64::from(look));
    }
    assert!(!sweep.is_over() && !sweep.removable().is_empty());
}

#[test]
fn a_refused_deletion_asks_for_another_sweep_ever_later() {
    let mut sweep = Sweep::default();
    sweep.found(Look::default(), 0.0);
    sweep.asked_for(1.0);
    sweep.asked_for(3.0);
    assert_eq!(sweep.next(), Some(6.0), "once, however often it is refused meanwhile");
    assert!(sweep.is_over(), "nothing is known to be left");
    sweep.found(Look::default(), 6.0);
    sweep.asked_for(7.0);
    assert_eq!(sweep.next(), Some(17.0));
}

#[test]
fn a_read_that_fails_later_forgets_nothing() {
    let mut sweep = Sweep::default();
    sweep.found(all_of_it(), 0.0);
    sweep.done(0.0);
    sweep.found(unread(problem("Throttling", ActionNeeded::None)), 5.0);
    assert!(!sweep.is_over());
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

#[test]
fn what_stays_is_named_and_holds_nothing_up() {
    let mut sweep = Sweep::default();
    sweep.collect(Collected::NOTHING, 0.0);
    sweep.found(all_of_it(), 0.0);
    let interface = sweep.removable();
    assert_eq!(names(&interface), "network-interface/eni-1", "nobody needs it, and it holds its subnet");
    sweep.removed(&interface[0], Ok(()), 0.0);
    sweep.done(0.0);
    assert!(sweep.is_over());
    check_text(
        &sweep,
        expect![
            "left in AWS, as annotation aws.cluster.x-k8s.io/external-resource-gc or aws.cluster.x-k8s.io/external-resource-tasks-gc says: load-balancer/a0123, load-balancer/k8s-shop, target-group/k8s-shop-web, security-group/k8s-elb-a0123, security-group/k8s-traffic-prod"
        ],
    );
}

#[test]
fn what_stayed_goes_once_the_annotation_is_gone() {
    let mut sweep = Sweep::default();
    sweep.collect(Collected::NOTHING, 0.0);
    sweep.found(all_of_it(), 0.0);
    sweep.done(0.0);
    sweep.collect(Collected::NOTHING, 1.0);
    assert!(!sweep.is_due(1.0), "nothing is new");
    sweep.collect(Collected::default(), 1.0);
    assert!(sweep.is_due(1.0));
    sweep.found(all_of_it(), 1.0);
    assert!(
        !sweep.is_over() && sweep.removable().iter().any(|it| it.kind == LeftoverKind::ClassicLoadBalancer)
    );
}
