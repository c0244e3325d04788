//! The facts of a cluster that plugins are given: some always, the others only when a plugin asks for them.

mod requested;

use std::collections::BTreeMap;

use addons::{ClusterState, Inventory};
use contract::{
    AwsFact, ClusterFact, ControlPlaneEndpoint, Fact, FactValue, InstalledFact, KUBERNETES_VERSION,
};
use crds::AWSCluster;
use crds::cluster_api::{Cluster, KubeadmControlPlane};
use iam::instance_roles::Profiles;
use kube::ResourceExt;
use serde_json::json;

use super::queries::Queries;
use crate::management::Cached;
use crate::object_name::ObjectName;

pub use requested::{FactCache, FactSources};

/// Keys of the facts that every plugin is given; the others only those that ask for them.
pub const ALWAYS: [&str; 4] = [ClusterFact::KEY, KUBERNETES_VERSION, AwsFact::KEY, InstalledFact::KEY];

/// What is known of a cluster, as far as plugins are given it.
pub struct ClusterFacts<'a> {
    pub cluster: &'a Cluster,
    pub control_plane: Option<&'a KubeadmControlPlane>,
    pub aws_cluster: Option<&'a AWSCluster>,
    /// Facts that plugins have to ask for.
    pub requested: RequestedFacts,
    /// The instance profiles of its instances; or why they are not known.
    pub profiles: Result<Profiles, String>,
    /// Who answers what plugins ask for beside facts.
    pub queries: Queries,
}

/// Facts by their keys.
pub type RequestedFacts = BTreeMap<&'static str, FactValue>;

impl ClusterFacts<'_> {
    pub fn cluster_name(&self) -> ObjectName {
        ObjectName::new(self.cluster.namespace().unwrap_or_default(), self.cluster.name_any())
    }
}

/// The facts that every plugin is given, and those that were asked for.
pub fn facts(known: &ClusterFacts<'_>, installed: Result<Option<&Inventory>, &str>) -> Vec<Fact> {
    let spec = &known.cluster.spec;
    let cluster = ClusterFact {
        name: known.cluster.name_any(),
        namespace: known.cluster.namespace().unwrap_or_default(),
        pod_cidrs: spec.cluster_network.pods.cidr_blocks.clone(),
        service_cidrs: spec.cluster_network.services.cidr_blocks.clone(),
        control_plane_endpoint: ControlPlaneEndpoint {
            host: spec.control_plane_endpoint.host.clone(),
            port: u16::try_from(spec.control_plane_endpoint.port).unwrap_or_default(),
        },
    };
    let version = match known.control_plane {
        Some(control_plane) => FactValue::Present(json!(control_plane.spec.version)),
        None => FactValue::Unknown("the control plane object is not there".into()),
    };
    let installed = match installed {
        Ok(Some(it)) => present(&InstalledFact { version: it.version.clone(), digest: it.digest.clone() }),
        Ok(None) => FactValue::Absent,
        Err(why) => FactValue::Unknown(why.to_owned()),
    };
    let mut facts = vec![
        Fact { key: ClusterFact::KEY.into(), value: present(&cluster) },
        Fact { key: KUBERNETES_VERSION.into(), value: version },
        Fact { key: AwsFact::KEY.into(), value: aws(known) },
        Fact { key: InstalledFact::KEY.into(), value: installed },
    ];
    facts
        .extend(known.requested.iter().map(|(key, value)| Fact { key: (*key).into(), value: value.clone() }));
    facts
}

fn aws(known: &ClusterFacts<'_>) -> FactValue {
    let Some(aws_cluster) = known.aws_cluster else {
        return FactValue::Unknown("the AWSCluster is not there".into());
    };
    let network = aws_cluster.status.as_ref().map(|it| &it.network_status);
    let Some(vpc) = network.and_then(|it| it.vpc.as_ref()) else {
        return FactValue::Unknown("the VPC is not there yet".into());
    };
    let subnets = network.map(|it| it.subnets.as_slice()).unwrap_or_default();
    let mut zones: Vec<String> = subnets.iter().map(|it| it.availability_zone.clone()).collect();
    zones.sort();
    zones.dedup();
    let region = aws_cluster.spec.region.clone();
    present(&AwsFact {
        partition: iam::partition::of_region(&region).into(),
        region,
        vpc_id: vpc.id.clone(),
        zones,
        tags: aws_cluster.spec.additional_tags.clone().into_iter().collect(),
    })
}

fn present(fact: &impl serde::Serialize) -> FactValue {
    match serde_json::to_value(fact) {
        Ok(value) => FactValue::Present(value),
        Err(error) => FactValue::Unknown(error.to_string()),
    }
}

/// How far a cluster is, as the management cluster has it.
pub fn cluster_state(
    cluster: &Cached<Cluster>,
    control_plane: Option<&Cached<KubeadmControlPlane>>,
) -> ClusterState {
    let of_cluster = cluster.status.as_ref().and_then(|it| it.initialization.control_plane_initialized);
    let status = control_plane.and_then(|it| it.status.as_ref());
    let of_control_plane = status.and_then(|it| it.initialization.control_plane_initialized);
    ClusterState {
        exists: true,
        initialized: of_cluster == Some(true) || of_control_plane == Some(true),
        ready: status.and_then(|it| it.ready_replicas).unwrap_or(0) >= 1,
        kubeconfig: true,
    }
}
