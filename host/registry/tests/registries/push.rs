//! Artifacts, and how they get into a registry: plain PUTs.

use registry::Digest;
use reqwest::header::{CONTENT_TYPE, LOCATION};
use serde_json::{Value, json};

use crate::servers::Registry;

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
pub const PATH: &str = "plugins/tiny";

/// The smallest component.
pub const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// The layouts that a component may have: media types of configuration and layer.
pub const LAYOUTS: [(&str, &str); 2] = [
    ("application/vnd.wasm.config.v0+json", "application/wasm"),
    ("application/vnd.wasm.config.v1+json", "application/vnd.wasm.content.layer.v1+wasm"),
];

pub fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({ "mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len() })
}

/// The manifest of a component in a layout.
pub fn manifest((config, layer): (&str, &str), component: &[u8]) -> String {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(config, b"{}"),
        "layers": [descriptor(layer, component)],
    })
    .to_string()
}

/// Stores bytes in a repository.
pub async fn blob(registry: &Registry, bytes: &[u8]) -> Digest {
    let (http, base) = (reqwest::Client::new(), format!("http://{}", registry.address));
    let begun = http.post(format!("{base}/v2/{PATH}/blobs/uploads/")).send().await.expect("an upload begins");
    let location = begun.headers()[LOCATION].to_str().expect("text").to_owned();
    let location = if location.starts_with('/') { format!("{base}{location}") } else { location };
    let digest = Digest::of(bytes);
    let separator = if location.contains('?') { '&' } else { '?' };
    let put = http
        .put(format!("{location}{separator}digest={digest}"))
        .header(CONTENT_TYPE, "application/octet-stream")
        .body(bytes.to_vec())
        .send()
        .await
        .expect("an upload ends");
    assert_eq!(put.status(), 201, "{put:?}");
    digest
}

/// Stores a manifest by a tag, or by its digest.
pub async fn manifest_as(registry: &Registry, reference: &str, media_type: &str, text: &str) {
    let url = format!("http://{}/v2/{PATH}/manifests/{reference}", registry.address);
    let request = reqwest::Client::new().put(url).header(CONTENT_TYPE, media_type).body(text.to_owned());
    let put = request.send().await.expect("the registry answers");
    let status = put.status();
    assert_eq!(status, 201, "{}", put.text().await.unwrap_or_default());
}

/// Stores a manifest, and what it is made of; answers with its digest.
pub async fn artifact(registry: &Registry, text: &str, blobs: &[&[u8]]) -> Digest {
    for bytes in blobs {
        blob(registry, bytes).await;
    }
    let digest = Digest::of(text.as_bytes());
    manifest_as(registry, &digest.to_string(), MANIFEST, text).await;
    digest
}

/// Stores the smallest component.
pub async fn component(registry: &Registry) -> Digest {
    artifact(registry, &manifest(LAYOUTS[0], COMPONENT), &[b"{}", COMPONENT]).await
}

/// The tags that stand for a digest: of the list of what refers to it, and of its signatures in the older form.
pub fn tags(digest: &Digest) -> [String; 2] {
    [format!("sha256-{}", digest.hex()), format!("sha256-{}.sig", digest.hex())]
}
