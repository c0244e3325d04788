//! Subnets. Their range guards them against being made twice.

use crate::api::Api;
use crate::context::Context;
use crate::ec2::{distinct, filter, pages, tag_specification, tags};
use crate::errors::{Failure, TAKEN};
use crate::kind::{AwsKind, Change, Creation, id_of, is_ours};
use crate::pending_writes::{changed, gone, made};
use crate::schedule::Task;
use aws_sdk_ec2::types::{AttributeBooleanValue, Filter, ResourceType, Subnet as AwsSubnet, SubnetState};
use model::{FoundSubnet, Ids, Read, State, Subnet, Tags, Vpc};
const CREATE: &str = "ec2:CreateSubnet";

impl AwsKind for Subnet {
    type Found = FoundSubnet;
    const ID_PREFIX: &'static str = "subnet-";
    const ID_FILTER: &'static str = "subnet-id";

    async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<Self::Found>, Failure> {
        let mut res = Vec::new();
        for filters in selections {
            res.extend(describe_by(api, filters).await?);
        }
        Ok(distinct(res, |it| &it.id))
    }

    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        let vpc = id_of(CREATE, with.ids, &Vpc::key(&self.vpc))?;
        let call = region
            .api
            .ec2
            .create_subnet()
            .vpc_id(vpc)
            .cidr_block(&self.cidr)
            .availability_zone(&self.zone)
            .tag_specifications(tag_specification(ResourceType::Subnet, with.tags));
        let mut new = match region.api.write(CREATE, call.send()).await {
            Ok(answer) => answer.subnet.and_then(found).ok_or_else(|| Failure::incomplete(CREATE))?,
            Err(failure) if failure.is_duplicate() => existing(region, vpc, self, with.tags, failure).await?,
            Err(failure) => return Err(failure),
        };
        new.tags.extend(with.tags.clone());
        if new.state == State::Creating {
            region.follow(Task::Kind(Read::Subnets));
        }
        region.record(Read::Subnets, made(new));
        Ok(())
    }

    async fn update(&self, region: &Context, _: &Self, with: Change<'_>) -> Result<(), Failure> {
        let public = self.public;
        let value = AttributeBooleanValue::builder().value(public).build();
        let call = region.api.ec2.modify_subnet_attribute().subnet_id(with.id).map_public_ip_on_launch(value);
        region.api.write("ec2:ModifySubnetAttribute", call.send()).await?;
        region.record(Read::Subnets, changed::<FoundSubnet>(with.id, move |it| it.public = public));
        Ok(())
    }

    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        let call = region.api.ec2.delete_subnet().subnet_id(id);
        region.gone_is_done(id, region.api.write("ec2:DeleteSubnet", call.send()).await.map(drop))?;
        region.record(Read::Subnets, gone::<FoundSubnet>(id));
        Ok(())
    }
}

pub(crate) async fn describe_by(api: &Api, filters: Vec<Filter>) -> Result<Vec<FoundSubnet>, Failure> {
    let found_here = pages!(api, "ec2:DescribeSubnets", describe_subnets.set_filters(filters), 1000, subnets);
    Ok(found_here.into_iter().filter_map(found).collect())
}

fn found(subnet: AwsSubnet) -> Option<FoundSubnet> {
    Some(FoundSubnet {
        id: subnet.subnet_id?,
        vpc_id: subnet.vpc_id.unwrap_or_default(),
        zone: subnet.availability_zone.unwrap_or_default(),
        cidr: subnet.cidr_block.unwrap_or_default(),
        public: subnet.map_public_ip_on_launch.unwrap_or_default(),
        state: match subnet.state {
            Some(SubnetState::Pending) => State::Creating,
            Some(SubnetState::Failed | SubnetState::FailedInsufficientCapacity) => State::Failed,
            _ => State::Ready,
        },
        tags: tags(subnet.tags),
    })
}

/// What has the range already: ours, when the answer to a first try was lost.
async fn existing(
    region: &Context,
    vpc: &str,
    subnet: &Subnet,
    with: &Tags,
    failure: Failure,
) -> Result<FoundSubnet, Failure> {
    let in_vpc = describe_by(&region.api, vec![filter("vpc-id", [vpc])]).await?;
    match in_vpc.iter().find(|it| it.cidr == subnet.cidr) {
        Some(it) if is_ours(&it.tags, with) && it.zone == subnet.zone => Ok(it.clone()),
        Some(it) => {
            Err(Failure::local(CREATE, TAKEN, format!("{} in this VPC is {} already", it.cidr, it.id)))
        }
        None if in_vpc.is_empty() => Err(failure),
        None => Err(Failure::local(CREATE, TAKEN, failure.message)),
    }
}
