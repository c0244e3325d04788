//! Reads file systems of EFS.

use aws_sdk_efs::types::{FileSystemDescription, MountTargetDescription};
use model::finding::Reading;
use model::{FileSystem, ListedFileSystem, MountTarget};

use crate::errors::{Failure, reading};
use crate::region::Region;

const DESCRIBE: &str = "elasticfilesystem:DescribeFileSystems";

impl Region {
    /// A file system with its mount targets, read anew.
    pub async fn file_system(&self, id: &str) -> Reading<FileSystem> {
        reading(self.describe(id).await)
    }

    /// All file systems of the account in this region, read anew.
    pub async fn file_systems(&self) -> Reading<Vec<ListedFileSystem>> {
        let api = &self.context.api;
        let pages = api.pages(DESCRIBE, api.efs.describe_file_systems().into_paginator().send()).await;
        let listed = |it: FileSystemDescription| ListedFileSystem {
            id: it.file_system_id,
            name: it.name.unwrap_or_default(),
            tags: it.tags.into_iter().map(|it| (it.key, it.value)).collect(),
            state: it.life_cycle_state.as_str().to_owned(),
        };
        reading(pages.map(|all| {
            all.into_iter().flat_map(|it| it.file_systems.unwrap_or_default()).map(listed).collect()
        }))
    }

    async fn describe(&self, id: &str) -> Result<FileSystem, Failure> {
        let api = &self.context.api;
        let answer = api.read(DESCRIBE, api.efs.describe_file_systems().file_system_id(id).send()).await?;
        let found = answer
            .file_systems
            .unwrap_or_default()
            .into_iter()
            .next()
            .ok_or_else(|| Failure::incomplete(DESCRIBE))?;
        let pages = api.efs.describe_mount_targets().file_system_id(id).into_paginator().send();
        let pages = api.pages("elasticfilesystem:DescribeMountTargets", pages).await?;
        let targets = pages.into_iter().flat_map(|it| it.mount_targets.unwrap_or_default());
        let target = |it: MountTargetDescription| MountTarget {
            id: it.mount_target_id,
            subnet_id: it.subnet_id,
            zone: it.availability_zone_name.unwrap_or_default(),
            vpc_id: it.vpc_id.unwrap_or_default(),
            state: it.life_cycle_state.as_str().to_owned(),
        };
        Ok(FileSystem {
            id: found.file_system_id,
            state: found.life_cycle_state.as_str().to_owned(),
            zone: found.availability_zone_name,
            mount_targets: targets.map(target).collect(),
        })
    }
}
