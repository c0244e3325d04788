//! What a plugin may ask of a workload cluster beside its facts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of query, and what it may be about. Secrets and the operator's own records are never answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueryGrant {
    /// Kind of the query: `k8s.objects/v1`, `k8s.nodes/v1`, `k8s.apis/v1`, `own-objects/v1` or `outputs/v1`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// For k8s.objects/v1: the API group of the objects; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// For k8s.objects/v1: their kinds, such as `Deployment`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub kinds: Vec<String>,
    /// For k8s.objects/v1: their namespaces, `*` for all of them; none for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// For k8s.objects/v1: their names, where only some are granted, so that each has to be asked for by its
    /// name; for outputs/v1: the add-ons whose outputs may be read. All of them when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub names: Vec<String>,
    /// For k8s.objects/v1: JSON pointers to what may be told of them, with all that is below, such as
    /// `/status`. Namespaces and names always are; to select by labels, `/metadata/labels` is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 2, max = 256)))]
    pub fields: Vec<String>,
}
