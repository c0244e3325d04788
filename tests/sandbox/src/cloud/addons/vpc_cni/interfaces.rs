//! The network interfaces of one instance, as the Amazon VPC CNI makes them in AWS.

use anyhow::{Context, Result};
use k8s_openapi::jiff::Timestamp;

use super::targets::{Limits, Targets, Wanted};
use crate::cloud::addons::aws::credentials::Metadata;
use crate::cloud::addons::aws::query::{Query, Tags};
use crate::cloud::addons::aws::xml::Element;
use crate::cloud::addons::aws::{Aws, EC2};
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
        let query =
            Query::new("DescribeNetworkInterfaces").filter("attachment.instance-id", [&self.place.instance]);
        let mut attached = self.aws.list(EC2, query, "networkInterfaceSet").await?;
        let query = Query::new("DescribeNetworkInterfaces")
            .filter(&format!("tag:{INSTANCE}"), [&self.place.instance]);
        let made = self.aws.list(EC2, query.filter("status", ["available"]), "networkInterfaceSet").await?;
        if made.is_empty() {
            let left = self.create(0).await?;
            self.stand_in.log(&format!("made {left}, which stays behind"));
        }
        attached.sort_by_key(|interface| index(interface).unwrap_or(0));
        if let Some(first) = attached.first().filter(|first| index(first) == Some(0)) {
            self.assign(first, wanted.first).await?;
        }
        let ours = |interface: &&Element| interface.tag(INSTANCE) == Some(&self.place.instance);
        for interface in attached.iter().filter(ours) {
            self.assign(interface, wanted.each).await?;
        }
        let mut indices: Vec<u32> = attached.iter().filter_map(index).collect();
        for _ in attached.iter().filter(ours).count()..wanted.interfaces {
            let free =
                (1..).find(|index| !indices.contains(index)).context("there is no free device index")?;
            let id = self.create(wanted.each).await?;
            self.attach(&id, free).await?;
            indices.push(free);
        }
        Ok(())
    }

    /// Gives an interface as many addresses, or prefixes, as are wanted beside its own and as it has room
    /// for. What it has of the other kind, from before a change of settings, takes room too.
    async fn assign(&self, interface: &Element, wanted: usize) -> Result<()> {
        let id = interface.text("networkInterfaceId");
        let (addresses, prefixes) =
            (interface.entries("privateIpAddressesSet").len(), interface.entries("ipv4PrefixSet").len());
        let held = if self.targets.prefixes { prefixes } else { addresses.saturating_sub(1) };
        let room = self.limits.addresses.saturating_sub(addresses + prefixes);
        let missing = wanted.saturating_sub(held).min(room);
        if missing == 0 {
            return Ok(());
        }
        let name = if self.targets.prefixes { "Ipv4PrefixCount" } else { "SecondaryPrivateIpAddressCount" };
        let query = Query::new("AssignPrivateIpAddresses").with("NetworkInterfaceId", id).with(name, missing);
        self.aws.call(EC2, query).await.with_context(|| format!("assigning addresses to {id}"))?;
        self.stand_in.log(&format!("{id} has {} to give", held + missing));
        Ok(())
    }

    async fn create(&self, addresses: usize) -> Result<String> {
        let name = if self.targets.prefixes { "Ipv4PrefixCount" } else { "SecondaryPrivateIpAddressCount" };
        let mut query = Query::new("CreateNetworkInterface")
            .with("SubnetId", &self.place.subnet)
            .with("Description", format!("aws-K8S-{}", self.place.instance))
            .list("SecurityGroupId", &self.place.groups)
            .tagged("network-interface", &self.tags());
        if addresses > 0 {
            query = query.with(name, addresses);
        }
        let answer = self.aws.call(EC2, query).await.context("creating a network interface")?;
        let id = answer.text("networkInterface/networkInterfaceId");
        anyhow::ensure!(!id.is_empty(), "the network interface has no id");
        Ok(id.to_owned())
    }

    /// Attaches an interface and lets it end with its instance, which takes two calls.
    async fn attach(&self, id: &str, index: u32) -> Result<()> {
        let query = Query::new("AttachNetworkInterface")
            .with("NetworkInterfaceId", id)
            .with("InstanceId", &self.place.instance)
            .with("DeviceIndex", index);
        let answer = self.aws.call(EC2, query).await.with_context(|| format!("attaching {id}"))?;
        let query = Query::new("ModifyNetworkInterfaceAttribute")
            .with("NetworkInterfaceId", id)
            .with("Attachment.AttachmentId", answer.text("attachmentId"))
            .with("Attachment.DeleteOnTermination", true);
        self.aws.call(EC2, query).await.with_context(|| format!("letting {id} end with its instance"))?;
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

fn index(interface: &Element) -> Option<u32> {
    interface.text("attachment/deviceIndex").parse().ok()
}
