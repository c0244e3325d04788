//! NAT gateways, which take minutes to come and to go. Deleted ones, which AWS shows for an hour, are left
//! out of what is read.

use std::collections::BTreeSet;

use crate::api::Api;
use crate::context::{self, Context};
use crate::ec2::{distinct, pages, tag_specification, tags};
use crate::errors::Failure;
use crate::kind::{AwsKind, Creation, id_of};
use crate::pending_writes::{answered, changed, made};
use crate::schedule::Task;
use aws_sdk_ec2::types::{Filter, NatGateway as AwsNatGateway, NatGatewayState, ResourceType};
use model::{ElasticIp, FoundNatGateway, Ids, NatGateway, Read, Snapshot, State, Subnet};

impl AwsKind for NatGateway {
    type Found = FoundNatGateway;
    const ID_PREFIX: &'static str = "nat-";
    const ID_FILTER: &'static str = "nat-gateway-id";

    async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<Self::Found>, Failure> {
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

    fn vpcs_to_read(state: &context::State) -> BTreeSet<String> {
        state.nat_gateways_of()
    }

    fn set_vpcs_read(snapshot: &mut Snapshot, vpcs: BTreeSet<String>) {
        snapshot.nat_gateways_read = vpcs;
    }

    /// One attempt with its token: whether another is made is decided anew.
    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        const ACTION: &str = "ec2:CreateNatGateway";
        let address = id_of(ACTION, with.ids, &ElasticIp::key(&self.elastic_ip))?;
        let call = region
            .api
            .ec2_once
            .create_nat_gateway()
            .subnet_id(id_of(ACTION, with.ids, &Subnet::key(&self.subnet))?)
            .allocation_id(address)
            .set_client_token(with.client_token.map(str::to_owned))
            .tag_specifications(tag_specification(ResourceType::Natgateway, with.tags));
        let answer = region.api.write_until(with.until, ACTION, call.send()).await?;
        region.follow(Task::Kind(Read::NatGateways));
        // A token outlives what it made. What AWS answers with is shown, also when it is deleted: that ends
        // this attempt.
        let mut new = answer.nat_gateway.and_then(found).ok_or_else(|| Failure::incomplete(ACTION))?;
        new.tags.extend(with.tags.clone());
        new.allocation_id.get_or_insert(address.to_owned());
        let is_over = matches!(new.state, State::Failed | State::Deleting);
        region.record(Read::NatGateways, if is_over { answered(new) } else { made(new) });
        Ok(())
    }

    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        let call = region.api.ec2.delete_nat_gateway().nat_gateway_id(id);
        region.gone_is_done(id, region.api.write("ec2:DeleteNatGateway", call.send()).await.map(drop))?;
        region.follow(Task::Kind(Read::NatGateways));
        // Reads leave out what is deleted: one that none has shown yet would be awaited for minutes.
        region.state().known.mark_known(id);
        region.record(Read::NatGateways, changed::<FoundNatGateway>(id, |it| it.state = State::Deleting));
        Ok(())
    }
}

fn found(gateway: AwsNatGateway) -> Option<FoundNatGateway> {
    let addresses = gateway.nat_gateway_addresses.unwrap_or_default();
    Some(FoundNatGateway {
        id: gateway.nat_gateway_id?,
        vpc_id: gateway.vpc_id.unwrap_or_default(),
        subnet_id: gateway.subnet_id.unwrap_or_default(),
        allocation_id: addresses.iter().find_map(|it| it.allocation_id.clone()),
        public_ips: addresses.into_iter().filter_map(|it| it.public_ip).collect(),
        state: match gateway.state? {
            NatGatewayState::Pending => State::Creating,
            NatGatewayState::Failed => State::Failed,
            NatGatewayState::Deleting | NatGatewayState::Deleted => State::Deleting,
            _ => State::Ready,
        },
        failure: gateway.failure_message.or(gateway.failure_code),
        tags: tags(gateway.tags),
    })
}
