//! A stand-in for kube-proxy, for the only one in the bed that calls Services: the API server, on its way to
//! webhooks.
//!
//! On a control-plane machine every cluster IP is an address of the machine, and a connection to it is
//! carried to the node of a ready endpoint. Pods have no network of their own here, so their node's address
//! stands for theirs. On other machines it does nothing.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinSet;

use super::follow::{Controller, changes, follow};
use super::stand_in::StandIn;
use crate::cloud::network::splice;

const API_SERVER: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";

/// Targets by the cluster IP and port that leads to them.
type Routes = BTreeMap<SocketAddr, Vec<SocketAddr>>;

/// Runs until a right is missing.
///
/// # Errors
/// See [`follow`].
pub async fn run(stand_in: &StandIn) -> Result<()> {
    while !Path::new(API_SERVER).exists() {
        stand_in.ready();
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let watched = vec![
        changes(Api::<Service>::all(stand_in.client.clone())),
        changes(Api::<EndpointSlice>::all(stand_in.client.clone())),
        changes(Api::<Node>::all(stand_in.client.clone())),
    ];
    let proxy = Proxy { stand_in, routes: Arc::default(), listeners: Mutex::default() };
    follow(stand_in, watched, &proxy).await
}

struct Proxy<'a> {
    stand_in: &'a StandIn,
    routes: Arc<Mutex<Routes>>,
    listeners: Mutex<BTreeMap<SocketAddr, JoinSet<()>>>,
}

impl Controller for Proxy<'_> {
    async fn reconcile(&self) -> Result<()> {
        let (client, all) = (|| self.stand_in.client.clone(), ListParams::default());
        let services = Api::<Service>::all(client()).list(&all).await.context("listing services")?;
        let slices =
            Api::<EndpointSlice>::all(client()).list(&all).await.context("listing endpoint slices")?;
        let nodes = Api::<Node>::all(client()).list(&all).await.context("listing nodes")?;
        let routes = routes(&services.items, &slices.items, &nodes.items);
        let wanted: Vec<SocketAddr> = routes.keys().copied().collect();
        *self.routes.lock().unwrap_or_else(PoisonError::into_inner) = routes;
        let missing: Vec<SocketAddr> = {
            let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.retain(|address, _| wanted.contains(address));
            wanted.into_iter().filter(|address| !listeners.contains_key(address)).collect()
        };
        for address in missing {
            own(address.ip()).await?;
            let listener =
                TcpListener::bind(address).await.with_context(|| format!("listening on {address}"))?;
            let mut tasks = JoinSet::new();
            tasks.spawn(accept(listener, address, Arc::clone(&self.routes)));
            self.listeners.lock().unwrap_or_else(PoisonError::into_inner).insert(address, tasks);
        }
        Ok(())
    }
}

/// Makes a cluster IP an address of this machine.
async fn own(address: IpAddr) -> Result<()> {
    let output = Command::new("ip")
        .args(["address", "replace", &format!("{address}/32"), "dev", "lo"])
        .stdin(Stdio::null())
        .output()
        .await;
    let output = output.context("starting ip")?;
    ensure!(output.status.success(), "adding {address}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}

async fn accept(listener: TcpListener, address: SocketAddr, routes: Arc<Mutex<Routes>>) {
    let mut connections = JoinSet::new();
    let mut turn = 0_usize;
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                let targets = routes.lock().unwrap_or_else(PoisonError::into_inner).get(&address).cloned().unwrap_or_default();
                turn = turn.wrapping_add(1);
                // Without an endpoint the connection is closed at once, as kube-proxy refuses it.
                let Some(target) = turn.checked_rem(targets.len()).map(|turn| targets[turn]) else { continue };
                connections.spawn(async move {
                    if let Ok(server) = TcpStream::connect(target).await {
                        splice(client, server).await;
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Where cluster IPs lead to: TCP ports of services that select pods.
fn routes(services: &[Service], slices: &[EndpointSlice], nodes: &[Node]) -> Routes {
    let mut routes = Routes::new();
    for service in services {
        let Some(spec) = service
            .spec
            .as_ref()
            .filter(|spec| spec.selector.as_ref().is_some_and(|selector| !selector.is_empty()))
        else {
            continue;
        };
        let Some(ip) = spec.cluster_ip.as_deref().and_then(|ip| ip.parse::<IpAddr>().ok()) else { continue };
        let of = |slice: &&EndpointSlice| {
            slice.namespace() == service.namespace()
                && slice
                    .labels()
                    .get("kubernetes.io/service-name")
                    .is_some_and(|name| *name == service.name_any())
        };
        for port in
            spec.ports.iter().flatten().filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP")
        {
            let Ok(number) = u16::try_from(port.port) else { continue };
            let targets = slices
                .iter()
                .filter(of)
                .flat_map(|slice| targets(slice, port.name.as_deref().unwrap_or_default(), nodes));
            routes.insert(SocketAddr::new(ip, number), targets.collect());
        }
    }
    routes
}

fn targets(slice: &EndpointSlice, port: &str, nodes: &[Node]) -> Vec<SocketAddr> {
    let found = slice.ports.iter().flatten().find(|found| found.name.as_deref().unwrap_or_default() == port);
    let Some(number) = found.and_then(|found| u16::try_from(found.port?).ok()) else { return Vec::new() };
    let ready = slice.endpoints.iter().filter(|endpoint| {
        endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false))
    });
    let address = |name: &str| {
        let node = nodes.iter().find(|node| node.name_any() == name)?;
        let addresses = node.status.as_ref()?.addresses.as_ref()?;
        addresses.iter().find(|address| address.type_ == "InternalIP")?.address.parse().ok()
    };
    ready
        .filter_map(|endpoint| Some(SocketAddr::new(address(endpoint.node_name.as_deref()?)?, number)))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn a_cluster_ip_leads_to_the_nodes_of_ready_endpoints() {
        let services: [Service; 2] = [
            object(json!({"metadata": {"name": "hook", "namespace": "kube-system"}, "spec": {
                "clusterIP": "10.96.0.9", "selector": {"app": "x"}, "ports": [{"name": "https", "port": 443}]}})),
            object(json!({"metadata": {"name": "kubernetes", "namespace": "default"}, "spec": {
                "clusterIP": "10.96.0.1", "ports": [{"port": 443}]}})),
        ];
        let slices: [EndpointSlice; 1] = [object(json!({
            "metadata": {"name": "s", "namespace": "kube-system", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4", "ports": [{"name": "https", "port": 9443}],
            "endpoints": [
                {"addresses": ["192.168.4.1"], "nodeName": "one", "conditions": {"ready": true}},
                {"addresses": ["192.168.5.1"], "nodeName": "two", "conditions": {"ready": false}}],
        }))];
        let nodes: [Node; 2] = [("one", "10.0.0.4"), ("two", "10.0.0.5")].map(|(name, address)| {
            object(json!({"metadata": {"name": name}, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}))
        });
        let routes = routes(&services, &slices, &nodes);
        let expected = (
            "10.96.0.9:443".parse().expect("an address"),
            vec!["10.0.0.4:9443".parse().expect("an address")],
        );
        assert_eq!(routes.into_iter().collect::<Vec<_>>(), [expected]);
    }
}
