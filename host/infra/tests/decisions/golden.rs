//! Plans as text, wave by wave: what is asked of AWS for typical clusters and machines, in the order in which
//! it can be done.

use crate::world::driver::{Fleet, settled};
use crate::world::{Faults, World};
use expect_test::{Expect, expect};
use serde_json::json;

/// All waves until nothing is left to do, without those in which nothing is done.
pub fn waves(fleet: &mut Fleet, world: &mut World) -> String {
    let mut res = String::new();
    for _ in 0..100 {
        let plan = fleet.decide(world).plan;
        let actions: String = plan.actions.iter().map(|it| format!("{it}\n")).collect();
        if !actions.is_empty() {
            res += &format!("--\n{actions}");
        }
        let done = fleet.reconcile(world);
        let deleting = fleet.aws_cluster.metadata.deletion_timestamp.is_some();
        if done && !deleting || fleet.finished {
            break;
        }
        world.tick();
    }
    res
}

fn check_create(spec: serde_json::Value, expected: Expect) {
    let mut world = World::new(1, Faults::default());
    expected.assert_eq(&waves(&mut Fleet::new("prod", spec), &mut world));
}

#[test]
fn one_zone_and_a_classic_load_balancer() {
    check_create(
        json!({}),
        expect![[r#"
            --
            create  vpc/main 10.0.0.0/16
            create  elastic-ip/us-east-1a
            --
            update  vpc/main (vpc-0001) 10.0.0.0/16
            create  subnet/private-us-east-1a 10.0.128.0/17 in us-east-1a, private
            create  subnet/public-us-east-1a 10.0.0.0/17 in us-east-1a, public
            create  internet-gateway/main
            create  route-table/private-us-east-1a for private-us-east-1a, 0.0.0.0/0 to nat-gateway/us-east-1a
            create  route-table/public-us-east-1a for public-us-east-1a, 0.0.0.0/0 to internet-gateway/main
            create  security-group/apiserver-lb "prod-apiserver-lb"
            create  security-group/controlplane "prod-controlplane"
            create  security-group/lb "prod-lb"
            create  security-group/node "prod-node"
            --
            update  subnet/public-us-east-1a (subnet-00000005) 10.0.0.0/17 in us-east-1a, public
            update  internet-gateway/main (igw-0006)
            create  nat-gateway/us-east-1a in public-us-east-1a
            update  route-table/public-us-east-1a (rtb-0008) for public-us-east-1a, 0.0.0.0/0 to internet-gateway/main
            update  security-group-rules/apiserver-lb (sg-0009)
                      + tcp 6443 from 0.0.0.0/0 (Kubernetes API)
            update  security-group-rules/controlplane (sg-0010)
                      + 4 -1-65535 from group controlplane (IP-in-IP (calico))
                      + 4 -1-65535 from group node (IP-in-IP (calico))
                      + tcp 179 from group controlplane (bgp (calico))
                      + tcp 179 from group node (bgp (calico))
                      + tcp 2379 from group controlplane (etcd)
                      + tcp 2380 from group controlplane (etcd peer)
                      + tcp 6443 from group apiserver-lb (Kubernetes API)
                      + tcp 6443 from group controlplane (Kubernetes API)
                      + tcp 6443 from group node (Kubernetes API)
            update  security-group-rules/node (sg-0012)
                      + 4 -1-65535 from group controlplane (IP-in-IP (calico))
                      + 4 -1-65535 from group node (IP-in-IP (calico))
                      + tcp 179 from group controlplane (bgp (calico))
                      + tcp 179 from group node (bgp (calico))
                      + tcp 10250 from group controlplane (Kubelet API)
                      + tcp 10250 from group node (Kubelet API)
                      + tcp 30000-32767 from 0.0.0.0/0 (Node Port Services)
            create  load-balancer/apiserver "prod-apiserver" (Classic, internet-facing) in public-us-east-1a, groups apiserver-lb, 6443 to 6443, checked by TCP:6443 every 5 s within 4 s, 2 up 6 down
            --
            update  load-balancer/apiserver (prod-apiserver) "prod-apiserver" (Classic, internet-facing) in public-us-east-1a, groups apiserver-lb, 6443 to 6443, checked by TCP:6443 every 5 s within 4 s, 2 up 6 down
            --
            update  route-table/private-us-east-1a (rtb-0007) for private-us-east-1a, 0.0.0.0/0 to nat-gateway/us-east-1a
        "#]],
    );
}

#[test]
fn two_zones_and_an_internal_network_load_balancer() {
    let spec = json!({
        "network": {"vpc": {"availabilityZoneUsageLimit": 2, "cidrBlock": "172.20.0.0/16"}, "cni": {}},
        "controlPlaneLoadBalancer": {
            "loadBalancerType": "nlb", "scheme": "internal", "healthCheckProtocol": "HTTPS", "crossZoneLoadBalancing": true,
            "ingressRules": [{"description": "office", "protocol": "tcp", "fromPort": 6443, "toPort": 6443, "cidrBlocks": ["203.0.113.0/24"]}],
        },
    });
    check_create(
        spec,
        expect![[r#"
            --
            create  vpc/main 172.20.0.0/16
            create  elastic-ip/us-east-1a
            create  elastic-ip/us-east-1b
            --
            update  vpc/main (vpc-0001) 172.20.0.0/16
            create  subnet/private-us-east-1a 172.20.64.0/18 in us-east-1a, private
            create  subnet/private-us-east-1b 172.20.128.0/18 in us-east-1b, private
            create  subnet/public-us-east-1a 172.20.0.0/19 in us-east-1a, public
            create  subnet/public-us-east-1b 172.20.32.0/19 in us-east-1b, public
            create  internet-gateway/main
            create  route-table/private-us-east-1a for private-us-east-1a, 0.0.0.0/0 to nat-gateway/us-east-1a
            create  route-table/private-us-east-1b for private-us-east-1b, 0.0.0.0/0 to nat-gateway/us-east-1b
            create  route-table/public-us-east-1a for public-us-east-1a, 0.0.0.0/0 to internet-gateway/main
            create  route-table/public-us-east-1b for public-us-east-1b, 0.0.0.0/0 to internet-gateway/main
            create  security-group/apiserver-lb "prod-apiserver-lb"
            create  security-group/controlplane "prod-controlplane"
            create  security-group/lb "prod-lb"
            create  security-group/node "prod-node"
            --
            update  subnet/public-us-east-1a (subnet-00000007) 172.20.0.0/19 in us-east-1a, public
            update  subnet/public-us-east-1b (subnet-00000008) 172.20.32.0/19 in us-east-1b, public
            update  internet-gateway/main (igw-0009)
            create  nat-gateway/us-east-1a in public-us-east-1a
            create  nat-gateway/us-east-1b in public-us-east-1b
            update  route-table/public-us-east-1a (rtb-0012) for public-us-east-1a, 0.0.0.0/0 to internet-gateway/main
            update  route-table/public-us-east-1b (rtb-0013) for public-us-east-1b, 0.0.0.0/0 to internet-gateway/main
            update  security-group-rules/apiserver-lb (sg-0014)
                      + tcp 6443 from 172.20.0.0/16 (Kubernetes API)
                      + tcp 6443 from 203.0.113.0/24 (office)
            update  security-group-rules/controlplane (sg-0015)
                      + tcp 2379 from group controlplane (etcd)
                      + tcp 2380 from group controlplane (etcd peer)
                      + tcp 6443 from group apiserver-lb (Kubernetes API)
                      + tcp 6443 from group controlplane (Kubernetes API)
                      + tcp 6443 from group node (Kubernetes API)
            update  security-group-rules/lb (sg-0016)
                      + tcp 6443 from 172.20.0.0/16 (Kubernetes API from the load balancer)
            update  security-group-rules/node (sg-0017)
                      + tcp 10250 from group controlplane (Kubelet API)
                      + tcp 10250 from group node (Kubelet API)
                      + tcp 30000-32767 from 0.0.0.0/0 (Node Port Services)
            create  load-balancer/apiserver "default-prod-apiserver" (Network, internal) in private-us-east-1a + private-us-east-1b, groups apiserver-lb, 6443 to 6443, checked by HTTPS:6443/readyz every 5 s within 4 s, 2 up 6 down
            --
            update  route-table/private-us-east-1a (rtb-0010) for private-us-east-1a, 0.0.0.0/0 to nat-gateway/us-east-1a
            update  route-table/private-us-east-1b (rtb-0011) for private-us-east-1b, 0.0.0.0/0 to nat-gateway/us-east-1b
            update  load-balancer/apiserver (arn:aws:elasticloadbalancing:default-prod-apiserver) "default-prod-apiserver" (Network, internal) in private-us-east-1a + private-us-east-1b, groups apiserver-lb, 6443 to 6443, checked by HTTPS:6443/readyz every 5 s within 4 s, 2 up 6 down
        "#]],
    );
}

#[test]
fn listed_subnets_without_a_load_balancer() {
    let spec = json!({
        "network": {"subnets": [
            {"id": "edge", "availabilityZone": "us-east-1b", "cidrBlock": "10.0.0.0/24", "isPublic": true},
            {"id": "apps", "availabilityZone": "us-east-1b", "cidrBlock": "10.0.1.0/24"},
            {"id": "data", "availabilityZone": "us-east-1b", "cidrBlock": "10.0.2.0/24"},
        ]},
        "controlPlaneLoadBalancer": {"loadBalancerType": "disabled"},
    });
    check_create(
        spec,
        expect![[r#"
            --
            create  vpc/main 10.0.0.0/16
            create  elastic-ip/us-east-1b
            --
            update  vpc/main (vpc-0001) 10.0.0.0/16
            create  subnet/private-us-east-1b-10.0.1.0-24 10.0.1.0/24 in us-east-1b, private
            create  subnet/private-us-east-1b-10.0.2.0-24 10.0.2.0/24 in us-east-1b, private
            create  subnet/public-us-east-1b 10.0.0.0/24 in us-east-1b, public
            create  internet-gateway/main
            create  route-table/private-us-east-1b-10.0.1.0-24 for private-us-east-1b-10.0.1.0-24, 0.0.0.0/0 to nat-gateway/us-east-1b
            create  route-table/private-us-east-1b-10.0.2.0-24 for private-us-east-1b-10.0.2.0-24, 0.0.0.0/0 to nat-gateway/us-east-1b
            create  route-table/public-us-east-1b for public-us-east-1b, 0.0.0.0/0 to internet-gateway/main
            create  security-group/apiserver-lb "prod-apiserver-lb"
            create  security-group/controlplane "prod-controlplane"
            create  security-group/lb "prod-lb"
            create  security-group/node "prod-node"
            --
            update  subnet/public-us-east-1b (subnet-00000006) 10.0.0.0/24 in us-east-1b, public
            update  internet-gateway/main (igw-0007)
            create  nat-gateway/us-east-1b in public-us-east-1b
            update  route-table/public-us-east-1b (rtb-0010) for public-us-east-1b, 0.0.0.0/0 to internet-gateway/main
            update  security-group-rules/controlplane (sg-0012)
                      + 4 -1-65535 from group controlplane (IP-in-IP (calico))
                      + 4 -1-65535 from group node (IP-in-IP (calico))
                      + tcp 179 from group controlplane (bgp (calico))
                      + tcp 179 from group node (bgp (calico))
                      + tcp 2379 from group controlplane (etcd)
                      + tcp 2380 from group controlplane (etcd peer)
                      + tcp 6443 from group apiserver-lb (Kubernetes API)
                      + tcp 6443 from group controlplane (Kubernetes API)
                      + tcp 6443 from group node (Kubernetes API)
            update  security-group-rules/node (sg-0014)
                      + 4 -1-65535 from group controlplane (IP-in-IP (calico))
                      + 4 -1-65535 from group node (IP-in-IP (calico))
                      + tcp 179 from group controlplane (bgp (calico))
                      + tcp 179 from group node (bgp (calico))
                      + tcp 10250 from group controlplane (Kubelet API)
                      + tcp 10250 from group node (Kubelet API)
                      + tcp 30000-32767 from 0.0.0.0/0 (Node Port Services)
            --
            update  route-table/private-us-east-1b-10.0.1.0-24 (rtb-0008) for private-us-east-1b-10.0.1.0-24, 0.0.0.0/0 to nat-gateway/us-east-1b
            update  route-table/private-us-east-1b-10.0.2.0-24 (rtb-0009) for private-us-east-1b-10.0.2.0-24, 0.0.0.0/0 to nat-gateway/us-east-1b
        "#]],
    );
}

#[test]
fn deleting() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.delete(&world);
    expect![[r#"
        --
        delete  route-table/private-us-east-1a (rtb-0007)
        delete  route-table/public-us-east-1a (rtb-0008)
        delete  security-group/lb (sg-0011)
        delete  security-group-rules/controlplane (sg-0010)
        delete  security-group-rules/node (sg-0012)
        delete  load-balancer/apiserver (prod-apiserver)
        --
        delete  subnet/private-us-east-1a (subnet-00000004)
        delete  nat-gateway/us-east-1a (nat-0013)
        delete  security-group/controlplane (sg-0010)
        delete  security-group/node (sg-0012)
        --
        delete  security-group/apiserver-lb (sg-0009)
        --
        delete  subnet/public-us-east-1a (subnet-00000005)
        delete  internet-gateway/main (igw-0006)
        delete  elastic-ip/us-east-1a (eipalloc-0003)
        --
        delete  vpc/main (vpc-0001)
    "#]]
    .assert_eq(&waves(&mut fleet, &mut world));
}

#[test]
fn changes() {
    let (mut world, mut fleet) = settled(json!({}));
    let spec = &mut fleet.aws_cluster.spec;
    spec.control_plane_load_balancer.cross_zone_load_balancing = true;
    spec.network.node_port_ingress_rule_cidr_blocks = vec!["10.0.0.0/8".into()];
    spec.additional_tags.insert("team".into(), "a".into());
    expect![[r#"
        --
        tag     vpc/main (vpc-0001) team=a
        tag     subnet/private-us-east-1a (subnet-00000004) team=a
        tag     subnet/public-us-east-1a (subnet-00000005) team=a
        tag     internet-gateway/main (igw-0006) team=a
        tag     elastic-ip/us-east-1a (eipalloc-0003) team=a
        tag     nat-gateway/us-east-1a (nat-0013) team=a
        tag     route-table/private-us-east-1a (rtb-0007) team=a
        tag     route-table/public-us-east-1a (rtb-0008) team=a
        tag     security-group/apiserver-lb (sg-0009) team=a
        tag     security-group/controlplane (sg-0010) team=a
        tag     security-group/lb (sg-0011) team=a
        tag     security-group/node (sg-0012) team=a
        update  security-group-rules/node (sg-0012)
                  + tcp 30000-32767 from 10.0.0.0/8 (Node Port Services)
                  - tcp 30000-32767 from 0.0.0.0/0 (Node Port Services)
        update  load-balancer/apiserver (prod-apiserver) "prod-apiserver" (Classic, internet-facing) in public-us-east-1a, groups apiserver-lb, 6443 to 6443, checked by TCP:6443 every 5 s within 4 s, 2 up 6 down
    "#]].assert_eq(&waves(&mut fleet, &mut world));
}

#[test]
fn a_control_plane_machine() {
    let (mut world, mut fleet) = settled(json!({}));
    fleet.add_machine("control-plane-0", true, json!({}));
    let mut res = String::new();
    for _ in 0..12 {
        let plan = fleet.decide_machine(&mut world, "control-plane-0").plan;
        if !plan.actions.is_empty() {
            res += &format!("--\n{plan}");
        }
        fleet.reconcile_machines(&mut world);
        world.tick();
    }
    expect![[r#"
        --
        create  secret/control-plane-0 1 parts
        wait    instance/control-plane-0: after secret/control-plane-0
        wait    target/control-plane-0: after instance/control-plane-0
        --
        create  instance/control-plane-0 t3.large ami-1 in private-us-east-1a, groups controlplane + lb + node
        wait    target/control-plane-0: after instance/control-plane-0
        --
        create  target/control-plane-0 of apiserver
    "#]]
    .assert_eq(&res);
}
