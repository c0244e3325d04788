//! A stand-in for the EFS CSI driver: access points with the tags that the real one gives them, by the EFS
//! API.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use aws_sdk_efs::operation::create_access_point::builders::CreateAccessPointFluentBuilder;
use aws_sdk_efs::types::{AccessPointDescription, CreationInfo, PosixUser, RootDirectory, Tag};
use kube::ResourceExt;

use super::node::{self, Registration};
use super::provisioner::{Driver, Provisioner, Request};
use crate::cloud::addons::aws::{self, Answer, Aws};
use crate::cloud::addons::events::Events;
use crate::cloud::addons::follow::{Controller, follow};
use crate::cloud::addons::lease::lead;
use crate::cloud::addons::stand_in::StandIn;

const NAME: &str = "efs.csi.aws.com";
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
    let more = stand_in.flag("tags").unwrap_or_default().split(' ').filter_map(|pair| pair.split_once(':'));
    let tags = std::iter::once(("efs.csi.aws.com/cluster", "true")).chain(more);
    let tags = tags.map(|(key, value)| Tag::builder().key(key).value(value).build());
    let tags = tags.collect::<Result<_, _>>().context("making tags")?;
    // What mounts knows the region by this variable alone, and asks the instance otherwise.
    let mounts = stand_in.flag("delete-access-point-root-dir") == Some("true");
    if mounts && !stand_in.environment.contains_key("AWS_DEFAULT_REGION") {
        stand_in.metadata().get("meta-data/placement/region").await?;
    }
    let driver = AccessPoints { aws: stand_in.aws(&region), tags, mounts };
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
    tags: Vec<Tag>,
    /// Whether directories are deleted, for which their access point is looked at.
    mounts: bool,
}

impl Driver for AccessPoints {
    const NAME: &'static str = NAME;

    async fn create(&self, request: &Request) -> Result<String> {
        let mode = request.parameter("provisioningMode");
        ensure!(mode == Some("efs-ap"), "provisioning mode {mode:?} is not supported");
        let system = request.parameter("fileSystemId").context("the StorageClass names no file system")?;
        let chosen = request.parameter("uid").is_some() && request.parameter("gid").is_some();
        let existing = if chosen {
            // Nobody has to know which ids are taken.
            let call = self.aws.efs.describe_file_systems().file_system_id(system);
            call.send().await.answer().context("reading the file system")?;
            Vec::new()
        } else {
            self.list(system).await?
        };
        let made = |points: &[AccessPointDescription]| {
            let made = points.iter().find(|point| point.client_token() == Some(&request.name));
            made.and_then(|point| point.access_point_id.clone())
        };
        let id = match made(&existing) {
            Some(id) => Some(id),
            None => match self.creation(request, system, &existing)?.send().await.answer() {
                Err(error) if aws::code(&error) == Some("AccessPointAlreadyExists") => {
                    made(&self.list(system).await?)
                }
                point => point.context("creating an access point")?.access_point_id,
            },
        };
        let id = id.context("the access point has no id")?;
        Ok(format!("{system}::{id}"))
    }

    async fn delete(&self, handle: &str) -> Result<()> {
        let (_, id) = handle.split_once("::").with_context(|| format!("{handle} names no access point"))?;
        if self.mounts {
            let call = self.aws.efs.describe_access_points().access_point_id(id);
            match call.send().await.answer() {
                Err(error) if aws::code(&error) == Some("AccessPointNotFound") => return Ok(()),
                found => drop(found.context("reading the access point")?),
            }
        }
        match self.aws.efs.delete_access_point().access_point_id(id).send().await.answer() {
            Err(error) if aws::code(&error) == Some("AccessPointNotFound") => Ok(()),
            result => result.map(drop).context("deleting the access point"),
        }
    }
}

impl AccessPoints {
    async fn list(&self, system: &str) -> Result<Vec<AccessPointDescription>> {
        let call = self.aws.efs.describe_access_points().file_system_id(system);
        let found = call.into_paginator().items().send().try_collect().await;
        found.answer().context("listing access points")
    }

