//! The cluster around a machine: its network on paper, and what AWS has of it. A snapshot is observed once,
//! however often something is decided by it.

use crds::AWSCluster;
use crds::cluster_api::Cluster;

use crate::cluster::{Layout, is_external};
use crate::observe::Scope;
use crate::{PersistedState, observe};
use model::{Invalid, Observed, Snapshot};

/// A cluster, as each of its machines observes it.
pub struct ObservedCluster {
    pub(super) layout: Result<Layout, Invalid>,
    pub(super) observed: Observed,
}

impl ObservedCluster {
    /// Observes the cluster in a snapshot. `record`: [`PersistedState::of_cluster`] of the AWSCluster;
    /// `random`: at least 128 random bits.
    pub fn new(
        cluster: &Cluster,
        aws_cluster: &AWSCluster,
        record: &PersistedState,
        snapshot: &Snapshot,
        random: &str,
    ) -> Self {
        let layout = if is_external(aws_cluster) {
            Ok(Layout::external(aws_cluster))
        } else {
            Layout::of(cluster, aws_cluster, &mut record.clone(), snapshot, random)
        };
        let scope = layout.clone().unwrap_or_default().scope(cluster, aws_cluster, record);
        let observed = observe::cluster(snapshot, &Scope { deleting: false, ..scope });
        Self { layout, observed }
    }
}
