//! Connects to the workload cluster of a Cluster, by its kubeconfig Secret and its control plane endpoints.

use std::sync::Arc;

use addons::Api;
use crds::cluster_api::Cluster;
use crds::{AWSCluster, names};

use super::AddOns;
use crate::context::ObjectName;
use crate::management::Error;
use crate::workload::WorkloadCluster;
use crate::workload::address::Endpoint;

impl AddOns {
    /// Whether the workload API answers, and its client if it does.
    pub(super) async fn connect(
        &self,
        cluster: &ObjectName,
    ) -> Result<(Api, Option<Arc<WorkloadCluster>>), Error> {
        let (api, workload) = self.client(cluster).await?;
        let Some(client) = &workload else { return Ok((api, None)) };
        match client.answers().await {
            Ok(()) => Ok((api, workload)),
            Err(error) => Ok((Api::Unreachable(error.to_string()), None)),
        }
    }

    /// The client of a workload cluster, without asking whether that answers.
    pub(super) async fn client(
        &self,
        cluster: &ObjectName,
    ) -> Result<(Api, Option<Arc<WorkloadCluster>>), Error> {
        let secret = cluster.sibling(format!("{}{}", cluster.name, names::KUBECONFIG_SECRET_SUFFIX));
        let secret = self.context.management.secret(&secret).await?;
        let Some(kubeconfig) = secret.and_then(|it| it.data).and_then(|mut it| it.remove("value")) else {
            return Ok((Api::NoKubeconfig, None));
        };
        match self
            .workload
            .cluster(&cluster.namespace, &cluster.name, &kubeconfig.0, self.endpoints(cluster))
            .await
        {
            Ok(workload) => Ok((Api::Answers, Some(workload))),
            Err(error) => Ok((Api::Unreachable(error.to_string()), None)),
        }
    }

    /// Where the control plane of a cluster is, as the management cluster has it.
    fn endpoints(&self, cluster: &ObjectName) -> Vec<Endpoint> {
        let management = &self.context.management;
        let of_cluster = management.get::<Cluster>(cluster).map(|it| it.spec.control_plane_endpoint.clone());
        let of_aws = management
            .of_cluster::<AWSCluster>(cluster)
            .into_iter()
            .map(|it| it.spec.control_plane_endpoint.clone());
        let all = of_cluster.into_iter().chain(of_aws).filter(|it| !it.host.is_empty());
        all.filter_map(|it| Some((it.host, u16::try_from(it.port).ok()?))).collect()
    }
}
