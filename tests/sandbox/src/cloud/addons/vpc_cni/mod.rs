//! A stand-in for the Amazon VPC CNI's agent: the network interfaces and addresses that it holds ready on its
//! instance.
//!
//! As the real one can, it leaves interfaces behind when its instance ends: one per instance is never
//! attached. It hands no address to any pod.

mod interfaces;
mod targets;

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};

use super::aws::{self, Answer};
use super::follow::forbidden;
use super::log::explain;
use super::stand_in::StandIn;
use interfaces::{Interfaces, Place};
use targets::{Limits, Targets};

/// How often the warm targets are looked at.
const INTERVAL: Duration = Duration::from_secs(15);

/// Runs until a right is missing.
///
/// # Errors
/// Before it was ready any error ends it, as it ends the real one.
pub async fn run(stand_in: &StandIn) -> Result<()> {
    let targets = Targets::of(&stand_in.environment)?;
    let metadata = stand_in.metadata();
    let region = metadata.get("meta-data/placement/region").await?;
    let region = stand_in.environment.get("AWS_REGION").cloned().unwrap_or(region);
    let aws = stand_in.aws(&region);
    aws.identify().await?;
    let mut place = Place::here(&metadata).await?;
    if targets.custom {
        configured(stand_in, &targets, &mut place).await?;
    }
    let call = aws.ec2.describe_instance_types().instance_types(place.instance_type.as_str().into());
    let types = call.send().await.answer().context("reading the instance's type")?;
    let limits = Limits::of(types.instance_types().first().context("the instance's type is not known")?)?;
    let interfaces = Interfaces { stand_in, aws: &aws, place: &place, targets: &targets, limits };
    interfaces.hold(&targets.wanted(pods(stand_in).await?, limits)).await?;
    loop {
        stand_in.ready();
        tokio::time::sleep(INTERVAL).await;
        let held = async { interfaces.hold(&targets.wanted(pods(stand_in).await?, limits)).await };
        match held.await {
            Err(error) if aws::denied(&error) || forbidden(&error) => return Err(error),
            Err(error) => stand_in.log(&explain(&error)),
            Ok(()) => {}
        }
    }
}

/// How many pods of this node need an address of its interfaces.
async fn pods(stand_in: &StandIn) -> Result<usize> {
    let pods: Api<Pod> = Api::all(stand_in.client.clone());
    let here = ListParams::default().fields(&format!("spec.nodeName={}", stand_in.host.node));
    let pods = pods.list(&here).await.context("listing pods")?;
    let own = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.host_network != Some(true));
    Ok(pods.iter().filter(own).count())
}

/// Takes subnet and security groups from the ENIConfig that the node's label names.
async fn configured(stand_in: &StandIn, targets: &Targets, place: &mut Place) -> Result<()> {
    let nodes: Api<Node> = Api::all(stand_in.client.clone());
    let node = nodes.get(&stand_in.host.node).await.context("reading the node")?;
    let name = node
        .labels()
        .get(&targets.label)
        .with_context(|| format!("the node has no label {}", targets.label))?;
    let kind = GroupVersionKind::gvk("crd.k8s.amazonaws.com", "v1alpha1", "ENIConfig");
    let configurations: Api<DynamicObject> =
        Api::all_with(stand_in.client.clone(), &ApiResource::from_gvk_with_plural(&kind, "eniconfigs"));
    let found = configurations.get(name).await.with_context(|| format!("reading ENIConfig {name}"))?;
    let spec = &found.data["spec"];
    spec["subnet"]
        .as_str()
        .with_context(|| format!("ENIConfig {name} has no subnet"))?
        .clone_into(&mut place.subnet);
    let groups: Vec<String> = spec["securityGroups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect();
    if !groups.is_empty() {
        place.groups = groups;
    }
    Ok(())
}
