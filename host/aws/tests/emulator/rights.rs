//! The policies in `deploy/iam` in force: they allow what the operator does, each statement and each action
//! in it is needed, and what carries no tag of its is out of its reach. All other tests run with them too.

use std::collections::BTreeSet;
use std::time::Duration;

use aws::Region;
use model::finding::Reading;
use model::{
    Action, ElasticIp, HealthCheck, Ids, ImageQuery, Instance, InternetGateway, Key, Listener, LoadBalancer,
    LoadBalancerKind, NatGateway, Outcome, Read, RouteTable, SecurityGroup, Source, Subnet, Tags, Vpc,
};

use crate::administrator::Administrator;
use crate::bed::{Bed, ZONE, act, awaiting, snapshot, until};
use crate::cluster::*;
use crate::leftovers::{CLOUD_PROVIDER, CONTROLLER, UNTAGGED, leave, own, sweep};
use crate::policies::{Statements, statements};
use crate::roles;

fn tagging(key: Key, id: &str, tags: &[(&str, &str)], untag: &[&str]) -> Action {
    Action::Tag {
        key,
        id: id.to_owned(),
        parts: BTreeSet::new(),
        tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        untag: untag.iter().map(|it| (*it).to_owned()).collect(),
    }
}

/// A subnet that a user made in the cluster's VPC.
async fn users_subnet(admin: &Administrator, ids: &mut Ids) {
    let id = admin.subnet(&ids[&Vpc::key("main")], "10.0.9.0/24", "us-east-1b").await;
    ids.insert(Subnet::key("users"), id);
}

/// Routes of a subnet that a user made, changed again and again, and a NAT gateway in it.
async fn routes_of_users_subnet(region: &Region, ids: &mut Ids) {
    let of = |name: &str, subnets: &[&str]| RouteTable { name: name.into(), ..route_table(None, subnets) };
    done(region, create(of("users", &[]), ids, Some("users"))).await;
    let (main, first) = (ids[&RouteTable::key("private")].clone(), NatGateway::key(ZONE));
    let table = snapshot(region).route_tables.iter().find(|it| it.id != main).unwrap().id.clone();
    done(region, update(&table, of("users", &["users"]), of("users", &[]), ids)).await;
    // It is taken from one table and given to the other.
    let wanted = route_table(Some(InternetGateway::key("main")), &["private", "users"]);
    done(region, update(&main, wanted, route_table(Some(first), &["private"]), ids)).await;
    done(region, delete(&table, of("users", &[]), ids)).await;
    let elastic_ip = ElasticIp { name: "users".into() };
    done(region, create(elastic_ip.clone(), ids, None)).await;
    let used = ids[&ElasticIp::key(ZONE)].clone();
    let address = snapshot(region).addresses.iter().find(|it| it.id != used).unwrap().id.clone();
    ids.insert(ElasticIp::key("users"), address.clone());
    let gateway = NatGateway {
        name: "users".into(),
        subnet: "users".into(),
        elastic_ip: "users".into(),
        ..nat_gateway()
    };
    done(region, create(gateway.clone(), ids, Some("users"))).await;
    let mut others = snapshot(region).nat_gateways.clone();
    others.retain(|it| it.id != ids[&NatGateway::key(ZONE)]);
    done(region, delete(&others[0].id, gateway, ids)).await;
    region.interest("test", awaiting([Read::NatGateways]));
    until(region, |it| it.nat_gateways.len() == 1).await;
    done(region, delete(&address, elastic_ip, ids)).await;
}

