//! A stand-in for the EBS CSI driver: volumes with the tags that the real one gives them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use kube::ResourceExt;
use sha2::{Digest, Sha256};

use super::attacher::Attacher;
use super::node::{self, Registration};
use super::provisioner::{Driver, Provisioner, Request, worse};
use crate::cloud::addons::aws::query::{Query, Tags};
use crate::cloud::addons::aws::xml::Element;
use crate::cloud::addons::aws::{self, Aws, EC2};
use crate::cloud::addons::events::Events;
use crate::cloud::addons::follow::{Controller, follow};
use crate::cloud::addons::lease::lead;
use crate::cloud::addons::stand_in::StandIn;

const NAME: &str = "ebs.csi.aws.com";
const ZONE: &str = "topology.ebs.csi.aws.com/zone";
/// Tag that the real one finds the volume of a request by.
const VOLUME_NAME: &str = "CSIVolumeName";
/// Volumes that a node can hold, as instances of usual types can beside their root and interfaces.
const LIMIT: i32 = 25;

/// Runs the controller or the node's part, as the sidecars say.
///
/// # Errors
/// See [`follow`] and [`node::run`].
pub async fn run(stand_in: &StandIn) -> Result<()> {
    if stand_in.beside("csi-provisioner").is_none() {
        return node::run(stand_in, &Registration { driver: NAME, zone: Some(ZONE), limit: Some(LIMIT) }).await;
    }
    let region = stand_in.environment.get("AWS_REGION").cloned();
    let region = match region {
        Some(region) => region,
        None => stand_in.metadata().get("meta-data/placement/region").await?,
    };
    let volumes = Volumes { aws: stand_in.aws(&region)?, tags: tags(stand_in) };
    volumes.aws.identify().await?;
    lead(stand_in, "ebs-csi-aws-com", async {
        let mut changes = Provisioner::<Volumes>::changes(stand_in);
        changes.extend(Attacher::changes(stand_in));
        let provisioner = Provisioner { stand_in, driver: &volumes, events: Events::new(stand_in, NAME) };
        follow(stand_in, changes, &Both { provisioner, attacher: Attacher { stand_in, volumes: &volumes, driver: NAME } }).await
    })
    .await
}

struct Both<'a> {
    provisioner: Provisioner<'a, Volumes>,
    attacher: Attacher<'a>,
}

impl Controller for Both<'_> {
    async fn reconcile(&self) -> Result<()> {
        // What is still attached cannot be deleted.
        let attached = self.attacher.reconcile().await;
        worse(attached, self.provisioner.reconcile().await)
    }
}

/// Tags of every volume, by the flags.
fn tags(stand_in: &StandIn) -> Tags {
    let mut tags = Tags::from([("ebs.csi.aws.com/cluster".to_owned(), "true".to_owned())]);
    if let Some(cluster) = stand_in.flag("k8s-tag-cluster-id") {
        tags.insert(format!("kubernetes.io/cluster/{cluster}"), "owned".to_owned());
        tags.insert("ebs.csi.aws.com/cluster-name".to_owned(), cluster.to_owned());
    }
    let extra = stand_in.flag("extra-tags").unwrap_or_default();
    tags.extend(extra.split(',').filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())));
    tags
}

/// Volumes of the EC2 API.
pub struct Volumes {
    aws: Aws,
    tags: Tags,
}

impl Driver for Volumes {
    const NAME: &'static str = NAME;
    const TOPOLOGY: Option<&'static str> = Some(ZONE);

    async fn create(&self, request: &Request) -> Result<String> {
        let query = Query::new("DescribeVolumes").filter(&format!("tag:{VOLUME_NAME}"), [&request.name]);
        let found = self.aws.list(EC2, query, "volumeSet").await?;
        let found = found.iter().find(|volume| !matches!(volume.text("status"), "deleting" | "deleted"));
        let id = match found {
            Some(volume) => volume.text("volumeId").to_owned(),
            None => self.aws.call(EC2, self.creation(request)?).await?.text("volumeId").to_owned(),
        };
        ensure!(!id.is_empty(), "the volume has no id");
        self.settled(&id, |volume| volume.text("status") == "available").await?;
        Ok(id)
    }

    async fn delete(&self, handle: &str) -> Result<()> {
        match self.aws.call(EC2, Query::new("DeleteVolume").with("VolumeId", handle)).await {
            Err(error) if aws::code(&error) == Some("InvalidVolume.NotFound") => Ok(()),
            result => result.map(drop),
        }
    }
}

