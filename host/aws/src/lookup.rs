//! What a plan needs to know of AWS once: which image a machine boots, what an instance type has and has room for, and which subnets and groups a
//! user's filters mean. Answers are kept for some minutes, and of instance types, which never change, for good, so that a hundred machines
//! ask once. Nothing here is part of a sweep.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{
    ArchitectureType, Image as AwsImage, InstanceType as InstanceTypeName, InstanceTypeHypervisor, InstanceTypeInfo, NetworkInfo,
};
use plan::{Filter, FoundInstanceType, FoundSecurityGroup, FoundSubnet, Image, ImageQuery, InstanceType, Problem, Timestamp, Who};
use tokio::sync::Mutex;

use crate::api::Api;
use crate::errors::Failure;
use crate::kinds::{self, filter};
use crate::now;
use crate::region::Inner;

/// How long an answer counts, in seconds.
const KEPT: f64 = 300.0;
/// How long it counts that there is nothing.
const KEPT_WRONG: f64 = 30.0;

const DESCRIBE_TYPES: &str = "ec2:DescribeInstanceTypes";
/// AWS's code for an instance type that the region does not know.
const UNKNOWN_TYPE: &str = "InvalidInstanceType";
/// Most names of instance types in one call.
const NAMES: usize = 100;

type Kept<K, V> = Mutex<BTreeMap<K, (Timestamp, Result<V, Problem>)>>;

/// Answers. Each lock is held while its question is asked, so that nobody asks the same meanwhile.
#[derive(Default)]
pub(crate) struct Lookups {
    images: Kept<ImageQuery, Image>,
    instance_types: Mutex<BTreeMap<String, Known>>,
    subnets: Kept<Vec<Filter>, Vec<FoundSubnet>>,
    groups: Kept<Vec<Filter>, Vec<FoundSecurityGroup>>,
}

/// An instance type as it was read once.
#[derive(Clone)]
struct Known {
    /// `None`: machines of this type cannot run Kubernetes.
    described: Option<FoundInstanceType>,
    room: InstanceType,
}

async fn kept<K: Ord + Clone, V: Clone>(
    answers: &Kept<K, V>,
    question: &K,
    is_nothing: impl Fn(&V) -> bool,
    ask: impl Future<Output = Result<V, Problem>>,
) -> Result<V, Problem> {
    let mut answers = answers.lock().await;
    let fresh = |(at, answer): &(Timestamp, Result<V, Problem>)| {
        // Who wrote the question, or makes what it is about, does not wait long.
        let something = answer.as_ref().is_ok_and(|it| !is_nothing(it));
        now() - at < if something { KEPT } else { KEPT_WRONG }
    };
    if let Some((_, answer)) = answers.get(question).filter(|it| fresh(it)) {
        return answer.clone();
    }
    let answer = ask.await;
    // What may go better at once is asked again at once.
    if !matches!(&answer, Err(problem) if problem.who == Who::Nobody) {
        answers.retain(|_, it| fresh(it));
        answers.insert(question.clone(), (now(), answer.clone()));
    }
    answer
}

pub(crate) async fn image(region: &Inner, query: &ImageQuery) -> Result<Image, Problem> {
    kept(&region.lookups.images, query, |_| false, find_image(region, query)).await
}

async fn find_image(region: &Inner, query: &ImageQuery) -> Result<Image, Problem> {
    let (filters, owners, what) = match &query.id {
        Some(id) => (vec![filter("image-id", [id])], None, id.clone()),
        None => {
            let architecture = instance_type(region, &query.instance_type).await?.architecture;
            let what = format!("{} for {architecture} of owner {}", query.name, query.owner);
            let filters = vec![
                filter("name", [&query.name]),
                filter("architecture", [&architecture]),
                filter("state", ["available"]),
                filter("virtualization-type", ["hvm"]),
            ];
            (filters, Some(vec![query.owner.clone()]), what)
        }
    };
    let images = describe(&region.api, filters, owners).await.map_err(Failure::problem)?;
    // Dates are written so that their text sorts.
    images.into_iter().max_by_key(|it| it.creation_date.clone().unwrap_or_default()).and_then(found).ok_or_else(|| Problem {
        code: "InvalidAMIID.NotFound".to_owned(),
        message: format!("there is no image {what} in this region"),
        who: Who::Author,
    })
}

async fn describe(api: &Api, filters: Vec<aws_sdk_ec2::types::Filter>, owners: Option<Vec<String>>) -> Result<Vec<AwsImage>, Failure> {
    let pages = api.ec2.describe_images().set_filters(Some(filters)).set_owners(owners).into_paginator().page_size(1000).send();
    let pages = api.pages("ec2:DescribeImages", pages).await?;
    Ok(pages.into_iter().flat_map(|it| it.images.unwrap_or_default()).collect())
}

fn found(it: AwsImage) -> Option<Image> {
    let root_device = it.root_device_name.unwrap_or_default();
    let disks = it.block_device_mappings.unwrap_or_default();
    let root = disks.iter().find(|it| it.device_name() == Some(root_device.as_str()));
    let root_size = root.and_then(|it| it.ebs()).and_then(|it| it.volume_size()).unwrap_or_default();
    Some(Image { id: it.image_id?, root_device, root_size })
}

