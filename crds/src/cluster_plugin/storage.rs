//! Which drivers make volumes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ebs::EBSStorage;
use super::efs::EFSStorage;
use super::slots::Module;

/// What makes volumes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The Amazon EBS CSI driver: volumes for one Pod at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<EBSStorage>,
    /// The Amazon EFS CSI driver: volumes for many Pods at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub efs: Option<EFSStorage>,
    /// A registered module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
}
