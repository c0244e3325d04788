//! The pods bound to this node: level-triggered, from a watch.
//!
//! Every event leads to the same comparison of what should be with what the API server shows, for static pods
//! and all others alike.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::mirror;
use super::static_pods::StaticPods;
use super::status::{self, Fare};
use crate::cloud::addons;
use crate::cloud::machine::Specification;
use crate::cloud::process::State;

/// DaemonSets whose pod brings the pod network of its node.
const NETWORKS: [&str; 2] = ["calico-node", "aws-node"];
/// How often everything is compared even if nothing happened.
const INTERVAL: Duration = Duration::from_secs(20);
/// When what failed is tried again.
const RETRY: Duration = Duration::from_secs(2);

type Key = (String, String);

/// What this node does for the pods bound to it.
pub struct Kubelet {
    client: Client,
    node: String,
    address: String,
    host: Arc<addons::Host>,
    static_pods: watch::Receiver<StaticPods>,
    /// Set once the pod network is there.
    network: watch::Sender<bool>,
    pods: BTreeMap<Key, Pod>,
    /// By the pod's uid.
    workloads: BTreeMap<String, Workload>,
    addresses: u8,
    /// A workload's state has changed.
    changed: Arc<Notify>,
}

struct Workload {
    since: Timestamp,
    address: String,
    /// The containers that run for real; the others always run.
    programs: Vec<addons::Started>,
    _tasks: JoinSet<()>,
}

impl Kubelet {
    /// For the node `node`, whose API server is at `server`.
    pub fn new(
        machine: &Specification,
        node: &str,
        client: Client,
        server: String,
        static_pods: watch::Receiver<StaticPods>,
        network: watch::Sender<bool>,
    ) -> Self {
        let host = addons::Host {
            client: client.clone(),
            node: node.to_owned(),
            server,
            instance: machine.instance.clone(),
        };
        Self {
            client,
            node: node.to_owned(),
            address: machine.address.clone(),
            host: Arc::new(host),
            static_pods,
            network,
            pods: BTreeMap::new(),
            workloads: BTreeMap::new(),
            addresses: 0,
            changed: Arc::default(),
        }
    }

    /// Serves the pods of the node, which has the given uid, for ever.
    pub async fn run(mut self, node_uid: String) {
        let watched = watcher::Config::default().fields(&format!("spec.nodeName={}", self.node));
        let stream = watcher(Api::<Pod>::all(self.client.clone()), watched).default_backoff();
        let mut stream = std::pin::pin!(stream);
        let mut static_pods = self.static_pods.clone();
        let changed = Arc::clone(&self.changed);
        let mut tick = tokio::time::interval(INTERVAL);
        let mut listed = BTreeMap::new();
        let mut complete = false;
        loop {
            tokio::select! {
                event = stream.next() => match event {
                    Some(Ok(event)) => complete |= self.take_over(event, &mut listed),
                    Some(Err(error)) => tracing::warn!("watching pods: {error:#}"),
                    None => return,
                },
                _ = static_pods.changed() => {}
                () = changed.notified() => {}
                _ = tick.tick() => {}
            }
            if complete && !self.compare(&node_uid).await {
                let changed = Arc::clone(&self.changed);
                tokio::spawn(async move {
                    tokio::time::sleep(RETRY).await;
                    changed.notify_one();
                });
            }
        }
    }

