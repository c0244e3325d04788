//! VPCs. One that was made is followed until it is available.

use aws_sdk_ec2::types::{AttributeBooleanValue, Filter, ResourceType, Vpc as AwsVpc, VpcState};
use model::{FoundVpc, Read, State, Tags, Vpc};

use super::{Once, distinct, incomplete, pages, tag_specification, tags};
use crate::api::Api;
use crate::errors::Failure;
use crate::pending_writes::{gone, made};
use crate::region::Inner;
use crate::schedule::Task;

pub(crate) async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<FoundVpc>, Failure> {
    let mut res = Vec::new();
    for filters in selections {
        let page = pages!(api, "ec2:DescribeVpcs", describe_vpcs.set_filters(filters), 1000, vpcs);
        res.extend(page.into_iter().filter_map(found));
    }
    Ok(distinct(res, |it| &it.id))
}

fn found(it: AwsVpc) -> Option<FoundVpc> {
    let state = if it.state == Some(VpcState::Pending) { State::Creating } else { State::Ready };
    Some(FoundVpc {
        id: it.vpc_id?,
        cidr: it.cidr_block.unwrap_or_default(),
        state,
        dns_hostnames: None,
        tags: tags(it.tags),
    })
}

/// AWS takes no token for it: exactly one attempt.
pub(crate) async fn create(region: &Inner, vpc: &Vpc, with: &Tags, once: Once<'_>) -> Result<(), Failure> {
    const ACTION: &str = "ec2:CreateVpc";
    let call = region
        .api
        .ec2_once
        .create_vpc()
        .cidr_block(&vpc.cidr)
        .tag_specifications(tag_specification(ResourceType::Vpc, with));
    let answer = region.api.write_until(once.until, ACTION, call.send()).await?;
    let mut new = answer.vpc.and_then(found).ok_or_else(|| incomplete(ACTION))?;
    new.tags.extend(with.clone());
    if new.state == State::Creating {
        region.follow(Task::Kind(Read::Vpcs));
    }
    region.record(Read::Vpcs, made(new));
    Ok(())
}

pub(crate) async fn update(region: &Inner, id: &str, vpc: &Vpc) -> Result<(), Failure> {
    let value = AttributeBooleanValue::builder().value(vpc.dns_hostnames).build();
    let call = region.api.ec2.modify_vpc_attribute().vpc_id(id).enable_dns_hostnames(value);
    region.api.write("ec2:ModifyVpcAttribute", call.send()).await?;
    let mut state = region.state();
    match vpc.dns_hostnames {
        true => state.world.memory_mut().dns_hostnames.insert(id.to_owned()),
        false => state.world.memory_mut().dns_hostnames.remove(id),
    };
    Ok(())
}

pub(crate) async fn delete(region: &Inner, id: &str) -> Result<(), Failure> {
    let call = region.api.ec2.delete_vpc().vpc_id(id);
    region.gone_is_done(id, region.api.write("ec2:DeleteVpc", call.send()).await.map(drop))?;
    region.record(Read::Vpcs, gone::<FoundVpc>(id));
    Ok(())
}