/// What is changed of a load balancer: its groups, its subnets, its listener and its tags.
async fn changed(region: &Region, kind: LoadBalancerKind, ids: &Ids) {
    let id = &ids[&LoadBalancer::key("apiserver")];
    let seen = load_balancer(kind, true);
    let listener = seen.listener.clone().unwrap();
    let health_check = HealthCheck { interval_seconds: 30, ..listener.health_check.clone() };
    let listener = match kind {
        LoadBalancerKind::Classic => Listener { port: 7443, ..listener },
        _ => Listener { health_check, ..listener },
    };
    let groups = ["apiserver-lb".to_owned(), "node".to_owned()].into();
    let wanted = LoadBalancer {
        groups,
        subnets: ["public".to_owned(), "users".to_owned()].into(),
        listener: Some(listener),
        ..seen.clone()
    };
    done(region, update(id, wanted.clone(), seen.clone(), ids)).await;
    let off = LoadBalancer { subnets: seen.subnets, leaving: ["users".to_owned()].into(), ..wanted.clone() };
    done(region, update(id, off, wanted, ids)).await;
    done(region, tagging(LoadBalancer::key("apiserver"), id, &[("team", "a")], &[])).await;
    let vpc = ids[&Vpc::key("main")].clone();
    region.interest("test", model::Interest { deleting_vpcs: [vpc].into(), ..Default::default() });
    until(region, |it| {
        it.load_balancers.iter().any(|it| it.tags.as_ref().is_some_and(|it| it.contains_key("Name")))
    })
    .await;
}

/// Rules, groups and tags as they come and go. The id of a group that a user made.
async fn regrouped(region: &Region, admin: &Administrator, ids: &Ids) -> String {
    let (node, vpc) = (&ids[&SecurityGroup::key("node")], &ids[&Vpc::key("main")]);
    let one = rules("node", vec![rule(22, Source::Cidr("10.0.0.0/8".into()))]);
    done(region, update(node, one.clone(), rules("node", vec![]), ids)).await;
    done(region, update(node, rules("node", vec![]), one, ids)).await;
    let theirs = admin.group(vpc, "theirs", UNTAGGED).await;
    let bare = Instance { launch: None, ..instance("m1") };
    let both = Instance { additional_groups: [theirs.clone()].into(), ..bare.clone() };
    done(region, update(&ids[&Instance::key("m1")], both, bare, ids)).await;
    done(region, tagging(Vpc::key("main"), vpc, &[("team", "a")], &[])).await;
    done(region, tagging(Vpc::key("main"), vpc, &[], &["team"])).await;
    theirs
}

/// What no sweep shows of a load balancer is read by its id.
async fn confirmed(region: &Region, ids: &Ids) {
    let key = LoadBalancer::key("apiserver");
    let id = ids[&key].clone();
    done(region, Action::Confirm { key, id }).await;
}

/// A cluster with a load balancer of one kind.
async fn lives(kind: LoadBalancerKind) -> Statements {
    let bed = Bed::start(&[]).await;
    let (region, admin) = (bed.swept().await, bed.administrator());
    let mut ids = network(&region).await;
    users_subnet(&admin, &mut ids).await;
    routes(&region, &mut ids).await;
    balancer(&region, kind, &mut ids).await;
    machine(&region, &mut ids).await;
    if kind == LoadBalancerKind::Classic {
        routes_of_users_subnet(&region, &mut ids).await;
    }
    let theirs = regrouped(&region, &admin, &ids).await;
    changed(&region, kind, &ids).await;
    let query = ImageQuery {
        id: None,
        owner: "819546954734".into(),
        name: "capa-ami-ubuntu-24.04-?1.36.3-*".into(),
        instance_type: "t3.large".into(),
    };
    region.image(&query).await.unwrap();
    // A process that was just started reads everything.
    confirmed(&bed.swept().await, &ids).await;
    remove_machine(&region, &ids).await;
    remove_balancer(&region, kind, &ids).await;
    remove_routes(&region, &ids).await;
    admin.delete_subnet(&ids[&Subnet::key("users")]).await;
    admin.delete_group(&theirs).await;
    remove_network(&region, &ids).await;
    assert_eq!(bed.account().await, [], "nothing is left");
    bed.needed().await
}

/// The VPC of a cluster that its controllers, and a user, left something in.
async fn is_left() -> Statements {
    let bed = Bed::start(&[]).await;
    let (region, admin) = (bed.swept().await, bed.administrator());
    let (vpc, ids) = own(&region, &admin).await;
    for (name, tag) in [("by-cloud-provider", CLOUD_PROVIDER), ("by-controller", CONTROLLER)] {
        let balancer = admin.load_balancer(name, "application", &vpc.subnets, &vpc.node, tag).await;
        let group = admin.target_group(name, &vpc.vpc, tag).await;
        admin.listener(&balancer, &group, tag).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        done(&region, delete(&balancer, load_balancer(LoadBalancerKind::Network, false), &ids)).await;
    }
    leave(&admin, &vpc, CLOUD_PROVIDER, CONTROLLER, "1").await;
    let users = admin.group(&vpc.vpc, "users", UNTAGGED).await;
    let filter = model::Filter { name: "group-name".into(), values: vec!["k8s-elb-a1".to_owned()] };
    admin.let_in(&users, &region.security_groups(&[filter]).await.unwrap()[0].id).await;
    sweep(&region, &vpc.vpc).await;
    bed.needed().await
}

