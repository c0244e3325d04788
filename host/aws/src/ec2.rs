//! What calls of EC2 have in common: filters, pages and tags.

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};
use model::Tags;

use crate::CLUSTER_TAG;
use crate::api::Api;
use crate::errors::Failure;

/// AWS takes no more values in one filter.
const FILTER_VALUES: usize = 200;

/// All pages of one Describe of EC2.
macro_rules! pages {
    (
        $api:expr, $action:literal, $call:ident.$set_filters:ident($filters:expr), $size:literal,
        $output:ident
    ) => {{
        let pages = $api.ec2.$call().$set_filters(Some($filters)).into_paginator().page_size($size).send();
        let pages = $api.pages($action, pages).await?;
        pages.into_iter().flat_map(|it| it.$output.unwrap_or_default()).collect::<Vec<_>>()
    }};
}
pub(crate) use pages;

pub(crate) fn filter(name: &str, values: impl IntoIterator<Item = impl Into<String>>) -> Filter {
    Filter::builder().name(name).set_values(Some(values.into_iter().map(Into::into).collect())).build()
}

/// Filters of each Describe that finds what clusters are made of, and of further ones for `ids` that users
/// brought. Never lists of ids: one that is unknown would fail the whole call.
pub(crate) fn selections(id_filter: &str, ids: &[String]) -> Vec<Vec<Filter>> {
    let mut res = vec![vec![filter("tag-key", [format!("{CLUSTER_TAG}*")])]];
    res.extend(ids.chunks(FILTER_VALUES).map(|some| vec![filter(id_filter, some.iter().cloned())]));
    res
}

/// Filters of Describes that find all that lies in these VPCs, whoever made it.
pub(crate) fn in_vpcs(vpcs: &BTreeSet<String>) -> Vec<Vec<Filter>> {
    let vpcs: Vec<&String> = vpcs.iter().collect();
    vpcs.chunks(FILTER_VALUES).map(|some| vec![filter("vpc-id", some.iter().copied())]).collect()
}

/// Without those that come twice.
pub(crate) fn distinct<T>(all: Vec<T>, id: impl Fn(&T) -> &str) -> Vec<T> {
    let mut known = BTreeSet::new();
    let keep: Vec<bool> = all.iter().map(|it| known.insert(id(it).to_owned())).collect();
    all.into_iter().zip(keep).filter_map(|(it, keep)| keep.then_some(it)).collect()
}

pub(crate) fn tags(tags: Option<Vec<Tag>>) -> Tags {
    tags.unwrap_or_default()
        .into_iter()
        .filter_map(|it| Some((it.key?, it.value.unwrap_or_default())))
        .collect()
}

fn aws_tags(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

pub(crate) fn tag_specification(of: ResourceType, tags: &Tags) -> TagSpecification {
    TagSpecification::builder().resource_type(of).set_tags(Some(aws_tags(tags))).build()
}

/// Adds tags to these, and takes tags away from them.
pub(crate) async fn tag(
    api: &Api,
    resources: Vec<String>,
    tags: &Tags,
    untag: &BTreeSet<String>,
) -> Result<(), Failure> {
    if !tags.is_empty() {
        let call =
            api.ec2.create_tags().set_resources(Some(resources.clone())).set_tags(Some(aws_tags(tags)));
        api.write("ec2:CreateTags", call.send()).await?;
    }
    if !untag.is_empty() {
        // Without a value: whatever it is.
        let keys = untag.iter().map(|it| Tag::builder().key(it).build()).collect();
        let call = api.ec2.delete_tags().set_resources(Some(resources)).set_tags(Some(keys));
        api.write("ec2:DeleteTags", call.send()).await?;
    }
    Ok(())
}
