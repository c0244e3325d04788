//! `cluster-operator plan -f FILE`: what would be created for the objects of a file. It reads AWS if there
//! are credentials, and changes nothing. It does not even read a management cluster.

mod add_ons;
pub mod machines;
pub mod objects;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use crds::AWSCluster;
use crds::cluster_api::{Cluster, ContractVersionedObjectReference};
use infra::PersistedState;
use infra::cluster::{Decision, Input};
use kube::ResourceExt;
use model::{Interest, Read, Snapshot};
use serde_json::Value;

use objects::{objects, of_kind, read};

use crate::system::{now, random};

/// How long AWS may take to be read.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options of `cluster-operator plan`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// File with Kubernetes objects as YAML; `-`: standard input.
    #[arg(short = 'f', long = "filename")]
    file: PathBuf,
}

/// Prints the plan for every cluster of the file.
///
/// # Errors
/// The file cannot be read, is not YAML, or has no Cluster with an AWSCluster; AWS cannot be read although
/// there are credentials.
pub async fn print(options: Options) -> anyhow::Result<()> {
    let objects = objects(&read(&options.file)?)
        .with_context(|| format!("{} cannot be read", options.file.display()))?;
    let clusters: Vec<Cluster> = of_kind(&objects, "Cluster", "cluster.x-k8s.io")?;
    anyhow::ensure!(!clusters.is_empty(), "{} has no Cluster (cluster.x-k8s.io)", options.file.display());
    let aws = match aws::Aws::connect().await {
        Ok(aws) => Some(aws),
        Err(error) => {
            println!("# {error}: AWS is not read, so this is the plan for an empty account");
            None
        }
    };
    for cluster in clusters {
        print_cluster(&cluster, &objects, aws.as_ref()).await?;
    }
    Ok(())
}

async fn print_cluster(cluster: &Cluster, objects: &[Value], aws: Option<&aws::Aws>) -> anyhow::Result<()> {
    let name = cluster.name_any();
    let all: Vec<AWSCluster> = of_kind(objects, "AWSCluster", "infrastructure.cluster.x-k8s.io")?;
    let named =
        |it: &ContractVersionedObjectReference| all.iter().find(|object| object.name_any() == it.name);
    let Some(aws_cluster) = cluster.spec.infrastructure_ref.as_ref().and_then(named) else {
        println!("# Cluster {name}: its AWSCluster is not in the file");
        return Ok(());
    };
    let region = &aws_cluster.spec.region;
    anyhow::ensure!(!region.is_empty(), "AWSCluster {}: spec.region is missing", aws_cluster.name_any());
    println!("# Cluster {name} in {region}");
    if infra::cluster::is_external(aws_cluster) {
        println!("# somebody else looks after AWSCluster {}: only machines are made", aws_cluster.name_any());
        return print_machines(cluster, objects);
    }
    let mut record = PersistedState::of_cluster(aws_cluster)?;
    if record.id.is_empty() {
        record.id = "preview".into();
    }
    let random = random();
    let decide = |snapshot: &Snapshot| {
        let (record, random) = (&record, random.as_str());
        let input = Input {
            cluster,
            aws_cluster,
            machines: &[],
            rules: Some(&[]),
            snapshot,
            record,
            now: now(),
            random,
        };
        infra::cluster::decide(&input)
    };
    // A decision without a snapshot names what of the user's has to be read.
    let wanted = decide(&Snapshot::default()).interest;
    let snapshot = match aws {
        Some(aws) => whole(aws, region, wanted).await?,
        None => Arc::new(empty(region, wanted)),
    };
    let decision = decide(&snapshot);
    print_decision(&decision);
    if decision.invalid.is_none() {
        print_machines(cluster, objects)?;
        add_ons::print(cluster, aws_cluster, objects, &decision).await?;
    }
    Ok(())
}

fn print_machines(cluster: &Cluster, objects: &[Value]) -> anyhow::Result<()> {
    for (resource, what) in machines::machines(cluster, objects)? {
        println!("later   {resource}: {what}");
    }
    Ok(())
}

fn print_decision(decision: &Decision) {
    if let Some(invalid) = &decision.invalid {
        println!("invalid {invalid}");
        return;
    }
    print!("{}", decision.plan);
    if decision.plan.is_settled() {
        println!("# nothing to do: everything is as it should be");
    }
}

/// Everything of clusters that AWS has in a region, and what is wanted besides.
///
/// # Errors
/// Something cannot be read.
pub async fn whole(aws: &aws::Aws, region: &str, wanted: Interest) -> anyhow::Result<Arc<Snapshot>> {
    let region_name = region;
    let region = aws.region(region);
    let routes_of = wanted.route_tables_of.clone();
    region.interest("plan", Interest { reads: BTreeSet::from(Read::ALL), ..wanted });
    let mut view = region.view();
    let read = async {
        loop {
            let now = view.borrow_and_update().clone();
            if let Some(problem) = now.problems.values().next() {
                anyhow::bail!("{region_name} cannot be read: {}: {}", problem.code, problem.message);
            }
            let is_whole = |snapshot: &&Arc<Snapshot>| {
                let all = Read::ALL.iter().all(|read| snapshot.read_at.contains_key(read));
                all && !snapshot.zones.is_empty() && routes_of.is_subset(&snapshot.route_tables_read)
            };
            if let Some(snapshot) = now.snapshot.as_ref().filter(is_whole) {
                return Ok(snapshot.clone());
            }
            view.changed().await?;
        }
    };
    tokio::time::timeout(PATIENCE, read)
        .await
        .with_context(|| format!("{region_name} was not read within {PATIENCE:?}"))?
}

/// An account without anything in it. The names of its zones are guessed.
fn empty(region: &str, wanted: Interest) -> Snapshot {
    let at = now();
    Snapshot {
        region: region.to_owned(),
        read_at: Read::ALL.iter().map(|it| (*it, at)).collect(),
        route_tables_read: wanted.route_tables_of,
        zones: ["a", "b", "c"].iter().map(|it| format!("{region}{it}")).collect(),
        ..Snapshot::default()
    }
}
