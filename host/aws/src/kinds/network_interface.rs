//! Network interfaces of VPCs that are being deleted. This program makes none; it removes those that others
//! left.

use crate::api::Api;
use crate::context::Context;
use crate::ec2::{in_vpcs, pages, tags};
use crate::errors::{Failure, gone_is_done};
use crate::kind::AwsKind;
use crate::pending_writes::gone;
use model::{FoundNetworkInterface, Ids, NetworkInterface, Read};
use std::collections::BTreeSet;

impl AwsKind for NetworkInterface {
    type Found = ();

    async fn delete(&self, region: &Context, id: &str, _: &Ids) -> Result<(), Failure> {
        delete(region, id).await
    }

    fn shown_by(_: bool) -> Option<Read> {
        Some(Read::SecurityGroups)
    }
}

/// All interfaces of these VPCs.
pub(crate) async fn describe(
    api: &Api,
    vpcs: &BTreeSet<String>,
) -> Result<Vec<FoundNetworkInterface>, Failure> {
    let mut res = Vec::new();
    for filters in in_vpcs(vpcs) {
        let all = pages!(
            api,
            "ec2:DescribeNetworkInterfaces",
            describe_network_interfaces.set_filters(filters),
            1000,
            network_interfaces
        );
        res.extend(all.into_iter().filter_map(found));
    }
    Ok(res)
}

fn found(interface: aws_sdk_ec2::types::NetworkInterface) -> Option<FoundNetworkInterface> {
    Some(FoundNetworkInterface {
        id: interface.network_interface_id?,
        vpc_id: interface.vpc_id.unwrap_or_default(),
        subnet_id: interface.subnet_id.unwrap_or_default(),
        groups: interface.groups.unwrap_or_default().into_iter().filter_map(|it| it.group_id).collect(),
        status: interface.status.map(|it| it.as_str().to_owned()).unwrap_or_default(),
        description: interface.description.unwrap_or_default(),
        interface_type: interface.interface_type.map(|it| it.as_str().to_owned()).unwrap_or_default(),
        requester_managed: interface.requester_managed.unwrap_or_default(),
        attached_instance: interface.attachment.and_then(|it| it.instance_id),
        tags: tags(interface.tag_set),
    })
}

pub(crate) async fn delete(region: &Context, id: &str) -> Result<(), Failure> {
    let call = region.api.ec2.delete_network_interface().network_interface_id(id);
    gone_is_done(region.api.write("ec2:DeleteNetworkInterface", call.send()).await.map(drop))?;
    region.record(Read::SecurityGroups, gone::<FoundNetworkInterface>(id));
    Ok(())
}
