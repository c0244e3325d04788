//! The demo: one apply gives a working cluster, one delete leaves nothing, and everything that happens in
//! between is shown.
//!
//! It does what a user would, with the same template; it reads the operator's objects and never talks to the
//! operator.

mod phases;
mod screen;
mod snapshot;
mod summary;

use std::io::IsTerminal as _;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tools::KUBERNETES_VERSION;
use tools::progress::words;

use crate::bed::Bed;
use crate::paths;
use crate::world::enter::REGION;
use crate::world::launch;
use crate::world::options::Options;
use phases::{CREATE, DELETE, Phase};
use screen::Screen;
use snapshot::Snapshot;
use summary::{Calls, Elapsed};

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

/// Runs the whole demo; everything is gone when it returns, however it ends.
///
/// # Errors
/// Names the step that failed, what it waited for, and the log to read; or says that somebody interrupted it.
pub async fn run(options: Options, shape: Shape) -> Result<()> {
    let name = options.name.clone();
    let mut interrupts = Interrupts::new()?;
    let played = tokio::select! {
        played = play(options, shape) => played,
        signal = interrupts.next() => {
            // While it is still coming up, nobody else holds it.
            launch::end(&name)?;
            Err(anyhow!("{signal}: the sandbox and all that was in it is gone"))
        }
    };
    let removed =
        tokio::task::spawn_blocking(move || launch::down(&name)).await.context("removing the sandbox")?;
    played.and(removed.map(drop))
}

/// What ends a demo early: Ctrl-C, a closed terminal, `kill`.
struct Interrupts {
    interrupt: Signal,
    hangup: Signal,
    terminate: Signal,
}

impl Interrupts {
    fn new() -> Result<Self> {
        let on = |kind| signal(kind).context("waiting for signals");
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            hangup: on(SignalKind::hangup())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "interrupted",
            _ = self.hangup.recv() => "the terminal was closed",
            _ = self.terminate.recv() => "terminated",
        }
    }
}

async fn play(options: Options, shape: Shape) -> Result<()> {
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
    summary::print(&bed, &elapsed, Calls::ByAction).await?;
    if std::io::stdin().is_terminal() {
        println!("\nLook around from another terminal:");
        commands(&sandbox, &shape.name).iter().for_each(|command| println!("  {command}"));
        wait_for_enter().await?;
    }
    let arguments = ["delete", "cluster", &shape.name, "--namespace", NAMESPACE, "--wait=false"];
    screen.say(&format!("$ kubectl {}", arguments.join(" ")));
    bed.kubectl(&arguments).await.context("deleting the cluster")?;
    let mut deletion = Vec::new();
    for phase in &DELETE {
        deletion.push(follow(&bed, &shape, phase, &mut screen).await?);
    }
    screen.close();
    summary::print(&bed, &deletion, Calls::Total).await?;
    println!("\nAll of it took {}. To look around at your own pace:", words(started.elapsed()));
    at_ones_own_pace(&sandbox, &shape.name).iter().for_each(|command| println!("  {command}"));
    Ok(())
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
    screen.say(&format!(
        "$ {} clusterctl generate yaml --from {TEMPLATE} | kubectl apply -f -",
        variables.join(" ")
    ));
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

/// Commands that show what there is while a sandbox is up.
fn commands(sandbox: &str, cluster: &str) -> Vec<String> {
    let (program, name) = (program(), name_argument(sandbox));
    vec![
        format!("{program} kubectl{name} get clusters,awsclusters,awsmachines,clusterplugins"),
        format!("{program} kubectl{name} --cluster {cluster} get nodes,pods -A"),
        format!("{program} aws{name} ec2 describe-vpcs"),
        format!("{program} logs{name} operator"),
    ]
}

/// Commands from a sandbox of one's own to its end.
fn at_ones_own_pace(sandbox: &str, cluster: &str) -> Vec<String> {
    let (program, name) = (program(), name_argument(sandbox));
    let render = format!(
        "{program} exec{name} -- env CLUSTER_NAME={cluster} NAMESPACE={NAMESPACE} KUBERNETES_VERSION=v{KUBERNETES_VERSION} AWS_REGION={REGION} \
         CONTROL_PLANE_MACHINE_COUNT=1 WORKER_MACHINE_COUNT=2 clusterctl generate yaml --from {TEMPLATE} | {program} kubectl{name} apply -f -"
    );
    let mut all = vec![format!("{program} up{name}"), render];
    all.extend(commands(sandbox, cluster));
    all.push(format!("{program} down{name}"));
    all
}

/// This program as a user would call it.
fn program() -> String {
    let Ok(path) = std::env::current_exe() else { return "sandbox".to_owned() };
    let here = std::env::current_dir()
        .ok()
        .and_then(|here| path.strip_prefix(here).ok().map(|path| path.display().to_string()));
    here.unwrap_or_else(|| path.display().to_string())
}

fn name_argument(sandbox: &str) -> String {
    if sandbox == "default" { String::new() } else { format!(" --name {sandbox}") }
}

async fn wait_for_enter() -> Result<()> {
    println!("\nPress Enter to delete the cluster.");
    let wait = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    wait.await.context("waiting for Enter")?.context("waiting for Enter")?;
    Ok(())
}
