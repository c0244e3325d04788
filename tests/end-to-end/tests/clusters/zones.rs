//! Edits of the subnets of a cluster that lives: a zone is added by additions alone, and one that is not
//! listed any more stays as it is until its last machine is gone. Nothing of this cluster boots.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use end_to_end::fleet::PROFILE;
use end_to_end::{Cluster, MOMENT, condition, condition_text, fleet};
use sandbox::Bed;
use serde_json::{Value, json};

use super::passed;

/// What makes and unmakes of what the cluster's network consists of.
const UNMAKING: [&str; 6] = [
    "DeleteSubnet",
    "DeleteRouteTable",
    "DeleteNatGateway",
    "ReleaseAddress",
    "DisassociateRouteTable",
    "DetachLoadBalancerFromSubnets",
];

fn subnets(zones: &[(&str, u8)]) -> Value {
    let of = |zone: &str, number: u8, public: bool| {
        let number = if public { number } else { number + 100 };
        json!({"id": format!("{zone}-{number}"), "cidrBlock": format!("10.0.{number}.0/24"), "availabilityZone": format!("us-east-1{zone}"),
            "isPublic": public})
    };
    zones.iter().flat_map(|(zone, number)| [of(zone, *number, true), of(zone, *number, false)]).collect()
}

pub async fn zones_come_and_go(bed: &Bed) -> Result<()> {
    let cluster = Cluster::new("default", "zones", 1, 1);
    let spec = json!({"region": "us-east-1", "network": {"subnets": subnets(&[("a", 1), ("b", 2)])}});
    let machine = |range: &str| {
        json!({"instanceType": "t3.large", "iamInstanceProfile": PROFILE,
            "subnet": {"filters": [{"name": "cidr-block", "values": [range]}]}})
    };
    let machines =
        [("control-plane", true, machine("10.0.101.0/24")), ("worker", false, machine("10.0.102.0/24"))];
    bed.apply(&fleet::documents(&cluster, spec, json!({}), &machines)).await?;
    bed.wait_for("two AWSMachines of zones to be ready", MOMENT, async || {
        let machines = cluster.objects(bed, "awsmachines").await?;
        ensure!(machines.len() == 2 && machines.iter().all(|it| condition(it, "Ready") == "True"), "not yet");
        Ok(())
    })
    .await?;
    let vpc = cluster.object(bed, "awscluster", "zones").await?["status"]["networkStatus"]["vpc"]["id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    ensure!(!vpc.is_empty(), "status says no VPC");
    let before = ids(bed, &vpc).await?;

    set(bed, &cluster, subnets(&[("c", 3), ("a", 1)])).await?;
    bed.wait_for("zone c to be there, and zone b to be held", MOMENT, async || {
        let object = cluster.object(bed, "awscluster", "zones").await?;
        let text = condition_text(&object, "SubnetsReady");
        ensure!(condition(&object, "Ready") == "True", "Ready is {}", condition_text(&object, "Ready"));
        ensure!(
            text.contains("is not in spec.network.subnets any more") && text.contains("default/zones-worker"),
            "{text}"
        );
        let zones = zones_of_load_balancer(bed, &vpc).await?;
        ensure!(zones.len() == 3, "the load balancer is in {zones:?}");
        Ok(())
    })
    .await?;
    let after = ids(bed, &vpc).await?;
    ensure!(before.is_subset(&after), "gone: {:?}", before.difference(&after).collect::<Vec<_>>());
    let calls = bed.emulator().calls(0).await?.calls;
    let unmade: BTreeSet<&str> = calls
        .iter()
        .filter(|it| before.iter().any(|id| it.resources.contains(id)))
        .map(|it| it.action.as_str())
        .collect();
    ensure!(UNMAKING.iter().all(|it| !unmade.contains(it)), "{unmade:?}");
    let domains = cluster.object(bed, "awscluster", "zones").await?["status"]["failureDomains"].clone();
    ensure!(
        domains.to_string().contains("us-east-1c") && !domains.to_string().contains("us-east-1b"),
        "{domains}"
    );
    passed("a zone is added by additions alone, and one that is not listed any more stays with its machine");

    bed.kubectl(&["delete", "machine", "zones-worker", "--namespace", &cluster.namespace]).await?;
    bed.wait_for("zone b to be gone", MOMENT, async || {
        let zones = zones_of_load_balancer(bed, &vpc).await?;
        let found =
            bed.aws(&["ec2", "describe-subnets", "--filters", &format!("Name=vpc-id,Values={vpc}")]).await?;
        let left: BTreeSet<&str> = found["Subnets"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| it["AvailabilityZone"].as_str())
            .collect();
        ensure!(
            zones.len() == 2 && left == BTreeSet::from(["us-east-1a", "us-east-1c"]),
            "the balancer is in {zones:?}, subnets in {left:?}"
        );
        let object = cluster.object(bed, "awscluster", "zones").await?;
        let text = condition_text(&object, "SubnetsReady");
        ensure!(condition(&object, "Ready") == "True" && !text.contains("any more"), "{text}");
        Ok(())
    })
    .await?;
    passed("when its last machine is gone, the zone goes too");
    cluster.delete(bed).await
}

async fn set(bed: &Bed, cluster: &Cluster, subnets: Value) -> Result<()> {
    cluster
        .patch(bed, "awscluster", "zones", &json!({"spec": {"network": {"subnets": subnets}}}).to_string())
        .await
}

/// Ids of what the network consists of.
async fn ids(bed: &Bed, vpc: &str) -> Result<BTreeSet<String>> {
    let mut res = BTreeSet::new();
    for (what, list, id) in [
        ("subnets", "Subnets", "SubnetId"),
        ("route-tables", "RouteTables", "RouteTableId"),
        ("nat-gateways", "NatGateways", "NatGatewayId"),
        ("security-groups", "SecurityGroups", "GroupId"),
    ] {
        let filter = if what == "nat-gateways" { "--filter" } else { "--filters" };
        let found = bed
            .aws(&["ec2", &format!("describe-{what}"), filter, &format!("Name=vpc-id,Values={vpc}")])
            .await?;
        let lives =
            |it: &&Value| !["deleting", "deleted"].contains(&it["State"].as_str().unwrap_or_default());
        let of_kind = found[list].as_array().into_iter().flatten().filter(lives);
        res.extend(of_kind.filter_map(|it| it[id].as_str().map(str::to_owned)));
    }
    Ok(res)
}

async fn zones_of_load_balancer(bed: &Bed, vpc: &str) -> Result<BTreeSet<String>> {
    let found = bed.aws(&["elb", "describe-load-balancers"]).await?;
    let all = found["LoadBalancerDescriptions"].as_array().into_iter().flatten();
    let zones =
        all.filter(|it| it["VPCId"] == vpc).filter_map(|it| it["AvailabilityZones"].as_array()).flatten();
    Ok(zones.filter_map(|it| it.as_str().map(str::to_owned)).collect())
}
