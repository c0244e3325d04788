//! What a CSI driver does on a node, as far as the scheduler and others see it: it finds out where it is, and
//! the kubelet registers it in the CSINode and in labels of the Node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::{CSINode, CSINodeDriver, VolumeNodeResources};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::growth;
use crate::cloud::addons::Host;
use crate::cloud::addons::log::explain;
use crate::cloud::addons::stand_in::StandIn;

/// How often the registration and what has grown are looked after.
const INTERVAL: Duration = Duration::from_secs(15);

const OPERATING_SYSTEM: &str = "kubernetes.io/os";
const ZONE: &str = "topology.kubernetes.io/zone";

/// What a driver registers.
#[derive(Clone, Debug)]
pub struct Registration {
    pub driver: &'static str,
    /// The driver's own label for the node's zone, if volumes are of a zone.
    pub zone: Option<&'static str>,
    /// Volumes that the node can hold.
    pub limit: Option<i32>,
}

/// Instance and zone of the node.
struct Place {
    instance: String,
    zone: String,
}

/// Registers the driver for as long as it runs.
///
/// # Errors
/// When the driver cannot find out where it is, or its service account may not read the Node.
pub async fn run(stand_in: &StandIn, registration: &Registration) -> Result<()> {
    let nodes: Api<Node> = Api::all(stand_in.client.clone());
    let node = nodes.get(&stand_in.host.node).await.context("reading the node")?;
    let place = place(stand_in, &node).await?;
    let _registered = Registered { host: Arc::clone(&stand_in.host), driver: registration.driver };
    loop {
        match register(&stand_in.host, registration, &place).await {
            Ok(()) => stand_in.ready(),
            Err(error) => stand_in.log(&explain(&error)),
        }
        admit(&nodes, &stand_in.host.node, registration.driver).await?;
        if let Err(error) = growth::finish(&stand_in.host, registration.driver).await {
            stand_in.log(&explain(&error));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Asks the metadata service, else takes what the cloud controller manager wrote on the Node.
async fn place(stand_in: &StandIn, node: &Node) -> Result<Place> {
    let metadata = stand_in.metadata();
    if let (Ok(instance), Ok(zone)) = (
        metadata.get("meta-data/instance-id").await,
        metadata.get("meta-data/placement/availability-zone").await,
    ) {
        return Ok(Place { instance, zone });
    }
    let id = node
        .spec
        .as_ref()
        .and_then(|spec| spec.provider_id.as_deref())
        .context("the node has no providerID")?;
    let instance = id.rsplit('/').next().context("the node's providerID has no instance")?.to_owned();
    let zone = node.labels().get(ZONE).context("the node has no zone")?.clone();
    Ok(Place { instance, zone })
}

/// Writes label and CSINode, as the kubelet.
async fn register(host: &Host, registration: &Registration, place: &Place) -> Result<()> {
    let nodes: Api<Node> = Api::all(host.client.clone());
    let node = nodes.get(&host.node).await.context("reading the node")?;
    let labels = registration.zone.into_iter().flat_map(|label| [label, ZONE]);
    let missing: BTreeMap<&str, &str> = labels
        .filter(|label| node.labels().get(*label) != Some(&place.zone))
        .map(|label| (label, place.zone.as_str()))
        .collect();
    if !missing.is_empty() {
        let patch = Patch::Merge(json!({"metadata": {"labels": missing}}));
        nodes.patch(&host.node, &PatchParams::default(), &patch).await.context("labelling the node")?;
    }
    let driver = CSINodeDriver {
        name: registration.driver.to_owned(),
        node_id: place.instance.clone(),
        topology_keys: registration
            .zone
            .map(|label| [OPERATING_SYSTEM, label, ZONE].map(str::to_owned).to_vec()),
        allocatable: registration.limit.map(|count| VolumeNodeResources { count: Some(count) }),
    };
    let registered: Api<CSINode> = Api::all(host.client.clone());
    let Some(mut found) = registered.get_opt(&host.node).await.context("reading the CSINode")? else {
        let owner = json!([{"apiVersion": "v1", "kind": "Node", "name": host.node, "uid": node.uid()}]);
        let object =
            json!({"metadata": {"name": host.node, "ownerReferences": owner}, "spec": {"drivers": [driver]}});
        let object = serde_json::from_value(object).context("making the CSINode")?;
        return registered
            .create(&PostParams::default(), &object)
            .await
            .map(drop)
            .context("creating the CSINode");
    };
    if found.spec.drivers.contains(&driver) {
        return Ok(());
    }
    found.spec.drivers.retain(|other| other.name != driver.name);
    found.spec.drivers.push(driver);
    registered
        .replace(&host.node, &PostParams::default(), &found)
        .await
        .map(drop)
        .context("writing the CSINode")
}

/// Takes away the taint with which nodes may start, by the rights of the driver's service account.
async fn admit(nodes: &Api<Node>, name: &str, driver: &str) -> Result<()> {
    let node = nodes.get(name).await.context("reading the node")?;
    let key = format!("{driver}/agent-not-ready");
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    if !taints.iter().any(|taint| taint.key == key) {
        return Ok(());
    }
    let kept: Vec<_> = taints.iter().filter(|taint| taint.key != key).collect();
    let patch = Patch::Merge(
        json!({"metadata": {"resourceVersion": node.resource_version()}, "spec": {"taints": kept}}),
    );
    match nodes.patch(name, &PatchParams::default(), &patch).await {
        // Somebody else changed the node; the next turn comes.
        Err(kube::Error::Api(status)) if status.is_conflict() => Ok(()),
        result => result.map(drop).with_context(|| format!("taking taint {key} away")),
    }
}

/// Takes the registration back when the driver ends, as a kubelet does when the driver's socket is gone.
struct Registered {
    host: Arc<Host>,
    driver: &'static str,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let (host, driver) = (Arc::clone(&self.host), self.driver);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = withdraw(&host, driver).await {
                    tracing::warn!(driver, "taking a registration back: {error:#}");
                }
            });
        }
    }
}

async fn withdraw(host: &Host, driver: &str) -> Result<()> {
    let registered: Api<CSINode> = Api::all(host.client.clone());
    let Some(mut found) = registered.get_opt(&host.node).await.context("reading the CSINode")? else {
        return Ok(());
    };
    found.spec.drivers.retain(|other| other.name != driver);
    registered
        .replace(&host.node, &PostParams::default(), &found)
        .await
        .map(drop)
        .context("writing the CSINode")
}
