//! Health checks of one load balancer's targets.
//!
//! A check is a TCP connection to the port that the health check names, whatever its protocol. Time runs
//! faster than in AWS: a target is checked every second until it is healthy, and two answers make it so.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::cloud::network::Namespace;
use crate::emulator::{self, LoadBalancer, State};

const UNSETTLED: Duration = Duration::from_secs(1);
const SETTLED: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(2);
/// Checks in a row that change a target's health.
const THRESHOLD: u32 = 2;

/// The targets and their health.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Mutex<BTreeMap<Key, Health>>>);

/// A registered target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// Instance id, or address of a target registered by address.
    name: String,
    address: SocketAddr,
}

#[derive(Clone, Copy, Debug)]
struct Health {
    healthy: bool,
    /// Checks in a row that disagreed with `healthy`.
    against: u32,
    next: Instant,
}

impl Pool {
    /// Addresses of the healthy targets of a listener that forwards to `port`.
    pub fn healthy(&self, port: u16) -> Vec<SocketAddr> {
        let pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let healthy = pool.iter().filter(|(key, health)| health.healthy && key.address.port() == port);
        healthy.map(|(key, _)| key.address).collect()
    }

    /// Adds and drops targets; returns those whose check is due.
    fn follow(&self, keys: Vec<Key>, now: Instant) -> Vec<Key> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pool.retain(|key, _| keys.contains(key));
        for key in keys {
            pool.entry(key).or_insert(Health { healthy: false, against: 0, next: now });
        }
        pool.iter().filter(|(_, health)| health.next <= now).map(|(key, _)| key.clone()).collect()
    }

    /// Notes the outcome of a check; returns the new health if it changed.
    fn record(&self, key: &Key, answered: bool, now: Instant) -> Option<bool> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let health = pool.get_mut(key)?;
        health.against = if answered == health.healthy { 0 } else { health.against + 1 };
        let changed = health.against >= THRESHOLD;
        if changed {
            *health = Health { healthy: answered, against: 0, next: now };
        }
        let settled = health.healthy && health.against == 0;
        health.next = now + if settled { SETTLED } else { UNSETTLED };
        changed.then_some(answered)
    }
}

/// Checks the targets of one load balancer and tells the emulator what it finds.
pub struct Check {
    pub pool: Pool,
    pub source: SocketAddr,
    pub vpc: Namespace,
    pub spec: watch::Receiver<LoadBalancer>,
    pub state: watch::Receiver<Arc<State>>,
    pub emulator: emulator::Client,
}

impl Check {
    /// Runs until it is cancelled.
    pub async fn run(self) {
        let mut tick = tokio::time::interval(UNSETTLED);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let spec = self.spec.borrow().clone();
            let state = self.state.borrow().clone();
            let due = if spec.state == "active" {
                self.pool.follow(targets(&spec, &state), Instant::now())
            } else {
                Vec::new()
            };
            let checks = due.into_iter().map(|key| self.check(&spec, key));
            futures::future::join_all(checks).await;
        }
    }

    async fn check(&self, spec: &LoadBalancer, key: Key) {
        let mut address = key.address;
        if let Some(port) = spec.health_check.as_ref().and_then(|check| check.port).filter(|port| *port != 0)
        {
            address.set_port(port);
        }
        let connection = tokio::time::timeout(TIMEOUT, self.vpc.connect(Some(self.source), address)).await;
        let answered = matches!(connection, Ok(Ok(_)));
        let Some(healthy) = self.pool.record(&key, answered, Instant::now()) else { return };
        let name = spec.arn.as_deref().unwrap_or(&spec.name);
        tracing::info!(load_balancer = name, target = key.name, healthy, "target health");
        if let Err(error) = self.emulator.target_health(name, &key.name, key.address.port(), healthy).await {
            tracing::warn!(%error, "reporting target health");
        }
    }
}

/// The registered targets whose address is known: instances that run, and addresses.
fn targets(spec: &LoadBalancer, state: &State) -> Vec<Key> {
    let mut keys = Vec::new();
    for target in &spec.targets {
        let running = |id: &str| {
            let found =
                state.instances.iter().find(|instance| instance.id == id && instance.state == "running");
            found.and_then(|instance| instance.private_ip.clone())
        };
        let ip = target.ip.clone().or_else(|| target.instance_id.as_deref().and_then(running));
        let Some(ip) = ip.and_then(|ip| ip.parse::<IpAddr>().ok()) else { continue };
        let name = target.instance_id.clone().unwrap_or_else(|| ip.to_string());
        // A target of a classic load balancer has no port of its own.
        let ports: Vec<u16> = match target.port {
            0 => spec.listeners.iter().map(|listener| listener.target_port).collect(),
            port => vec![port],
        };
        keys.extend(
            ports.into_iter().map(|port| Key { name: name.clone(), address: SocketAddr::new(ip, port) }),
        );
    }
    keys.sort();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key { name: "i-1".to_owned(), address: SocketAddr::from(([10, 0, 0, 4], 6443)) }
    }

    #[test]
    fn a_target_changes_after_two_checks_that_agree() {
        let (pool, now) = (Pool::default(), Instant::now());
        assert_eq!(pool.follow(vec![key()], now), [key()]);
        assert_eq!(pool.record(&key(), true, now), None);
        assert!(pool.healthy(6443).is_empty());
        assert_eq!(pool.record(&key(), true, now), Some(true));
        assert_eq!(pool.healthy(6443), [key().address]);
        assert!(pool.healthy(443).is_empty());
        assert_eq!(pool.record(&key(), false, now), None);
        assert_eq!(pool.record(&key(), true, now), None);
        assert_eq!(pool.record(&key(), false, now), None);
        assert_eq!(pool.record(&key(), false, now), Some(false));
        assert!(pool.healthy(6443).is_empty());
    }

    #[test]
    fn a_target_that_is_deregistered_is_forgotten() {
        let (pool, now) = (Pool::default(), Instant::now());
        pool.follow(vec![key()], now);
        pool.record(&key(), true, now);
        pool.record(&key(), true, now);
        assert!(pool.follow(Vec::new(), now).is_empty());
        assert!(pool.healthy(6443).is_empty());
        assert_eq!(pool.record(&key(), true, now), None);
    }

    #[test]
    fn only_running_instances_and_addresses_are_targets() {
        let spec = serde_json::json!({
            "listeners": [{"port": 443, "protocol": "TCP", "targetPort": 6443}],
            "targets": [{"instanceId": "i-1", "port": 0}, {"instanceId": "i-2", "port": 0}, {"ip": "10.0.0.9", "port": 80}],
        });
        let state = serde_json::json!({"instances": [
            {"id": "i-1", "state": "running", "privateIp": "10.0.0.4"},
            {"id": "i-2", "state": "pending", "privateIp": "10.0.0.5"},
        ]});
        let spec = serde_json::from_value(spec).expect("a load balancer");
        let state = serde_json::from_value(state).expect("a state");
        let by_address = Key { name: "10.0.0.9".to_owned(), address: SocketAddr::from(([10, 0, 0, 9], 80)) };
        assert_eq!(targets(&spec, &state), [by_address, key()]);
    }
}
