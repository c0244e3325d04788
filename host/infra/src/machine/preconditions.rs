//! What a machine waits for before anything of it is made.

use crds::conditions::reason;
use crds::{AWSCluster, AWSClusterStatus};

use super::{Input, Wait};
use crate::cluster::{is_external, unmanaged};

/// What has to be there before anything is made for a machine.
pub(super) fn unmet(input: &Input<'_>) -> Option<Wait> {
    let provisioned = input
        .cluster
        .status
        .as_ref()
        .and_then(|it| it.initialization.infrastructure_provisioned)
        .unwrap_or_default();
    if !provisioned {
        let message = format!(
            "the infrastructure of the cluster is not provisioned yet{}",
            missing_initialization(input.aws_cluster)
        );
        return Some(Wait { reason: reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE, message });
    }
    if input.machine.spec.bootstrap.data_secret_name.is_none() {
        return Some(Wait {
            reason: reason::WAITING_FOR_BOOTSTRAP_DATA,
            message: "bootstrap data is not there yet".into(),
        });
    }
    let unread = unmanaged::unread(input.cluster, input.aws_cluster, input.cluster_record, input.snapshot);
    unread
        .map(|vpc| Wait { reason: reason::NOT_READY, message: format!("reading the route tables of {vpc}") })
}

/// What is to be added when somebody else looks after the infrastructure and says by the older contract alone
/// that it is there.
fn missing_initialization(aws_cluster: &AWSCluster) -> String {
    let initialized =
        |it: &AWSClusterStatus| it.initialization.as_ref().and_then(|it| it.provisioned) == Some(true);
    let is_half = |it: &AWSClusterStatus| it.ready && !initialized(it);
    if !is_external(aws_cluster) || !aws_cluster.status.as_ref().is_some_and(is_half) {
        return String::new();
    }
    let name = aws_cluster.metadata.name.as_deref().unwrap_or_default();
    let missing = "status.initialization.provisioned: true, which this version of Cluster API asks for";
    format!(": AWSCluster {name} says status.ready alone; whoever manages it has to set {missing}")
}
