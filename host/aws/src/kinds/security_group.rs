//! Security groups and how AWS describes their ingress rules. Their name in the VPC guards them against being
//! made twice.

use crate::api::Api;
use crate::context::Context;
use crate::ec2::{distinct, filter, in_vpcs, pages, tag_specification, tags};
use crate::errors::{Failure, TAKEN};
use crate::kind::{AwsKind, Creation, id_of, is_ours};
use crate::pending_writes::{gone, made};
use aws_sdk_ec2::types::{Filter, IpPermission, ResourceType, SecurityGroup as AwsSecurityGroup};
use model::{FoundRule, FoundSecurityGroup, FoundSource, Ids, Read, SecurityGroup, Tags, Vpc};
use std::collections::BTreeSet;
const CREATE: &str = "ec2:CreateSecurityGroup";

impl AwsKind for SecurityGroup {
    type Found = FoundSecurityGroup;
    const ID_PREFIX: &'static str = "sg-";
    const ID_FILTER: &'static str = "group-id";

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
            .create_security_group()
            .vpc_id(vpc)
            .group_name(&self.group_name)
            .description(&self.description)
            .tag_specifications(tag_specification(ResourceType::SecurityGroup, with.tags));
        let new = match region.api.write(CREATE, call.send()).await {
            Ok(answer) => FoundSecurityGroup {
                id: answer.group_id.ok_or_else(|| Failure::incomplete(CREATE))?,
                vpc_id: vpc.to_owned(),
                group_name: self.group_name.clone(),
                description: self.description.clone(),
                rules: Vec::new(),
                tags: with.tags.clone(),
            },
            Err(failure) if failure.is_duplicate() => existing(region, vpc, self, with.tags, failure).await?,
            Err(failure) => return Err(failure),
        };
        region.record(Read::SecurityGroups, made(new));
        Ok(())
    }

    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        delete(region, id).await
    }
}

/// All groups of these VPCs, whoever made them.
pub(crate) async fn describe_in(
    api: &Api,
    vpcs: &BTreeSet<String>,
) -> Result<Vec<FoundSecurityGroup>, Failure> {
    SecurityGroup::describe(api, in_vpcs(vpcs)).await
}

pub(crate) async fn describe_by(api: &Api, filters: Vec<Filter>) -> Result<Vec<FoundSecurityGroup>, Failure> {
    let all = pages!(
        api,
        "ec2:DescribeSecurityGroups",
        describe_security_groups.set_filters(filters),
        1000,
        security_groups
    );
    Ok(all.into_iter().filter_map(found).collect())
}

fn found(group: AwsSecurityGroup) -> Option<FoundSecurityGroup> {
    Some(FoundSecurityGroup {
        id: group.group_id?,
        vpc_id: group.vpc_id.unwrap_or_default(),
        group_name: group.group_name.unwrap_or_default(),
        description: group.description.unwrap_or_default(),
        rules: group.ip_permissions.unwrap_or_default().into_iter().flat_map(rules).collect(),
        tags: tags(group.tags),
    })
}

/// AWS shows rules of one protocol and range as one permission with many sources.
fn rules(permission: IpPermission) -> Vec<FoundRule> {
    let protocol = permission.ip_protocol.unwrap_or_default();
    let (from_port, to_port) = (permission.from_port.unwrap_or(-1), permission.to_port.unwrap_or(-1));
    let rule = |source: FoundSource, description: Option<String>| FoundRule {
        protocol: protocol.clone(),
        from_port,
        to_port,
        source,
        description: description.unwrap_or_default(),
    };
    let mut res = Vec::new();
    for range in permission.ip_ranges.unwrap_or_default() {
        res.extend(range.cidr_ip.map(|cidr| rule(FoundSource::Cidr(cidr), range.description)));
    }
    for range in permission.ipv6_ranges.unwrap_or_default() {
        res.extend(range.cidr_ipv6.map(|cidr| rule(FoundSource::Cidr(cidr), range.description)));
    }
    for pair in permission.user_id_group_pairs.unwrap_or_default() {
        res.extend(pair.group_id.map(|group| rule(FoundSource::GroupId(group), pair.description)));
    }
    for list in permission.prefix_list_ids.unwrap_or_default() {
        res.extend(list.prefix_list_id.map(|id| rule(FoundSource::PrefixList(id), list.description)));
    }
    res
}

/// The group that has the name already: ours, when the answer to a first try was lost.
async fn existing(
    region: &Context,
    vpc: &str,
    group: &SecurityGroup,
    with: &Tags,
    failure: Failure,
) -> Result<FoundSecurityGroup, Failure> {
    let filters = vec![filter("vpc-id", [vpc]), filter("group-name", [&group.group_name])];
    match describe_by(&region.api, filters).await?.pop() {
        Some(it) if is_ours(&it.tags, with) => Ok(it),
        Some(it) => Err(Failure::local(
            CREATE,
            TAKEN,
            format!("the name {} in this VPC is taken by {}", group.group_name, it.id),
        )),
        None => Err(failure),
    }
}

pub(crate) async fn delete(region: &Context, id: &str) -> Result<(), Failure> {
    let call = region.api.ec2.delete_security_group().group_id(id);
    region.gone_is_done(id, region.api.write("ec2:DeleteSecurityGroup", call.send()).await.map(drop))?;
    region.record(Read::SecurityGroups, gone::<FoundSecurityGroup>(id));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_ec2::types::{IpRange, UserIdGroupPair};

    #[test]
    fn a_permission_is_one_rule_for_each_source() {
        let permission = IpPermission::builder()
            .ip_protocol("tcp")
            .from_port(22)
            .to_port(22)
            .ip_ranges(IpRange::builder().cidr_ip("10.0.0.0/8").description("ssh").build())
            .user_id_group_pairs(UserIdGroupPair::builder().group_id("sg-1").build())
            .build();
        let sources: Vec<_> = rules(permission).into_iter().map(|it| (it.source, it.description)).collect();
        assert_eq!(
            sources,
            [
                (FoundSource::Cidr("10.0.0.0/8".into()), "ssh".to_owned()),
                (FoundSource::GroupId("sg-1".into()), String::new())
            ]
        );
    }
}
