//! Metadata that spec types share: tags of AWS resources and the metadata block of templates. An object's own
//! metadata is Kubernetes' `ObjectMeta`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tags of an AWS resource, key to value.
pub type Tags = BTreeMap<String, String>;

/// Labels and annotations that objects made from a template get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels of the objects made from this template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the objects made from this template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
