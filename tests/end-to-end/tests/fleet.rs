//! Ten clusters at once against an AWS that throttles, fails, loses replies and shows things late, with an operator that is killed again
//! and again. Nothing boots. What must come out is the exact set of resources, and afterwards nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use end_to_end::{account, condition, wait_until_account_is_empty};
use sandbox::emulator::Fault;
use sandbox::{Bed, Options};
use serde_json::Value;

const CLUSTERS: usize = 10;
const MACHINES: usize = 2;
/// A fleet under faults waits for backoff more than for anything else.
const PATIENCE: Duration = Duration::from_secs(900);

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_under_faults_and_kills_is_made_once_and_removed_whole() -> Result<()> {
    let options = Options { name: "fleet".into(), boots: false, ..Options::default() };
    let bed = Bed::up(options).await?;
    bed.emulator().set_faults(&faults()).await?;
    for cluster in 0..CLUSTERS {
        bed.apply(&manifest(cluster)).await?;
    }
    let made = kill_until(&bed, "every cluster and machine to be provisioned", async || {
        for kind in ["awsclusters", "awsmachines"] {
            let list = bed.kubectl_json(&["get", kind]).await?;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let ready = items.iter().filter(|it| condition(it, "Ready") == "True").count();
            let wanted = if kind == "awsclusters" { CLUSTERS } else { CLUSTERS * MACHINES };
            ensure!(ready == wanted, "{ready} of {wanted} {kind} are ready");
        }
        Ok(())
    });
    made.await?;
    let exact = BTreeMap::from([
        ("vpc", CLUSTERS),
        ("subnet", CLUSTERS * 2),
        ("internet-gateway", CLUSTERS),
        ("nat-gateway", CLUSTERS),
        ("elastic-ip", CLUSTERS),
        ("instance", CLUSTERS * MACHINES),
    ]);
    let found = account(&bed).await?;
    for (kind, wanted) in exact {
        ensure!(found.get(kind) == Some(&wanted), "{kind}: {:?}, wanted {wanted}; all: {found:?}", found.get(kind));
    }
    bed.kubectl(&["delete", "clusters", "--all", "--wait=false"]).await?;
    kill_until(&bed, "every cluster to be gone", async || {
        let list = bed.kubectl_json(&["get", "awsclusters,awsmachines,clusters"]).await?;
        let left = list["items"].as_array().map_or(0, Vec::len);
        ensure!(left == 0, "{left} objects are left");
        Ok(())
    })
    .await?;
    bed.emulator().set_faults(&[]).await?;
    wait_until_account_is_empty(&bed).await
}

/// Waits, and kills the operator every 20 seconds, twelve times at the most.
async fn kill_until(bed: &Bed, what: &str, check: impl AsyncFn() -> Result<()>) -> Result<()> {
    let kills = async {
        for _ in 0..12 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            bed.kill_operator().await?;
            bed.start_operator().await?;
        }
        std::future::pending::<Result<()>>().await
    };
    tokio::select! {
        ended = bed.wait_for(what, PATIENCE, || check()) => ended,
        failed = kills => failed,
    }?;
    // The last kill may have come between a stop and a start.
    bed.start_operator().await
}

fn faults() -> Vec<Fault> {
    let random = |kind: &str, probability| Fault { kind: kind.into(), probability: Some(probability), ..Fault::default() };
    let lag = Fault { kind: "read-lag".into(), seconds: Some(1.0), ..Fault::default() };
    vec![random("throttle", 0.1), random("error", 0.05), random("lost-reply", 0.1), lag]
}

/// A cluster of plain Machines whose bootstrap data is there: nothing of Kubernetes has to boot.
fn manifest(number: usize) -> String {
    let name = format!("fleet-{number}");
    let mut documents: Vec<Value> = vec![
        serde_json::json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name, "namespace": "default"},
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSCluster", "name": name}}}),
        serde_json::json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSCluster",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"region": "us-east-1", "network": {"vpc": {"availabilityZoneUsageLimit": 1}}}}),
        serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-bootstrap"), "namespace": "default",
            "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "type": "cluster.x-k8s.io/secret", "stringData": {"format": "cloud-config", "value": "#cloud-config\n{}\n"}}),
    ];
    for machine in 0..MACHINES {
        let machine_name = format!("{name}-{machine}");
        let mut labels = serde_json::json!({"cluster.x-k8s.io/cluster-name": name});
        if machine == 0 {
            labels["cluster.x-k8s.io/control-plane"] = "".into();
        }
        documents.push(serde_json::json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {"name": machine_name, "namespace": "default", "labels": labels},
            "spec": {"clusterName": name, "version": "v1.36.3", "bootstrap": {"dataSecretName": format!("{name}-bootstrap")},
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSMachine", "name": machine_name}}}));
        documents.push(serde_json::json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachine",
            "metadata": {"name": machine_name, "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": name}},
            "spec": {"instanceType": "t3.large",
                "iamInstanceProfile": "nodes.cluster-api-provider-aws.sigs.k8s.io"}}));
    }
    documents.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")
}
