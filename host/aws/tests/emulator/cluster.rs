//! A small cluster, made and removed action by action in the order that AWS asks for, each of which has to
//! succeed. It checks nothing else.

use std::collections::BTreeSet;

use aws::Region;
use model::{
    Action, ElasticIp, HealthCheck, Ids, Instance, InternetGateway, Launch, Listener, LoadBalancer,
    LoadBalancerAttributes, LoadBalancerKind, MetadataOptions, NatGateway, Outcome, Read, Resource,
    RouteTable, Rule, Secret, SecurityGroup, SecurityGroupRules, Sensitive, Source, State, Subnet, Tags,
    Target, Vpc,
};

use crate::bed::{IMAGE, ZONE, act, act_all, awaiting, snapshot, until};

/// What Cluster API Provider AWS writes on everything, and this operator too.
pub const CLUSTER_TAG: (&str, &str) = ("sigs.k8s.io/cluster-api-provider-aws/cluster/c1", "owned");
pub const ROLE_TAG: (&str, &str) = ("sigs.k8s.io/cluster-api-provider-aws/role", "common");
/// What this operator alone writes.
pub const ID_TAG: &str = "cluster.kurator.dev/id";

pub fn tags(name: &str) -> Tags {
    let of_cluster = [CLUSTER_TAG, ROLE_TAG, (ID_TAG, "0f4a8a0e"), ("Name", name)];
    of_cluster.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

pub fn create(is: impl Into<Resource>, ids: &Ids, token: Option<&str>) -> Action {
    let is = is.into();
    let tags = tags(&is.key().to_string());
    Action::Create { is, tags, ids: ids.clone(), client_token: token.map(str::to_owned), until: None }
}

pub fn update(id: &str, is: impl Into<Resource>, observed: impl Into<Resource>, ids: &Ids) -> Action {
    let is = is.into();
    let tags = tags(&is.key().to_string());
    Action::Update { id: id.to_owned(), is, observed: observed.into(), tags, ids: ids.clone() }
}

pub fn delete(id: &str, is: impl Into<Resource>, ids: &Ids) -> Action {
    Action::Delete { id: id.to_owned(), is: is.into(), ids: ids.clone() }
}

pub fn vpc() -> Vpc {
    Vpc { name: "main".into(), cidr: "10.0.0.0/16".into(), dns_hostnames: true }
}

pub fn subnet(name: &str, cidr: &str, public: bool) -> Subnet {
    Subnet { name: name.into(), vpc: "main".into(), zone: ZONE.into(), cidr: cidr.into(), public }
}

pub fn group(name: &str) -> SecurityGroup {
    SecurityGroup {
        name: name.into(),
        vpc: "main".into(),
        group_name: format!("c1-{name}"),
        description: format!("role {name}"),
    }
}

pub fn gateway(attached: bool) -> InternetGateway {
    InternetGateway { name: "main".into(), vpc: "main".into(), attached }
}

pub fn nat_gateway() -> NatGateway {
    NatGateway {
        name: ZONE.into(),
        subnet: "public".into(),
        elastic_ip: ZONE.into(),
        internet_gateway: "main".into(),
    }
}

pub fn route_table(to: Option<model::Key>, subnets: &[&str]) -> RouteTable {
    let subnets = subnets.iter().map(|it| it.to_string()).collect();
    RouteTable { name: "private".into(), vpc: "main".into(), subnets, default_route: to }
}

pub fn rules(name: &str, rules: Vec<Rule>) -> SecurityGroupRules {
    SecurityGroupRules { name: name.into(), rules: rules.into_iter().collect(), keep_unknown: false }
}

pub fn rule(port: i32, source: Source) -> Rule {
    Rule { protocol: "tcp".into(), from_port: port, to_port: port, source, description: "test".into() }
}

pub fn load_balancer(kind: LoadBalancerKind, complete: bool) -> LoadBalancer {
    let protocol = if kind == LoadBalancerKind::Classic { "SSL" } else { "HTTPS" };
    let health_check = HealthCheck {
        protocol: protocol.into(),
        port: 6443,
        path: (kind == LoadBalancerKind::Network).then(|| "/readyz".to_owned()),
        interval_seconds: 10,
        timeout_seconds: 5,
        healthy_threshold: 2,
        unhealthy_threshold: 3,
    };
    let idle_timeout_seconds = (kind == LoadBalancerKind::Classic).then_some(600);
    LoadBalancer {
        name: "apiserver".into(),
        aws_name: "c1-apiserver".into(),
        kind,
        internet_gateway: Some("main".into()),
        internal: false,
        leaving: Default::default(),
        subnets: BTreeSet::from(["public".to_owned()]),
        groups: BTreeSet::from(["apiserver-lb".to_owned()]),
        listener: Some(Listener { port: 6443, target_port: 6443, health_check }).filter(|_| complete),
        attributes: Some(LoadBalancerAttributes { cross_zone: true, idle_timeout_seconds })
            .filter(|_| complete),
    }
}

pub fn instance(name: &str) -> Instance {
    Instance {
        name: name.into(),
        subnet: "private".into(),
        groups: BTreeSet::from(["node".to_owned()]),
        additional_groups: BTreeSet::new(),
        removed_groups: BTreeSet::new(),
        internet_gateway: None,
        secret: None,
        launch: Some(Launch {
            image: IMAGE.into(),
            instance_type: "t3.large".into(),
            iam_instance_profile: Some("nodes.cluster-api-provider-aws.sigs.k8s.io".into()),
            key_name: Some("default".into()),
            public_ip: None,
            tenancy: None,
            volumes: vec![model::Volume {
                device_name: "/dev/sda1".into(),
                size: 16,
                volume_type: Some("gp3".into()),
                iops: None,
                throughput: None,
                encrypted: Some(true),
                kms_key: None,
            }],
            metadata_options: MetadataOptions {
                http_endpoint: "enabled".into(),
                http_protocol_ipv6: Some("disabled".into()),
                http_tokens: "required".into(),
                http_put_response_hop_limit: 2,
                instance_metadata_tags: "disabled".into(),
            },
            user_data: Sensitive(b"#cloud-config\n".to_vec()),
        }),
        status: None,
    }
}

pub fn secret() -> Secret {
    let parts = vec![Sensitive(b"first".to_vec()), Sensitive(b"second".to_vec())];
    Secret { name: "m1".into(), prefix: "aws.cluster.x-k8s.io/5b1f".into(), count: parts.len(), parts }
}

pub fn target() -> Target {
    Target { name: "m1".into(), load_balancer: "apiserver".into(), instance: "m1".into() }
}

pub async fn done(region: &Region, action: Action) {
    let text = action.key().to_string();
    assert_eq!(act(region, action).await, Outcome::Done, "{text}");
}

async fn all_done(region: &Region, actions: Vec<Action>) {
    for (key, outcome) in act_all(region, actions).await {
        assert_eq!(outcome, Outcome::Done, "{key}");
    }
}

/// A VPC with a public and a private subnet and the groups `node` and `apiserver-lb`. Ids of all of it.
pub async fn network(region: &Region) -> Ids {
    let mut ids = Ids::new();
    done(region, create(vpc(), &ids, None)).await;
    ids.insert(Vpc::key("main"), snapshot(region).vpcs[0].id.clone());
    all_done(
        region,
        vec![
            create(subnet("public", "10.0.0.0/24", false), &ids, None),
            create(subnet("private", "10.0.1.0/24", false), &ids, None),
            create(group("node"), &ids, None),
            create(group("apiserver-lb"), &ids, None),
            create(gateway(false), &ids, None),
        ],
    )
    .await;
    let shown = snapshot(region);
    for (name, cidr) in [("public", "10.0.0.0/24"), ("private", "10.0.1.0/24")] {
        ids.insert(Subnet::key(name), shown.subnets.iter().find(|it| it.cidr == cidr).unwrap().id.clone());
    }
    for found in &shown.security_groups {
        ids.insert(SecurityGroup::key(found.group_name.trim_start_matches("c1-")), found.id.clone());
    }
    ids.insert(InternetGateway::key("main"), shown.internet_gateways[0].id.clone());
    let gateway_id = ids[&InternetGateway::key("main")].clone();
    let (vpc_id, subnet_id) = (ids[&Vpc::key("main")].clone(), ids[&Subnet::key("public")].clone());
    let public = subnet("public", "10.0.0.0/24", true);
    all_done(
        region,
        vec![
            update(&vpc_id, vpc(), Vpc { dns_hostnames: false, ..vpc() }, &ids),
            update(&subnet_id, public.clone(), Subnet { public: false, ..public }, &ids),
            update(&gateway_id, gateway(true), gateway(false), &ids),
        ],
    )
    .await;
    ids
}

/// What leads from the private subnet to the outside, ready.
pub async fn routes(region: &Region, ids: &mut Ids) {
    let elastic_ip = ElasticIp { name: ZONE.into() };
    all_done(region, vec![create(elastic_ip, ids, None), create(route_table(None, &[]), ids, Some("table"))])
        .await;
    ids.insert(ElasticIp::key(ZONE), snapshot(region).addresses[0].id.clone());
    ids.insert(RouteTable::key("private"), snapshot(region).route_tables[0].id.clone());
    done(region, create(nat_gateway(), ids, Some("nat"))).await;
    assert_eq!(snapshot(region).nat_gateways[0].state, State::Creating);
    region.interest("test", awaiting([Read::NatGateways]));
    let shown = until(region, |it| it.nat_gateways[0].state == State::Ready).await;
    ids.insert(NatGateway::key(ZONE), shown.nat_gateways[0].id.clone());
    let table = ids[&RouteTable::key("private")].clone();
    let wanted = route_table(Some(NatGateway::key(ZONE)), &["private"]);
    done(region, update(&table, wanted, route_table(None, &[]), ids)).await;
}

/// A load balancer with its listener, ready.
pub async fn balancer(region: &Region, kind: LoadBalancerKind, ids: &mut Ids) {
    done(region, create(load_balancer(kind, true), ids, None)).await;
    region.interest("test", awaiting([Read::LoadBalancers, Read::ClassicLoadBalancers]));
    let shown = until(region, |it| it.load_balancers[0].state == State::Ready).await;
    let id = shown.load_balancers[0].id.clone();
    ids.insert(LoadBalancer::key("apiserver"), id.clone());
    done(region, update(&id, load_balancer(kind, true), load_balancer(kind, false), ids)).await;
}

/// A running instance behind the load balancer.
pub async fn machine(region: &Region, ids: &mut Ids) {
    all_done(region, vec![create(secret(), ids, None), create(instance("m1"), ids, Some("m1"))]).await;
    region.interest("test", awaiting([Read::Instances]));
    let shown = until(region, |it| it.instances[0].status.state == "running").await;
    ids.insert(Instance::key("m1"), shown.instances[0].id.clone());
    done(region, create(target(), ids, None)).await;
}

/// Removes the machine, and waits until its interface is gone.
pub async fn remove_machine(region: &Region, ids: &Ids) {
    let id = &ids[&Instance::key("m1")];
    done(region, delete(id, target(), ids)).await;
    all_done(region, vec![delete(id, instance("m1"), ids), delete("", secret(), ids)]).await;
    region.interest("test", awaiting([Read::Instances]));
    until(region, |it| it.instances.iter().all(|it| it.status.state == "terminated")).await;
}

pub async fn remove_balancer(region: &Region, kind: LoadBalancerKind, ids: &Ids) {
    done(region, delete(&ids[&LoadBalancer::key("apiserver")], load_balancer(kind, true), ids)).await;
    region.interest(
        "test",
        model::Interest {
            deleting_vpcs: BTreeSet::from([ids[&Vpc::key("main")].clone()]),
            ..Default::default()
        },
    );
    let left =
        |it: &model::Snapshot| it.network_interfaces.iter().any(|it| it.description.starts_with("ELB"));
    until(region, |it| !it.deleting_vpcs_read.is_empty() && !left(it)).await;
}

pub async fn remove_routes(region: &Region, ids: &Ids) {
    done(region, delete(&ids[&RouteTable::key("private")], route_table(None, &["private"]), ids)).await;
    done(region, delete(&ids[&NatGateway::key(ZONE)], nat_gateway(), ids)).await;
    region.interest("test", awaiting([Read::NatGateways]));
    until(region, |it| it.nat_gateways.is_empty()).await;
    done(region, delete(&ids[&ElasticIp::key(ZONE)], ElasticIp { name: ZONE.into() }, ids)).await;
}

pub async fn remove_network(region: &Region, ids: &Ids) {
    done(region, delete(&ids[&InternetGateway::key("main")], gateway(true), ids)).await;
    let (public, private) = (subnet("public", "10.0.0.0/24", true), subnet("private", "10.0.1.0/24", false));
    all_done(
        region,
        vec![
            delete(&ids[&Subnet::key("public")], public, ids),
            delete(&ids[&Subnet::key("private")], private, ids),
            delete(&ids[&SecurityGroup::key("node")], group("node"), ids),
            delete(&ids[&SecurityGroup::key("apiserver-lb")], group("apiserver-lb"), ids),
        ],
    )
    .await;
    done(region, delete(&ids[&Vpc::key("main")], vpc(), ids)).await;
}
