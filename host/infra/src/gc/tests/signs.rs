//! What tells that another cluster of the same name is in the VPC.

use super::*;

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

fn whose(owns_vpc: bool) -> ClusterIdentity {
    ClusterIdentity { cluster: "prod".into(), id: "id-1".into(), owner: "default/prod".into(), owns_vpc }
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
