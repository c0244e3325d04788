//! What a plan needs to know of AWS once: which image a machine boots, what an instance type has and has room
//! for, and which subnets and groups a user's filters mean. Answers are cached for some minutes, and of
//! instance types, which never change, for good, so that a hundred machines ask once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use aws_sdk_ec2::types::{
    ArchitectureType, Image as AwsImage, InstanceType as InstanceTypeName, InstanceTypeHypervisor,
    InstanceTypeInfo, NetworkInfo,
};
use model::{
    ActionNeeded, Filter, FoundInstanceType, FoundSecurityGroup, FoundSubnet, Image, ImageQuery,
    InstanceType, Problem, SecurityGroup, Subnet,
};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::api::Api;
use crate::ec2::filter;
use crate::errors::Failure;
use crate::kind::AwsKind;

/// How long an answer counts.
const TTL: Duration = Duration::from_secs(300);
/// How long it counts that there is nothing.
const TTL_OF_NOTHING: Duration = Duration::from_secs(30);
/// How long it counts that AWS did not say: what may go better at once is asked again soon, and not by
/// everybody in turn.
const TTL_OF_FAILURE: Duration = Duration::from_secs(5);

const DESCRIBE_IMAGES: &str = "ec2:DescribeImages";
const DESCRIBE_TYPES: &str = "ec2:DescribeInstanceTypes";
/// AWS's code for an instance type that the region does not know.
const UNKNOWN_TYPE: &str = "InvalidInstanceType";
/// Most names of instance types in one call.
const NAMES: usize = 100;

/// What is known of each question. Its own lock is held while it is asked: nobody asks the same meanwhile, or
/// waits for another.
type Questions<K, T> = std::sync::Mutex<BTreeMap<K, Arc<Mutex<T>>>>;
type Cache<K, V> = Questions<K, Option<(Instant, Result<V, Problem>)>>;

/// Questions and answers.
#[derive(Default)]
pub(crate) struct Lookups {
    images: Cache<ImageQuery, Image>,
    instance_types: std::sync::Mutex<BTreeMap<String, DescribedType>>,
    /// Instance types that are being asked for together.
    asked_types: Questions<BTreeSet<String>, ()>,
    subnets: Cache<Vec<Filter>, Vec<FoundSubnet>>,
    groups: Cache<Vec<Filter>, Vec<FoundSecurityGroup>>,
}

impl Lookups {
    pub async fn image(&self, api: &Api, query: &ImageQuery) -> Result<Image, Problem> {
        cached(&self.images, query, |_| false, self.find_image(api, query)).await
    }

    async fn find_image(&self, api: &Api, query: &ImageQuery) -> Result<Image, Problem> {
        let (images, what) = match &query.id {
            Some(id) => (describe_image(api, id).await, id.clone()),
            None => {
                let architecture = self.instance_type(api, &query.instance_type).await?.architecture;
                let what = format!("{} for {architecture} of owner {}", query.name, query.owner);
                let filters = vec![
                    filter("name", [&query.name]),
                    filter("architecture", [&architecture]),
                    filter("state", ["available"]),
                    filter("virtualization-type", ["hvm"]),
                ];
                (describe_images(api, filters, &query.owner).await, what)
            }
        };
        let images = images.map_err(Failure::problem)?;
        // Dates are written so that their text sorts.
        images
            .into_iter()
            .max_by_key(|it| it.creation_date.clone().unwrap_or_default())
            .and_then(found)
            .ok_or_else(|| Problem {
                code: "InvalidAMIID.NotFound".to_owned(),
                message: format!("there is no image {what} in this region"),
                who: ActionNeeded::SpecAuthor,
            })
    }

    /// What machines of this type have.
    pub async fn instance_type(&self, api: &Api, name: &str) -> Result<FoundInstanceType, Problem> {
        let names = BTreeSet::from([name.to_owned()]);
        let described = self.described_types(api, &names).await.map_err(Failure::problem)?;
        described.into_iter().find_map(|it| it.hardware).ok_or_else(|| {
            let message = format!("there is no instance type {name} for x86_64 or arm64 in this region");
            Failure::local(DESCRIBE_TYPES, UNKNOWN_TYPE, message).problem()
        })
    }

    /// What these types have room for; those that the region does not know are left out.
    pub async fn instance_types(
        &self,
        api: &Api,
        names: &BTreeSet<String>,
    ) -> Result<Vec<InstanceType>, Failure> {
        Ok(self.described_types(api, names).await?.into_iter().map(|it| it.room).collect())
    }

