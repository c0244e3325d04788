//! Figures of a cluster with every built-in add-on but Calico, which is in the way of the VPC CNI: how much
//! of the time is ours, what it takes to install them, and what they cost when they are left alone. Of the
//! operator it asks nothing but what that counts itself.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use end_to_end::add_ons::{ACCOUNT, FLAVOR, NAME, ROLES, file_system, manifest, prepare, running};
use end_to_end::{Cluster, MOMENT, find_condition};
use sandbox::emulator::Call;
use sandbox::{Bed, Options};
use serde_json::{Value, json};

use super::{SETTLING, bootstrapped, calls, metrics, print, since_1970, sum, time, wait_until_initialized};

/// The operator's counter of requests to workload clusters.
const REQUESTS: &str = "cluster_operator_workload_requests_total";
/// Add-ons of the cluster.
const ADD_ONS: usize = 5;
/// Add-ons without which no Node is Ready.
const FIRST: [&str; 2] = ["aws-cloud-controller-manager", "aws-vpc-cni"];
/// Services, as the emulator names them, that are called for roles, file systems and issuers alone as long as
/// nothing is deleted.
const SERVICES: [&str; 5] = ["elasticfilesystem", "iam", "s3", "sts", "tagging"];

/// Makes the cluster, prints what it took, and what it takes while it is left alone for `settled`.
pub async fn figures(settled: Duration) -> Result<()> {
    let bed = Bed::up(Options { name: "add-ons".into(), ..Options::default() }).await?;
    let cluster = installed(&bed).await?;
    let requests = Requests::so_far(&bed).await?;
    ensure!(requests.all > 0, "the operator counts no requests to workload clusters");
    let made = calls(&bed, 0).await?;
    cluster.wait_until_ready(&bed).await?;
    let objects = objects(&bed, &cluster).await?;
    let share = own_share(&bed, &cluster, &objects).await?;
    print(
        "our share from initialized to all Nodes Ready, seconds, at most",
        format!("{:.0}", share.as_secs_f64()),
        "<= 3",
    );
    let launch = launch(&bed, &cluster).await?;
    print("  beside it, for the worker's own instance, at most", format!("{:.1}", launch.as_secs_f64()), "");
    print("objects of all add-ons", objects.len(), "");
    print("workload API requests to install them", requests.all, "");
    print("  of them writes", requests.writes, "");
    print("  for each object", per(requests.all as f64, objects.len()), "<= 2.5");
    print("AWS calls of add-ons until all run", of_add_ons(&made).count(), "");
    left_alone(&bed, objects.len(), settled).await
}

/// A cluster whose add-ons all run, with roles that are right from the start and a file system that is there
/// before its driver is.
async fn installed(bed: &Bed) -> Result<Cluster> {
    prepare(bed, None).await?;
    let cluster = Cluster::new("default", NAME, 1, 1).of_flavor(FLAVOR).with("AWS_AVAILABILITY_ZONES", "2");
    bed.apply(&manifest(bed, &cluster).await?).await?;
    bed.wait_for("the network to be there", MOMENT, async || {
        let object = cluster.object(bed, "awscluster", &cluster.name).await?;
        ensure!(object["status"]["initialization"]["provisioned"] == true, "not yet");
        Ok(())
    })
    .await?;
    let file_system = file_system(bed, &cluster).await?;
    let efs =
        json!({"roleARN": format!("arn:aws:iam::{ACCOUNT}:role/full-efs"), "fileSystemID": file_system});
    cluster
        .patch(bed, "clusterplugin", &cluster.name, &json!({"spec": {"storage": {"efs": efs}}}).to_string())
        .await?;
    wait_until_initialized(bed, &cluster).await?;
    running(bed, &cluster, ADD_ONS).await?;
    Ok(cluster)
}

/// What they cost when nobody changes anything, for ten minutes; a shorter time may miss the one look that
/// there is in ten. Roles, the issuer and the file system are read anew every half hour: this may see all of
/// that or nothing, and what one round of it takes is at most what it took to install them.
async fn left_alone(bed: &Bed, objects: usize, settled: Duration) -> Result<()> {
    tokio::time::sleep(SETTLING).await;
    let from = bed.emulator().calls(0).await?.next;
    let before = Requests::so_far(bed).await?;
    tokio::time::sleep(settled).await;
    let after = Requests::so_far(bed).await?;
    let in_ten_minutes = |count: u64| count as f64 * 600.0 / settled.as_secs().max(1) as f64;
    let requests = after.all - before.all;
    print(&format!("workload API requests in {} settled seconds", settled.as_secs()), requests, "");
    print("  for each object, in ten minutes", per(in_ten_minutes(requests), objects), "<= 1.2");
    print("  of them writes", after.writes - before.writes, "0");
    let aws = of_add_ons(&calls(bed, from).await?).count() as u64;
    // Each role, the issuer, and the file system.
    let distinct = ROLES.len() + 2;
    print(
        "AWS calls of settled add-ons, in ten minutes",
        format!("{:.0}", in_ten_minutes(aws)),
        &format!("<= {}", 10 + 6 * distinct),
    );
    Ok(())
}

