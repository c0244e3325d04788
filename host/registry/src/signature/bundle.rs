//! Bundles of version 0.3, `cosign`'s present form: an envelope (DSSE) around a statement (in-toto) that names the
//! manifest, and which key signed it.
//!
//! Only what `cosign sign` states counts. The same key may sign statements of other kinds about the same manifest,
//! say the findings of a scan, and those approve of nothing.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{PublicKey, Rejection, malformed};
use crate::digest::Digest;

/// Media type of a bundle.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// What an envelope holds.
const PAYLOAD: &str = "application/vnd.in-toto+json";
/// What a statement says that it is.
const STATEMENTS: [&str; 2] = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/// What `cosign sign` states.
const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    verification_material: Material,
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    public_key: Option<KeyHint>,
    certificate: Option<IgnoredAny>,
    x509_certificate_chain: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct KeyHint {
    #[serde(default)]
    hint: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    predicate_type: String,
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    digest: BTreeMap<String, String>,
}

/// Whether the key signed a statement of the digest. Nothing of the statement is read before.
///
/// # Errors
/// Why it does not count.
pub fn check(bundle: &[u8], key: &PublicKey, digest: &Digest) -> Result<(), Rejection> {
    let bundle: Bundle = serde_json::from_slice(bundle).map_err(|_| malformed("it is no bundle"))?;
    if bundle.media_type != BUNDLE {
        return Err(malformed("it is a bundle of another version than 0.3"));
    }
    let material = bundle.verification_material;
    if material.certificate.is_some() || material.x509_certificate_chain.is_some() {
        return Err(Rejection::Keyless);
    }
    let hint = material.public_key.ok_or_else(|| malformed("it names no key"))?.hint;
    let envelope = bundle.dsse_envelope.ok_or_else(|| malformed("it holds no envelope"))?;
    if envelope.payload_type != PAYLOAD {
        return Err(malformed("its envelope holds no statement"));
    }
    let [signature] = envelope.signatures.as_slice() else {
        return Err(malformed("its envelope has not got exactly one signature"));
    };
    let signature = STANDARD.decode(&signature.sig).map_err(|_| malformed("the signature is no base64"))?;
    let payload = STANDARD.decode(&envelope.payload).map_err(|_| malformed("the payload is no base64"))?;
    if !key.has_signed(&encoded(&payload), &signature) {
        // What is not signed proves nothing, and tells a person where to look.
        return Err(if hint == key.hint() { Rejection::Tampered } else { Rejection::WrongKey });
    }
    check_statement(&payload, digest)
}

/// What DSSE signs of a payload: its type and length go before it (PAE).
fn encoded(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD} {} ", PAYLOAD.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn check_statement(payload: &[u8], digest: &Digest) -> Result<(), Rejection> {
    let statement: Statement =
        serde_json::from_slice(payload).map_err(|_| malformed("what is signed is no statement"))?;
    if !STATEMENTS.contains(&statement.kind.as_str()) {
        return Err(Rejection::NotASignature { found: statement.kind });
    }
    if statement.predicate_type != PREDICATE {
        return Err(Rejection::NotASignature { found: statement.predicate_type });
    }
    let subjects: Vec<&String> =
        statement.subject.iter().filter_map(|subject| subject.digest.get("sha256")).collect();
    if subjects.iter().any(|found| *found == digest.hex()) {
        return Ok(());
    }
    let found = subjects.first().map_or_else(|| "no digest".to_owned(), |found| format!("sha256:{found}"));
    Err(Rejection::OtherDigest { found })
}
