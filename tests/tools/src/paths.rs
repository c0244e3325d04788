//! Where things are: the checkout this program was built from, and the cache it may write to.
//!
//! Nothing of the bed is written outside [`cache`] and [`worlds`].

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Root of the checkout.
pub fn source() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// `$HOME/.cache/cluster-operator`: programs and environments, safe to delete at any time.
pub fn cache() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").context("HOME is not set, so there is no place for the cache")?;
    Ok(PathBuf::from(home).join(".cache/cluster-operator"))
}

/// The directory that holds one directory per world: `$CLUSTER_OPERATOR_SANDBOX`, or one in the cache.
pub fn worlds() -> Result<PathBuf> {
    match std::env::var_os("CLUSTER_OPERATOR_SANDBOX") {
        Some(directory) if !directory.is_empty() => Ok(PathBuf::from(directory)),
        _ => Ok(cache()?.join("sandbox")),
    }
}
