//! What counts as a signature and what does not, each with its own reason.

use registry::{Digest, Format, Limits, PublicKey, Rejection, Repository, VerifyError};
use serde_json::{Value, json};

use crate::push::{self, PATH};
use crate::servers::{Canned, Directory, Registry, reply};
use crate::signing::{PREDICATE, Signer, payload, push_bundle, push_list, push_payloads, signed};

const TYPE: &str = "cosign container image signature";

async fn rejection(registry: &Registry, digest: &Digest, key: &PublicKey) -> Rejection {
    match registry.repository(PATH).verify_cosign(digest, key).await {
        Err(VerifyError::Rejected { rejection, .. }) => rejection,
        other => panic!("{other:?}"),
    }
}

/// What is said of one bundle that refers to a component.
async fn of_bundle(bundle: &str, key: &PublicKey) -> Rejection {
    let registry = Registry::with_referrers();
    let digest = push::component(&registry).await;
    push_bundle(&registry, &digest, bundle).await;
    rejection(&registry, &digest, key).await
}

/// What is said of one payload at the tag of a component.
async fn of_payload(payload: &str, annotations: Value, key: &PublicKey) -> Rejection {
    let registry = Registry::with_referrers();
    let digest = push::component(&registry).await;
    push_payloads(&registry, &digest, &[(payload.to_owned(), annotations)]).await;
    rejection(&registry, &digest, key).await
}

/// The digest of the component that all of these are about.
fn component() -> Digest {
    Digest::of(push::manifest(push::LAYOUTS[0], push::COMPONENT).as_bytes())
}

fn is_malformed(rejection: &Rejection, expected: &str) -> bool {
    matches!(rejection, Rejection::Malformed { why } if why.contains(expected))
}

#[tokio::test]
async fn what_is_not_signed_is_said_to_be_so() {
    let storage = Directory::new();
    for registry in [Registry::with_referrers(), Registry::debian(&storage, "")] {
        let digest = push::component(&registry).await;
        let error = registry.repository(PATH).verify_cosign(&digest, &Signer::new().key()).await;
        let error = error.expect_err("no signature");
        assert!(matches!(error, VerifyError::Missing { .. }), "{error:?}");
        assert!(error.to_string().contains("sign it with `cosign sign --key`"), "{error}");
    }
}

#[tokio::test]
async fn signatures_that_count_are_found_in_each_place() {
    let (signer, storage) = (Signer::new(), Directory::new());
    let (with, without) = (Registry::with_referrers(), Registry::debian(&storage, ""));
    let digest = push::component(&with).await;
    push_bundle(&with, &digest, &signer.bundle(PREDICATE, &digest).to_string()).await;
    let verified = with.repository(PATH).verify_cosign(&digest, &signer.key()).await.expect("a bundle");
    assert_eq!((verified.format, &verified.digest), (Format::Bundle, &digest));
    assert_eq!(verified.key, signer.key().fingerprint());

    push::component(&without).await;
    let bundle = push_bundle(&without, &digest, &signer.bundle(PREDICATE, &digest).to_string()).await;
    push_list(&without, &digest, &[bundle]).await;
    let verified = without.repository(PATH).verify_cosign(&digest, &signer.key()).await.expect("by the tag");
    assert_eq!(verified.format, Format::Bundle);

    let (older, text) = (Registry::with_referrers(), payload(TYPE, &digest));
    push::component(&older).await;
    push_payloads(&older, &digest, &[(text.clone(), signed(&signer.sign(text.as_bytes())))]).await;
    let verified = older.repository(PATH).verify_cosign(&digest, &signer.key()).await.expect("a payload");
    assert_eq!(verified.format, Format::SimpleSigning);
}

#[tokio::test]
async fn another_key_does_not_count() {
    let (signer, other) = (Signer::new(), Signer::new().key());
    let bundle = signer.bundle(PREDICATE, &component()).to_string();
    assert_eq!(of_bundle(&bundle, &other).await, Rejection::WrongKey);
    let text = payload(TYPE, &component());
    let signature = signed(&signer.sign(text.as_bytes()));
    assert_eq!(of_payload(&text, signature, &other).await, Rejection::WrongKey);
}

