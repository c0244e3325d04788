//! Static pods: what lies in `/etc/kubernetes/manifests` runs as processes.
//!
//! A container's command is looked up among the machine's programs, since there are no images. Paths inside
//! are those of the machine, which is what kubeadm's host paths amount to. One container per pod.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cloud::boot;
use crate::cloud::container::variables;
use crate::cloud::machine::root::{LOGS, OURS};
use crate::cloud::process::{Program, State, supervise};

const DIRECTORY: &str = "/etc/kubernetes/manifests";
const INTERVAL: Duration = Duration::from_secs(1);

/// A static pod and how it fares.
#[derive(Clone, Debug)]
pub struct StaticPod {
    pub manifest: Pod,
    /// Changes with the manifest.
    pub hash: String,
    pub state: State,
}

/// All static pods, by the name in their manifest.
pub type StaticPods = BTreeMap<String, StaticPod>;

struct Running {
    modified: SystemTime,
    name: String,
    /// Ends the pod when it is dropped.
    _tasks: JoinSet<()>,
}

/// Runs the static pods from now on, and says how they fare.
pub fn start(instance: &str) -> watch::Receiver<StaticPods> {
    let (sender, receiver) = watch::channel(StaticPods::new());
    let instance = instance.to_owned();
    tokio::spawn(async move {
        let mut running = BTreeMap::new();
        let mut tick = tokio::time::interval(INTERVAL);
        loop {
            tick.tick().await;
            // Before kubeadm makes the directory, and on workers, there is none.
            if let Ok(found) = scan() {
                follow(&instance, found, &mut running, &sender);
            }
        }
    });
    receiver
}

fn scan() -> std::io::Result<BTreeMap<PathBuf, SystemTime>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(DIRECTORY)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            found.insert(path, entry.metadata()?.modified()?);
        }
    }
    Ok(found)
}

fn follow(
    instance: &str,
    found: BTreeMap<PathBuf, SystemTime>,
    running: &mut BTreeMap<PathBuf, Running>,
    sender: &watch::Sender<StaticPods>,
) {
    running.retain(|path, pod| {
        let keep = found.get(path) == Some(&pod.modified);
        if !keep {
            sender.send_modify(|pods| drop(pods.remove(&pod.name)));
        }
        keep
    });
    for (path, modified) in found {
        if running.contains_key(&path) {
            continue;
        }
        match run(instance, &path, sender) {
            Ok((name, tasks)) => drop(running.insert(path, Running { modified, name, _tasks: tasks })),
            // kubeadm may be writing it just now.
            Err(error) => tracing::warn!("{error:#}"),
        }
    }
}

fn run(instance: &str, path: &Path, sender: &watch::Sender<StaticPods>) -> Result<(String, JoinSet<()>)> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let manifest: Pod =
        serde_saphyr::from_str(&text).with_context(|| format!("parsing {}", path.display()))?;
    let name = manifest.name_any();
    let container = manifest.spec.as_ref().and_then(|spec| spec.containers.first());
    let container = container.with_context(|| format!("{} has no container", path.display()))?;
    let log = PathBuf::from(LOGS).join(format!("machine-{instance}-{name}.log"));
    let program =
        program(container, &manifest, log).with_context(|| format!("{} has no command", path.display()))?;
    let probe = endpoint(container);
    let hash = Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let pod = StaticPod { manifest, hash, state: State::default() };
    sender.send_modify(|pods| drop(pods.insert(name.clone(), pod)));

    let (state, changes) = watch::channel(State::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(supervise(program, state.clone()));
    tasks.spawn(check(probe, state));
    tasks.spawn(publish(name.clone(), changes, sender.clone()));
    tracing::info!(name, "static pod");
    Ok((name, tasks))
}

fn program(container: &Container, manifest: &Pod, log: PathBuf) -> Option<Program> {
    let words = || container.command.iter().flatten().chain(container.args.iter().flatten());
    let name = words().next()?;
    let mut arguments: Vec<OsString> = words().skip(1).map(OsString::from).collect();
    if name == "etcd" {
        // The machine's disk is as lasting as the machine; waiting for it would only slow the bed down.
        arguments.push("--unsafe-no-fsync".into());
    }
    let mut environment = vec![("PATH".to_owned(), boot::PATH.to_owned())];
    environment.extend(variables(container, manifest));
    Some(Program { path: Path::new(OURS).join("programs").join(name), arguments, environment, log })
}

/// Where the container's startup or readiness probe goes to.
fn endpoint(container: &Container) -> Option<SocketAddr> {
    let probe: &Probe = container.startup_probe.as_ref().or(container.readiness_probe.as_ref())?;
    let get = probe.http_get.as_ref()?;
    let port = match &get.port {
        IntOrString::Int(port) => *port,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            ports.find(|port| port.name.as_ref() == Some(name))?.container_port
        }
    };
    let host = get.host.as_deref().unwrap_or("127.0.0.1").parse().ok()?;
    Some(SocketAddr::new(host, port.try_into().ok()?))
}

/// Notes when the program listens where its probe goes to; without a probe it is ready when it runs.
async fn check(endpoint: Option<SocketAddr>, state: watch::Sender<State>) {
    let mut changes = state.subscribe();
    loop {
        let (runs, ready) = {
            let state = changes.borrow_and_update();
            (state.since.is_some(), state.ready)
        };
        if !runs || ready {
            if changes.changed().await.is_err() {
                return;
            }
            continue;
        }
        let listens = match endpoint {
            Some(endpoint) => tokio::net::TcpStream::connect(endpoint).await.is_ok(),
            None => true,
        };
        if listens {
            state.send_modify(|state| state.ready = state.since.is_some());
        } else {
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

async fn publish(name: String, mut changes: watch::Receiver<State>, pods: watch::Sender<StaticPods>) {
    loop {
        let state = changes.borrow_and_update().clone();
        pods.send_modify(|pods| {
            if let Some(pod) = pods.get_mut(&name) {
                pod.state = state;
            }
        });
        if changes.changed().await.is_err() {
            return;
        }
    }
}