    /// In the order of their names. Only those that were not read before are asked for, all in one call, and
    /// the same by nobody else meanwhile.
    async fn described_types(
        &self,
        api: &Api,
        names: &BTreeSet<String>,
    ) -> Result<Vec<DescribedType>, Failure> {
        let unknown = self.unknown_types(names);
        if !unknown.is_empty() {
            let entry = entry(&self.asked_types, &unknown, |()| false);
            let _turn = entry.lock().await;
            // Others may have asked meanwhile.
            let unknown: Vec<String> = self.unknown_types(&unknown).into_iter().collect();
            for some in unknown.chunks(NAMES) {
                let found = ask_types(api, some).await?;
                self.known_types().extend(found.into_iter().map(|it| (it.room.name.clone(), it)));
            }
        }
        let known = self.known_types();
        Ok(names.iter().filter_map(|name| known.get(name)).cloned().collect())
    }

    fn known_types(&self) -> MutexGuard<'_, BTreeMap<String, DescribedType>> {
        self.instance_types.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of them that were not read yet.
    fn unknown_types(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let known = self.known_types();
        names.iter().filter(|name| !known.contains_key(*name)).cloned().collect()
    }

    pub async fn subnets(&self, api: &Api, filters: &[Filter]) -> Result<Vec<FoundSubnet>, Problem> {
        let ask = async { Subnet::describe(api, vec![aws_filters(filters)]).await.map_err(Failure::problem) };
        cached(&self.subnets, &filters.to_vec(), Vec::is_empty, ask).await
    }

    pub async fn security_groups(
        &self,
        api: &Api,
        filters: &[Filter],
    ) -> Result<Vec<FoundSecurityGroup>, Problem> {
        let ask = async {
            SecurityGroup::describe(api, vec![aws_filters(filters)]).await.map_err(Failure::problem)
        };
        cached(&self.groups, &filters.to_vec(), Vec::is_empty, ask).await
    }
}

/// An instance type as it was read once.
#[derive(Clone)]
struct DescribedType {
    /// `None`: machines of this type cannot run Kubernetes.
    hardware: Option<FoundInstanceType>,
    room: InstanceType,
}

async fn cached<K: Ord + Clone, V: Clone>(
    answers: &Cache<K, V>,
    question: &K,
    is_nothing: impl Fn(&V) -> bool,
    ask: impl Future<Output = Result<V, Problem>>,
) -> Result<V, Problem> {
    let is_fresh = |(at, answer): &(Instant, Result<V, Problem>)| {
        let ttl = match answer {
            Ok(it) if !is_nothing(it) => TTL,
            Err(problem) if problem.who == ActionNeeded::None => TTL_OF_FAILURE,
            // Who wrote the question, or makes what it is about, does not wait long.
            _ => TTL_OF_NOTHING,
        };
        at.elapsed() < ttl
    };
    let entry = entry(answers, question, |it| it.as_ref().is_some_and(&is_fresh));
    let mut known = entry.lock().await;
    if let Some((_, answer)) = known.as_ref().filter(|it| is_fresh(it)) {
        return answer.clone();
    }
    let answer = ask.await;
    *known = Some((Instant::now(), answer.clone()));
    answer
}

/// What is known of a question. Of others, what nobody asks and what does not stay is forgotten.
fn entry<K: Ord + Clone, T: Default>(
    all: &Questions<K, T>,
    question: &K,
    stays: impl Fn(&T) -> bool,
) -> Arc<Mutex<T>> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, it| Arc::strong_count(it) > 1 || it.try_lock().is_ok_and(|it| stays(&it)));
    all.entry(question.clone()).or_default().clone()
}

/// Also one that its owner has deprecated since: it can be started all the same, and only who does not know
/// it is not to find it.
async fn describe_image(api: &Api, id: &str) -> Result<Vec<AwsImage>, Failure> {
    let call = api.ec2.describe_images().image_ids(id).include_deprecated(true);
    match api.read(DESCRIBE_IMAGES, call.send()).await {
        Err(failure) if failure.is_gone() => Ok(Vec::new()),
        other => Ok(other?.images.unwrap_or_default()),
    }
}

async fn describe_images(
    api: &Api,
    filters: Vec<aws_sdk_ec2::types::Filter>,
    owner: &str,
) -> Result<Vec<AwsImage>, Failure> {
    let pages = api
        .ec2
        .describe_images()
        .set_filters(Some(filters))
        .owners(owner)
        .into_paginator()
        .page_size(1000)
        .send();
    let pages = api.pages(DESCRIBE_IMAGES, pages).await?;
    Ok(pages.into_iter().flat_map(|it| it.images.unwrap_or_default()).collect())
}

fn found(image: AwsImage) -> Option<Image> {
    let root_device = image.root_device_name.unwrap_or_default();
    let disks = image.block_device_mappings.unwrap_or_default();
    let root = disks.iter().find(|it| it.device_name() == Some(root_device.as_str()));
    let root_size = root.and_then(|it| it.ebs()).and_then(|it| it.volume_size()).unwrap_or_default();
    Some(Image { id: image.image_id?, root_device, root_size })
}