fn per(count: f64, objects: usize) -> String {
    format!("{:.2}", count / objects as f64)
}

fn of_add_ons(calls: &[Call]) -> impl Iterator<Item = &Call> {
    calls.iter().filter(|it| SERVICES.contains(&it.service.as_str()))
}

/// Requests of the operator to workload clusters.
struct Requests {
    all: u64,
    writes: u64,
}

impl Requests {
    async fn so_far(bed: &Bed) -> Result<Self> {
        let metrics = metrics(bed).await?;
        let all = sum(&metrics, REQUESTS);
        let reads: u64 =
            ["get", "list"].iter().map(|verb| sum(&metrics, &format!("{REQUESTS}{{verb=\"{verb}\""))).sum();
        Ok(Self { all, writes: all - reads })
    }
}

/// An object that the operator applied for an add-on.
struct Applied {
    module: String,
    /// As the API server tells it: in whole seconds.
    created: String,
}

/// Every object that the records of add-ons in the cluster name. Those records, and certificates, are not
/// among them.
///
/// # Errors
/// One that is recorded is not there: the count would be wrong.
async fn objects(bed: &Bed, cluster: &Cluster) -> Result<Vec<Applied>> {
    let workload = bed.workload(&cluster.namespace, &cluster.name).await?;
    let label = "cluster.kurator.dev/inventory";
    let records = workload
        .kubectl_json(&["get", "configmaps", "--namespace", "kube-system", "--selector", label])
        .await?;
    let mut recorded: Vec<(String, Value)> = Vec::new();
    for record in items(&records) {
        let text = record["data"]["inventory"].as_str().context("a record is empty")?;
        let record: Value = serde_json::from_str(text).context("reading a record")?;
        let module = record["module"].as_str().context("a record names no add-on")?;
        recorded.extend(
            record["objects"].as_array().into_iter().flatten().map(|it| (module.to_owned(), it.clone())),
        );
    }
    ensure!(!recorded.is_empty(), "no add-on is recorded");
    let kinds: BTreeSet<String> = recorded.iter().map(|(_, object)| kind(object)).collect();
    let kinds = kinds.into_iter().collect::<Vec<_>>().join(",");
    let live = workload.kubectl_json(&["get", &kinds, "--all-namespaces"]).await?;
    let applied = |(module, object): (String, Value)| -> Result<Applied> {
        let is_it = |found: &&Value| {
            found["kind"] == object["kind"]
                && found["metadata"]["name"] == object["name"]
                && found["metadata"]["namespace"] == object["namespace"]
        };
        let live = items(&live).find(is_it).with_context(|| format!("{object} of {module} is not there"))?;
        let created =
            live["metadata"]["creationTimestamp"].as_str().context("an object has no age")?.to_owned();
        Ok(Applied { module, created })
    };
    recorded.into_iter().map(applied).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

/// The kind of an object as kubectl takes it: `daemonset.apps`.
fn kind(object: &Value) -> String {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_lowercase();
    match text("apiVersion").split_once('/') {
        Some((group, _)) => format!("{}.{group}", text("kind")),
        None => text("kind"),
    }
}

/// The time from the moment when Cluster API found the control plane initialized, for which it had asked the
/// cluster's API server, until the last object of the cloud provider and of the network was there. All of
/// that counts as ours, the API server's own time too. After it Nodes wait for their Pods, and a worker for
/// its machine: for others. The APIs tell both times in whole seconds, cut off, and this adds one: it is up
/// to two seconds too much, and never too little.
async fn own_share(bed: &Bed, cluster: &Cluster, objects: &[Applied]) -> Result<Duration> {
    let control_plane =
        cluster.object(bed, "kubeadmcontrolplane", &format!("{}-control-plane", cluster.name)).await?;
    let initialized = find_condition(&control_plane, "Initialized")
        .filter(|it| it["status"] == "True")
        .context("it is not initialized")?;
    let initialized = since_1970(bed, &initialized["lastTransitionTime"]).await?;
    let of =
        |module: &str| objects.iter().filter(|it| it.module == module).map(|it| it.created.as_str()).max();
    let mut last = Duration::ZERO;
    for module in FIRST {
        // Times of one form, all in UTC: the text that is greatest is the latest.
        let created = of(module).with_context(|| format!("{module} has no objects"))?;
        last = last.max(since_1970(bed, &json!(created)).await?);
    }
    ensure!(last >= initialized, "objects were there before the control plane was initialized");
    Ok(last - initialized + Duration::from_secs(1))
}

/// The time from the bootstrap data of the worker, which Cluster API makes once the control plane is
/// initialized, to the call for its instance: what its Node waits for us besides. Bootstrap data is as old as
/// a whole second, cut off: it is up to one second too much.
async fn launch(bed: &Bed, cluster: &Cluster) -> Result<Duration> {
    let bootstrapped = bootstrapped(bed, cluster, false).await?;
    // The worker's is the last one.
    let calls = calls(bed, 0).await?;
    let launched = calls
        .iter()
        .rev()
        .find(|it| it.action == "RunInstances" && it.status == Some(200))
        .context("no instance")?;
    Ok(time(launched).saturating_sub(bootstrapped))
}
