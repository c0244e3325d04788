//! One module for each kind of resource: how AWS describes it, and how it is made, changed and removed.
//! Nothing here decides.

pub(crate) mod elastic_ip;
pub(crate) mod instance;
pub(crate) mod internet_gateway;
pub(crate) mod load_balancer;
pub(crate) mod nat_gateway;
pub(crate) mod network_interface;
pub(crate) mod route_table;
pub(crate) mod secret;
pub(crate) mod security_group;
pub(crate) mod security_group_rules;
pub(crate) mod subnet;
pub(crate) mod target;
pub(crate) mod vpc;
pub(crate) mod zone;

use std::collections::BTreeSet;

use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};
use model::{Ids, Key, Read, Tags, Timestamp};

use crate::errors::{Failure, NOT_YET};
use crate::{CLUSTER_TAG, ID_TAG, OWNER_TAG};

/// What keeps one creation from being done twice, where neither a name nor a range does.
#[derive(Clone, Copy)]
pub(crate) struct Once<'a> {
    /// Where AWS takes one.
    pub token: Option<&'a str>,
    /// When it may not be sent any more.
    pub until: Option<Timestamp>,
}

/// AWS takes no more values in one filter.
pub(crate) const FILTER_VALUES: usize = 200;

/// All pages of one Describe of EC2.
macro_rules! pages {
    ($api:expr, $action:literal, $call:ident.$set_filters:ident($filters:expr), $size:literal, $output:ident) => {{
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
pub(crate) fn selections(read: Read, ids: &[String]) -> Vec<Vec<Filter>> {
    let mut res = vec![vec![filter("tag-key", [format!("{CLUSTER_TAG}*")])]];
    res.extend(ids.chunks(FILTER_VALUES).map(|it| by_id(read, it)));
    res
}

pub(crate) fn by_id(read: Read, ids: &[String]) -> Vec<Filter> {
    let name = match read {
        Read::Vpcs => "vpc-id",
        Read::Subnets => "subnet-id",
        Read::InternetGateways => "internet-gateway-id",
        Read::NatGateways => "nat-gateway-id",
        Read::Addresses => "allocation-id",
        Read::RouteTables => "route-table-id",
        Read::SecurityGroups => "group-id",
        Read::Instances | Read::ClassicLoadBalancers | Read::LoadBalancers | Read::TargetGroups => {
            "instance-id"
        }
    };
    vec![filter(name, ids.iter().cloned())]
}

/// Filters of Describes that find all that lies in these VPCs, whoever made it.
pub(crate) fn in_vpcs(vpcs: &BTreeSet<String>) -> Vec<Vec<Filter>> {
    let vpcs: Vec<&String> = vpcs.iter().collect();
    vpcs.chunks(FILTER_VALUES).map(|it| vec![filter("vpc-id", it.iter().copied())]).collect()
}

/// Without those that come twice.
pub(crate) fn distinct<T>(all: Vec<T>, id: impl Fn(&T) -> &str) -> Vec<T> {
    let mut seen = BTreeSet::new();
    let keep: Vec<bool> = all.iter().map(|it| seen.insert(id(it).to_owned())).collect();
    all.into_iter().zip(keep).filter_map(|(it, keep)| keep.then_some(it)).collect()
}

pub(crate) fn tags(tags: Option<Vec<Tag>>) -> Tags {
    tags.unwrap_or_default()
        .into_iter()
        .filter_map(|it| Some((it.key?, it.value.unwrap_or_default())))
        .collect()
}

pub(crate) fn ec2_tags(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}

pub(crate) fn tag_specification(of: ResourceType, tags: &Tags) -> TagSpecification {
    TagSpecification::builder().resource_type(of).set_tags(Some(ec2_tags(tags))).build()
}

/// The AWS id of what an action refers to.
pub(crate) fn id<'a>(action: &'static str, ids: &'a Ids, key: &Key) -> Result<&'a str, Failure> {
    ids.get(key)
        .map(String::as_str)
        .ok_or_else(|| Failure::local(action, NOT_YET, format!("the id of {key} is not known yet")))
}

/// AWS's answer lacks what it always has.
pub(crate) fn incomplete(action: &'static str) -> Failure {
    Failure { action, code: None, message: "the answer lacks what was made".to_owned(), open: true }
}

/// Whether something found was made for the same AWSCluster as what has the tags `ours`.
pub(crate) fn is_ours(found: &Tags, ours: &Tags) -> bool {
    let owner = found.get(OWNER_TAG);
    ours.get(ID_TAG).is_some_and(|it| found.get(ID_TAG) == Some(it))
        && (owner.is_none() || owner == ours.get(OWNER_TAG))
}
