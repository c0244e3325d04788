//! Names that cannot be guessed or met twice, made of values that come in: this crate has no randomness of
//! its own.

use sha2::{Digest, Sha256};

use model::Key;

/// 32 hexadecimal digits from random text that came in and what they are for.
pub(crate) fn derive(random: &str, purpose: &str) -> String {
    hex(&[random, purpose])
}

/// The client token of one attempt to create one thing of one cluster. AWS takes at most 64 ASCII characters.
pub fn client_token(id: &str, key: &Key, nonce: &str) -> String {
    hex(&[id, &key.to_string(), nonce])
}

fn hex(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