impl Volumes {
    fn creation(&self, request: &Request) -> Result<Query> {
        let mut tags = self.tags.clone();
        tags.insert(VOLUME_NAME.to_owned(), request.name.clone());
        if let Some(cluster) = self.tags.get("ebs.csi.aws.com/cluster-name") {
            tags.insert("Name".to_owned(), format!("{cluster}-dynamic-{}", request.name));
        }
        if request.metadata {
            let prefix = "kubernetes.io/created-for";
            tags.insert(format!("{prefix}/pv/name"), request.name.clone());
            tags.insert(format!("{prefix}/pvc/name"), request.claim.name_any());
            tags.insert(format!("{prefix}/pvc/namespace"), request.claim.namespace().unwrap_or_default());
        }
        let zone = request.segment.as_deref().context("the request names no zone")?;
        let token: String = Sha256::digest(&request.name).iter().map(|byte| format!("{byte:02x}")).collect();
        let query = Query::new("CreateVolume")
            .with("AvailabilityZone", zone)
            .with("Size", request.size)
            .with("VolumeType", request.parameter("type").unwrap_or("gp3"))
            .with("ClientToken", token)
            .tagged("volume", &tags);
        let optional =
            BTreeMap::from([("encrypted", "Encrypted"), ("iops", "Iops"), ("throughput", "Throughput"), ("kmsKeyId", "KmsKeyId")]);
        Ok(optional.into_iter().fold(query, |query, (parameter, name)| match request.parameter(parameter) {
            Some(value) => query.with(name, value),
            None => query,
        }))
    }

    /// Attaches a volume to an instance, unless it is; returns the device.
    pub async fn attach(&self, id: &str, instance: &str) -> Result<String> {
        let volume = self.describe(id).await?.with_context(|| format!("volume {id} not found"))?;
        let attached = volume.entries("attachmentSet").iter().find(|attachment| attachment.text("instanceId") == instance);
        if let Some(attachment) = attached {
            return Ok(attachment.text("device").to_owned());
        }
        let query = Query::new("DescribeVolumes").filter("attachment.instance-id", [instance]);
        let used = self.aws.list(EC2, query, "volumeSet").await?;
        let used: Vec<&str> =
            used.iter().flat_map(|volume| volume.entries("attachmentSet")).map(|attachment| attachment.text("device")).collect();
        let device = ('a'..='z').map(|letter| format!("/dev/xvda{letter}")).find(|device| !used.contains(&device.as_str()));
        let device = device.context("no device is free")?;
        let query = Query::new("AttachVolume").with("VolumeId", id).with("InstanceId", instance).with("Device", &device);
        self.aws.call(EC2, query).await?;
        let attached = |volume: &Element| volume.entries("attachmentSet").iter().any(|attachment| attachment.text("status") == "attached");
        self.settled(id, attached).await?;
        Ok(device)
    }

    /// Detaches a volume from whatever it is attached to.
    pub async fn detach(&self, id: &str) -> Result<()> {
        let Some(volume) = self.describe(id).await? else { return Ok(()) };
        if volume.entries("attachmentSet").is_empty() {
            return Ok(());
        }
        match self.aws.call(EC2, Query::new("DetachVolume").with("VolumeId", id)).await {
            Err(error) if matches!(aws::code(&error), Some("IncorrectState" | "InvalidAttachment.NotFound")) => {}
            result => drop(result?),
        }
        self.settled(id, |volume| volume.entries("attachmentSet").is_empty()).await
    }

    async fn describe(&self, id: &str) -> Result<Option<Element>> {
        match self.aws.list(EC2, Query::new("DescribeVolumes").list("VolumeId", [id]), "volumeSet").await {
            Err(error) if aws::code(&error) == Some("InvalidVolume.NotFound") => Ok(None),
            result => Ok(result?.into_iter().next()),
        }
    }

    async fn settled(&self, id: &str, done: impl Fn(&Element) -> bool) -> Result<()> {
        for _ in 0..30 {
            match self.describe(id).await? {
                Some(volume) if done(&volume) => return Ok(()),
                _ => tokio::time::sleep(std::time::Duration::from_secs(1)).await,
            }
        }
        bail!("volume {id} does not settle")
    }
}
