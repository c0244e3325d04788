//! Tags and rules of security groups as users ask for them, and the calls that follow, as text.

use crate::golden::waves;
use crate::world::driver::{Fleet, settled};
use crate::world::{Faults, World};
use expect_test::expect;
use serde_json::json;

#[test]
fn tags_that_only_aws_sets_are_left_out() {
    let (mut world, mut fleet) = settled(json!({}));
    let tags = json!({"aws:cloudformation:stack-name": "network", "AWS:a": "b", "team": "a"});
    let subnets = world
        .truth
        .subnets
        .iter()
        .map(|it| json!({"id": it.id, "cidrBlock": it.cidr, "availabilityZone": it.zone, "isPublic": it.public, "tags": tags}));
    let network = &mut fleet.aws_cluster.spec.network;
    network.subnets = serde_json::from_value(subnets.collect()).expect("subnets");
    network.vpc.tags = serde_json::from_value(tags.clone()).expect("tags");
    expect![[r#"
        --
        tag     vpc/main (vpc-0001) team=a
        tag     subnet/private-us-east-1a (subnet-00000004) team=a
        tag     subnet/public-us-east-1a (subnet-00000005) team=a
    "#]]
    .assert_eq(&waves(&mut fleet, &mut world));
}

#[test]
fn the_tag_of_the_cloud_provider_is_on_one_group_alone() {
    let mut world = World::new(1, Faults::default());
    let mut fleet =
        Fleet::new("prod", json!({"additionalTags": {"kubernetes.io/cluster/prod": "owned", "team": "a"}}));
    fleet.settle(&mut world);
    let groups = || world.truth.security_groups.iter().filter(|it| it.group_name != "default");
    let has_tag = |it: &&model::FoundSecurityGroup| it.tags.contains_key("kubernetes.io/cluster/prod");
    assert_eq!(groups().filter(has_tag).map(|it| it.group_name.as_str()).collect::<Vec<_>>(), ["prod-lb"]);
    assert_eq!(groups().filter(|it| it.tags["team"] == "a").count(), 4);
}

#[test]
fn rules_are_revoked_only_once_the_add_ons_are_known() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.aws_cluster.spec.network.cni.cni_ingress_rules.clear();
    fleet.rules = None;
    assert_eq!(waves(&mut fleet, &mut world), "");
    fleet.rules = Some(Vec::new());
    expect![[r#"
        --
        update  security-group-rules/controlplane (sg-0010)
                  - 4 -1 from group controlplane (IP-in-IP (calico))
                  - 4 -1 from group node (IP-in-IP (calico))
                  - tcp 179 from group controlplane (bgp (calico))
                  - tcp 179 from group node (bgp (calico))
        update  security-group-rules/node (sg-0012)
                  - 4 -1 from group controlplane (IP-in-IP (calico))
                  - 4 -1 from group node (IP-in-IP (calico))
                  - tcp 179 from group controlplane (bgp (calico))
                  - tcp 179 from group node (bgp (calico))
    "#]]
    .assert_eq(&waves(&mut fleet, &mut world));
}

#[test]
fn rules_that_aws_keeps_in_another_form_are_made_once() {
    let (mut world, mut fleet) = settled(json!({}));
    let rules = json!([
        {"description": "office", "protocol": "tcp", "fromPort": 443, "toPort": 443, "cidrBlocks": ["203.0.113.5/24"], "ipv6CidrBlocks": ["2001:DB8::1/32"]},
        {"description": "VPN", "protocol": "50", "fromPort": 0, "toPort": 0, "cidrBlocks": ["198.51.100.7/32"]},
        {"description": "ping", "protocol": "58", "fromPort": 128, "toPort": 0, "ipv6CidrBlocks": ["::/0"]},
    ]);
    let network = &mut fleet.aws_cluster.spec.network;
    network.additional_node_ingress_rules = serde_json::from_value(rules).expect("rules");
    network.node_port_ingress_rule_cidr_blocks = vec!["10.1.2.3/8".into()];
    expect![[r#"
        --
        update  security-group-rules/node (sg-0012)
                  + 50 0 from 198.51.100.7/32 (VPN)
                  + 58 128-0 from ::/0 (ping)
                  + tcp 443 from 2001:db8::/32 (office)
                  + tcp 443 from 203.0.113.0/24 (office)
                  + tcp 30000-32767 from 10.0.0.0/8 (Node Port Services)
                  - tcp 30000-32767 from 0.0.0.0/0 (Node Port Services)
    "#]]
    .assert_eq(&waves(&mut fleet, &mut world));
}

#[test]
fn rules_without_a_source_let_the_control_plane_in() {
    let (mut world, mut fleet) = settled(json!({}));
    let rules = |port: i32| json!([{"description": "konnectivity", "protocol": "tcp", "fromPort": port, "toPort": port}]);
    let spec = &mut fleet.aws_cluster.spec;
    spec.network.additional_control_plane_ingress_rules = serde_json::from_value(rules(8132)).expect("rules");
    spec.network.additional_node_ingress_rules = serde_json::from_value(rules(8133)).expect("rules");
    spec.control_plane_load_balancer.ingress_rules = serde_json::from_value(rules(6443)).expect("rules");
    expect![[r#"
        --
        update  security-group-rules/apiserver-lb (sg-0009)
                  + tcp 6443 from 198.51.100.3/32 (Kubernetes API)
                  + tcp 6443 from group controlplane (konnectivity)
                  - tcp 6443 from 0.0.0.0/0 (Kubernetes API)
        update  security-group-rules/controlplane (sg-0010)
                  + tcp 8132 from group controlplane (konnectivity)
        update  security-group-rules/node (sg-0012)
                  + tcp 8133 from group controlplane (konnectivity)
    "#]]
    .assert_eq(&waves(&mut fleet, &mut world));
}