/// What is read of roles and file systems, and what is published of an issuer.
async fn is_checked_and_published() -> Statements {
    let bed = Bed::start(&[]).await;
    let region = bed.region().await;
    let config = bed.administrator().config;
    roles::make_role(&bed).await;
    let provider = format!(
        "arn:aws:iam::{}:oidc-provider/{}",
        roles::ACCOUNT,
        roles::ISSUER.trim_start_matches("https://")
    );
    region.role(&roles::arn("team/ebs"), Some(&provider)).await;
    region.instance_profile_role(roles::PROFILE).await;
    let efs = aws_sdk_efs::Client::new(&config);
    let system = efs.create_file_system().creation_token("one").send().await.unwrap().file_system_id;
    region.file_system(&system).await;
    let s3 = aws_sdk_s3::Client::from_conf(
        aws_sdk_s3::config::Builder::from(&config).force_path_style(true).build(),
    );
    s3.create_bucket().bucket("documents").send().await.unwrap();
    region.object("documents", "keys").await;
    let document = iam::issuer::Document { key: "keys".into(), body: "{}".into() };
    region.put_object("documents", &document, "mark", None).await.unwrap();
    let Reading::Found(written) = region.object("documents", "keys").await else { panic!("it is not there") };
    region.delete_object("documents", "keys", &written.version).await.unwrap();
    let id = Tags::from([(ID_TAG.to_owned(), "0f4a8a0e".to_owned())]);
    region.create_open_id_provider(roles::ISSUER, &["sts.amazonaws.com".to_owned()], &id).await.unwrap();
    region.add_client_id(&provider, "amazonaws.com").await.unwrap();
    let owner = Tags::from([("cluster.kurator.dev/owner".to_owned(), "default/c1".to_owned())]);
    region.tag_open_id_provider(&provider, &owner).await.unwrap();
    region.delete_open_id_provider(&provider).await.unwrap();
    bed.needed().await
}

#[tokio::test]
async fn each_action_of_each_statement_is_needed_by_a_call() {
    // Each is a task of its own: together they are too large for the stack of a test.
    let (classic, network) =
        (tokio::spawn(lives(LoadBalancerKind::Classic)), tokio::spawn(lives(LoadBalancerKind::Network)));
    let (left, checked) = (tokio::spawn(is_left()), tokio::spawn(is_checked_and_published()));
    let mut needed = Statements::new();
    for (sid, actions) in
        [classic.await, network.await, left.await, checked.await].into_iter().flat_map(Result::unwrap)
    {
        needed.entry(sid).or_default().extend(actions);
    }
    let mut granted = statements("controller");
    granted.extend(statements("issuer"));
    for (sid, actions) in &granted {
        let unneeded: Vec<&String> =
            actions.iter().filter(|it| !needed.get(sid).is_some_and(|needed| needed.contains(*it))).collect();
        assert!(unneeded.is_empty(), "{sid}: {unneeded:?} could be taken away");
    }
    assert_eq!(
        needed.keys().collect::<Vec<_>>(),
        granted.keys().collect::<Vec<_>>(),
        "and nothing is taken over"
    );
}

