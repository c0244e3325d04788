//! Containers whose program the bed has: they run for real, with the pod's own token.
//!
//! Everything else that a pod asks of its container is left out. Which pods exist, where and how many, is decided
//! by the cluster's own controllers and scheduler.

mod cloud_controller_manager;
mod service_account;
mod tigera;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::kubelet::process::State;

/// The node that add-ons run on.
pub struct Host {
    /// Client of the node itself.
    pub client: Client,
    /// URL of the API server.
    pub server: String,
    /// Instance id, for names of logs.
    pub instance: String,
}

/// Starts the pod's program in `tasks` and says how it fares; none when the bed has no program for it.
pub fn start(host: &Arc<Host>, pod: &Pod, tasks: &mut JoinSet<()>) -> Option<watch::Receiver<State>> {
    let containers = &pod.spec.as_ref()?.containers;
    let image = |container: &Container, part: &str| container.image.as_deref().is_some_and(|image| image.contains(part));
    let (state, receiver) = watch::channel(State::default());
    let (host, pod) = (Arc::clone(host), pod.clone());
    if let Some(container) = containers.iter().find(|container| image(container, "cloud-controller-manager")) {
        tasks.spawn(cloud_controller_manager::run(host, pod.clone(), container.clone(), state));
    } else if let Some(container) = containers.iter().find(|container| image(container, "tigera/operator")) {
        tasks.spawn(tigera::run(host, pod.clone(), container.clone(), state));
    } else {
        return None;
    }
    Some(receiver)
}
