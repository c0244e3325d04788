//! The kubelet stand-in: first process of a machine, and everything of a kubelet but the container runtime.
//!
//! Static pods, the cloud controller manager and the EBS driver's controller run as processes, other add-ons
//! by stand-ins for their programs; all other pods only look as if they ran. It talks to the API server as
//! the node it is, with the certificate it was given, and never sets a providerID of its own accord.

mod flags;
mod health;
mod identity;
mod mirror;
mod node;
mod pods;
mod port_forward;
mod static_pods;
mod status;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::boot;
use super::machine::{Specification, root};

/// Runs as the first process of a machine; the one argument is the file that specifies it.
///
/// # Errors
/// When the machine's root cannot be made or its boot cannot be started.
pub fn main(arguments: Vec<String>) -> Result<()> {
    // Whoever called may have set one up already.
    let _ = tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).try_init();
    let path = arguments.first().context("the file that specifies the machine is missing")?;
    let text = std::fs::read(path).with_context(|| format!("reading {path}"))?;
    let machine: Specification = serde_json::from_slice(&text).with_context(|| format!("reading {path}"))?;
    root::enter(&machine)?;
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().context("starting the runtime")?.block_on(run(&machine))
}

async fn run(machine: &Specification) -> Result<()> {
    let health = tokio::spawn(health::serve());
    let kubelet = serve(machine);
    let boot = async {
        boot::run(machine).await?;
        std::future::pending().await
    };
    tokio::select! {
        ended = health => ended.context("the health endpoint was cancelled")?,
        ended = kubelet => ended,
        ended = boot => ended,
    }
}

/// The kubelet proper, from the moment at which kubeadm has configured and started it.
async fn serve(machine: &Specification) -> Result<()> {
    while !Path::new(flags::FILE).exists() {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let flags = flags::Flags::read(&machine.hostname)?;
    tracing::info!(?flags, "starting");
    let static_pods = static_pods::start(&machine.instance);
    let (config, server) = identity::establish(&flags.node_name).await;
    let client = kube::Client::try_from(config).context("making the client")?;
    let _port_forward = port_forward::start(machine);
    let (ready, network) = tokio::sync::watch::channel(false);
    let kubelet = pods::Kubelet::new(machine, &flags.node_name, client.clone(), server, static_pods, ready);
    let node = node::Registration::new(machine, flags, client, network).await?;
    let uid = node.register().await;
    tokio::join!(node.keep(), kubelet.run(uid));
    Ok(())
}
