//! What a file is by its first bytes. All that the host itself reads of a component from outside.

use crate::error::PluginError;

/// Bytes in front of every component: the magic number, the version, and the layer, which is 1.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";
/// Bytes in front of every core module.
const MODULE: [u8; 8] = *b"\0asm\x01\0\0\0";

/// Refuses what does not begin like a component.
///
/// # Errors
/// [`PluginError::InvalidComponent`], with what it is instead.
pub fn check(bytes: &[u8]) -> Result<(), PluginError> {
    let what = match bytes.first_chunk() {
        Some(&COMPONENT) => return Ok(()),
        Some(&MODULE) => {
            "it is a core module; `wasm-tools component new` makes a component of one that was built for the \
             contract"
        }
        Some([b'\0', b'a', b's', b'm', ..]) => "it is WebAssembly of a version that is not known here",
        _ => "it does not begin like WebAssembly",
    };
    Err(PluginError::invalid_component(what))
}
