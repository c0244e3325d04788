//! What the StorageClasses of all drivers have.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether claims that name no class get the class of an add-on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum DefaultClass {
    #[default]
    IfNone,
    Always,
    Never,
}

/// What becomes of a volume whose claim is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum ReclaimPolicy {
    #[default]
    Delete,
    Retain,
}

pub(super) fn never() -> DefaultClass {
    DefaultClass::Never
}
