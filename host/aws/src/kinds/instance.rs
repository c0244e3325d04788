//! EC2 instances. A client token guards them against being made twice; terminations of many go in one call.

use crate::api::{Api, late};
use crate::batch::BatchedCall;
use crate::context::Context;
use crate::ec2::{distinct, filter, pages, tag_specification, tags};
use crate::errors::{Failure, NOT_YET};
use crate::kind::{AwsKind, Change, Creation, id_of};
use crate::pending_writes::{changed, made};
use crate::schedule::Task;
use aws_sdk_ec2::types::{
    BlockDeviceMapping, EbsBlockDevice, Filter, HttpTokensState, IamInstanceProfileSpecification,
    Instance as AwsInstance, InstanceMetadataEndpointState, InstanceMetadataOptionsRequest,
    InstanceMetadataProtocolState, InstanceMetadataTagsState, InstanceNetworkInterfaceSpecification,
    InstanceStateName, InstanceType, Placement, ResourceType, StateReason as AwsStateReason, Tenancy,
    VolumeType,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{
    FoundInstance, Ids, Instance, InstanceStatus, Launch, MetadataOptions, Read, SecurityGroup, StateReason,
    Subnet, Volume,
};
use std::collections::BTreeSet;
const RUN: &str = "ec2:RunInstances";
const TERMINATE: &str = "ec2:TerminateInstances";

impl AwsKind for Instance {
    type Found = FoundInstance;
    const ID_PREFIX: &'static str = "i-";
    const ID_FILTER: &'static str = "instance-id";

    async fn describe(api: &Api, selections: Vec<Vec<Filter>>) -> Result<Vec<Self::Found>, Failure> {
        let mut res = Vec::new();
        for filters in selections {
            let reservations = pages!(
                api,
                "ec2:DescribeInstances",
                describe_instances.set_filters(filters),
                1000,
                reservations
            );
            res.extend(
                reservations.into_iter().flat_map(|it| it.instances.unwrap_or_default()).filter_map(found),
            );
        }
        Ok(distinct(res, |it| &it.id))
    }

    /// One attempt with its token: whether another is made is decided anew.
    async fn create(&self, region: &Context, with: Creation<'_>) -> Result<(), Failure> {
        let launch = self
            .launch
            .as_ref()
            .ok_or_else(|| Failure::local(RUN, "InvalidCall", "what to launch is not known"))?;
        let user_data = (!launch.user_data.0.is_empty()).then(|| STANDARD.encode(&launch.user_data.0));
        let call = region
            .api
            .ec2_once
            .run_instances()
            .image_id(&launch.image)
            .instance_type(InstanceType::from(launch.instance_type.as_str()))
            .min_count(1)
            .max_count(1)
            .set_client_token(with.client_token.map(str::to_owned))
            .set_key_name(launch.key_name.clone())
            .set_user_data(user_data)
            .set_iam_instance_profile(launch.iam_instance_profile.as_deref().map(profile))
            .set_placement(
                launch.tenancy.as_deref().map(|it| Placement::builder().tenancy(Tenancy::from(it)).build()),
            )
            .set_block_device_mappings(some(launch.volumes.iter().map(volume).collect()))
            .metadata_options(metadata(&launch.metadata_options))
            .network_interfaces(interface(self, launch, with.ids)?)
            .tag_specifications(tag_specification(ResourceType::Instance, with.tags))
            .tag_specifications(tag_specification(ResourceType::Volume, with.tags))
            .tag_specifications(tag_specification(ResourceType::NetworkInterface, with.tags));
        if !region.api.limits.launches.take_until(with.until).await {
            return Err(late(RUN));
        }
        let answer = region.api.write_until(with.until, RUN, call.send()).await?;
        let new = answer.instances.unwrap_or_default().into_iter().find_map(found);
        let mut new = new.ok_or_else(|| Failure::incomplete(RUN))?;
        new.tags.extend(with.tags.clone());
        new.client_token = new.client_token.or(with.client_token.map(str::to_owned));
        region.follow(Task::Kind(Read::Instances));
        region.record(Read::Instances, made(new));
        Ok(())
    }

    /// Adds groups to the first interface, and takes those away that its user took away; others that it has
    /// stay.
    async fn update(&self, region: &Context, _: &Self, with: Change<'_>) -> Result<(), Failure> {
        const ACTION: &str = "ec2:ModifyNetworkInterfaceAttribute";
        let filters = vec![filter("attachment.instance-id", [with.id])];
        let api = &region.api;
        let all = pages!(
            api,
            "ec2:DescribeNetworkInterfaces",
            describe_network_interfaces.set_filters(filters),
            1000,
            network_interfaces
        );
        let first = all
            .iter()
            .find(|it| it.attachment().is_some_and(|it| it.device_index().unwrap_or_default() == 0));
        let interface = first.and_then(|it| it.network_interface_id()).ok_or_else(|| {
            Failure::local(ACTION, NOT_YET, format!("the network interface of {} is not shown yet", with.id))
        })?;
        let mut groups: BTreeSet<String> =
            first.into_iter().flat_map(|it| it.groups()).filter_map(|it| it.group_id.clone()).collect();
        groups.retain(|it| !self.removed_groups.contains(it));
        groups.extend(self.groups.iter().filter_map(|it| with.ids.get(&SecurityGroup::key(it)).cloned()));
        groups.extend(self.additional_groups.iter().cloned());
        let call = api.ec2.modify_network_interface_attribute().network_interface_id(interface);
        api.write(ACTION, call.set_groups(Some(groups.iter().cloned().collect())).send()).await?;
        region
            .record(Read::Instances, changed::<FoundInstance>(with.id, move |it| it.groups = groups.clone()));
        Ok(())
    }

    /// Terminates it, together with others that are terminated at about the same time. One that is gone is
    /// done.
    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        region.gone_is_done(id, region.batches.send(&region.api, termination(), id).await)?;
        region.follow(Task::Kind(Read::Instances));
        let change = |it: &mut FoundInstance| {
            if it.status.state != "terminated" {
                it.status.state = "shutting-down".to_owned();
            }
        };
        region.record(Read::Instances, changed(id, change));
        Ok(())
    }
}