async fn ask_types(api: &Api, names: &[String]) -> Result<Vec<DescribedType>, Failure> {
    match describe_types(api, names).await {
        // One that does not exist fails the whole call.
        Err(failure) if is_unknown(&failure) && names.len() > 1 => {
            let mut found = Vec::new();
            for name in names {
                found.extend(describe_types(api, std::slice::from_ref(name)).await.or_else(none_if_unknown)?);
            }
            Ok(found)
        }
        other => other.or_else(none_if_unknown),
    }
}

async fn describe_types(api: &Api, names: &[String]) -> Result<Vec<DescribedType>, Failure> {
    let names = names.iter().map(|it| InstanceTypeName::from(it.as_str())).collect();
    let call = api.ec2.describe_instance_types().set_instance_types(Some(names));
    let pages = api.pages(DESCRIBE_TYPES, call.into_paginator().send()).await?;
    Ok(pages.iter().flat_map(|it| it.instance_types()).filter_map(known_type).collect())
}

fn none_if_unknown(failure: Failure) -> Result<Vec<DescribedType>, Failure> {
    if is_unknown(&failure) { Ok(Vec::new()) } else { Err(failure) }
}

fn is_unknown(failure: &Failure) -> bool {
    failure.code.as_deref() == Some(UNKNOWN_TYPE)
}

fn known_type(described: &InstanceTypeInfo) -> Option<DescribedType> {
    let name = described.instance_type()?.as_str().to_owned();
    let network = described.network_info();
    let addresses = network.and_then(NetworkInfo::ipv4_addresses_per_interface);
    let room = InstanceType {
        name,
        interfaces: network.map(interfaces).unwrap_or_default(),
        addresses_per_interface: addresses.and_then(|it| u32::try_from(it).ok()).unwrap_or_default(),
        nitro: described.bare_metal() == Some(true)
            || described.hypervisor() == Some(&InstanceTypeHypervisor::Nitro),
    };
    Some(DescribedType { hardware: hardware(described), room })
}

/// Of the default network card: an interface of another card takes part in no Pod network unless somebody
/// arranges for it.
fn interfaces(network: &NetworkInfo) -> u32 {
    let default = network.default_network_card_index();
    let card = network.network_cards().iter().find(|it| it.network_card_index() == default);
    let most = card.and_then(|it| it.maximum_network_interfaces()).or(network.maximum_network_interfaces());
    most.and_then(|it| u32::try_from(it).ok()).unwrap_or_default()
}

/// `None`: machines of this type cannot run Kubernetes.
fn hardware(described: &InstanceTypeInfo) -> Option<FoundInstanceType> {
    let usable = |it: &&ArchitectureType| matches!(it, ArchitectureType::X8664 | ArchitectureType::Arm64);
    Some(FoundInstanceType {
        architecture: described
            .processor_info()?
            .supported_architectures()
            .iter()
            .find(usable)?
            .as_str()
            .to_owned(),
        cpus: described.v_cpu_info().and_then(|it| it.default_v_cpus()).unwrap_or_default(),
        memory_mib: described.memory_info().and_then(|it| it.size_in_mib()).unwrap_or_default(),
    })
}

fn aws_filters(filters: &[Filter]) -> Vec<aws_sdk_ec2::types::Filter> {
    filters.iter().map(|it| filter(&it.name, it.values.iter().cloned())).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_question_without_an_answer_holds_up_no_other() {
        let answers = Cache::<u8, u8>::default();
        let hanging = cached(&answers, &1, |_| false, std::future::pending());
        let other =
            tokio::time::timeout(Duration::from_secs(5), cached(&answers, &2, |_| false, async { Ok(2) }));
        tokio::select! {
            biased;
            _ = hanging => panic!("nobody answers it"),
            answer = other => assert_eq!(answer.expect("it waits for nobody"), Ok(2)),
        }
    }

    #[tokio::test]
    async fn a_failure_is_not_met_by_everybody_who_asks() {
        let (answers, asked) = (Cache::<u8, u8>::default(), AtomicUsize::new(0));
        let ask = |who: ActionNeeded| {
            asked.fetch_add(1, Ordering::Relaxed);
            let problem = Problem {
                code: "Throttling".into(),
                message: "ec2:DescribeImages: rate exceeded".into(),
                who,
            };
            async { Err::<u8, Problem>(problem) }
        };
        for _ in 0..3 {
            let answer = cached(&answers, &1, |_| false, async { ask(ActionNeeded::None).await }).await;
            assert_eq!(answer.map_err(|it| it.who), Err(ActionNeeded::None));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        for entry in answers.lock().unwrap().values() {
            entry.try_lock().unwrap().iter_mut().for_each(|(at, _)| *at -= TTL_OF_FAILURE);
        }
        assert!(cached(&answers, &1, |_| false, async { Ok(1) }).await.is_ok(), "but soon it is asked again");
    }
}
