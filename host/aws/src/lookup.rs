//! What a plan needs to know of AWS once: which image a machine boots, what its type of instance has, and which subnets and groups a user's
//! filters mean. Answers are kept for some minutes, so that a hundred machines ask once. Nothing here is part of a sweep.

use std::collections::BTreeMap;

use aws_sdk_ec2::types::{ArchitectureType, Image as AwsImage, InstanceType, InstanceTypeInfo};
use plan::{FoundInstanceType, FoundSecurityGroup, FoundSubnet, Image, ImageQuery, Problem, Timestamp, Who};
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

/// One filter of a Describe call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Filter {
    /// AWS's name of it: `tag:Name`, `vpc-id`.
    pub name: String,
    pub values: Vec<String>,
}

type Kept<K, V> = Mutex<BTreeMap<K, (Timestamp, Result<V, Problem>)>>;

/// Answers. Each lock is held while its question is asked, so that nobody asks the same meanwhile.
#[derive(Default)]
pub(crate) struct Lookups {
    images: Kept<ImageQuery, Image>,
    /// They never change.
    instance_types: Mutex<BTreeMap<String, FoundInstanceType>>,
    subnets: Kept<Vec<Filter>, Vec<FoundSubnet>>,
    groups: Kept<Vec<Filter>, Vec<FoundSecurityGroup>>,
}

async fn kept<K: Ord + Clone, V: Clone>(
    answers: &Kept<K, V>,
    question: &K,
    ask: impl Future<Output = Result<V, Problem>>,
) -> Result<V, Problem> {
    let mut answers = answers.lock().await;
    let fresh = |(at, answer): &(Timestamp, Result<V, Problem>)| {
        let kept = if answer.is_ok() { KEPT } else { KEPT_WRONG };
        now() - at < kept
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
    kept(&region.lookups.images, query, find_image(region, query)).await
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

pub(crate) async fn instance_type(region: &Inner, name: &str) -> Result<FoundInstanceType, Problem> {
    const ACTION: &str = "ec2:DescribeInstanceTypes";
    let mut known = region.lookups.instance_types.lock().await;
    if let Some(it) = known.get(name) {
        return Ok(it.clone());
    }
    let call = region.api.ec2.describe_instance_types().instance_types(InstanceType::from(name));
    let answer = region.api.read(ACTION, call.send()).await.map_err(Failure::problem)?;
    let res = answer.instance_types.unwrap_or_default().first().and_then(described).ok_or_else(|| {
        let message = format!("there is no instance type {name} for x86_64 or arm64 in this region");
        Failure::local(ACTION, "InvalidInstanceType", message).problem()
    })?;
    known.insert(name.to_owned(), res.clone());
    Ok(res)
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
    kept(&region.lookups.subnets, &filters.to_vec(), ask).await
}

pub(crate) async fn security_groups(region: &Inner, filters: &[Filter]) -> Result<Vec<FoundSecurityGroup>, Problem> {
    let ask = async { kinds::security_group::describe(&region.api, vec![aws_filters(filters)]).await.map_err(Failure::problem) };
    kept(&region.lookups.groups, &filters.to_vec(), ask).await
}