    /// Takes an event over; true when the first list is complete.
    fn take_over(&mut self, event: Event<Pod>, listed: &mut BTreeMap<Key, Pod>) -> bool {
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(pod) => drop(listed.insert(key(&pod), pod)),
            Event::InitDone => {
                self.pods = std::mem::take(listed);
                return true;
            }
            Event::Apply(pod) => drop(self.pods.insert(key(&pod), pod)),
            Event::Delete(pod) => drop(self.pods.remove(&key(&pod))),
        }
        false
    }

    /// Brings the API server up to date; false when something has to be tried again.
    async fn compare(&mut self, node_uid: &str) -> bool {
        let mut done = true;
        let statics = self.static_pods.borrow().clone();
        for of in statics.values() {
            let wanted = mirror::pod(of, &self.node, node_uid);
            if !self.pods.contains_key(&key(&wanted)) {
                done &= log("creating a mirror pod", &wanted, self.create(&wanted).await);
            }
        }
        let uids: Vec<String> = self.pods.values().filter_map(ResourceExt::uid).collect();
        self.workloads.retain(|uid, _| uids.contains(uid));
        let pods: Vec<Pod> = self.pods.values().cloned().collect();
        for pod in &pods {
            let result = match mirrored(pod) {
                Some(hash) => self.mirror(pod, hash, &statics).await,
                None => self.serve(pod).await,
            };
            done &= log("serving", pod, result);
        }
        if !*self.network.borrow() && pods.iter().any(brings_network) {
            tracing::info!("the pod network is there");
            self.network.send_replace(true);
            self.changed.notify_one();
        }
        done
    }

    async fn mirror(&self, pod: &Pod, hash: &str, statics: &StaticPods) -> Result<()> {
        let of =
            statics.values().find(|of| mirror::name(&of.manifest.name_any(), &self.node) == pod.name_any());
        match of {
            Some(of) if of.hash == hash && pod.metadata.deletion_timestamp.is_none() => {
                let since = of.state.since.unwrap_or_else(Timestamp::now);
                let all =
                    pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| container.name.clone());
                let programs = all.map(|name| (name, of.state.clone())).collect();
                self.patch_status(pod, self.fare(since, self.address.clone(), true, programs)).await
            }
            _ => self.delete(pod).await,
        }
    }

    async fn serve(&mut self, pod: &Pod) -> Result<()> {
        let uid = pod.uid().context("the pod has no uid")?;
        if pod.metadata.deletion_timestamp.is_some() {
            self.workloads.remove(&uid);
            return self.delete(pod).await;
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return Ok(());
        }
        if !self.workloads.contains_key(&uid) {
            let workload = self.start(pod);
            self.workloads.insert(uid.clone(), workload);
        }
        let workload = self.workloads.get(&uid).context("the pod was not started")?;
        let network = host_network(pod) || *self.network.borrow();
        let programs = workload
            .programs
            .iter()
            .map(|program| (program.container.clone(), program.state.borrow().clone()))
            .collect();
        self.patch_status(pod, self.fare(workload.since, workload.address.clone(), network, programs)).await
    }

    fn start(&mut self, pod: &Pod) -> Workload {
        let address = if host_network(pod) {
            self.address.clone()
        } else {
            // Nobody ever connects to it.
            self.addresses = self.addresses.wrapping_add(1);
            let node = self.address.rsplit('.').next().unwrap_or("0");
            format!("192.168.{node}.{}", self.addresses)
        };
        let mut tasks = JoinSet::new();
        let programs = addons::start(&self.host, pod, &mut tasks);
        for mut changes in programs.iter().map(|program| program.state.clone()) {
            let changed = Arc::clone(&self.changed);
            tasks.spawn(async move {
                while changes.changed().await.is_ok() {
                    changed.notify_one();
                }
            });
        }
        Workload { since: Timestamp::now(), address, programs, _tasks: tasks }
    }

    fn fare(
        &self,
        since: Timestamp,
        address: String,
        network: bool,
        programs: BTreeMap<String, State>,
    ) -> Fare {
        Fare { since, address, node_address: self.address.clone(), network, programs }
    }

    async fn patch_status(&self, pod: &Pod, fare: Fare) -> Result<()> {
        let wanted = status::status(pod, &fare);
        if !status::differs(pod, &wanted) {
            return Ok(());
        }
        let patch = Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": wanted}));
        let result = self.api(pod).patch_status(&pod.name_any(), &PatchParams::default(), &patch).await;
        unless_gone(result).context("patching its status")
    }

    async fn create(&self, pod: &Pod) -> Result<()> {
        match self.api(pod).create(&PostParams::default(), pod).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            result => result.map(drop).context("creating it"),
        }
    }

    async fn delete(&self, pod: &Pod) -> Result<()> {
        let mut parameters = DeleteParams::default().grace_period(0);
        parameters.preconditions = Some(Preconditions { uid: pod.uid(), resource_version: None });
        unless_gone(self.api(pod).delete(&pod.name_any(), &parameters).await).context("deleting it")
    }

    fn api(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default())
    }
}

fn key(pod: &Pod) -> Key {
    (pod.namespace().unwrap_or_default(), pod.name_any())
}

fn mirrored(pod: &Pod) -> Option<&str> {
    pod.annotations().get(mirror::MIRROR).map(String::as_str)
}

fn host_network(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default()
}

fn brings_network(pod: &Pod) -> bool {
    let owner = |name: &str| {
        pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet" && owner.name == name)
    };
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready =
        || conditions.clone().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    NETWORKS.into_iter().any(owner) && pod.metadata.deletion_timestamp.is_none() && ready()
}

/// A pod that was deleted or replaced meanwhile is no error: the watch will say so.
fn unless_gone<T>(result: kube::Result<T>) -> kube::Result<()> {
    match result {
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        result => result.map(drop),
    }
}

fn log(what: &str, pod: &Pod, result: Result<()>) -> bool {
    if let Err(error) = &result {
        tracing::warn!(pod = pod.name_any(), "{what}: {error:#}");
    }
    result.is_ok()
}
