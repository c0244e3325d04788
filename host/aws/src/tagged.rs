//! What controllers inside a cluster made in AWS, found by the tags they put on it. It is asked for while a cluster is being deleted;
//! no sweep does it.

use aws_sdk_resourcegroupstagging::types::{ResourceTagMapping, TagFilter};
use plan::Problem;

use crate::CLUSTER_TAG;
use crate::errors::Failure;
use crate::region::Region;

/// Tag of what the cloud provider and its like make for the cluster; the cluster's name follows.
const CLOUD_PROVIDER_TAG: &str = "kubernetes.io/cluster/";

impl Region {
    /// ARNs of load balancers that carry `kubernetes.io/cluster/<cluster>=owned` and are not this provider's own.
    ///
    /// # Errors
    /// AWS does not say: nothing may be concluded.
    pub async fn load_balancers_of(&self, cluster: &str) -> Result<Vec<String>, Problem> {
        let filter = TagFilter::builder().key(format!("{CLOUD_PROVIDER_TAG}{cluster}")).values("owned").build();
        let call = self.0.api.tagging.get_resources().tag_filters(filter).resource_type_filters("elasticloadbalancing:loadbalancer");
        let pages = self.0.api.pages("tag:GetResources", call.into_paginator().send()).await.map_err(Failure::problem)?;
        let found = pages.into_iter().flat_map(|it| it.resource_tag_mapping_list.unwrap_or_default());
        Ok(found.filter(|it| !is_ours(it)).filter_map(|it| it.resource_arn).collect())
    }
}

fn is_ours(found: &ResourceTagMapping) -> bool {
    found.tags().iter().any(|it| it.key().starts_with(CLUSTER_TAG))
}
