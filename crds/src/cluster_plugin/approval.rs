//! Whether plans of add-ons wait until somebody approves of them, and what is shown of one that waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do with a plan that was not approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Approval {
    #[default]
    Automatic,
    Manual,
}

/// A plan that waits until somebody approves of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginApproval {
    /// What the annotation `cluster.kurator.dev/approve` has to name, `sha256:...`. It is of this object, the
    /// add-on, its component, all that would be written, and how often was approved before: it is good for one
    /// use.
    #[schemars(length(max = 128))]
    pub digest: String,
    /// What would change, a line each: `+` is added, `-` removed and `~` changed. Objects first, then
    /// security-group rules, what roles have to allow, certificates and images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub changes: Vec<String>,
}
