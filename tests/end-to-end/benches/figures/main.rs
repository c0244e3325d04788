//! Prints the project's figures: AWS calls, API writes and requests, processor time and memory, each beside
//! its bar. Counts rather than timings. It fails only when something cannot be measured; a figure over its
//! bar is printed as such.
//!
//! `FIGURES_SETTLED_SECONDS` shortens the ten settled minutes; `FIGURES` picks some of `create`, `add-ons`,
//! `settled`, `fleet`.

mod add_ons;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use end_to_end::{Cluster, condition, fleet};
use sandbox::emulator::Call;
use sandbox::{Bed, Options};
use serde_json::Value;

const FLEET: usize = 20;
const MACHINES: usize = 5;
/// Seconds that NAT gateways and instances take in the emulator.
const EMULATOR_DELAY: Duration = Duration::from_secs(2);
/// How long what was just made may still be looked at before it counts as settled.
const SETTLING: Duration = Duration::from_secs(90);
/// The operator's counter of writes to the management API, the Lease aside.
const WRITES: &str = "cluster_operator_api_writes_total";
/// The operator's counter of looks at clusters and machines.
const LOOKS: &str = "cluster_operator_reconciles_total";

#[tokio::main]
async fn main() -> Result<()> {
    let chosen = std::env::var("FIGURES").unwrap_or_else(|_| "create add-ons settled fleet".into());
    let settled = std::env::var("FIGURES_SETTLED_SECONDS").ok().and_then(|it| it.parse().ok());
    let settled = Duration::from_secs(settled.unwrap_or(600));
    println!("{:<66} {:>12} {:>12}", "figure", "measured", "bar");
    if chosen.contains("create") {
        create().await?;
    }
    if chosen.contains("add-ons") {
        add_ons::figures(settled).await?;
    }
    if chosen.contains("settled") {
        fleet_of(1, settled).await?;
    }
    if chosen.contains("fleet") {
        fleet_of(FLEET, settled).await?;
    }
    Ok(())
}

fn print(figure: &str, measured: impl std::fmt::Display, bar: &str) {
    println!("{figure:<66} {measured:>12} {bar:>12}");
}

async fn calls(bed: &Bed, since: u64) -> Result<Vec<Call>> {
    let all = bed.emulator().calls(since).await?.calls;
    Ok(all
        .into_iter()
        .filter(|call| call.caller.as_deref().is_some_and(|it| it.contains("operator")))
        .collect())
}

fn writes(calls: &[Call]) -> usize {
    calls.iter().filter(|it| it.write).count()
}

/// One control plane and one worker, to the point where the control plane is initialized.
async fn create() -> Result<()> {
    let bed = Bed::up(Options { name: "figures".into(), ..Options::default() }).await?;
    let cluster = Cluster::new("default", "figures", 1, 1);
    cluster.apply(&bed).await?;
    wait_until_initialized(&bed, &cluster).await?;
    let made = calls(&bed, 0).await?;
    print("AWS calls, 1 control plane + 1 worker, to initialized", made.len(), "<= 90");
    print("  of them writes", writes(&made), "<= 42");
    print(
        "our share of the time to initialized, seconds, at most",
        format!("{:.1}", own_share(&bed, &cluster, &made).await?.as_secs_f64()),
        "<= 4",
    );
    cluster.wait_until_ready(&bed).await?;
    let all = calls(&bed, 0).await?;
    print("AWS calls until every Node is Ready", all.len(), "");
    print("  of them writes", writes(&all), "");
    let mut by_action = std::collections::BTreeMap::<String, usize>::new();
    all.iter().for_each(|it| *by_action.entry(it.action.clone()).or_default() += 1);
    for (action, count) in by_action {
        println!("    {action:<40} {count:>4}");
    }
    Ok(())
}

async fn wait_until_initialized(bed: &Bed, cluster: &Cluster) -> Result<()> {
    bed.wait_for("the control plane to be initialized", end_to_end::BOOT, async || {
        let object = cluster.object(bed, "cluster", &cluster.name).await?;
        ensure!(object["status"]["initialization"]["controlPlaneInitialized"] == true, "not yet");
        Ok(())
    })
    .await
}

/// How long the operator could have sent something and had not: from the moment Cluster API had
/// set the owner to the last write for the network, but for the time the NAT gateway took; from bootstrap
/// data to the instance; from a running instance to the load balancer. The API tells its times in whole
/// seconds, cut off, so that this is up to two seconds too much.
async fn own_share(bed: &Bed, cluster: &Cluster, calls: &[Call]) -> Result<Duration> {
    let arguments =
        ["get", "awscluster", &cluster.name, "--namespace", &cluster.namespace, "--show-managed-fields"];
    let object = bed.kubectl_json(&arguments).await?;
    let fields = object["metadata"]["managedFields"].as_array().context("no managed fields")?;
    let owner = fields
        .iter()
        .find(|it| it["fieldsV1"]["f:metadata"].get("f:ownerReferences").is_some())
        .context("no owner")?;
    let owned = since_1970(bed, &owner["time"]).await?;
    let bootstrap = bootstrapped(bed, cluster, true).await?;
    let at = |action: &str| {
        calls.iter().find(|it| it.action == action).map(time).with_context(|| format!("no call of {action}"))
    };
    let machine_began = at("CreateSecret")?;
    let network = calls.iter().filter(|it| it.write).map(time).filter(|time| *time < machine_began).max();
    let network = network.unwrap_or_default();
    let (run, register) = (at("RunInstances")?, at("RegisterInstancesWithLoadBalancer")?);
    let spans = [(owned + EMULATOR_DELAY, network), (bootstrap, run), (run + EMULATOR_DELAY, register)];
    Ok(spans.into_iter().map(|(from, to)| to.saturating_sub(from)).sum())
}

