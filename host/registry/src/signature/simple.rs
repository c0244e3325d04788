//! Simple signing, `cosign`'s first form: a payload that names the manifest, and beside it a signature of the
//! payload's bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{PublicKey, Rejection, malformed, same};
use crate::digest::Digest;

/// Media type of a payload.
pub const LAYER: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// What the payload says that it is.
const TYPE: &str = "cosign container image signature";

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    r#type: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// Whether the key signed the payload, and the payload is of the digest. Nothing of the payload is read before.
///
/// # Errors
/// Why it does not count.
pub fn check(payload: &[u8], signature: &str, key: &PublicKey, digest: &Digest) -> Result<(), Rejection> {
    let signature = STANDARD.decode(signature).map_err(|_| malformed("the signature is no base64"))?;
    if !key.has_signed(payload, &signature) {
        return Err(Rejection::WrongKey);
    }
    let payload: Payload =
        serde_json::from_slice(payload).map_err(|_| malformed("the signed payload is none of cosign's"))?;
    if payload.critical.r#type != TYPE {
        return Err(Rejection::NotASignature { found: payload.critical.r#type });
    }
    same(&payload.critical.image.digest, digest)
}