#[tokio::test]
async fn a_cluster_of_another_provider_is_taken_over_changed_and_removed() {
    let bed = Bed::start(&[]).await;
    let (region, admin) = (bed.swept().await, bed.administrator());
    let mut ids = network(&region).await;
    users_subnet(&admin, &mut ids).await;
    routes(&region, &mut ids).await;
    balancer(&region, LoadBalancerKind::Network, &mut ids).await;
    machine(&region, &mut ids).await;
    let arn = ids[&LoadBalancer::key("apiserver")].clone();
    let mut all: Vec<String> =
        ids.iter().filter(|(key, _)| **key != Subnet::key("users")).map(|(_, id)| id.clone()).collect();
    all.extend(admin.parts(&arn).await);
    all.extend(snapshot(&region).instances[0].status.parts.iter().cloned());
    admin.untag(&all, ID_TAG).await;
    assert!(!admin.tags(&ids[&Vpc::key("main")]).await.contains_key(ID_TAG));

    let theirs = regrouped(&region, &admin, &ids).await;
    changed(&region, LoadBalancerKind::Network, &ids).await;
    let table = &ids[&RouteTable::key("private")];
    done(&region, tagging(RouteTable::key("private"), table, &[(ID_TAG, "0f4a8a0e")], &[])).await;
    assert!(admin.tags(table).await.contains_key(ID_TAG), "it is this operator's from now on");
    remove_machine(&region, &ids).await;
    remove_balancer(&region, LoadBalancerKind::Network, &ids).await;
    remove_routes(&region, &ids).await;
    admin.delete_subnet(&ids[&Subnet::key("users")]).await;
    admin.delete_group(&theirs).await;
    remove_network(&region, &ids).await;
    assert_eq!(bed.account().await, [], "nothing is left");
    assert!(bed.needed().await.contains_key("TakeOver"));
}

#[tokio::test]
async fn what_carries_no_tag_of_this_operator_is_out_of_its_reach() {
    let bed = Bed::start(&[]).await;
    let (region, admin) = (bed.swept().await, bed.administrator());
    let mut ids = network(&region).await;
    machine_alone(&region, &mut ids).await;
    let vpc = admin.vpc("10.1.0.0/16").await;
    let subnet = admin.subnet(&vpc, "10.1.0.0/24", ZONE).await;
    let group = admin.group(&vpc, "shop", UNTAGGED).await;
    let balancer =
        admin.load_balancer("shop", "network", std::slice::from_ref(&subnet), &group, UNTAGGED).await;
    admin.classic_load_balancer("old-shop", &subnet, &group, UNTAGGED).await;
    let instance_id = ids[&Instance::key("m1")].clone();
    admin.untag(std::slice::from_ref(&instance_id), ID_TAG).await;
    admin.untag(std::slice::from_ref(&instance_id), ROLE_TAG.0).await;
    let classic = load_balancer(LoadBalancerKind::Classic, false);
    let open = rules("shop", vec![rule(22, Source::Cidr("0.0.0.0/0".into()))]);
    let foreign = Ids::from([(Vpc::key("main"), vpc.clone())]);
    let reaches = vec![
        delete(&vpc, crate::cluster::vpc(), &ids),
        delete(&subnet, crate::cluster::subnet("shop", "10.1.0.0/24", false), &ids),
        delete(&balancer, load_balancer(LoadBalancerKind::Network, false), &ids),
        delete("old-shop", classic, &ids),
        delete(&instance_id, instance("m1"), &ids),
        update(&group, open, rules("shop", vec![]), &ids),
        create(crate::cluster::subnet("more", "10.1.1.0/24", false), &foreign, None),
        // Nor does it help to write whose it is first.
        tagging(Vpc::key("main"), &vpc, &[(ID_TAG, "0f4a8a0e")], &[]),
        tagging(Instance::key("m1"), &instance_id, &[(ID_TAG, "0f4a8a0e")], &[]),
        tagging(LoadBalancer::key("shop"), &balancer, &[(ID_TAG, "0f4a8a0e")], &[]),
    ];
    for action in reaches {
        let text = format!("{action:?}");
        let outcome = act(&region, action).await;
        let forbidden = |code: &str| ["UnauthorizedOperation", "AccessDenied"].contains(&code);
        assert!(matches!(&outcome, Outcome::Refused { code, .. } if forbidden(code)), "{text}: {outcome:?}");
    }
    assert_eq!(
        act(&region, create(crate::cluster::group("more"), &foreign, None)).await,
        Outcome::Done,
        "a network that a user brought gets groups"
    );
}

/// A running instance, without a load balancer.
async fn machine_alone(region: &Region, ids: &mut Ids) {
    done(region, create(instance("m1"), ids, Some("m1"))).await;
    region.interest("test", awaiting([Read::Instances]));
    let shown = until(region, |it| it.instances.iter().any(|it| it.status.state == "running")).await;
    ids.insert(Instance::key("m1"), shown.instances[0].id.clone());
}
