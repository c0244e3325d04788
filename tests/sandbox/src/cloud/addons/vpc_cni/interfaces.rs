//! The network interfaces of one instance, as the Amazon VPC CNI makes them in AWS.

use anyhow::{Context, Result};
use aws_sdk_ec2::types::{Filter, NetworkInterface, NetworkInterfaceAttachmentChanges, ResourceType};
use k8s_openapi::jiff::Timestamp;

use super::targets::{Limits, Targets, Wanted};
use crate::cloud::addons::aws::metadata::Metadata;
use crate::cloud::addons::aws::{self, Answer, Aws, Tags};
use crate::cloud::addons::stand_in::StandIn;

/// Tag with the id of the instance that an interface was made for.
const INSTANCE: &str = "node.k8s.amazonaws.com/instance_id";

/// Where interfaces are made.
pub struct Place {
    pub instance: String,
    pub instance_type: String,
    pub subnet: String,
    pub groups: Vec<String>,
}

impl Place {
    /// The subnet and groups of the instance's first interface.
    pub async fn here(metadata: &Metadata) -> Result<Self> {
        let mac = metadata.get("meta-data/mac").await?;
        let interface = |key: &str| format!("meta-data/network/interfaces/macs/{mac}/{key}");
        Ok(Self {
            instance: metadata.get("meta-data/instance-id").await?,
            instance_type: metadata.get("meta-data/instance-type").await?,
            subnet: metadata.get(&interface("subnet-id")).await?,
            groups: metadata
                .get(&interface("security-group-ids"))
                .await?
                .lines()
                .map(str::to_owned)
                .collect(),
        })
    }
}

/// The interfaces of the instance.
pub struct Interfaces<'a> {
    pub stand_in: &'a StandIn,
    pub aws: &'a Aws,
    pub place: &'a Place,
    pub targets: &'a Targets,
    pub limits: Limits,
}

impl Interfaces<'_> {
    /// Makes what is missing; gives nothing back, which the real one does only after a while.
    pub async fn hold(&self, wanted: &Wanted) -> Result<()> {
        let instance = &self.place.instance;
        let mut attached = self.find(vec![aws::filter("attachment.instance-id", [instance])]).await?;
        let ours = aws::filter(&format!("tag:{INSTANCE}"), [instance]);
        let made = self.find(vec![ours, aws::filter("status", ["available"])]).await?;
        if made.is_empty() {
            let left = self.create(0).await?;
            self.stand_in.log(&format!("made {left}, which stays behind"));
        }
        attached.sort_by_key(|interface| index(interface).unwrap_or(0));
        if let Some(first) = attached.first().filter(|first| index(first) == Some(0)) {
            self.assign(first, wanted.first).await?;
        }
        let ours = |interface: &&NetworkInterface| {
            aws::tag(interface.tag_set(), INSTANCE) == Some(instance.as_str())
        };
        for interface in attached.iter().filter(ours) {
            self.assign(interface, wanted.each).await?;
        }
        let mut indices: Vec<i32> = attached.iter().filter_map(index).collect();
        for _ in attached.iter().filter(ours).count()..wanted.interfaces {
            let free =
                (1..).find(|index| !indices.contains(index)).context("there is no free device index")?;
            let id = self.create(wanted.each).await?;
            self.attach(&id, free).await?;
            indices.push(free);
        }
        Ok(())
    }

    async fn find(&self, filters: Vec<Filter>) -> Result<Vec<NetworkInterface>> {
        let call = self.aws.ec2.describe_network_interfaces().set_filters(Some(filters));
        let found = call.into_paginator().items().send().try_collect().await;
        found.answer().context("reading network interfaces")
    }

    /// Gives an interface as many addresses, or prefixes, as are wanted beside its own and as it has room
    /// for. What it has of the other kind, from before a change of settings, takes room too.
    async fn assign(&self, interface: &NetworkInterface, wanted: usize) -> Result<()> {
        let id = interface.network_interface_id().unwrap_or_default();
        let (addresses, prefixes) = (interface.private_ip_addresses().len(), interface.ipv4_prefixes().len());
        let held = if self.targets.prefixes { prefixes } else { addresses.saturating_sub(1) };
        let room = self.limits.addresses.saturating_sub(addresses + prefixes);
        let missing = wanted.saturating_sub(held).min(room);
        if missing == 0 {
            return Ok(());
        }
        let (prefixes, addresses) = self.counts(missing);
        let call = self.aws.ec2.assign_private_ip_addresses().network_interface_id(id);
        let call = call.set_ipv4_prefix_count(prefixes).set_secondary_private_ip_address_count(addresses);
        call.send().await.answer().with_context(|| format!("assigning addresses to {id}"))?;
        self.stand_in.log(&format!("{id} has {} to give", held + missing));
        Ok(())
    }

    async fn create(&self, addresses: usize) -> Result<String> {
        let call = self.aws.ec2.create_network_interface().subnet_id(&self.place.subnet);
        let call = call.description(format!("aws-K8S-{}", self.place.instance));
        let call = call.set_groups(Some(self.place.groups.clone()));
        let call = call.tag_specifications(aws::tagged(ResourceType::NetworkInterface, &self.tags()));
        let (prefixes, addresses) = self.counts(addresses);
        let call = call.set_ipv4_prefix_count(prefixes).set_secondary_private_ip_address_count(addresses);
        let made = call.send().await.answer().context("creating a network interface")?;
        let id = made.network_interface().and_then(NetworkInterface::network_interface_id);
        id.map(str::to_owned).context("the network interface has no id")
    }

    /// So many as a number of prefixes or of addresses, whichever is in use; none of either for zero.
    fn counts(&self, number: usize) -> (Option<i32>, Option<i32>) {
        let number = i32::try_from(number).ok().filter(|number| *number > 0);
        if self.targets.prefixes { (number, None) } else { (None, number) }
    }

    /// Attaches an interface and lets it end with its instance, which takes two calls.
    async fn attach(&self, id: &str, index: i32) -> Result<()> {
        let call = self.aws.ec2.attach_network_interface().network_interface_id(id).device_index(index);
        let call = call.instance_id(&self.place.instance);
        let attached = call.send().await.answer().with_context(|| format!("attaching {id}"))?;
        let changes = NetworkInterfaceAttachmentChanges::builder()
            .set_attachment_id(attached.attachment_id)
            .delete_on_termination(true)
            .build();
        let call = self.aws.ec2.modify_network_interface_attribute().network_interface_id(id);
        let modified = call.attachment(changes).send().await.answer();
        modified.with_context(|| format!("letting {id} end with its instance"))?;
        self.stand_in.log(&format!("attached {id} as device {index}"));
        Ok(())
    }

    fn tags(&self) -> Tags {
        let mut tags = self.targets.tags.clone();
        tags.insert(INSTANCE.to_owned(), self.place.instance.clone());
        tags.insert(
            "node.k8s.amazonaws.com/createdAt".to_owned(),
            Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        );
        if let Some(cluster) = &self.targets.cluster {
            tags.insert("cluster.k8s.amazonaws.com/name".to_owned(), cluster.clone());
        }
        tags
    }
}

fn index(interface: &NetworkInterface) -> Option<i32> {
    interface.attachment()?.device_index()
}