/// When the bootstrap data of a control plane machine, or of a worker, was made.
async fn bootstrapped(bed: &Bed, cluster: &Cluster, control_plane: bool) -> Result<Duration> {
    let machines = cluster.objects(bed, "machines").await?;
    let is_wanted = |machine: &&Value| {
        machine["metadata"]["labels"].get("cluster.x-k8s.io/control-plane").is_some() == control_plane
    };
    let machine = machines.iter().find(is_wanted).context("no such machine")?;
    let secret = machine["spec"]["bootstrap"]["dataSecretName"].as_str().context("no bootstrap data")?;
    since_1970(bed, &cluster.object(bed, "secret", secret).await?["metadata"]["creationTimestamp"]).await
}

/// When a call was made, as the time since 1970.
fn time(call: &Call) -> Duration {
    Duration::from_secs_f64(call.time)
}

/// A time that an API tells, as the time since 1970.
async fn since_1970(bed: &Bed, time: &Value) -> Result<Duration> {
    let text = bed.exec("date", &["--date", time.as_str().context("no time")?, "+%s"]).await?;
    Ok(Duration::from_secs(text.trim().parse().context("no time")?))
}

/// A fleet that boots nothing: made, then left alone.
async fn fleet_of(clusters: usize, settled: Duration) -> Result<()> {
    let bed =
        Bed::up(Options { name: format!("figures-{clusters}"), boots: false, ..Options::default() }).await?;
    let before = usage(&bed).await?;
    for cluster in 0..clusters {
        bed.apply(&fleet::manifest(cluster, MACHINES)).await?;
    }
    bed.wait_for("the fleet to be ready", Duration::from_secs(900), async || {
        for (kind, wanted) in [("awsclusters", clusters), ("awsmachines", clusters * MACHINES)] {
            let list = bed.kubectl_json(&["get", kind]).await?;
            let ready = list["items"]
                .as_array()
                .map_or(0, |objects| objects.iter().filter(|it| condition(it, "Ready") == "True").count());
            ensure!(ready == wanted, "{ready} of {wanted} {kind} are ready");
        }
        Ok(())
    })
    .await?;
    let made = calls(&bed, 0).await?;
    let (processor, _) = usage(&bed).await?;
    let name = format!("{clusters} x {MACHINES}");
    let bar = |text: &'static str| if clusters == FLEET { text } else { "" };
    print(&format!("{name}: AWS calls to create"), made.len(), bar("<= 1400"));
    print(
        &format!("{name}: processor seconds to create"),
        format!("{:.2}", processor - before.0),
        bar("<= 3"),
    );
    print("  management API writes", counted(&bed, WRITES).await?, "");
    print("  looks at objects", counted(&bed, LOOKS).await?, "");
    tokio::time::sleep(SETTLING).await;
    let from = bed.emulator().calls(0).await?.next;
    let wrote = counted(&bed, WRITES).await?;
    tokio::time::sleep(settled).await;
    let quiet = calls(&bed, from).await?;
    print(&format!("{name}: AWS calls in {} settled seconds", settled.as_secs()), quiet.len(), "<= 40");
    print("  of them writes", writes(&quiet), "0");
    print("  management API writes", counted(&bed, WRITES).await? - wrote, "0");
    print(&format!("{name}: memory, MiB (RSS)"), usage(&bed).await?.1 / 1024, bar("<= 60"));
    Ok(())
}

/// Processor seconds and KiB of resident memory of the operator.
async fn usage(bed: &Bed) -> Result<(f64, u64)> {
    let script = "p=$(pgrep -o -f 'cluster-operator run') && cat /proc/$p/stat && grep VmRSS /proc/$p/status";
    let text = bed.exec("sh", &["-c", script]).await.context("looking at the operator's process")?;
    let (stat, memory) = text.split_once('\n').context("no memory line")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).and_then(|it| it.parse::<f64>().ok()).context("no processor time");
    let kib = memory.split_whitespace().nth(1).and_then(|it| it.parse().ok()).context("no resident size")?;
    // Linux counts processor time in hundredths of a second for user space.
    Ok(((ticks(11)? + ticks(12)?) / 100.0, kib))
}

/// What the operator counted so far under one name, whatever the labels.
async fn counted(bed: &Bed, name: &str) -> Result<u64> {
    Ok(sum(&metrics(bed).await?, name))
}

/// Everything that the operator counts.
async fn metrics(bed: &Bed) -> Result<String> {
    bed.exec("curl", &["--silent", "--fail", "http://127.0.0.1:8080/metrics"])
        .await
        .context("reading the operator's metrics")
}

/// The sum of all counters that begin with a name, and perhaps the first of its labels.
fn sum(metrics: &str, beginning: &str) -> u64 {
    let lines = metrics.lines().filter(|it| it.starts_with(beginning));
    lines.filter_map(|it| it.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
}
