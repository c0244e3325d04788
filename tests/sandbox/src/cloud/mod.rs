//! Everything below the EC2 API: what the emulator says exists is acted out with namespaces and processes.
//!
//! An instance that runs becomes a `machine` that boots its user data; a VPC becomes a network (`vpc`) with
//! its metadata service (`imds`); load balancers forward (`load_balancer`), security groups filter
//! (`firewall`). Nothing here ever changes what exists, health reports excepted: that is the AWS API's alone.
//! Add-ons (`addons`) call it as their pods would.

pub mod addons;
mod boot;
mod container;
mod firewall;
mod hosts;
mod image;
mod imds;
pub mod kubelet;
mod load_balancer;
mod machine;
mod network;
pub mod process;
mod vpc;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::World;
use crate::emulator::{Instance, State};
use firewall::Balancer;
use load_balancer::LoadBalancer;
use machine::Machine;
use vpc::Vpc;

/// How often the emulator is read.
const INTERVAL: Duration = Duration::from_secs(1);
/// Load balancers get addresses from the shared address space (RFC 6598), which no VPC uses.
const FIRST_BALANCER: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);

struct Cloud {
    world: Arc<World>,
    /// Directories that machines see at their own path.
    kept: Vec<PathBuf>,
    /// What `/etc/hosts` of the world held at the start.
    hosts: String,
    state: watch::Sender<Arc<State>>,
    vpcs: BTreeMap<String, Vpc>,
    machines: BTreeMap<String, Machine>,
    balancers: BTreeMap<String, LoadBalancer>,
    next_balancer: Ipv4Addr,
}

/// Follows the emulator and acts out what it says exists; never returns unless it cannot start.
///
/// # Errors
/// When the machine image cannot be prepared. Whatever fails later is logged and tried again a second later.
pub async fn run(world: Arc<World>) -> Result<()> {
    let path = world.hosts();
    let mut cloud = Cloud {
        kept: image::prepare(&world).await?,
        hosts: std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?,
        state: watch::Sender::default(),
        vpcs: BTreeMap::new(),
        machines: BTreeMap::new(),
        balancers: BTreeMap::new(),
        next_balancer: FIRST_BALANCER,
        world,
    };
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        match cloud.world.emulator.world().await {
            Ok(state) => cloud.follow(Arc::new(state)).await,
            Err(error) => tracing::warn!("reading the emulator: {error:#}"),
        }
    }
}

impl Cloud {
    async fn follow(&mut self, state: Arc<State>) {
        self.state.send_replace(Arc::clone(&state));
        self.kill(&state).await;
        self.networks(&state).await;
        self.balance(&state).await;
        self.name(&state);
        self.boot(&state).await;
        self.filter(&state).await;
        self.forget(&state).await;
    }

    /// Ends the machines whose instance no longer runs.
    async fn kill(&mut self, state: &State) {
        let runs = |id: &String| {
            state.instances.iter().any(|instance| instance.id == *id && instance.state == "running")
        };
        let gone: Vec<String> = self.machines.keys().filter(|id| !runs(id)).cloned().collect();
        for id in gone {
            tracing::info!(instance = id, "killing");
            if let Some(machine) = self.machines.remove(&id) {
                log("killing a machine", &id, machine.kill().await);
            }
        }
    }

    /// Makes the networks of VPCs that have something in them.
    async fn networks(&mut self, state: &State) {
        let used = |id: &String| {
            let running =
                |instance: &Instance| instance.state == "running" && instance.vpc_id.as_ref() == Some(id);
            state.instances.iter().any(running)
                || state.load_balancers.iter().any(|found| found.vpc_id.as_ref() == Some(id))
        };
        for vpc in state.vpcs.iter().filter(|vpc| used(&vpc.id)) {
            if !self.vpcs.contains_key(&vpc.id) {
                match Vpc::create(&self.world, vpc, self.state.subscribe()).await {
                    Ok(made) => drop(self.vpcs.insert(vpc.id.clone(), made)),
                    Err(error) => tracing::error!(vpc = vpc.id, "making a network: {error:#}"),
                }
            }
        }
    }

