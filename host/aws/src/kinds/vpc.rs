//! VPCs. One that was made is followed until it is available.

use crate::api::Api;
use crate::context::Context;
use crate::ec2::{distinct, pages, tag_specification, tags};
use crate::errors::Failure;
use crate::kind::{AwsKind, Change, Creation};
use crate::pending_writes::{gone, made};
use crate::schedule::Task;
use aws_sdk_ec2::types::{AttributeBooleanValue, Filter, ResourceType, Vpc as AwsVpc, VpcState};
use model::{FoundVpc, Ids, Read, State, Vpc};

impl AwsKind for Vpc {
    type Found = FoundVpc;
    const ID_PREFIX: &'static str = "vpc-";
    const ID_FILTER: &'static str = "vpc-id";

    async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<Self::Found>, Failure> {
        let mut res = Vec::new();
        for filters in selections {
            let page = pages!(api, "ec2:DescribeVpcs", describe_vpcs.set_filters(filters), 1000, vpcs);
            res.extend(page.into_iter().filter_map(found));
        }
        Ok(distinct(res, |it| &it.id))
    }

    /// AWS takes no token for it: exactly one attempt.
    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        const ACTION: &str = "ec2:CreateVpc";
        let call = region
            .api
            .ec2_once
            .create_vpc()
            .cidr_block(&self.cidr)
            .tag_specifications(tag_specification(ResourceType::Vpc, with.tags));
        let answer = region.api.write_until(with.until, ACTION, call.send()).await?;
        let mut new = answer.vpc.and_then(found).ok_or_else(|| Failure::incomplete(ACTION))?;
        new.tags.extend(with.tags.clone());
        if new.state == State::Creating {
            region.follow(Task::Kind(Read::Vpcs));
        }
        region.record(Read::Vpcs, made(new));
        Ok(())
    }

    async fn update(&self, region: &Context, _: &Self, with: Change<'_>) -> Result<(), Failure> {
        let value = AttributeBooleanValue::builder().value(self.dns_hostnames).build();
        let call = region.api.ec2.modify_vpc_attribute().vpc_id(with.id).enable_dns_hostnames(value);
        region.api.write("ec2:ModifyVpcAttribute", call.send()).await?;
        let mut state = region.state();
        let with_hostnames = &mut state.known.memory_mut().dns_hostnames;
        if self.dns_hostnames {
            with_hostnames.insert(with.id.to_owned());
        } else {
            with_hostnames.remove(with.id);
        }
        Ok(())
    }

    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        let call = region.api.ec2.delete_vpc().vpc_id(id);
        region.gone_is_done(id, region.api.write("ec2:DeleteVpc", call.send()).await.map(drop))?;
        region.record(Read::Vpcs, gone::<FoundVpc>(id));
        Ok(())
    }
}

fn found(vpc: AwsVpc) -> Option<FoundVpc> {
    let state = if vpc.state == Some(VpcState::Pending) { State::Creating } else { State::Ready };
    Some(FoundVpc {
        id: vpc.vpc_id?,
        cidr: vpc.cidr_block.unwrap_or_default(),
        state,
        dns_hostnames: None,
        tags: tags(vpc.tags),
    })
}
