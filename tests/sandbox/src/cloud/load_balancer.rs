//! Load balancers: each has an address of its own, in the world and in its VPC, and forwards to healthy
//! targets.
//!
//! It forwards only what a listener names, only when active, only to registered targets that pass the health
//! check. It never terminates TLS and never fails open.

mod health;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::firewall;
use super::network::{Namespace, splice};
use crate::World;
use crate::emulator::{self, State};
use health::Pool;

/// Who the management plane is to a security group: somebody on the internet.
const INTERNET: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// A running load balancer; dropping it ends its listeners and checks.
#[derive(Debug)]
pub struct LoadBalancer {
    /// Its address in the world and in its VPC; its connections to targets come from it.
    pub address: Ipv4Addr,
    front: Arc<Front>,
    spec: watch::Sender<emulator::LoadBalancer>,
    listeners: BTreeMap<u16, [AbortHandle; 2]>,
    tasks: JoinSet<()>,
}

/// What all connections of a load balancer share.
#[derive(Debug)]
struct Front {
    address: Ipv4Addr,
    vpc: Namespace,
    pool: Pool,
    turn: AtomicUsize,
    spec: watch::Receiver<emulator::LoadBalancer>,
    state: watch::Receiver<Arc<State>>,
}

/// What tells load balancers apart: the ARN, or for a classic one region and name.
pub fn key(load_balancer: &emulator::LoadBalancer) -> String {
    load_balancer.arn.clone().unwrap_or_else(|| load_balancer.dns_name.clone())
}

impl LoadBalancer {
    /// Gives the load balancer its address and starts its health checks; listeners come with
    /// [`Self::follow`].
    pub async fn create(
        world: &World,
        spec: &emulator::LoadBalancer,
        address: Ipv4Addr,
        vpc: Namespace,
        state: watch::Receiver<Arc<State>>,
    ) -> anyhow::Result<Self> {
        let batch = format!("address replace {address}/32 dev {}\n", World::BRIDGE);
        Namespace::WORLD.ip(&batch).await?;
        vpc.ip(&batch).await?;
        let (sender, receiver) = watch::channel(spec.clone());
        let pool = Pool::default();
        let mut tasks = JoinSet::new();
        let check = health::Check {
            pool: pool.clone(),
            source: SocketAddr::from((address, 0)),
            vpc: vpc.clone(),
            spec: receiver.clone(),
            state: state.clone(),
            emulator: world.emulator.clone(),
        };
        tasks.spawn(check.run());
        let front = Front { address, vpc, pool, turn: AtomicUsize::new(0), spec: receiver, state };
        Ok(Self { address, front: Arc::new(front), spec: sender, listeners: BTreeMap::new(), tasks })
    }

    /// Takes over what the emulator says now: opens and closes listeners.
    pub async fn follow(&mut self, spec: &emulator::LoadBalancer) -> anyhow::Result<()> {
        self.spec.send_if_modified(|current| {
            let changed = current != spec;
            current.clone_from(spec);
            changed
        });
        let wanted = |port: &u16| {
            spec.state == "active" && spec.listeners.iter().any(|listener| listener.port == *port)
        };
        self.listeners.retain(|port, handles| {
            let keep = wanted(port);
            if !keep {
                handles.iter().for_each(AbortHandle::abort);
            }
            keep
        });
        for listener in spec.listeners.iter().filter(|listener| wanted(&listener.port)) {
            if self.listeners.contains_key(&listener.port) {
                continue;
            }
            let address = SocketAddr::from((self.address, listener.port));
            let outside = Namespace::WORLD.listen(address).await?;
            let inside = self.front.vpc.listen(address).await?;
            let handles = [(outside, true), (inside, false)].map(|(listener, outside)| {
                self.tasks.spawn(Arc::clone(&self.front).accept(listener, address.port(), outside))
            });
            self.listeners.insert(listener.port, handles);
        }
        Ok(())
    }

    /// Takes the address away again.
    pub async fn delete(self) -> anyhow::Result<()> {
        let batch = format!("address delete {}/32 dev {}\n", self.address, World::BRIDGE);
        Namespace::WORLD.ip(&batch).await?;
        // The network of the VPC may be gone already.
        if self.front.vpc.path().is_some_and(|path| path.exists()) {
            self.front.vpc.ip(&batch).await?;
        }
        Ok(())
    }
}

impl Front {
    async fn accept(self: Arc<Self>, listener: TcpListener, port: u16, outside: bool) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((client, SocketAddr::V4(from))) => {
                        let source = if outside { INTERNET } else { *from.ip() };
                        connections.spawn(Arc::clone(&self).forward(client, source, port));
                    }
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "accepting a connection"),
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn forward(self: Arc<Self>, client: TcpStream, source: Ipv4Addr, port: u16) {
        if !self.admits(source, port) {
            // The kernel has shaken hands already; to say nothing is as near as this comes to a dropped
            // packet.
            tracing::info!(load_balancer = self.spec.borrow().name, %source, port, "no rule admits this connection");
            tokio::time::sleep(std::time::Duration::from_secs(300)).await;
            return;
        }
        let Some(target) = self.choose(port) else { return };
        let from = SocketAddr::from((self.address, 0));
        match self.vpc.connect(Some(from), target).await {
            Ok(server) => splice(client, server).await,
            Err(error) => tracing::debug!(%error, %target, "connecting to a target"),
        }
    }

    fn admits(&self, source: Ipv4Addr, port: u16) -> bool {
        let spec = self.spec.borrow();
        // A network load balancer may have no groups, and then admits everybody.
        if spec.security_groups.is_empty() {
            return true;
        }
        let state = self.state.borrow().clone();
        let seen_from_outside = |address| firewall::admits(&state, &spec.security_groups, port, address);
        // Machines reach an internet-facing load balancer through a gateway, so from a public address.
        let public = spec.scheme.as_deref() != Some("internal");
        seen_from_outside(source) || (public && seen_from_outside(INTERNET))
    }

    /// The next healthy target of the listener on `port`, in turn.
    fn choose(&self, port: u16) -> Option<SocketAddr> {
        let target_port = {
            let spec = self.spec.borrow();
            spec.listeners.iter().find(|listener| listener.port == port)?.target_port
        };
        let targets = self.pool.healthy(target_port);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        targets.get(turn.checked_rem(targets.len())?).copied()
    }
}
