//! Starts the stand-ins, and again when they end.
//!
//! A stand-in that fails ends, shows why in its container's status and is started again.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;

use super::log::explain;
use super::service_account::Credentials;
use super::stand_in::StandIn;
use super::volumes::Volumes;
use super::{Host, csi, kube_proxy, load_balancer_controller, vpc_cni};
use crate::cloud::container::variables;
use crate::cloud::process::State;

/// Wait before a program that ended is started again.
const RESTART: Duration = Duration::from_secs(5);

/// The program that a stand-in is for.
#[derive(Clone, Copy, Debug)]
pub enum AddOn {
    EbsCsi,
    EfsCsi,
    KubeProxy,
    LoadBalancerController,
    VpcCni,
}

/// Runs it until it is cancelled.
pub async fn run(
    add_on: AddOn,
    host: Arc<Host>,
    pod: Pod,
    container: Container,
    state: watch::Sender<State>,
) {
    let credentials = Credentials::obtain(&host, &pod).await;
    let volumes = Arc::new(Volumes::obtain(&host, &pod, &container, &state).await);
    let attempts = async {
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
                Ok(stand_in) => work(&stand_in, add_on).await,
                Err(error) => error,
            };
            state.send_modify(|state| state.end(Some(explain(&ended))));
            tokio::time::sleep(RESTART).await;
        }
    };
    tokio::join!(Credentials::renew(&host, &pod), volumes.maintain(&host, &pod), attempts);
}

async fn work(stand_in: &StandIn, add_on: AddOn) -> anyhow::Error {
    // One that failed before stays shown as failed until it does what it is for.
    stand_in.state.send_modify(|state| state.since = Some(Timestamp::now()).filter(|_| state.restarts == 0));
    stand_in.log("started");
    let result = match add_on {
        AddOn::EbsCsi => csi::ebs::run(stand_in).await,
        AddOn::EfsCsi => csi::efs::run(stand_in).await,
        AddOn::KubeProxy => kube_proxy::run(stand_in).await,
        AddOn::LoadBalancerController => load_balancer_controller::run(stand_in).await,
        AddOn::VpcCni => vpc_cni::run(stand_in).await,
    };
    let error = result.err().unwrap_or_else(|| anyhow::anyhow!("the program ended"));
    stand_in.log(&format!("failed: {}", explain(&error)));
    error
}
