//! Loads compiled code. The only module that may be unsafe.
#![allow(unsafe_code)]

use wasmtime::Engine;
use wasmtime::component::Component;

/// Turns what [`Component::serialize`] made back into a component. Code of another version or configuration
/// of wasmtime is refused.
///
/// The caller vouches that `bytes` are exactly what this program or another copy of it once serialized: the
/// cache keeps them in a folder that only its own user can write, and checks their hash.
pub fn load(engine: &Engine, bytes: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: the bytes are unchanged output of `Component::serialize`, see above; wasmtime itself checks
    // version and configuration.
    unsafe { Component::deserialize(engine, bytes) }
}
