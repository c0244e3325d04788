//! Pulls a component: its manifest by digest, and the one layer that the manifest names.

use std::fmt;

use tokio::time::timeout;

use crate::digest::Digest;
use crate::error::PullError;
use crate::manifest::{ACCEPT_ANY, Manifest};
use crate::repository::Repository;

/// A component, with the digests that it was checked against.
#[derive(Clone, PartialEq, Eq)]
pub struct Pulled {
    /// Bytes of WebAssembly; whether they are a component is not looked at.
    pub component: Vec<u8>,
    /// Of the manifest: what was asked for, and what signatures are of.
    pub manifest_digest: Digest,
    /// Of the component's bytes.
    pub component_digest: Digest,
}

impl fmt::Debug for Pulled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "Pulled({} of {}, {} bytes)",
            self.component_digest,
            self.manifest_digest,
            self.component.len()
        )
    }
}

impl Repository {
    /// Pulls the component whose manifest has this digest.
    ///
    /// # Errors
    /// See [`PullError`]; nothing of what came is used then.
    pub async fn pull(&self, digest: &Digest) -> Result<Pulled, PullError> {
        let overall = self.limits.overall;
        timeout(overall, self.pull_now(digest)).await.unwrap_or_else(|_| {
            Err(PullError::Unreachable {
                registry: self.name.host().to_owned(),
                why: format!("it took longer than {} seconds", overall.as_secs_f32()),
            })
        })
    }

    async fn pull_now(&self, digest: &Digest) -> Result<Pulled, PullError> {
        let bytes = self.manifest(digest, ACCEPT_ANY).await?;
        let not_a_component = |found: String| PullError::NotAComponent { found };
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| {
            not_a_component(format!("a manifest that cannot be read (line {})", error.line()))
        })?;
        let layer = manifest.component().map_err(not_a_component)?;
        let component_digest: Digest =
            layer.digest.parse().map_err(|error| not_a_component(format!("a layer whose {error}")))?;
        let component =
            self.blob(&component_digest, layer.size, "the component", self.limits.component).await?;
        Ok(Pulled { component, manifest_digest: digest.clone(), component_digest })
    }
}
