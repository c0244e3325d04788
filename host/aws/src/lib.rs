//! AWS, for everything else in this program: polls that show a region as a [`model::Snapshot`], and the
//! carrying out of [`model::Action`]s.
//!
//! The only crate that knows the AWS SDK. It knows nothing of Kubernetes, and what should exist is decided
//! elsewhere.

mod act;
mod api;
mod batch;
mod calls;
mod connect;
mod context;
mod ec2;
mod efs;
mod errors;
mod gc;
mod iam;
mod kind;
mod kinds;
mod limits;
mod lookup;
mod open_id;
mod pending_writes;
mod poll;
mod recently_seen;
mod region;
mod region_state;
mod schedule;
mod store;
mod tagged;

pub use calls::{Calls, calls};
pub use connect::{Aws, ConnectError};
pub use context::View;
pub use region::Region;

use model::Timestamp;

/// Tag key that CAPA and this provider put on what a cluster is made of; the cluster's name follows.
pub(crate) const CLUSTER_TAG: &str = "sigs.k8s.io/cluster-api-provider-aws/cluster/";

/// Tag that holds the random id of the AWSCluster that a resource was made for.
pub(crate) const ID_TAG: &str = "cluster.kurator.dev/id";
/// Tag that names that AWSCluster.
pub(crate) const OWNER_TAG: &str = "cluster.kurator.dev/owner";

/// Seconds since 1970.
pub(crate) fn now() -> Timestamp {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map(|it| it.as_secs_f64())
        .unwrap_or_default()
}