/// What machines of this type have.
pub(crate) async fn instance_type(region: &Inner, name: &str) -> Result<FoundInstanceType, Problem> {
    let known = known_types(region, &BTreeSet::from([name.to_owned()])).await.map_err(Failure::problem)?;
    known.into_iter().find_map(|it| it.described).ok_or_else(|| {
        let message = format!("there is no instance type {name} for x86_64 or arm64 in this region");
        Failure::local(DESCRIBE_TYPES, UNKNOWN_TYPE, message).problem()
    })
}

/// What these types have room for; those that the region does not know are left out.
pub(crate) async fn instance_types(region: &Inner, names: &BTreeSet<String>) -> Result<Vec<InstanceType>, Failure> {
    Ok(known_types(region, names).await?.into_iter().map(|it| it.room).collect())
}

/// In the order of their names. Only those that were not read before are asked for, all in one call.
async fn known_types(region: &Inner, names: &BTreeSet<String>) -> Result<Vec<Known>, Failure> {
    let mut known = region.lookups.instance_types.lock().await;
    let unknown: Vec<&String> = names.iter().filter(|it| !known.contains_key(*it)).collect();
    for some in unknown.chunks(NAMES) {
        let found = match describe_types(&region.api, some).await {
            // One that does not exist fails the whole call.
            Err(failure) if is_unknown(&failure) && some.len() > 1 => {
                let mut found = Vec::new();
                for name in some {
                    found.extend(describe_types(&region.api, &[name]).await.or_else(none_if_unknown)?);
                }
                found
            }
            other => other.or_else(none_if_unknown)?,
        };
        known.extend(found.into_iter().map(|it| (it.room.name.clone(), it)));
    }
    Ok(names.iter().filter_map(|it| known.get(it)).cloned().collect())
}

async fn describe_types(api: &Api, names: &[&String]) -> Result<Vec<Known>, Failure> {
    let names = names.iter().map(|it| InstanceTypeName::from(it.as_str())).collect();
    let call = api.ec2.describe_instance_types().set_instance_types(Some(names));
    let pages = api.pages(DESCRIBE_TYPES, call.into_paginator().send()).await?;
    Ok(pages.iter().flat_map(|it| it.instance_types()).filter_map(known_type).collect())
}

fn none_if_unknown(failure: Failure) -> Result<Vec<Known>, Failure> {
    if is_unknown(&failure) { Ok(Vec::new()) } else { Err(failure) }
}

fn is_unknown(failure: &Failure) -> bool {
    failure.code.as_deref() == Some(UNKNOWN_TYPE)
}

fn known_type(it: &InstanceTypeInfo) -> Option<Known> {
    let name = it.instance_type()?.as_str().to_owned();
    let network = it.network_info();
    let addresses = network.and_then(NetworkInfo::ipv4_addresses_per_interface);
    let room = InstanceType {
        name,
        interfaces: network.map(interfaces).unwrap_or_default(),
        addresses_per_interface: addresses.and_then(|it| u32::try_from(it).ok()).unwrap_or_default(),
        nitro: it.bare_metal() == Some(true) || it.hypervisor() == Some(&InstanceTypeHypervisor::Nitro),
    };
    Some(Known { described: described(it), room })
}

/// Of the default network card: an interface of another card takes part in no Pod network unless somebody arranges for it.
fn interfaces(network: &NetworkInfo) -> u32 {
    let default = network.default_network_card_index();
    let card = network.network_cards().iter().find(|it| it.network_card_index() == default);
    let most = card.and_then(|it| it.maximum_network_interfaces()).or(network.maximum_network_interfaces());
    most.and_then(|it| u32::try_from(it).ok()).unwrap_or_default()
}

/// `None`: machines of this type cannot run Kubernetes.
fn described(it: &InstanceTypeInfo) -> Option<FoundInstanceType> {
    let usable = |it: &&ArchitectureType| matches!(it, ArchitectureType::X8664 | ArchitectureType::Arm64);
    Some(FoundInstanceType {
        architecture: it.processor_info()?.supported_architectures().iter().find(usable)?.as_str().to_owned(),
        cpus: it.v_cpu_info().and_then(|it| it.default_v_cpus()).unwrap_or_default(),
        memory_mib: it.memory_info().and_then(|it| it.size_in_mib()).unwrap_or_default(),
    })
}

fn aws_filters(filters: &[Filter]) -> Vec<aws_sdk_ec2::types::Filter> {
    filters.iter().map(|it| filter(&it.name, it.values.iter().cloned())).collect()
}

pub(crate) async fn subnets(region: &Inner, filters: &[Filter]) -> Result<Vec<FoundSubnet>, Problem> {
    let ask = async { kinds::subnet::describe(&region.api, vec![aws_filters(filters)]).await.map_err(Failure::problem) };
    kept(&region.lookups.subnets, &filters.to_vec(), Vec::is_empty, ask).await
}

pub(crate) async fn security_groups(region: &Inner, filters: &[Filter]) -> Result<Vec<FoundSecurityGroup>, Problem> {
    let ask = async { kinds::security_group::describe(&region.api, vec![aws_filters(filters)]).await.map_err(Failure::problem) };
    kept(&region.lookups.groups, &filters.to_vec(), Vec::is_empty, ask).await
}
