//! What every stand-in for an add-on's program is given, which is what a kubelet gives a container: its pod's
//! token, environment and volumes, a log, and restarts.
//!
//! A stand-in that fails ends, shows why in its container's status and is started again. None has rights of
//! its own.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, ResourceExt};
use tokio::sync::watch;

use super::aws::Aws;
use super::aws::credentials::{Metadata, Source};
use super::service_account::Credentials;
use super::volumes::Volumes;
use super::{Host, csi, kube_proxy, load_balancer_controller, vpc_cni};
use crate::cloud::kubelet::process::State;
use crate::cloud::kubelet::variables;
use crate::cloud::machine::root::LOGS;

/// Wait before a program that ended is started again.
const RESTART: Duration = Duration::from_secs(5);

/// Which program.
#[derive(Clone, Copy, Debug)]
pub enum Program {
    EbsCsi,
    EfsCsi,
    KubeProxy,
    LoadBalancerController,
    VpcCni,
}

/// A program's surroundings.
pub struct StandIn {
    pub host: Arc<Host>,
    pub pod: Pod,
    pub container: Container,
    /// Client of the API server, as the pod's service account.
    pub client: Client,
    pub environment: BTreeMap<String, String>,
    pub volumes: Arc<Volumes>,
    state: watch::Sender<State>,
}

/// Runs it until it is cancelled.
pub async fn run(
    program: Program,
    host: Arc<Host>,
    pod: Pod,
    container: Container,
    state: watch::Sender<State>,
) {
    let credentials = Credentials::obtain(&host, &pod).await;
    let volumes = Arc::new(Volumes::obtain(&host, &pod, &container, &state).await);
    let work = async {
        loop {
            let environment = variables(&container, &pod).into_iter().collect();
            let (host, pod, container) = (Arc::clone(&host), pod.clone(), container.clone());
            let stand_in = credentials.client(&host).map(|client| StandIn {
                host,
                pod,
                container,
                client,
                environment,
                volumes: Arc::clone(&volumes),
                state: state.clone(),
            });
            let ended = match stand_in {
                Ok(stand_in) => stand_in.work(program).await,
                Err(error) => error,
            };
            state.send_modify(|state| state.end(Some(explain(&ended))));
            tokio::time::sleep(RESTART).await;
        }
    };
    tokio::join!(Credentials::renew(&host, &pod), volumes.maintain(&host, &pod), work);
}

impl StandIn {
    async fn work(&self, program: Program) -> anyhow::Error {
        // One that failed before stays shown as failed until it does what it is for.
        self.state.send_modify(|state| state.since = Some(Timestamp::now()).filter(|_| state.restarts == 0));
        self.log("started");
        let result = match program {
            Program::EbsCsi => csi::ebs::run(self).await,
            Program::EfsCsi => csi::efs::run(self).await,
            Program::KubeProxy => kube_proxy::run(self).await,
            Program::LoadBalancerController => load_balancer_controller::run(self).await,
            Program::VpcCni => vpc_cni::run(self).await,
        };
        let error = result.err().unwrap_or_else(|| anyhow::anyhow!("the program ended"));
        self.log(&format!("failed: {}", explain(&error)));
        error
    }

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
        note(&self.host, &self.pod, line);
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
        Metadata { hops: if host { 1 } else { 2 } }
    }

    /// A client of AWS in that region with the credentials that the container was given.
    pub fn aws(&self, region: &str) -> Result<Aws> {
        let source = Source::of(&self.environment, self.metadata(), &self.pod.name_any(), |path| {
            self.volumes.path(path)
        });
        Aws::new(region.to_owned(), source)
    }
}

/// An error in words, of the API server only what it says.
pub fn explain(error: &anyhow::Error) -> String {
    let mut words = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            words.push(status.message.clone());
            break;
        }
        words.push(cause.to_string());
    }
    words.join(": ")
}

/// The value of a container's flag.
pub fn flag<'a>(container: &'a Container, name: &str) -> Option<&'a str> {
    let arguments = container.command.iter().flatten().chain(container.args.iter().flatten());
    arguments
        .filter_map(|argument| argument.trim_start_matches('-').split_once('='))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

/// Writes a line to the log of the pod's stand-in.
pub fn note(host: &Host, pod: &Pod, line: &str) {
    tracing::info!(pod = pod.name_any(), "{line}");
    let path = Path::new(LOGS).join(format!("machine-{}-{}.log", host.instance, pod.name_any()));
    let write = || -> Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        writeln!(file, "{} {line}", Timestamp::now()).with_context(|| format!("writing {}", path.display()))
    };
    if let Err(error) = write() {
        tracing::warn!("{error:#}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_says_is_not_said_twice() {
        let status = kube::core::Status::failure("nodes \"n\" is forbidden", "Forbidden").with_code(403);
        let error = anyhow::Error::from(kube::Error::Api(status.boxed())).context("reading the node");
        assert_eq!(explain(&error), "reading the node: nodes \"n\" is forbidden");
    }
}
