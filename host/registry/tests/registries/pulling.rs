//! Pulling from real registries, and what is said of what is no component, changed or too large.

use registry::{Digest, Limits, PullError, Repository};
use serde_json::json;

use crate::push::{self, COMPONENT, INDEX, LAYOUTS, MANIFEST, PATH};
use crate::servers::{Directory, Registry};

#[tokio::test]
async fn both_layouts_are_pulled_from_both_registries() {
    let storage = Directory::new();
    for registry in [Registry::with_referrers(), Registry::debian(&storage, "")] {
        for layout in LAYOUTS {
            let text = push::manifest(layout, COMPONENT);
            let digest = push::artifact(&registry, &text, &[b"{}", COMPONENT]).await;
            let pulled = registry.repository(PATH).pull(&digest).await.expect("a component");
            assert_eq!(pulled.component, COMPONENT);
            assert_eq!((pulled.manifest_digest, pulled.component_digest), (digest, Digest::of(COMPONENT)));
        }
    }
}

#[tokio::test]
async fn a_component_of_megabytes_is_pulled() {
    let component: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    let storage = Directory::new();
    for registry in [Registry::with_referrers(), Registry::debian(&storage, "")] {
        let text = push::manifest(LAYOUTS[0], &component);
        let digest = push::artifact(&registry, &text, &[b"{}", &component]).await;
        let pulled = registry.repository(PATH).pull(&digest).await.expect("a component");
        assert!(pulled.component == component);
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let storage = Directory::new();
    for registry in [Registry::with_referrers(), Registry::debian(&storage, "")] {
        push::component(&registry).await;
        for path in [PATH, "plugins/other"] {
            let error = registry.repository(path).pull(&Digest::of(b"other")).await.expect_err("nothing");
            assert!(matches!(error, PullError::NotFound { .. }), "{error:?}");
            assert!(!error.is_transient());
        }
    }
}

#[tokio::test]
async fn what_is_no_component_is_named() {
    let registry = Registry::with_referrers();
    let component = push::component(&registry).await;
    let image = ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip");
    let crossed = (LAYOUTS[0].0, LAYOUTS[1].1);
    let layers = |count: usize| {
        json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": push::descriptor(LAYOUTS[0].0, b"{}"),
            "layers": vec![push::descriptor(LAYOUTS[0].1, COMPONENT); count],
        })
        .to_string()
    };
    for (text, expected) in [
        (push::manifest(image, COMPONENT), "\"application/vnd.oci.image.layer.v1.tar+gzip\""),
        (push::manifest(crossed, COMPONENT), "the configuration \"application/vnd.wasm.config.v0+json\""),
        (layers(0), "0 layers ()"),
        (layers(2), "2 layers (\"application/wasm\", \"application/wasm\")"),
    ] {
        let digest = push::artifact(&registry, &text, &[b"{}", COMPONENT]).await;
        let error = registry.repository(PATH).pull(&digest).await.expect_err(expected);
        assert!(matches!(error, PullError::NotAComponent { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let manifests = [json!({ "mediaType": MANIFEST, "digest": component.to_string(), "size": 1 })];
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests }).to_string();
    push::manifest_as(&registry, "index", INDEX, &index).await;
    let error = registry.repository(PATH).pull(&Digest::of(index.as_bytes())).await.expect_err("an index");
    assert!(error.to_string().contains("an index of 1 manifests (take the digest of the one"), "{error}");
}

#[tokio::test]
async fn changed_bytes_are_not_used() {
    let storage = Directory::new();
    let registry = Registry::debian(&storage, "");
    let digest = push::component(&registry).await;
    let stored = |digest: &Digest| {
        let hex = digest.hex();
        storage.path().join("storage/docker/registry/v2/blobs/sha256").join(&hex[..2]).join(hex).join("data")
    };
    let error = async || registry.repository(PATH).pull(&digest).await.expect_err("changed bytes");
    // As long as before, shorter, and longer than the manifest says.
    for (changed, expected) in [
        (&b"\0asm\x0d\0\x02\0"[..], "the component has the digest"),
        (b"\0asm", "the component has the digest"),
        (b"\0asm\x0d\0\x01\0more", "the component is larger than 8 bytes"),
    ] {
        std::fs::write(stored(&Digest::of(COMPONENT)), changed).expect("the blob can be changed");
        let error = error().await;
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    std::fs::write(stored(&digest), push::manifest(LAYOUTS[0], b"other")).expect("it can be changed");
    let error = error().await;
    let PullError::DigestMismatch { expected, actual, .. } = &error else { panic!("{error:?}") };
    assert_eq!(expected, &digest);
    assert_ne!(actual, &digest);
}

#[tokio::test]
async fn more_than_the_limit_is_not_taken() {
    let registry = Registry::with_referrers();
    let digest = push::component(&registry).await;
    for (limits, what) in [
        (Limits { component: 7, ..Limits::default() }, "the component is larger than 7 bytes"),
        (Limits { manifest: 100, ..Limits::default() }, "the manifest is larger than 100 bytes"),
    ] {
        let repository = Repository::open(&registry.source(PATH), limits).expect("a source");
        let error = repository.pull(&digest).await.expect_err(what);
        assert!(
            matches!(error, PullError::TooLarge { .. }) && error.to_string().starts_with(what),
            "{error}"
        );
    }
}
