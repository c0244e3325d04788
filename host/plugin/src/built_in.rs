//! The plugins that come with the host: compiled by the build, used like any other.

use crate::digest::digest;
use std::sync::LazyLock;

/// A plugin that comes with the host.
#[derive(Clone, Debug)]
pub struct BuiltIn {
    /// Its name, as in its descriptor.
    pub name: &'static str,
    /// The component.
    pub bytes: &'static [u8],
    /// `sha256:` and the hash of the component, in hexadecimal.
    pub digest: String,
}

const COMPONENTS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// All of them, by name.
pub fn built_in() -> &'static [BuiltIn] {
    static ALL: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| {
        COMPONENTS.iter().map(|(name, bytes)| BuiltIn { name, bytes, digest: digest(bytes) }).collect()
    });
    &ALL
}
