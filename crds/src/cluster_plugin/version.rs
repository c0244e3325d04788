//! The version of an add-on, which every add-on has among its settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which version of an add-on is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionPin {
    /// Version of the add-on that is wanted, as `status.plugins` has it: the installed one, which then stays
    /// whatever `upgradePolicy` says, or the one that the operator brings (`available`), to which it is then
    /// upgraded. When absent, the installed one stays until an upgrade is consented to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9.+_-]*$"))]
    pub version: Option<String>,
}
