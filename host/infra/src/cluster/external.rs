//! Clusters whose infrastructure somebody else looks after: that an AWSCluster says so, and what of its spec
//! counts for machines. Nothing of such a cluster is made, changed or written to; only its machines are.

use crds::AWSCluster;
use crds::names::MANAGED_BY_ANNOTATION;

use super::aws_id::aws_ids;
use super::layout::Layout;
use crate::observe::{SubnetRole, kept_for_pods};

/// Whether somebody else looks after the infrastructure. The annotation alone says so; its value does not
/// matter.
pub fn is_external(aws_cluster: &AWSCluster) -> bool {
    aws_cluster.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(MANAGED_BY_ANNOTATION))
}

impl Layout {
    /// The network of such a cluster: the subnets that its spec names by id, in its order. What the spec
    /// leaves out of them only AWS can say, and none of them is promised to be there.
    pub(crate) fn external(aws_cluster: &AWSCluster) -> Layout {
        let network = &aws_cluster.spec.network;
        let role = |it| aws_ids(it).next().map(|id| (it, id.clone()));
        let subnets = network.subnets.iter().filter_map(role).map(|(it, id)| SubnetRole {
            name: id.clone(),
            id: Some(id),
            cidr: None,
            zone: it.availability_zone.clone(),
            public: it.is_public,
            for_pods: kept_for_pods(&it.tags),
            unlisted: false,
        });
        Layout {
            owned: false,
            cidr: network.vpc.cidr_block.clone(),
            subnets: subnets.collect(),
            ..Layout::default()
        }
    }
}
