//! What controllers inside a cluster made of Elastic Load Balancing, found by the tags they put on it. It is
//! asked for while a cluster is being deleted.

use std::collections::BTreeMap;

use aws_sdk_resourcegroupstagging::types::{ResourceTagMapping, TagFilter};
use infra::gc::{CONTROLLER_TAG, is_left};
use model::Tags;

use crate::api::Api;
use crate::errors::Failure;

const ACTION: &str = "tag:GetResources";
const LOAD_BALANCER: &str = "elasticloadbalancing:loadbalancer";
const TARGET_GROUP: &str = "elasticloadbalancing:targetgroup";
/// Tag of what the cloud provider and its like make for the cluster; the cluster's name follows.
const CLOUD_PROVIDER_TAG: &str = "kubernetes.io/cluster/";

/// Load balancers and target groups that controllers of the cluster made, in whatever VPC: tags by ARN.
pub(crate) async fn balancers_and_target_groups(
    api: &Api,
    cluster: &str,
) -> Result<BTreeMap<String, Tags>, Failure> {
    tagged(api, cluster).await
}

/// Filters of one call are all to be met, so each tag takes a call.
async fn tagged(api: &Api, cluster: &str) -> Result<BTreeMap<String, Tags>, Failure> {
    let cloud_provider =
        TagFilter::builder().key(format!("{CLOUD_PROVIDER_TAG}{cluster}")).values("owned").build();
    let controller = TagFilter::builder().key(CONTROLLER_TAG).values(cluster).build();
    let of = |filter: TagFilter| {
        let types = [LOAD_BALANCER, TARGET_GROUP].map(str::to_owned).to_vec();
        let call = api.tagging.get_resources().tag_filters(filter).set_resource_type_filters(Some(types));
        api.pages(ACTION, call.into_paginator().send())
    };
    let (by_cloud_provider, by_controller) = futures::try_join!(of(cloud_provider), of(controller))?;
    let pages = by_cloud_provider.into_iter().chain(by_controller);
    let found = pages.flat_map(|it| it.resource_tag_mapping_list.unwrap_or_default());
    Ok(found.filter_map(arn_and_tags).filter(|(_, tags)| is_left(tags, cluster)).collect())
}

fn arn_and_tags(found: ResourceTagMapping) -> Option<(String, Tags)> {
    let tags = found.tags().iter().map(|it| (it.key().to_owned(), it.value().to_owned())).collect();
    Some((found.resource_arn?, tags))
}
