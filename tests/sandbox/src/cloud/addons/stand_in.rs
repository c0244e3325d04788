//! What every stand-in for an add-on's program is given, which is what a kubelet gives a container: its pod's
//! token, environment and volumes, a log, and restarts.
//!
//! None has rights of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};
use tokio::sync::watch;

use super::aws::Aws;
use super::aws::credentials::Source;
use super::aws::metadata::Metadata;
use super::volumes::Volumes;
use super::{Host, log};
use crate::cloud::container::flag;
use crate::cloud::process::State;

/// A program's surroundings.
pub struct StandIn {
    pub host: Arc<Host>,
    pub pod: Pod,
    pub container: Container,
    /// Client of the API server, as the pod's service account.
    pub client: Client,
    pub environment: BTreeMap<String, String>,
    pub volumes: Arc<Volumes>,
    pub state: watch::Sender<State>,
}

impl StandIn {
    /// Says that the program does what it is for.
    pub fn ready(&self) {
        self.state.send_if_modified(|state| {
            let changed = !state.ready;
            let since = state.since.unwrap_or_else(Timestamp::now);
            *state = State { since: Some(since), ready: true, restarts: state.restarts, message: None };
            changed
        });
    }

    /// Writes a line to the container's log.
    pub fn log(&self, line: &str) {
        log::write_line(&self.host, &self.pod, line);
    }

    /// The value of a flag, `--name=value` or `-name=value`.
    pub fn flag(&self, name: &str) -> Option<&str> {
        flag(&self.container, name)
    }

    /// Containers of the pod whose image has this in its name.
    pub fn beside(&self, image: &str) -> Option<&Container> {
        let containers = &self.pod.spec.as_ref()?.containers;
        containers
            .iter()
            .find(|container| container.image.as_deref().is_some_and(|name| name.contains(image)))
    }

    /// The metadata service, as near as the pod is to it.
    pub fn metadata(&self) -> Metadata {
        let host = self.pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default();
        Metadata::new(if host { 1 } else { 2 })
    }

    /// A client of AWS in that region with the credentials that the container was given.
    pub fn aws(&self, region: &str) -> Aws {
        let source = Source::of(&self.environment, self.metadata(), &self.pod.name_any(), |path| {
            self.volumes.path(path)
        });
        Aws::new(region.to_owned(), &source)
    }
}
