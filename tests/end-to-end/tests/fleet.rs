//! Ten clusters at once against an AWS that throttles, fails, loses replies and shows things late, with an
//! operator that is killed again and again. Nothing boots. What must come out is the exact set of resources,
//! and afterwards nothing.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, ensure};
use end_to_end::{account, condition, ensure_nothing_was_forbidden, fleet, wait_until_account_is_empty};
use sandbox::emulator::Fault;
use sandbox::{Bed, Options};

const CLUSTERS: usize = 10;
const MACHINES: usize = 2;
/// A fleet under faults waits for backoff more than for anything else.
const PATIENCE: Duration = Duration::from_secs(900);

#[tokio::test(flavor = "multi_thread")]
async fn on_a_bed_a_fleet_under_faults_is_made_once_and_removed_whole() -> Result<()> {
    let options = Options { name: "fleet".into(), boots: false, ..Options::default() };
    let bed = Bed::up(options).await?;
    bed.emulator().set_faults(&faults()).await?;
    for cluster in 0..CLUSTERS {
        bed.apply(&fleet::manifest(cluster, MACHINES)).await?;
    }
    kill_until(&bed, "every cluster and machine to be provisioned", async || {
        for kind in ["awsclusters", "awsmachines"] {
            let list = bed.kubectl_json(&["get", kind]).await?;
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let ready = items.iter().filter(|it| condition(it, "Ready") == "True").count();
            let wanted = if kind == "awsclusters" { CLUSTERS } else { CLUSTERS * MACHINES };
            ensure!(ready == wanted, "{ready} of {wanted} {kind} are ready");
        }
        Ok(())
    })
    .await?;
    let machines = CLUSTERS * MACHINES;
    let exact = BTreeMap::from([
        ("elastic-ip", CLUSTERS),
        ("instance", machines),
        ("internet-gateway", CLUSTERS),
        ("load-balancer", CLUSTERS),
        ("nat-gateway", CLUSTERS),
        // Of each machine, of the NAT gateway and of the load balancer.
        ("network-interface", machines + 2 * CLUSTERS),
        ("route-table", 2 * CLUSTERS),
        // None of these machines ever fetches its own.
        ("secret", machines),
        ("security-group", 4 * CLUSTERS),
        ("subnet", 2 * CLUSTERS),
        ("volume", machines),
        ("vpc", CLUSTERS),
    ]);
    let found = account(&bed).await?;
    let found: BTreeMap<&str, usize> =
        found.iter().filter(|(_, count)| **count > 0).map(|(kind, count)| (kind.as_str(), *count)).collect();
    ensure!(found == exact, "found {found:?}, wanted {exact:?}");
    bed.kubectl(&["delete", "clusters", "--all", "--wait=false"]).await?;
    kill_until(&bed, "every cluster to be gone", async || {
        let list = bed.kubectl_json(&["get", "awsclusters,awsmachines,clusters"]).await?;
        let left = list["items"].as_array().map_or(0, Vec::len);
        ensure!(left == 0, "{left} objects are left");
        Ok(())
    })
    .await?;
    bed.emulator().set_faults(&[]).await?;
    ensure_nothing_was_forbidden(&bed).await?;
    wait_until_account_is_empty(&bed).await
}

/// Waits, and kills the operator every 20 seconds, twelve times at the most.
async fn kill_until(bed: &Bed, what: &str, check: impl AsyncFn() -> Result<()>) -> Result<()> {
    let mut ended = pin!(bed.wait_for(what, PATIENCE, || check()));
    for _ in 0..12 {
        tokio::select! {
            ended = &mut ended => return ended,
            () = tokio::time::sleep(Duration::from_secs(20)) => (),
        }
        bed.kill_operator().await?;
        bed.start_operator().await?;
    }
    ended.await
}

fn faults() -> Vec<Fault> {
    let random = |kind: &str, probability| Fault {
        kind: kind.into(),
        probability: Some(probability),
        ..Fault::default()
    };
    let lag = Fault { kind: "read-lag".into(), seconds: Some(1.0), ..Fault::default() };
    vec![random("throttle", 0.1), random("error", 0.05), random("lost-reply", 0.1), lag]
}
