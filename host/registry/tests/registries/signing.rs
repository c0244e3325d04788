//! Signatures made here, with the keys that the real `cosign` signs with too: for what it would never sign.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use registry::{Digest, PublicKey};
use serde_json::{Value, json};

use crate::push::{self, BUNDLE, INDEX, MANIFEST};
use crate::servers::Registry;

pub const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const LAYER: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// A key of a test's own.
pub struct Signer(KeyPair);

impl Signer {
    pub fn new() -> Self {
        Self(KeyPair::generate().expect("a key"))
    }

    pub fn key(&self) -> PublicKey {
        PublicKey::from_pem(&self.0.public_key_pem()).expect("a key")
    }

    pub fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(message).expect("a signature"))
    }

    /// What `cosign` names the key by.
    pub fn hint(&self) -> String {
        let digest = Digest::of(&self.0.subject_public_key_info());
        let bytes =
            (0..32).map(|index| u8::from_str_radix(&digest.hex()[index * 2..][..2], 16).expect("hex"));
        STANDARD.encode(bytes.collect::<Vec<u8>>())
    }

    /// A bundle that states something of a digest.
    pub fn bundle(&self, predicate: &str, digest: &Digest) -> Value {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{ "digest": { "sha256": digest.hex() } }],
            "predicateType": predicate,
            "predicate": {},
        });
        let (kind, payload) = ("application/vnd.in-toto+json", statement.to_string());
        let signed = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": { "publicKey": { "hint": self.hint() } },
            "dsseEnvelope": {
                "payload": STANDARD.encode(&payload),
                "payloadType": kind,
                "signatures": [{ "sig": self.sign(signed.as_bytes()) }],
            },
        })
    }
}

/// What simple signing signs of a digest.
pub fn payload(kind: &str, digest: &Digest) -> String {
    let image = json!({ "docker-manifest-digest": digest.to_string() });
    let identity = json!({ "docker-reference": "" });
    json!({ "critical": { "identity": identity, "image": image, "type": kind }, "optional": null })
        .to_string()
}

/// Stores a bundle that refers to a digest; answers with the digest of its manifest.
pub async fn push_bundle(registry: &Registry, subject: &Digest, bundle: &str) -> Digest {
    let config = push::descriptor(EMPTY, b"{}");
    let text = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": BUNDLE,
        "config": config,
        "layers": [push::descriptor(BUNDLE, bundle.as_bytes())],
        "subject": { "mediaType": MANIFEST, "digest": subject.to_string(), "size": 1 },
    })
    .to_string();
    push::artifact(registry, &text, &[b"{}", bundle.as_bytes()]).await
}

/// Stores the list that takes the place of the API, of such manifests.
pub async fn push_list(registry: &Registry, subject: &Digest, bundles: &[Digest]) {
    let list = |digest: &Digest| json!({ "mediaType": MANIFEST, "digest": digest.to_string(), "size": 1 });
    let manifests: Vec<Value> = bundles.iter().map(list).collect();
    let text = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests }).to_string();
    push::manifest_as(registry, &push::tags(subject)[0], INDEX, &text).await;
}

/// Stores payloads with their signatures at the tag of the older form.
pub async fn push_payloads(registry: &Registry, subject: &Digest, payloads: &[(String, Value)]) {
    push::blob(registry, b"{}").await;
    let mut layers = Vec::new();
    for (payload, annotations) in payloads {
        push::blob(registry, payload.as_bytes()).await;
        let mut layer = push::descriptor(LAYER, payload.as_bytes());
        layer["annotations"] = annotations.clone();
        layers.push(layer);
    }
    let config = push::descriptor("application/vnd.oci.image.config.v1+json", b"{}");
    let text = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers });
    push::manifest_as(registry, &push::tags(subject)[1], MANIFEST, &text.to_string()).await;
}

/// The annotations of a payload's layer.
pub fn signed(signature: &str) -> Value {
    json!({ "dev.cosignproject.cosign/signature": signature })
}