#[tokio::test]
async fn what_was_changed_after_it_was_signed_does_not_count() {
    let (signer, other) = (Signer::new(), Digest::of(b"other"));
    let key = signer.key();
    // A signature of another component, with the digest put in place of the one that was signed.
    let mut bundle = signer.bundle(PREDICATE, &other);
    bundle["dsseEnvelope"]["payload"] =
        signer.bundle(PREDICATE, &component())["dsseEnvelope"]["payload"].clone();
    assert_eq!(of_bundle(&bundle.to_string(), &key).await, Rejection::Tampered);
    let signature = signed(&signer.sign(payload(TYPE, &other).as_bytes()));
    assert_eq!(of_payload(&payload(TYPE, &component()), signature, &key).await, Rejection::WrongKey);

    // Bytes changed where they lie.
    let storage = Directory::new();
    let registry = Registry::debian(&storage, "");
    let digest = push::component(&registry).await;
    let text = payload(TYPE, &digest);
    push_payloads(&registry, &digest, &[(text.clone(), signed(&signer.sign(text.as_bytes())))]).await;
    let hex = Digest::of(text.as_bytes()).hex().to_owned();
    let file = format!("storage/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
    std::fs::write(storage.path().join(file), text.replace("cosign", "COSIGN")).expect("it can be changed");
    assert_eq!(rejection(&registry, &digest, &key).await, Rejection::Tampered);
}

#[tokio::test]
async fn a_signature_of_another_component_does_not_count() {
    let (signer, other) = (Signer::new(), Digest::of(b"other"));
    let expected = Rejection::OtherDigest { found: other.to_string() };
    let bundle = signer.bundle(PREDICATE, &other).to_string();
    assert_eq!(of_bundle(&bundle, &signer.key()).await, expected);
    let text = payload(TYPE, &other);
    let signature = signed(&signer.sign(text.as_bytes()));
    assert_eq!(of_payload(&text, signature, &signer.key()).await, expected);
}

#[tokio::test]
async fn what_else_the_key_signed_of_a_component_does_not_approve_of_it() {
    let signer = Signer::new();
    let scan = "https://cosign.sigstore.dev/attestation/vuln/v1";
    let bundle = signer.bundle(scan, &component()).to_string();
    let rejection = of_bundle(&bundle, &signer.key()).await;
    assert_eq!(rejection, Rejection::NotASignature { found: scan.to_owned() });
    let text = payload("atomic container signature", &component());
    let signature = signed(&signer.sign(text.as_bytes()));
    let rejection = of_payload(&text, signature, &signer.key()).await;
    assert_eq!(rejection, Rejection::NotASignature { found: "atomic container signature".to_owned() });
}

#[tokio::test]
async fn certificates_do_not_count() {
    let signer = Signer::new();
    for material in [
        json!({ "certificate": { "rawBytes": "" }, "publicKey": { "hint": signer.hint() } }),
        json!({ "x509CertificateChain": { "certificates": [] } }),
    ] {
        let mut bundle = signer.bundle(PREDICATE, &component());
        bundle["verificationMaterial"] = material;
        assert_eq!(of_bundle(&bundle.to_string(), &signer.key()).await, Rejection::Keyless);
    }
    let text = payload(TYPE, &component());
    let mut annotations = signed(&signer.sign(text.as_bytes()));
    annotations["dev.sigstore.cosign/certificate"] = json!("-----BEGIN CERTIFICATE-----");
    assert_eq!(of_payload(&text, annotations, &signer.key()).await, Rejection::Keyless);
}

#[tokio::test]
async fn garbage_does_not_count_and_is_named() {
    let signer = Signer::new();
    let good = signer.bundle(PREDICATE, &component());
    let changed = |pointer: &str, value: Value| {
        let mut bundle = good.clone();
        *bundle.pointer_mut(pointer).expect(pointer) = value;
        bundle.to_string()
    };
    let signature = good["dsseEnvelope"]["signatures"][0].clone();
    for (bundle, expected) in [
        ("garbage".to_owned(), "no bundle"),
        ("[".repeat(100_000), "no bundle"),
        (
            changed("/mediaType", json!("application/vnd.dev.sigstore.bundle+json;version=0.1")),
            "another version",
        ),
        (changed("/verificationMaterial", json!({})), "names no key"),
        (changed("/dsseEnvelope", Value::Null), "no envelope"),
        (changed("/dsseEnvelope/payloadType", json!("text/plain")), "holds no statement"),
        (changed("/dsseEnvelope/payload", json!("!")), "payload is no base64"),
        (changed("/dsseEnvelope/signatures", json!([])), "exactly one signature"),
        (changed("/dsseEnvelope/signatures", json!([signature, signature])), "exactly one signature"),
        (changed("/dsseEnvelope/signatures/0/sig", json!("!")), "signature is no base64"),
        (" ".repeat(300_000), "larger than 262144 bytes"),
    ] {
        let rejection = of_bundle(&bundle, &signer.key()).await;
        assert!(is_malformed(&rejection, expected), "{expected}: {rejection:?}");
    }
    let sign = |text: &str| signed(&signer.sign(text.as_bytes()));
    for (payload, annotations, expected) in [
        ("garbage", sign("garbage"), "none of cosign's"),
        ("{}", sign("{}"), "none of cosign's"),
        ("{}", signed("!"), "no base64"),
        ("{}", json!({}), "has no signature"),
    ] {
        let rejection = of_payload(payload, annotations, &signer.key()).await;
        assert!(is_malformed(&rejection, expected), "{expected}: {rejection:?}");
    }
    // No signature at all, and a short one.
    for empty in ["", "AAAA"] {
        let bundle = changed("/dsseEnvelope/signatures/0/sig", json!(empty));
        assert_eq!(of_bundle(&bundle, &signer.key()).await, Rejection::Tampered);
    }
}

#[tokio::test]
async fn one_that_counts_is_enough_and_the_closest_of_others_is_told() {
    let (signer, registry) = (Signer::new(), Registry::with_referrers());
    let digest = push::component(&registry).await;
    push_bundle(&registry, &digest, "garbage").await;
    push_bundle(&registry, &digest, &Signer::new().bundle(PREDICATE, &digest).to_string()).await;
    assert_eq!(rejection(&registry, &digest, &signer.key()).await, Rejection::WrongKey);
    let other = Digest::of(b"other");
    push_bundle(&registry, &digest, &signer.bundle(PREDICATE, &other).to_string()).await;
    let expected = Rejection::OtherDigest { found: other.to_string() };
    assert_eq!(rejection(&registry, &digest, &signer.key()).await, expected);
    push_payloads(&registry, &digest, &[("garbage".to_owned(), signed("!"))]).await;
    push_bundle(&registry, &digest, &signer.bundle(PREDICATE, &digest).to_string()).await;
    registry.repository(PATH).verify_cosign(&digest, &signer.key()).await.expect("one counts");
}

#[tokio::test]
async fn no_more_signatures_are_looked_at_than_the_limit() {
    let (signer, registry) = (Signer::new(), Registry::with_referrers());
    let digest = push::component(&registry).await;
    let text = payload(TYPE, &digest);
    let mut payloads: Vec<(String, Value)> =
        (0..4).map(|number| (format!("garbage {number}"), signed("AAAA"))).collect();
    payloads.push((text.clone(), signed(&signer.sign(text.as_bytes()))));
    push_payloads(&registry, &digest, &payloads).await;
    let with = |signatures| {
        Repository::open(&registry.source(PATH), Limits { signatures, ..Limits::default() })
            .expect("a source")
    };
    let error = with(4).verify_cosign(&digest, &signer.key()).await.expect_err("the fifth is not looked at");
    assert!(matches!(error, VerifyError::TooMany { found: 5, limit: 4, .. }), "{error:?}");
    with(5).verify_cosign(&digest, &signer.key()).await.expect("the fifth counts");
}

#[tokio::test]
async fn a_registry_in_trouble_is_not_one_without_signatures() {
    let (signer, digest) = (Signer::new(), component());
    // The API fails, and there is nothing at the tags.
    let server = Canned::start(|path, _| match path.contains("/referrers/") {
        true => reply("503 Unavailable", "", ""),
        false => reply("404 Not Found", "", ""),
    });
    let repository = Repository::open(&server.source(), Limits::default()).expect("a source");
    let error = repository.verify_cosign(&digest, &signer.key()).await.expect_err("nobody knows");
    assert!(matches!(&error, VerifyError::Pull { error, .. } if error.is_transient()), "{error:?}");
    assert_eq!(server.paths().len(), 3, "each place was looked at: {:?}", server.paths());
}
