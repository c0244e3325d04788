//! Calico's settings on a cluster that lives: each is changed and changed back, also where its operator holds
//! what it filled in, and traffic that is there is let through until the new one is.

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::plugin;
use end_to_end::{BOOT, Cluster, MOMENT, condition, condition_text};
use sandbox::Bed;
use serde_json::{Value, json};

use super::passed;

const INSTALLATION: &str = "installations.operator.tigera.io";

/// All of it, on a cluster whose network is Calico.
pub async fn settings_come_and_go(bed: &Bed, cluster: &Cluster) -> Result<()> {
    everything_that_the_operator_says_is_good(bed, cluster).await?;
    the_encapsulation_changes_before_the_old_traffic_is_closed(bed, cluster).await?;
    what_the_operator_filled_in_is_taken_over(bed, cluster).await?;
    blocks_in_use_stay(bed, cluster).await?;
    calico_node_sets_the_check_where_every_role_lets_it(bed, cluster).await
}

async fn everything_that_the_operator_says_is_good(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let statuses = workload.kubectl_json(&["get", "tigerastatuses"]).await?;
    let mut said = Vec::new();
    for status in statuses["items"].as_array().into_iter().flatten() {
        let available = |it: &&Value| it["type"] == "Available" && it["status"] == "True";
        ensure!(
            status["status"]["conditions"].as_array().into_iter().flatten().any(|it| available(&it)),
            "{status}"
        );
        said.push(status["metadata"]["name"].as_str().unwrap_or_default().to_owned());
    }
    ensure!(said == ["apiserver", "calico", "ippools", "tiers"], "it says something of {said:?}");
    passed("of Calico, every TigeraStatus is good, that of its API server too");
    Ok(())
}

/// The default rules of an AWSCluster let IP in IP and BGP in for good, so VXLAN is what is looked at.
async fn the_encapsulation_changes_before_the_old_traffic_is_closed(
    bed: &Bed,
    cluster: &Cluster,
) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    for (encapsulation, wanted) in [("IPIP", ("Always", "Never")), ("VXLAN", ("Never", "Always"))] {
        set(bed, cluster, json!({"encapsulation": encapsulation})).await?;
        bed.wait_for("the pool to change", MOMENT, async || {
            let before = lets_vxlan_in(bed, cluster).await?;
            let pool = workload
                .kubectl_json(&["get", "ippools.crd.projectcalico.org", "default-ipv4-ippool"])
                .await?;
            let modes = (
                pool["spec"]["ipipMode"].as_str().unwrap_or_default(),
                pool["spec"]["vxlanMode"].as_str().unwrap_or_default(),
            );
            // Opened in between is early enough, and so is closed in between.
            let is_open = before || modes.1 != "Always" || lets_vxlan_in(bed, cluster).await?;
            assert!(is_open, "the pool is {modes:?}, and VXLAN is closed");
            ensure!(modes == wanted, "it is {modes:?}");
            Ok(())
        })
        .await?;
        networking_is_ready(bed, cluster).await?;
        bed.wait_for("VXLAN to be let in while it is used, and not any more", MOMENT, async || {
            ensure!(lets_vxlan_in(bed, cluster).await? == (encapsulation == "VXLAN"), "it is not so");
            Ok(())
        })
        .await?;
    }
    passed(
        "another encapsulation reaches pools and nodes before the traffic of the old one is closed, and so does the old one again",
    );
    Ok(())
}

/// As on a cluster that was installed before every field of the pools was applied.
async fn what_the_operator_filled_in_is_taken_over(bed: &Bed, cluster: &Cluster) -> Result<()> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let mut pools = workload.kubectl_json(&["get", INSTALLATION, "default"]).await?["spec"]["calicoNetwork"]
        ["ipPools"]
        .clone();
    pools[0]["natOutgoing"] = json!("Disabled");
    let patch = json!({"spec": {"calicoNetwork": {"ipPools": pools}}}).to_string();
    workload
        .kubectl(&[
            "patch",
            INSTALLATION,
            "default",
            "--type=merge",
            "--field-manager=tigera-operator",
            "--patch",
            &patch,
        ])
        .await?;
    for settings in [
        json!({"natOutgoing": false, "resources": {"cpu": "50m"}, "controlPlaneReplicas": 1}),
        json!({"natOutgoing": true, "resources": {"cpu": null}, "controlPlaneReplicas": null}),
        json!({"mtu": 1400, "typhaResources": {"memory": "64Mi"}}),
        json!({"mtu": null, "typhaResources": {"memory": null}}),
    ] {
        set(bed, cluster, settings).await?;
        networking_is_ready(bed, cluster).await?;
    }
    let stored = workload.kubectl_json(&["get", INSTALLATION, "default", "--show-managed-fields"]).await?;
    ensure!(stored["spec"]["calicoNetwork"]["ipPools"][0]["natOutgoing"] == "Enabled", "{}", stored["spec"]);
    let managers = stored["metadata"]["managedFields"].as_array().context("it has managers")?;
    let holds = |it: &&Value| it["fieldsV1"]["f:spec"]["f:calicoNetwork"].get("f:ipPools").is_some();
    let holders: Vec<&str> = managers.iter().filter(holds).filter_map(|it| it["manager"].as_str()).collect();
    ensure!(holders == ["cluster-operator-calico"], "{holders:?} hold the pools");
    passed(
        "settings of Calico are changed and changed back without a conflict, also where its operator held the pools",
    );
    Ok(())
}

