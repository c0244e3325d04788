//! The management cluster: etcd, kube-apiserver, kube-controller-manager, and Cluster API's three managers,
//! all as processes of the world.
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
use serde_json::Value;

use crate::paths;
use crate::world::World;
use crate::world::options::Parts;
use crate::world::process::Supervisor;
use crate::world::state::Reporter;

/// Brings up as much of the management cluster as `parts` asks for.
///
/// # Errors
/// Names the program that failed, with the end of its log, or the manifest that the API server refused.
pub async fn start(
    world: &World,
    supervisor: &Supervisor,
    reporter: &Reporter,
    parts: Parts,
) -> Result<ApiServer> {
    reporter.step("starting etcd and kube-apiserver");
    let server = ApiServer::start(world, supervisor).await?;
    let kubectl = Kubectl::new(world);
    let mut objects = Vec::new();
    if parts != Parts::ApiServer {
        server.start_controller_manager(world, supervisor)?;
        objects.extend(capi::objects(world, &server)?);
    }
    reporter.step("installing the manifests");
    objects.extend(manifests::deployed(&kubectl, &paths::source().join("deploy")).await?);
    install(&kubectl, &world.management(), objects).await?;
    if parts != Parts::ApiServer {
        reporter.step("starting Cluster API's managers");
        capi::start(world, supervisor, &server, &kubectl).await?;
    }
    Ok(server)
}

/// Installs everything in two calls: with every new definition the server makes its schema anew, so that many
/// small calls would take much longer.
async fn install(kubectl: &Kubectl, directory: &Path, objects: Vec<Value>) -> Result<()> {
    let (first, rest) = manifests::in_order(objects);
    kubectl
        .apply(&directory.join("definitions.json"), &first)
        .await
        .context("installing Namespaces and definitions")?;
    kubectl.established().await?;
    kubectl.apply(&directory.join("objects.json"), &rest).await.context("installing Cluster API and deploy/")
}