fn found(instance: AwsInstance) -> Option<FoundInstance> {
    let interfaces = instance.network_interfaces.unwrap_or_default();
    let first = interfaces
        .iter()
        .find(|it| it.attachment().is_none_or(|it| it.device_index().unwrap_or_default() == 0));
    let disks = instance.block_device_mappings.unwrap_or_default();
    // What a storage driver attaches outlives the instance, and is not the machine's.
    let own =
        disks.iter().filter_map(|it| it.ebs()).filter(|it| it.delete_on_termination().unwrap_or_default());
    let mut parts: BTreeSet<String> = own.filter_map(|it| it.volume_id.clone()).collect();
    parts.extend(first.and_then(|it| it.network_interface_id.clone()));
    let groups = first
        .map(|it| it.groups())
        .filter(|it| !it.is_empty())
        .unwrap_or(instance.security_groups.as_deref().unwrap_or_default());
    let ends = !matches!(
        instance.state.as_ref().and_then(|it| it.name()),
        Some(InstanceStateName::Pending | InstanceStateName::Running)
    );
    Some(FoundInstance {
        id: instance.instance_id?,
        groups: groups.iter().filter_map(|it| it.group_id.clone()).collect(),
        vpc_id: instance.vpc_id.filter(|it| !it.is_empty()),
        subnet_id: instance.subnet_id.filter(|it| !it.is_empty()),
        client_token: instance.client_token.filter(|it| !it.is_empty()),
        instance_type: instance.instance_type.map(|it| it.as_str().to_owned()).unwrap_or_default(),
        image: instance.image_id.unwrap_or_default(),
        profile: instance.iam_instance_profile.and_then(|it| it.arn).filter(|it| !it.is_empty()),
        status: InstanceStatus {
            state: instance.state.and_then(|it| it.name).map(|it| it.as_str().to_owned()).unwrap_or_default(),
            zone: instance.placement.and_then(|it| it.availability_zone).unwrap_or_default(),
            private_ip: instance.private_ip_address.filter(|it| !it.is_empty()),
            private_dns_name: instance.private_dns_name.filter(|it| !it.is_empty()),
            public_ip: instance.public_ip_address.filter(|it| !it.is_empty()),
            public_dns_name: instance.public_dns_name.filter(|it| !it.is_empty()),
            reason: instance.state_reason.filter(|_| ends).and_then(reason),
            parts,
        },
        tags: tags(instance.tags),
    })
}

