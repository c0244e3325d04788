//! Cluster API's core, bootstrap and control-plane managers, run as processes with the rights of their own
//! ServiceAccounts.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::api_server::{ApiServer, SERVER};
use super::certificates::write;
use super::{Credentials, Kubectl, kubeconfig, manifests};
use crate::world::World;
use crate::world::process::{Recipe, Supervisor};

const UP_TIMEOUT: Duration = Duration::from_secs(120);

/// One of Cluster API's managers.
struct Manager {
    name: &'static str,
    /// File in `Tools::manifests`.
    manifest: &'static str,
    namespace: &'static str,
    service_account: &'static str,
    webhook_port: u16,
    health_port: u16,
    feature_gates: &'static str,
}

const MANAGERS: [Manager; 3] = [
    Manager {
        name: "capi-core",
        manifest: "core.yaml",
        namespace: "capi-system",
        service_account: "capi-manager",
        webhook_port: 9443,
        health_port: 9543,
        feature_gates: "ClusterTopology=true,MachinePool=false,RuntimeSDK=true",
    },
    Manager {
        name: "capi-bootstrap",
        manifest: "bootstrap.yaml",
        namespace: "capi-kubeadm-bootstrap-system",
        service_account: "capi-kubeadm-bootstrap-manager",
        webhook_port: 9444,
        health_port: 9544,
        feature_gates: "MachinePool=false",
    },
    Manager {
        name: "capi-controlplane",
        manifest: "control-plane.yaml",
        namespace: "capi-kubeadm-control-plane-system",
        service_account: "capi-kubeadm-control-plane-manager",
        webhook_port: 9445,
        health_port: 9545,
        feature_gates: "ClusterTopology=true,MachinePool=false",
    },
];

/// The manifests of all three, webhooks included.
pub fn objects(world: &World, server: &ApiServer) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for manager in &MANAGERS {
        let file = world.tools.manifests.join(manager.manifest);
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let documents = manifests::parse(&manifests::with_defaults(&text))
            .with_context(|| format!("reading {}", file.display()))?;
        let mut documents = manifests::without_workloads(documents);
        for object in &mut documents {
            manifests::point_webhooks_at(object, manager.webhook_port, &server.authority().certificate);
        }
        objects.extend(documents);
    }
    Ok(objects)
}

/// Starts the managers and waits until they say that they are ready, webhooks included.
pub async fn start(
    world: &World,
    supervisor: &Supervisor,
    server: &ApiServer,
    kubectl: &Kubectl,
) -> Result<()> {
    let directory = world.management();
    let certificates = directory.join("webhooks");
    let pair = server.authority().server(&["127.0.0.1", "localhost"])?;
    write(&certificates, "tls.crt", &pair.certificate)?;
    write(&certificates, "tls.key", &pair.key)?;
    for manager in &MANAGERS {
        let token = kubectl.token(manager.namespace, manager.service_account).await?;
        let text = kubeconfig(SERVER, &server.authority().certificate, &Credentials::Token(token));
        let config = write(&directory, &format!("{}.kubeconfig", manager.name), &text)?;
        supervisor.start(recipe(world, manager, &config, &certificates))?;
    }
    for manager in &MANAGERS {
        wait_until_ready(supervisor, manager).await?;
    }
    Ok(())
}

fn recipe(world: &World, manager: &Manager, config: &Path, certificates: &Path) -> Recipe {
    Recipe::new(manager.name, world.tools.program(manager.name)).arguments([
        format!("--kubeconfig={}", config.display()),
        "--leader-elect=false".to_owned(),
        "--diagnostics-address=0".to_owned(),
        format!("--health-addr=127.0.0.1:{}", manager.health_port),
        format!("--webhook-port={}", manager.webhook_port),
        format!("--webhook-cert-dir={}", certificates.display()),
        format!("--feature-gates={}", manager.feature_gates),
    ])
}

async fn wait_until_ready(supervisor: &Supervisor, manager: &Manager) -> Result<()> {
    let client =
        reqwest::Client::builder().timeout(Duration::from_secs(5)).build().context("building a client")?;
    let address = format!("http://127.0.0.1:{}/readyz", manager.health_port);
    let deadline = Instant::now() + UP_TIMEOUT;
    loop {
        let answer = client.get(&address).send().await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return Ok(());
        }
        supervisor.check(manager.name)?;
        if Instant::now() > deadline {
            bail!("{} is not ready after {} s; see its log", manager.name, UP_TIMEOUT.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
