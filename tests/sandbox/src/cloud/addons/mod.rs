//! Containers whose program the bed has, or a stand-in for it: they run with the pod's own token.
//!
//! Everything else that a pod asks of its containers is left out. Which pods exist, where and how many, is
//! decided by the cluster's own controllers and scheduler.

mod aws;
mod csi;
mod events;
mod follow;
mod kube_proxy;
mod lease;
mod load_balancer_controller;
mod log;
mod probe;
mod real;
mod service_account;
mod stand_in;
mod start;
pub mod tigera;
mod volumes;
mod vpc_cni;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::process::State;
use start::AddOn;

/// Stand-ins by a part of their image's name.
const STAND_INS: [(&str, AddOn); 5] = [
    ("amazon-k8s-cni:", AddOn::VpcCni),
    ("aws-ebs-csi-driver", AddOn::EbsCsi),
    ("aws-efs-csi-driver", AddOn::EfsCsi),
    ("aws-load-balancer-controller", AddOn::LoadBalancerController),
    ("kube-proxy", AddOn::KubeProxy),
];

/// The node that add-ons run on.
pub struct Host {
    /// Client of the node itself.
    pub client: Client,
    /// Name of the Node.
    pub node: String,
    /// URL of the API server.
    pub server: String,
    /// Instance id, for names of logs.
    pub instance: String,
}

/// A container that runs.
pub struct Started {
    /// Its name.
    pub container: String,
    /// How it fares.
    pub state: watch::Receiver<State>,
}

/// Starts the pod's programs in `tasks`; none when the bed has no program for any of its containers.
pub fn start(host: &Arc<Host>, pod: &Pod, tasks: &mut JoinSet<()>) -> Vec<Started> {
    let with = |part: &str| {
        let image =
            |container: &&Container| container.image.as_deref().is_some_and(|image| image.contains(part));
        pod.spec.iter().flat_map(|spec| &spec.containers).find(image).cloned()
    };
    let mut all = Vec::new();
    let mut begin = |container: &Container| {
        let (state, receiver) = watch::channel(State::default());
        all.push(Started { container: container.name.clone(), state: receiver });
        state
    };
    let real = real::programs(pod);
    if !real.is_empty() {
        let programs =
            real.into_iter().map(|(container, program)| (begin(&container), container, program)).collect();
        tasks.spawn(real::run(Arc::clone(host), pod.clone(), programs));
    } else if let Some(container) = with("tigera/operator") {
        let state = begin(&container);
        tasks.spawn(tigera::run(Arc::clone(host), pod.clone(), container, state));
    } else if let Some((add_on, container)) =
        STAND_INS.into_iter().find_map(|(part, add_on)| Some((add_on, with(part)?)))
    {
        let state = begin(&container);
        tasks.spawn(start::run(add_on, Arc::clone(host), pod.clone(), container, state));
    }
    all
}
