//! Containers whose program the bed has, or a stand-in for it: they run with the pod's own token.
//!
//! Everything else that a pod asks of its containers is left out. Which pods exist, where and how many, is decided
//! by the cluster's own controllers and scheduler.

mod aws;
mod cloud_controller_manager;
mod csi;
mod events;
mod follow;
mod kube_proxy;
mod lease;
mod load_balancer_controller;
mod service_account;
mod stand_in;
pub mod tigera;
mod volumes;
mod vpc_cni;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::kubelet::process::State;
use stand_in::Program;

/// Stand-ins by a part of their image's name.
const STAND_INS: [(&str, Program); 5] = [
    ("amazon-k8s-cni:", Program::VpcCni),
    ("aws-ebs-csi-driver", Program::EbsCsi),
    ("aws-efs-csi-driver", Program::EfsCsi),
    ("aws-load-balancer-controller", Program::LoadBalancerController),
    ("kube-proxy", Program::KubeProxy),
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

/// Starts the pod's program in `tasks`; none when the bed has no program for it.
pub fn start(host: &Arc<Host>, pod: &Pod, tasks: &mut JoinSet<()>) -> Option<Started> {
    let containers = &pod.spec.as_ref()?.containers;
    let with = |part: &str| {
        let image = |container: &&Container| container.image.as_deref().is_some_and(|image| image.contains(part));
        containers.iter().find(image).cloned()
    };
    let (state, receiver) = watch::channel(State::default());
    let (host, pod) = (Arc::clone(host), pod.clone());
    let name = if let Some(container) = with("cloud-controller-manager") {
        let name = container.name.clone();
        tasks.spawn(cloud_controller_manager::run(host, pod, container, state));
        name
    } else if let Some(container) = with("tigera/operator") {
        let name = container.name.clone();
        tasks.spawn(tigera::run(host, pod, container, state));
        name
    } else {
        let (program, container) = STAND_INS.into_iter().find_map(|(part, program)| Some((program, with(part)?)))?;
        let name = container.name.clone();
        tasks.spawn(stand_in::run(program, host, pod, container, state));
        name
    };
    Some(Started { container: name, state: receiver })
}