    fn creation(
        &self,
        request: &Request,
        system: &str,
        existing: &[AccessPointDescription],
    ) -> Result<CreateAccessPointFluentBuilder> {
        let number = |name: &str| -> Result<Option<u32>> {
            request
                .parameter(name)
                .map(|value| value.parse().with_context(|| format!("reading {name}")))
                .transpose()
        };
        let used: BTreeSet<i64> =
            existing.iter().filter_map(|point| Some(point.posix_user()?.gid())).collect();
        let range = number("gidRangeStart")?.unwrap_or(GROUPS.0)..=number("gidRangeEnd")?.unwrap_or(GROUPS.1);
        let group = match number("gid")? {
            Some(group) => group,
            None => range
                .into_iter()
                .find(|group| !used.contains(&i64::from(*group)))
                .context("no group id is free")?,
        };
        let user = number("uid")?.unwrap_or(group);
        let identity = PosixUser::builder().uid(user.into()).gid(group.into()).build()?;
        let owner = CreationInfo::builder()
            .owner_uid(user.into())
            .owner_gid(group.into())
            .permissions(request.parameter("directoryPerms").unwrap_or("700"))
            .build()?;
        let root = RootDirectory::builder().path(directory(request)?).creation_info(owner).build();
        let call = self.aws.efs.create_access_point().client_token(&request.name).file_system_id(system);
        Ok(call.set_tags(Some(self.tags.clone())).posix_user(identity).root_directory(root))
    }
}

/// The directory of a volume, by base path and pattern.
fn directory(request: &Request) -> Result<String> {
    let claim = &request.claim;
    let name = match request.parameter("subPathPattern") {
        None => request.name.clone(),
        Some(pattern) => {
            let named = pattern
                .replace("${.PVC.namespace}", &claim.namespace().unwrap_or_default())
                .replace("${.PVC.name}", &claim.name_any())
                .replace("${.PV.name}", &request.name);
            ensure!(!named.contains("${"), "path {pattern:?} contains invalid elements");
            match request.parameter("ensureUniqueDirectory") {
                Some("false") => named,
                _ => format!("{named}-{}", claim.uid().unwrap_or_default()),
            }
        }
    };
    let base = request.parameter("basePath").unwrap_or_default();
    let parts: Vec<&str> = base.split('/').chain(name.split('/')).filter(|part| !part.is_empty()).collect();
    let path = format!("/{}", parts.join("/"));
    ensure!(path.len() <= 100, "proposed path '{path}' exceeds EFS limit of 100 characters");
    ensure!(parts.len() <= 5, "proposed path '{path}' exceeds EFS limit of 4 subdirectories");
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    use k8s_openapi::api::storage::v1::StorageClass;
    use serde_json::json;

    use super::*;

    fn of(parameters: &[(&str, &str)]) -> Result<String> {
        let metadata = json!({"name": "data", "namespace": "web", "uid": "u"});
        let claim: PersistentVolumeClaim =
            serde_json::from_value(json!({"metadata": metadata})).expect("a claim");
        let parameters: BTreeMap<String, String> =
            parameters.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let class = StorageClass { parameters: Some(parameters), ..StorageClass::default() };
        directory(&Request { name: "pvc-u".into(), claim, class, size: 1 })
    }

    #[test]
    fn directories_are_named_by_base_path_and_pattern() {
        let pattern = ("subPathPattern", "${.PVC.namespace}/${.PVC.name}");
        assert_eq!(of(&[]).expect("a path"), "/pvc-u");
        assert_eq!(of(&[("basePath", "/pods/")]).expect("a path"), "/pods/pvc-u");
        assert_eq!(of(&[("basePath", "/"), pattern]).expect("a path"), "/web/data-u");
        assert_eq!(of(&[pattern, ("ensureUniqueDirectory", "false")]).expect("a path"), "/web/data");
        assert!(of(&[("basePath", &format!("/{}", "a".repeat(100)))]).is_err());
        assert!(of(&[("basePath", "/a/b/c/d/e")]).is_err());
        assert!(of(&[("subPathPattern", "${.PVC.uid}")]).is_err());
    }
}
