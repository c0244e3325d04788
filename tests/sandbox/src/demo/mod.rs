//! The demo: one apply gives a working cluster, one delete leaves nothing, and everything that happens in between is shown.
//!
//! It does what a user would, with the same template; it reads the operator's objects and never talks to the operator.

mod phases;
mod screen;
mod snapshot;
mod summary;

use std::io::IsTerminal as _;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::bed::Bed;
use crate::paths;
use crate::tools::KUBERNETES_VERSION;
use crate::world::enter::REGION;
use crate::world::options::Options;
use phases::{CREATE, DELETE, Phase};
use screen::Screen;
use snapshot::Snapshot;
use summary::Elapsed;

/// Namespace that the demo's cluster lives in.
const NAMESPACE: &str = "default";
/// Where users find what they apply.
const TEMPLATE: &str = "deploy/templates/cluster-template.yaml";

/// What the demo's cluster looks like.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: String,
    pub control_planes: u32,
    pub workers: u32,
}

/// Runs the whole demo; everything is gone when it returns.
///
/// # Errors
/// Names the step that failed, what it waited for, and the log to read.
pub async fn run(options: Options, shape: Shape) -> Result<()> {
    let sandbox = options.name.clone();
    let started = Instant::now();
    let bed = Bed::up(options).await?;
    let mut elapsed = vec![Elapsed::since("management plane", started)];
    let mut screen = Screen::new(&shape.name);
    apply(&bed, &shape, &mut screen).await?;
    for phase in &CREATE {
        elapsed.push(follow(&bed, &shape, phase, &mut screen).await?);
    }
    screen.close();
    summary::print(&bed, &elapsed).await?;
    explain(&sandbox, &shape.name);
    wait_for_enter().await?;
    let arguments = ["delete", "cluster", &shape.name, "--namespace", NAMESPACE, "--wait=false"];
    screen.say(&format!("$ kubectl {}", arguments.join(" ")));
    bed.kubectl(&arguments).await.context("deleting the cluster")?;
    let mut deletion = Vec::new();
    for phase in &DELETE {
        deletion.push(follow(&bed, &shape, phase, &mut screen).await?);
    }
    screen.close();
    summary::print(&bed, &deletion).await
}

/// Renders the template as a user does, and applies it.
async fn apply(bed: &Bed, shape: &Shape, screen: &mut Screen) -> Result<()> {
    let template = paths::source().join(TEMPLATE).display().to_string();
    let variables = [
        format!("CLUSTER_NAME={}", shape.name),
        format!("NAMESPACE={NAMESPACE}"),
        format!("KUBERNETES_VERSION=v{KUBERNETES_VERSION}"),
        format!("CONTROL_PLANE_MACHINE_COUNT={}", shape.control_planes),
        format!("WORKER_MACHINE_COUNT={}", shape.workers),
        format!("AWS_REGION={REGION}"),
    ];
    let mut arguments: Vec<&str> = variables.iter().map(String::as_str).collect();
    arguments.extend(["clusterctl", "generate", "yaml", "--from", &template]);
    screen.say(&format!("$ {} clusterctl generate yaml --from {TEMPLATE} | kubectl apply -f -", variables.join(" ")));
    let manifest = bed.exec("env", &arguments).await.context("rendering the cluster template")?;
    let applied = bed.apply(&manifest).await.context("applying the cluster")?;
    applied.lines().for_each(|line| screen.say(&format!("  {line}")));
    Ok(())
}

/// Shows what happens until a phase is over.
async fn follow(bed: &Bed, shape: &Shape, phase: &Phase, screen: &mut Screen) -> Result<Elapsed> {
    let started = Instant::now();
    loop {
        let snapshot = Snapshot::take(bed, NAMESPACE, &shape.name).await;
        screen.show(phase.title, &snapshot.rows);
        let Err(waiting) = (phase.check)(&snapshot, shape) else { break };
        if started.elapsed() > phase.timeout {
            screen.close();
            bail!(
                "{:?} is not over after {} s: {waiting}; read {}{}",
                phase.title,
                phase.timeout.as_secs(),
                bed.directory().join("logs").join(phase.log).display(),
                restarts(bed).await,
            );
        }
        tokio::time::sleep(phases::POLL).await;
    }
    screen.passed(phase.title, started.elapsed());
    Ok(Elapsed::since(phase.title, started))
}

/// Programs of the bed that ended by themselves, which explains most failures.
async fn restarts(bed: &Bed) -> String {
    let processes = bed.processes().await.unwrap_or_default();
    let ended = processes.iter().filter(|(_, report)| report.restarts > 0);
    ended.map(|(name, report)| format!("; {name} ended {} times by itself", report.restarts)).collect()
}

fn explain(sandbox: &str, cluster: &str) {
    let name = if sandbox == "default" { String::new() } else { format!(" --name {sandbox}") };
    let program = std::env::current_exe().map_or_else(|_| "sandbox".to_owned(), |path| path.display().to_string());
    println!("\nLook around from another terminal:");
    for command in [
        format!("kubectl{name} get clusters,awsclusters,awsmachines,clusterplugins"),
        format!("kubectl{name} --cluster {cluster} get nodes,pods -A"),
        format!("aws{name} ec2 describe-vpcs"),
        format!("logs{name} operator"),
    ] {
        println!("  {program} {command}");
    }
}

async fn wait_for_enter() -> Result<()> {
    if !std::io::stdin().is_terminal() {
        return Ok(());
    }
    println!("\nPress Enter to delete the cluster.");
    let wait = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    wait.await.context("waiting for Enter")?.context("waiting for Enter")?;
    Ok(())
}
