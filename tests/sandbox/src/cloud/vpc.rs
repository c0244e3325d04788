//! A VPC: a network namespace with a bridge that its machines are plugged into.
//!
//! It offers three things on the bridge's own addresses: the instance metadata service, the AWS API, and
//! (added by `load_balancer`) the load balancers. There is no way out.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::imds;
use super::network::{Namespace, splice};
use crate::World;
use crate::emulator::{self, State};

/// The network of one VPC; dropping it ends its services.
#[derive(Debug)]
pub struct Vpc {
    /// Namespace of the bridge.
    pub network: Namespace,
    /// What the machines of this VPC have as `/etc/hosts`.
    pub hosts: PathBuf,
    /// Address ranges.
    pub cidrs: Vec<String>,
    _services: JoinSet<()>,
}

impl Vpc {
    /// Makes the network of `vpc` and starts its services.
    pub async fn create(
        world: &World,
        vpc: &emulator::Vpc,
        state: watch::Receiver<Arc<State>>,
    ) -> Result<Self> {
        let network = Namespace::create(&vpc.id).await?;
        let (bridge, gateway, metadata) = (World::BRIDGE, World::BRIDGE_ADDRESS, World::METADATA_ADDRESS);
        let mut batch = format!(
            "link add {bridge} type bridge stp_state 0 forward_delay 0\n\
             address add {gateway}/32 dev {bridge}\naddress add {metadata}/32 dev {bridge}\nlink set {bridge} up\n"
        );
        for cidr in &vpc.cidrs {
            batch += &format!("route add {cidr} dev {bridge} scope link\n");
        }
        network.ip(&batch).await?;

        let directory = world.directory.join("vpcs");
        std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
        let hosts = directory.join(format!("{}-hosts", vpc.id));
        std::fs::write(&hosts, "127.0.0.1 localhost\n")
            .with_context(|| format!("writing {}", hosts.display()))?;

        let mut services = JoinSet::new();
        let metadata: Ipv4Addr = metadata.parse().context("parsing the address of the metadata service")?;
        let listener = network.listen(SocketAddr::from((metadata, 80))).await?;
        services.spawn(imds::serve(listener, vpc.id.clone(), state));
        let api: SocketAddr = emulator::ADDRESS.parse().context("parsing the address of the AWS API")?;
        services.spawn(relay(network.listen(api).await?, api));
        Ok(Self { network, hosts, cidrs: vpc.cidrs.clone(), _services: services })
    }

    /// Takes the network down.
    pub async fn delete(self) -> Result<()> {
        self.network.delete().await?;
        std::fs::remove_file(&self.hosts).with_context(|| format!("removing {}", self.hosts.display()))
    }
}

/// Carries connections from a VPC to the same address in the world.
async fn relay(listener: TcpListener, address: SocketAddr) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, _)) => {
                    connections.spawn(async move {
                        if let Ok(server) = Namespace::WORLD.connect(None, address).await {
                            splice(client, server).await;
                        }
                    });
                }
                Err(error) => tracing::warn!(%error, "accepting a connection to the AWS API"),
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
