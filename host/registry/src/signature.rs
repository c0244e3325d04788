//! What signatures of `cosign` say and whether a key made them: both forms, from bytes alone.

mod bundle;
mod key;
mod simple;

pub use bundle::{BUNDLE, check as check_bundle};
pub use key::{KeyError, PublicKey};
pub use simple::{LAYER, check as check_simple};

use crate::digest::Digest;
use crate::text::shown;

/// Why one signature does not count, the one that is furthest from counting first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Rejection {
    /// It cannot be read.
    #[error("it cannot be read: {why}")]
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// A certificate takes the place of a key.
    #[error(
        "it was made with a certificate (keyless), and only keys count: sign it with `cosign sign --key`"
    )]
    Keyless,
    /// Another key made it, or what it signs is no longer what it was.
    #[error("it was not made by the configured key over what it comes with: another key, or changed since")]
    WrongKey,
    /// It is not what it was when it was stored or signed.
    #[error("it was changed: what lies in the registry is not what was stored there, or not what was signed")]
    Tampered,
    /// The configured key signed something else than a signature of an image.
    #[error("the configured key made it, but it is no signature but {}: `cosign sign` makes those", shown(.found))]
    NotASignature {
        /// The type of what was signed.
        found: String,
    },
    /// The configured key signed another manifest.
    #[error("the configured key made it, of another manifest: {}", shown(.found))]
    OtherDigest {
        /// The digest that was signed.
        found: String,
    },
}

fn malformed(why: &str) -> Rejection {
    Rejection::Malformed { why: why.to_owned() }
}

/// Whether a signed text is the digest.
fn same(found: &str, digest: &Digest) -> Result<(), Rejection> {
    if found == digest.to_string() { Ok(()) } else { Err(Rejection::OtherDigest { found: found.to_owned() }) }
}
