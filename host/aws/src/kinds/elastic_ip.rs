//! Elastic IP addresses.

use crate::api::Api;
use crate::context::Context;
use crate::ec2::{distinct, tag_specification, tags};
use crate::errors::Failure;
use crate::kind::{AwsKind, Creation};
use crate::pending_writes::{gone, made};
use aws_sdk_ec2::types::{Address, DomainType, Filter, ResourceType};
use model::{ElasticIp, FoundAddress, Ids, Read};

impl AwsKind for ElasticIp {
    type Found = FoundAddress;
    const ID_PREFIX: &'static str = "eipalloc-";
    const ID_FILTER: &'static str = "allocation-id";

    /// AWS gives them all in one page.
    async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<Self::Found>, Failure> {
        let mut res = Vec::new();
        for filters in selections {
            let call = api.ec2.describe_addresses().set_filters(Some(filters));
            let answer = api.read("ec2:DescribeAddresses", call.send()).await?;
            res.extend(answer.addresses.unwrap_or_default().into_iter().filter_map(found));
        }
        Ok(distinct(res, |it| &it.id))
    }

    /// AWS takes no token for it: exactly one attempt.
    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        const ACTION: &str = "ec2:AllocateAddress";
        let call = region.api.ec2_once.allocate_address().domain(DomainType::Vpc);
        let call = call.tag_specifications(tag_specification(ResourceType::ElasticIp, with.tags));
        let answer = region.api.write_until(with.until, ACTION, call.send()).await?;
        let new = FoundAddress {
            id: answer.allocation_id.ok_or_else(|| Failure::incomplete(ACTION))?,
            public_ip: answer.public_ip.unwrap_or_default(),
            association_id: None,
            network_interface_id: None,
            tags: with.tags.clone(),
        };
        region.record(Read::Addresses, made(new));
        Ok(())
    }

    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        let call = region.api.ec2.release_address().allocation_id(id);
        region.gone_is_done(id, region.api.write("ec2:ReleaseAddress", call.send()).await.map(drop))?;
        region.record(Read::Addresses, gone::<FoundAddress>(id));
        Ok(())
    }
}

fn found(address: Address) -> Option<FoundAddress> {
    Some(FoundAddress {
        id: address.allocation_id?,
        public_ip: address.public_ip.unwrap_or_default(),
        association_id: address.association_id.filter(|it| !it.is_empty()),
        network_interface_id: address.network_interface_id.filter(|it| !it.is_empty()),
        tags: tags(address.tags),
    })
}
