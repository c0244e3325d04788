//! A stand-in for the EFS CSI driver: access points with the tags that the real one gives them, by the EFS API.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};

use super::node::{self, Registration};
use super::provisioner::{Driver, Provisioner, Request};
use crate::cloud::addons::aws::{self, Aws};
use crate::cloud::addons::events::Events;
use crate::cloud::addons::follow::{Controller, follow};
use crate::cloud::addons::lease::lead;
use crate::cloud::addons::stand_in::StandIn;

const NAME: &str = "efs.csi.aws.com";
const SERVICE: &str = "elasticfilesystem";
const VERSION: &str = "/2015-02-01";
/// Group ids that the real one gives unless the StorageClass says otherwise.
const GROUPS: (u32, u32) = (50_000, 7_000_000);

/// Runs the controller or the node's part, as the sidecars say.
///
/// # Errors
/// See [`follow`] and [`node::run`].
pub async fn run(stand_in: &StandIn) -> Result<()> {
    if stand_in.beside("csi-provisioner").is_none() {
        return node::run(stand_in, &Registration { driver: NAME, zone: None, limit: None }).await;
    }
    let region = match stand_in.environment.get("AWS_REGION") {
        Some(region) => region.clone(),
        None => stand_in.metadata().get("meta-data/placement/region").await?,
    };
    let mut tags = vec![json!({"Key": "efs.csi.aws.com/cluster", "Value": "true"})];
    let more = stand_in.flag("tags").unwrap_or_default().split(' ').filter_map(|pair| pair.split_once(':'));
    tags.extend(more.map(|(key, value)| json!({"Key": key, "Value": value})));
    let driver = AccessPoints { aws: stand_in.aws(&region)?, tags };
    driver.aws.identify().await?;
    lead(stand_in, "efs-csi-aws-com", async {
        let changes = Provisioner::<AccessPoints>::changes(stand_in);
        let provisioner = Provisioner { stand_in, driver: &driver, events: Events::new(stand_in, NAME) };
        follow(stand_in, changes, &provisioner).await
    })
    .await
}

impl Controller for Provisioner<'_, AccessPoints> {
    async fn reconcile(&self) -> Result<()> {
        Provisioner::reconcile(self).await
    }
}

struct AccessPoints {
    aws: Aws,
    tags: Vec<Value>,
}

impl Driver for AccessPoints {
    const NAME: &'static str = NAME;

    async fn create(&self, request: &Request) -> Result<String> {
        let mode = request.parameter("provisioningMode");
        ensure!(mode == Some("efs-ap"), "provisioning mode {mode:?} is not supported");
        let system = request.parameter("fileSystemId").context("the StorageClass names no file system")?;
        let path = format!("{VERSION}/file-systems?FileSystemId={system}");
        self.aws.rest(SERVICE, Method::GET, &path, None).await.context("reading the file system")?;
        let existing = self.list(system).await?;
        let made = existing.iter().find(|point| point["ClientToken"] == *request.name);
        let id = match made {
            Some(point) => point["AccessPointId"].clone(),
            None => {
                let body = self.creation(request, system, &existing)?;
                let path = format!("{VERSION}/access-points");
                self.aws.rest(SERVICE, Method::POST, &path, Some(&body)).await.context("creating an access point")?["AccessPointId"].clone()
            }
        };
        let id = id.as_str().context("the access point has no id")?;
        Ok(format!("{system}::{id}"))
    }

    async fn delete(&self, handle: &str) -> Result<()> {
        let (_, id) = handle.split_once("::").with_context(|| format!("{handle} names no access point"))?;
        match self.aws.rest(SERVICE, Method::DELETE, &format!("{VERSION}/access-points/{id}"), None).await {
            Err(error) if aws::code(&error) == Some("AccessPointNotFound") => Ok(()),
            result => result.map(drop),
        }
    }
}

impl AccessPoints {
    async fn list(&self, system: &str) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        let mut path = format!("{VERSION}/access-points?FileSystemId={system}");
        loop {
            let mut page = self.aws.rest(SERVICE, Method::GET, &path, None).await.context("listing access points")?;
            all.extend(page["AccessPoints"].as_array_mut().map(std::mem::take).unwrap_or_default());
            let Some(token) = page["NextToken"].as_str().filter(|token| !token.is_empty()) else { return Ok(all) };
            path = format!("{VERSION}/access-points?FileSystemId={system}&NextToken={}", aws::query::encode(token));
        }
    }

    fn creation(&self, request: &Request, system: &str, existing: &[Value]) -> Result<Value> {
        let number = |name: &str| -> Result<Option<u32>> {
            request.parameter(name).map(|value| value.parse().with_context(|| format!("reading {name}"))).transpose()
        };
        let used: BTreeSet<u64> = existing.iter().filter_map(|point| point["PosixUser"]["Gid"].as_u64()).collect();
        let range = number("gidRangeStart")?.unwrap_or(GROUPS.0)..=number("gidRangeEnd")?.unwrap_or(GROUPS.1);
        let group = match number("gid")? {
            Some(group) => group,
            None => range.into_iter().find(|group| !used.contains(&u64::from(*group))).context("no group id is free")?,
        };
        let user = number("uid")?.unwrap_or(group);
        let base = request.parameter("basePath").unwrap_or_default().trim_end_matches('/');
        Ok(json!({
            "ClientToken": request.name, "FileSystemId": system, "Tags": self.tags,
            "PosixUser": {"Uid": user, "Gid": group},
            "RootDirectory": {"Path": format!("{base}/{}", request.name), "CreationInfo": {
                "OwnerUid": user, "OwnerGid": group, "Permissions": request.parameter("directoryPerms").unwrap_or("700"),
            }},
        }))
    }
}