    async fn balance(&mut self, state: &State) {
        for spec in &state.load_balancers {
            let key = load_balancer::key(spec);
            if !self.balancers.contains_key(&key) {
                let Some(vpc) = spec.vpc_id.as_ref().and_then(|id| self.vpcs.get(id)) else { continue };
                let (address, network) = (self.next_balancer, vpc.network.clone());
                self.next_balancer = Ipv4Addr::from_bits(address.to_bits() + 1);
                match LoadBalancer::create(&self.world, spec, address, network, self.state.subscribe()).await
                {
                    Ok(made) => drop(self.balancers.insert(key.clone(), made)),
                    Err(error) => tracing::error!(load_balancer = key, "making a load balancer: {error:#}"),
                }
            }
            if let Some(balancer) = self.balancers.get_mut(&key) {
                log("updating a load balancer", &key, balancer.follow(spec).await);
            }
        }
        let exists = |key: &String| state.load_balancers.iter().any(|spec| load_balancer::key(spec) == *key);
        let gone: Vec<String> = self.balancers.keys().filter(|key| !exists(key)).cloned().collect();
        for key in gone {
            if let Some(balancer) = self.balancers.remove(&key) {
                log("removing a load balancer", &key, balancer.delete().await);
            }
        }
    }

    fn name(&self, state: &State) {
        let names = state.load_balancers.iter().filter_map(|spec| {
            let address = self.balancers.get(&load_balancer::key(spec))?.address;
            // Names in DNS have no case, those in a hosts file do for some resolvers.
            let lower = spec.dns_name.to_lowercase();
            let names = if lower == spec.dns_name { lower } else { format!("{} {lower}", spec.dns_name) };
            Some((names, address))
        });
        let names: Vec<(String, Ipv4Addr)> = names.collect();
        let content = hosts::world(&self.hosts, &names);
        log("naming", "the world", hosts::write(&self.world.hosts(), &content));
        for (id, vpc) in &self.vpcs {
            log("naming", id, hosts::write(&vpc.hosts, &hosts::vpc(state, id, &names)));
        }
    }

    async fn boot(&mut self, state: &State) {
        for instance in state.instances.iter().filter(|instance| instance.state == "running") {
            if let Some(machine) = self.machines.get_mut(&instance.id) {
                machine.watch(&instance.id);
                continue;
            }
            let Some(vpc) = instance.vpc_id.as_ref().and_then(|id| self.vpcs.get(id)) else { continue };
            let rules = firewall::script(state, instance, &self.sources(state));
            tracing::info!(instance = instance.id, address = instance.private_ip, "booting");
            match Machine::boot(&self.world, vpc, instance, &self.kept, rules).await {
                Ok(machine) => drop(self.machines.insert(instance.id.clone(), machine)),
                Err(error) => tracing::error!(instance = instance.id, "booting a machine: {error:#}"),
            }
        }
    }

    async fn filter(&mut self, state: &State) {
        let scripts: Vec<(&str, String)> = {
            let balancers = self.sources(state);
            let booted = state.instances.iter().filter(|instance| self.machines.contains_key(&instance.id));
            booted
                .map(|instance| (instance.id.as_str(), firewall::script(state, instance, &balancers)))
                .collect()
        };
        for (id, script) in scripts {
            if let Some(machine) = self.machines.get_mut(id) {
                log("filtering", id, machine.filter(script).await);
            }
        }
    }

    fn sources<'a>(&self, state: &'a State) -> Vec<Balancer<'a>> {
        let source = |spec: &'a _| {
            let address = self.balancers.get(&load_balancer::key(spec))?.address;
            Some(Balancer { address, is: spec })
        };
        state.load_balancers.iter().filter_map(source).collect()
    }

    /// Removes the networks of VPCs that are gone.
    async fn forget(&mut self, state: &State) {
        let gone: Vec<String> =
            self.vpcs.keys().filter(|id| !state.vpcs.iter().any(|vpc| vpc.id == **id)).cloned().collect();
        for id in gone {
            if let Some(vpc) = self.vpcs.remove(&id) {
                log("removing a network", &id, vpc.delete().await);
            }
        }
    }
}

fn log(what: &str, of: &str, result: Result<()>) {
    if let Err(error) = result {
        tracing::error!(of, "{what}: {error:#}");
    }
}
