//! NAT gateways, which take minutes to come and to go. Deleted ones, which AWS shows for an hour, are left
//! out of what is read.

use aws_sdk_ec2::types::{Filter, NatGateway as AwsNatGateway, NatGatewayState, ResourceType};
use model::{ElasticIp, FoundNatGateway, Ids, NatGateway, Read, State, Subnet, Tags};

use super::{Once, distinct, id, incomplete, pages, tag_specification, tags};
use crate::api::Api;
use crate::errors::Failure;
use crate::pending_writes::{answered, changed, made};
use crate::region::Inner;
use crate::schedule::Task;

pub(crate) async fn describe(
    api: &Api,
    selections: Vec<Vec<Filter>>,
) -> Result<Vec<FoundNatGateway>, Failure> {
    let mut res = Vec::new();
    for filters in selections {
        let page = pages!(
            api,
            "ec2:DescribeNatGateways",
            describe_nat_gateways.set_filter(filters),
            1000,
            nat_gateways
        );
        let left = page.into_iter().filter(|it| it.state != Some(NatGatewayState::Deleted));
        res.extend(left.filter_map(found));
    }
    Ok(distinct(res, |it| &it.id))
}

fn found(it: AwsNatGateway) -> Option<FoundNatGateway> {
    let addresses = it.nat_gateway_addresses.unwrap_or_default();
    Some(FoundNatGateway {
        id: it.nat_gateway_id?,
        vpc_id: it.vpc_id.unwrap_or_default(),
        subnet_id: it.subnet_id.unwrap_or_default(),
        allocation_id: addresses.iter().find_map(|it| it.allocation_id.clone()),
        public_ips: addresses.into_iter().filter_map(|it| it.public_ip).collect(),
        state: match it.state? {
            NatGatewayState::Pending => State::Creating,
            NatGatewayState::Failed => State::Failed,
            NatGatewayState::Deleting | NatGatewayState::Deleted => State::Deleting,
            _ => State::Ready,
        },
        failure: it.failure_message.or(it.failure_code),
        tags: tags(it.tags),
    })
}

/// One attempt with its token: whether another is made is decided anew.
pub(crate) async fn create(
    region: &Inner,
    gateway: &NatGateway,
    with: &Tags,
    ids: &Ids,
    once: Once<'_>,
) -> Result<(), Failure> {
    const ACTION: &str = "ec2:CreateNatGateway";
    let address = id(ACTION, ids, &ElasticIp::key(&gateway.elastic_ip))?;
    let call = region
        .api
        .ec2_once
        .create_nat_gateway()
        .subnet_id(id(ACTION, ids, &Subnet::key(&gateway.subnet))?)
        .allocation_id(address)
        .set_client_token(once.token.map(str::to_owned))
        .tag_specifications(tag_specification(ResourceType::Natgateway, with));
    let answer = region.api.write_until(once.until, ACTION, call.send()).await?;
    region.follow(Task::Kind(Read::NatGateways));
    // A token outlives what it made. What AWS answers with is shown, also when it is deleted: that ends this
    // attempt.
    let mut new = answer.nat_gateway.and_then(found).ok_or_else(|| incomplete(ACTION))?;
    new.tags.extend(with.clone());
    new.allocation_id.get_or_insert(address.to_owned());
    let is_over = matches!(new.state, State::Failed | State::Deleting);
    region.record(Read::NatGateways, if is_over { answered(new) } else { made(new) });
    Ok(())
}

pub(crate) async fn delete(region: &Inner, id: &str) -> Result<(), Failure> {
    let call = region.api.ec2.delete_nat_gateway().nat_gateway_id(id);
    region.gone_is_done(id, region.api.write("ec2:DeleteNatGateway", call.send()).await.map(drop))?;
    region.follow(Task::Kind(Read::NatGateways));
    // Reads leave out what is deleted: one that none has shown yet would be awaited for minutes.
    region.state().world.mark_known(id);
    region.record(Read::NatGateways, changed::<FoundNatGateway>(id, |it| it.state = State::Deleting));
    Ok(())
}
