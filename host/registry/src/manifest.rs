//! Manifests and indexes of OCI, as far as they are read here, and the layouts that a component may have in one.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::text::shown;

/// Media type of a manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of a list of manifests.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Docker's type of the same.
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// What is asked for where a component is expected: others too, so that what is there can be named.
pub const ACCEPT_ANY: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, \
     application/vnd.docker.distribution.manifest.list.v2+json";

/// Media types of a component: of the configuration, and of the one layer. The first is what the CNCF's layout
/// says, the second what was usual before.
const LAYOUTS: [(&str, &str); 2] = [
    ("application/vnd.wasm.config.v0+json", "application/wasm"),
    ("application/vnd.wasm.config.v1+json", "application/vnd.wasm.content.layer.v1+wasm"),
];

/// Layers that a message names at most.
const SHOWN: usize = 4;

/// One thing that a manifest or an index names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default)]
    pub media_type: String,
    pub digest: String,
    pub size: u64,
    pub artifact_type: Option<String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// A manifest.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    #[serde(default)]
    pub media_type: String,
    pub artifact_type: Option<String>,
    config: Option<Descriptor>,
    #[serde(default)]
    pub layers: Vec<Descriptor>,
    /// An index has them in place of layers.
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

/// A list of manifests.
#[derive(Debug, Deserialize)]
pub struct Index {
    pub manifests: Vec<Descriptor>,
}

impl Manifest {
    /// The layer that is the component.
    ///
    /// # Errors
    /// Says what the manifest is instead.
    pub fn component(&self) -> Result<&Descriptor, String> {
        if [INDEX, DOCKER_INDEX].contains(&self.media_type.as_str()) || !self.manifests.is_empty() {
            return Err(format!(
                "an index of {} manifests (take the digest of the one that is meant)",
                self.manifests.len()
            ));
        }
        let config = self.config.as_ref().map_or("", |config| config.media_type.as_str());
        match self.layers.as_slice() {
            // Before 1.1, OCI let a manifest leave out its own type.
            [layer]
                if ["", MANIFEST].contains(&self.media_type.as_str())
                    && LAYOUTS.contains(&(config, layer.media_type.as_str())) =>
            {
                Ok(layer)
            }
            layers => {
                let types = layers.iter().take(SHOWN).map(|layer| shown(&layer.media_type));
                let more = if layers.len() > SHOWN { ", ..." } else { "" };
                Err(format!(
                    "a manifest {} with the configuration {} and {} layers ({}{more})",
                    shown(&self.media_type),
                    shown(config),
                    layers.len(),
                    types.collect::<Vec<_>>().join(", ")
                ))
            }
        }
    }
}
