//! How much of a registry's answers is taken, and how long it may take.

use std::time::Duration;

/// Bounds of one pull or one verification.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of a component.
    pub component: u64,
    /// Bytes of a manifest, and of a list of signatures.
    pub manifest: u64,
    /// Bytes of one signature.
    pub signature: u64,
    /// Signatures that are looked at.
    pub signatures: usize,
    /// Until a connection stands.
    pub connect: Duration,
    /// Until the next part of an answer comes.
    pub read: Duration,
    /// For all of it.
    pub overall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            component: 32 << 20,
            manifest: 1 << 20,
            signature: 256 << 10,
            signatures: 32,
            connect: Duration::from_secs(10),
            read: Duration::from_secs(30),
            overall: Duration::from_secs(300),
        }
    }
}
