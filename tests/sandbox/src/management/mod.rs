//! The management cluster: etcd, kube-apiserver, kube-controller-manager, and Cluster API's three managers, all as
//! processes of the world.
//!
//! There is no scheduler and no node, so nothing that a manifest deploys ever runs here.

mod api_server;
mod capi;
mod certificates;
mod kubeconfig;
mod kubectl;
mod manifests;

pub use api_server::ApiServer;
pub use kubeconfig::{Credentials, kubeconfig};
pub use kubectl::Kubectl;

use std::path::Path;

use anyhow::{Context, Result};

use crate::paths;
use crate::world::World;
use crate::world::options::Parts;
use crate::world::process::Supervisor;
use crate::world::state::Reporter;

/// Brings up as much of the management cluster as `parts` asks for.
///
/// # Errors
/// Names the program that failed, with the end of its log, or the manifest that the API server refused.
pub async fn start(world: &World, supervisor: &Supervisor, reporter: &Reporter, parts: Parts) -> Result<ApiServer> {
    reporter.step("starting etcd and kube-apiserver");
    let server = ApiServer::start(world, supervisor).await?;
    let kubectl = Kubectl::new(world);
    if parts != Parts::ApiServer {
        server.start_controller_manager(world, supervisor)?;
        reporter.step("installing Cluster API");
        capi::install(world, &server, &kubectl).await?;
    }
    reporter.step("installing this project's custom resources");
    install_own(&kubectl, &world.management()).await?;
    if parts != Parts::ApiServer {
        reporter.step("starting Cluster API's managers");
        capi::start(world, supervisor, &server, &kubectl).await?;
    }
    Ok(server)
}

/// Installs the custom resources and what `deploy/` says, but for what would run in a container.
async fn install_own(kubectl: &Kubectl, directory: &Path) -> Result<()> {
    let source = paths::source();
    let definitions = manifests::read_directory(&source.join("crds/yaml"))?;
    let deployed = manifests::deployed(kubectl, &source.join("deploy")).await?;
    let (first, rest) = manifests::in_order([definitions, deployed].concat());
    kubectl.apply(&directory.join("own-definitions.json"), &first).await.context("installing the custom resources")?;
    kubectl.established().await?;
    kubectl.apply(&directory.join("own.json"), &rest).await.context("installing the manifests of deploy/")
}