fn reason(reason: AwsStateReason) -> Option<StateReason> {
    let (code, message) = (reason.code.unwrap_or_default(), reason.message.unwrap_or_default());
    (!code.is_empty() || !message.is_empty()).then_some(StateReason { code, message })
}

/// Its first and only interface. It goes with the instance only when that is said.
fn interface(
    instance: &Instance,
    launch: &Launch,
    ids: &Ids,
) -> Result<InstanceNetworkInterfaceSpecification, Failure> {
    let groups = instance.groups.iter().map(|it| id_of(RUN, ids, &SecurityGroup::key(it)).map(str::to_owned));
    let mut groups = groups.collect::<Result<Vec<String>, Failure>>()?;
    groups.extend(instance.additional_groups.iter().cloned());
    Ok(InstanceNetworkInterfaceSpecification::builder()
        .device_index(0)
        .delete_on_termination(true)
        .subnet_id(id_of(RUN, ids, &Subnet::key(&instance.subnet))?)
        .set_associate_public_ip_address(launch.public_ip)
        .set_groups(some(groups))
        .build())
}

fn profile(name: &str) -> IamInstanceProfileSpecification {
    let res = IamInstanceProfileSpecification::builder();
    if name.starts_with("arn:") { res.arn(name).build() } else { res.name(name).build() }
}

fn volume(volume: &Volume) -> BlockDeviceMapping {
    let disk = EbsBlockDevice::builder()
        .delete_on_termination(true)
        .volume_size(volume.size)
        .set_volume_type(volume.volume_type.as_deref().map(VolumeType::from))
        .set_iops(volume.iops)
        .set_throughput(volume.throughput)
        .set_encrypted(volume.encrypted)
        .set_kms_key_id(volume.kms_key.clone());
    BlockDeviceMapping::builder().device_name(&volume.device_name).ebs(disk.build()).build()
}

fn metadata(options: &MetadataOptions) -> InstanceMetadataOptionsRequest {
    InstanceMetadataOptionsRequest::builder()
        .http_endpoint(InstanceMetadataEndpointState::from(options.http_endpoint.as_str()))
        .set_http_protocol_ipv6(
            options.http_protocol_ipv6.as_deref().map(InstanceMetadataProtocolState::from),
        )
        .http_tokens(HttpTokensState::from(options.http_tokens.as_str()))
        .http_put_response_hop_limit(options.http_put_response_hop_limit)
        .instance_metadata_tags(InstanceMetadataTagsState::from(options.instance_metadata_tags.as_str()))
        .build()
}

fn some<T>(all: Vec<T>) -> Option<Vec<T>> {
    (!all.is_empty()).then_some(all)
}

fn termination() -> BatchedCall {
    BatchedCall {
        action: TERMINATE,
        of: String::new(),
        send: |api, _, instances| {
            Box::pin(async move {
                let call = api.ec2.terminate_instances().set_instance_ids(Some(instances));
                api.write(TERMINATE, call.send()).await.map(drop)
            })
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_the_metadata_service_is_passed_on() {
        let options = |ipv6: Option<&str>| MetadataOptions {
            http_endpoint: "enabled".into(),
            http_protocol_ipv6: ipv6.map(str::to_owned),
            http_tokens: "required".into(),
            http_put_response_hop_limit: 2,
            instance_metadata_tags: "enabled".into(),
        };
        let all = InstanceMetadataOptionsRequest::builder()
            .http_endpoint(InstanceMetadataEndpointState::Enabled)
            .http_protocol_ipv6(InstanceMetadataProtocolState::Enabled)
            .http_tokens(HttpTokensState::Required)
            .http_put_response_hop_limit(2)
            .instance_metadata_tags(InstanceMetadataTagsState::Enabled);
        assert_eq!(metadata(&options(Some("enabled"))), all.clone().build());
        assert_eq!(metadata(&options(None)), all.set_http_protocol_ipv6(None).build());
    }
}
