//! What an AWSCluster takes over: things in AWS that were made for another object, or by another provider,
//! count as its own only when its author says so.

use crds::AWSCluster;
use crds::names::{ADOPT_FROM_ANNOTATION, ADOPT_FROM_CAPA};

use model::FoundVpc;

/// ClusterIdentity things are to be the AWSCluster's own.
pub(crate) fn adopted_from(aws_cluster: &AWSCluster) -> Option<&str> {
    aws_cluster
        .metadata
        .annotations
        .as_ref()?
        .get(ADOPT_FROM_ANNOTATION)
        .map(String::as_str)
        .filter(|it| !it.is_empty())
}

/// How to take over what another provider made, for messages.
pub(crate) fn how() -> String {
    format!("annotate the AWSCluster with {ADOPT_FROM_ANNOTATION}: {ADOPT_FROM_CAPA}")
}

/// Why nothing is done in a VPC that the spec names and that another provider made for a cluster of this
/// name.
pub(super) fn not_adopted(vpc: &FoundVpc) -> String {
    format!(
        "spec.network.vpc.id: {} was made for a cluster of this name by another provider, and nothing is done in it; to take it over with all that \
         belongs to it, {}",
        vpc.id,
        how()
    )
}
