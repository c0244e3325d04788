//! How components are known.

use sha2::{Digest, Sha256};

/// `sha256:` and the hash in hexadecimal.
pub fn digest(bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

/// Whether a text has the form of a digest as [`digest`] writes them.
pub fn is_digest(text: &str) -> bool {
    let hash = text.strip_prefix("sha256:").unwrap_or_default();
    hash.len() == 64 && hash.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}