async fn blocks_in_use_stay(bed: &Bed, cluster: &Cluster) -> Result<()> {
    set(bed, cluster, json!({"blockSize": 28})).await?;
    bed.wait_for("the change to be refused", MOMENT, async || {
        let text = condition_text(&plugin(bed, cluster).await?, "NetworkingReady");
        ensure!(
            text.contains("spec.networking.calico.blockSize: cannot be changed: nodes have blocks of /26"),
            "it says {text:?}"
        );
        Ok(())
    })
    .await?;
    set(bed, cluster, json!({"blockSize": null})).await?;
    networking_is_ready(bed, cluster).await?;
    passed("other blocks for pools in use are refused with the reason");
    Ok(())
}

/// The roles of machines are made with no policy for it.
async fn calico_node_sets_the_check_where_every_role_lets_it(bed: &Bed, cluster: &Cluster) -> Result<()> {
    const ROLES: [&str; 2] =
        ["control-plane.cluster-api-provider-aws.sigs.k8s.io", "nodes.cluster-api-provider-aws.sigs.k8s.io"];
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let felix = async || {
        workload.kubectl_json(&["get", "felixconfigurations.crd.projectcalico.org", "--output=json"]).await
    };
    set(bed, cluster, json!({"sourceDestinationCheck": "Enable"})).await?;
    let actions = "ec2:DescribeInstances, ec2:ModifyNetworkInterfaceAttribute";
    bed.wait_for("the roles to be found wanting", MOMENT, async || {
        let text = condition_text(&plugin(bed, cluster).await?, "NetworkingReady");
        ensure!(
            text.starts_with("PermissionsMissing: ") && ROLES.iter().all(|role| text.contains(role)),
            "it says {text:?}"
        );
        ensure!(actions.split(", ").all(|action| text.contains(action)), "it says {text:?}");
        Ok(())
    })
    .await?;
    ensure!(!felix().await?.to_string().contains("awsSrcDstCheck"), "it was written before");
    let actions: Vec<&str> = actions.split(", ").collect();
    let policy = json!({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}).to_string();
    for role in ROLES {
        bed.aws(&[
            "iam",
            "put-role-policy",
            "--role-name",
            role,
            "--policy-name",
            "felix",
            "--policy-document",
            &policy,
        ])
        .await?;
    }
    networking_is_ready(bed, cluster).await?;
    ensure!(felix().await?["items"][0]["spec"]["awsSrcDstCheck"] == "Enable", "{}", felix().await?);
    set(bed, cluster, json!({"sourceDestinationCheck": null})).await?;
    networking_is_ready(bed, cluster).await?;
    passed("calico-node is told to set the source/destination check once the role of every instance lets it");
    Ok(())
}

async fn set(bed: &Bed, cluster: &Cluster, settings: Value) -> Result<()> {
    let patch = json!({"spec": {"networking": {"calico": settings}}}).to_string();
    cluster.patch(bed, "clusterplugin", &cluster.name, &patch).await.map(drop)
}

/// Waits until networking is ready with the settings as they are now.
async fn networking_is_ready(bed: &Bed, cluster: &Cluster) -> Result<()> {
    bed.wait_for("networking to be ready", BOOT, async || {
        let object = plugin(bed, cluster).await?;
        let text = condition_text(&object, "NetworkingReady");
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let of = conditions
            .iter()
            .find(|it| it["type"] == "NetworkingReady")
            .map(|it| it["observedGeneration"].clone());
        ensure!(of.as_ref() == Some(&object["metadata"]["generation"]), "it is of generation {of:?}");
        ensure!(condition(&object, "NetworkingReady") == "True", "it says {text:?}");
        Ok(())
    })
    .await
}

/// Whether the machines let VXLAN in from one another.
async fn lets_vxlan_in(bed: &Bed, cluster: &Cluster) -> Result<bool> {
    let name = format!("Name=tag:sigs.k8s.io/cluster-api-provider-aws/cluster/{},Values=owned", cluster.name);
    let groups = bed.aws(&["ec2", "describe-security-groups", "--filters", &name]).await?;
    let rules = groups["SecurityGroups"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|it| it["IpPermissions"].as_array())
        .flatten();
    let from_groups = |rule: &&Value| rule["UserIdGroupPairs"].as_array().is_some_and(|it| !it.is_empty());
    Ok(rules.filter(from_groups).any(|it| it["IpProtocol"] == "udp" && it["FromPort"] == 4789))
}
