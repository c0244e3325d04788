//! Elastic IP addresses.

use aws_sdk_ec2::types::{Address, DomainType, Filter, ResourceType};
use model::{FoundAddress, Read, Tags};

use super::{Once, distinct, incomplete, tag_specification, tags};
use crate::api::Api;
use crate::errors::Failure;
use crate::pending_writes::{gone, made};
use crate::region::Inner;

/// AWS gives them all in one page.
pub(crate) async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<FoundAddress>, Failure> {
    let mut res = Vec::new();
    for filters in selections {
        let call = api.ec2.describe_addresses().set_filters(Some(filters));
        let answer = api.read("ec2:DescribeAddresses", call.send()).await?;
        res.extend(answer.addresses.unwrap_or_default().into_iter().filter_map(found));
    }
    Ok(distinct(res, |it| &it.id))
}

fn found(it: Address) -> Option<FoundAddress> {
    Some(FoundAddress {
        id: it.allocation_id?,
        public_ip: it.public_ip.unwrap_or_default(),
        association_id: it.association_id.filter(|it| !it.is_empty()),
        network_interface_id: it.network_interface_id.filter(|it| !it.is_empty()),
        tags: tags(it.tags),
    })
}

/// AWS takes no token for it: exactly one attempt.
pub(crate) async fn create(region: &Inner, with: &Tags, once: Once<'_>) -> Result<(), Failure> {
    const ACTION: &str = "ec2:AllocateAddress";
    let call = region.api.ec2_once.allocate_address().domain(DomainType::Vpc);
    let call = call.tag_specifications(tag_specification(ResourceType::ElasticIp, with));
    let answer = region.api.write_until(once.until, ACTION, call.send()).await?;
    let new = FoundAddress {
        id: answer.allocation_id.ok_or_else(|| incomplete(ACTION))?,
        public_ip: answer.public_ip.unwrap_or_default(),
        association_id: None,
        network_interface_id: None,
        tags: with.clone(),
    };
    region.record(Read::Addresses, made(new));
    Ok(())
}

pub(crate) async fn delete(region: &Inner, id: &str) -> Result<(), Failure> {
    let call = region.api.ec2.release_address().allocation_id(id);
    region.gone_is_done(id, region.api.write("ec2:ReleaseAddress", call.send()).await.map(drop))?;
    region.record(Read::Addresses, gone::<FoundAddress>(id));
    Ok(())
}
