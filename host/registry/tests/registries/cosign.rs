//! What the real `cosign` makes: recordings of it, which are verified in both registries, and the test that signs anew
//! and makes the recordings (`UPDATE=1`). Its keys are of tests, known to everybody.

use std::path::{Path, PathBuf};
use std::process::Command;

use registry::{Digest, Format, PublicKey, Rejection, VerifyError};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::{Value, json};
use tools::Tools;

use crate::push::{self, INDEX, MANIFEST, PATH};
use crate::servers::{Directory, Registry};

/// The kinds of keys.
const KEYS: [&str; 2] = ["ecdsa", "rsa"];
/// Makes bundles without a transparency log.
const SIGNING_CONFIG: &str = r#"{"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json"}"#;
/// Makes the older form, also without one.
const OLDER: [&str; 3] = ["--new-bundle-format=false", "--tlog-upload=false", "--use-signing-config=false"];

/// What `cosign` stores, by form and by what the registry can do.
const FORMS: [(&str, Format, bool); 4] = [
    ("bundle", Format::Bundle, true),
    ("bundle-by-tag", Format::Bundle, false),
    ("payload", Format::SimpleSigning, true),
    ("payload", Format::SimpleSigning, false),
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn recording(key: &str) -> Value {
    let text = std::fs::read_to_string(fixtures().join(format!("{key}.json"))).expect("a recording");
    serde_json::from_str(&text).expect("a recording")
}

fn public_key(recording: &Value) -> PublicKey {
    PublicKey::from_pem(recording["key"].as_str().expect("a key")).expect("a key")
}

fn start(with_referrers: bool, storage: &Directory) -> Registry {
    if with_referrers { Registry::with_referrers() } else { Registry::debian(storage, "") }
}

#[tokio::test]
async fn what_cosign_made_is_verified_with_its_key_and_with_no_other() {
    for (number, key) in KEYS.into_iter().enumerate() {
        let (recording, other) = (recording(key), recording(KEYS[(number + 1) % KEYS.len()]));
        for (form, format, with_referrers) in FORMS {
            let storage = Directory::new();
            let registry = start(with_referrers, &storage);
            let digest = push::component(&registry).await;
            replay(&registry, &recording[form]).await;
            let repository = registry.repository(PATH);
            let verified = repository.verify_cosign(&digest, &public_key(&recording)).await;
            let verified = verified.unwrap_or_else(|error| panic!("{key}, {form}: {error}"));
            assert_eq!((verified.digest, verified.format), (digest.clone(), format), "{key}");
            let error =
                repository.verify_cosign(&digest, &public_key(&other)).await.expect_err("another key");
            assert!(
                matches!(error, VerifyError::Rejected { rejection: Rejection::WrongKey, .. }),
                "{key}, {form}: {error:?}"
            );
        }
    }
}

#[tokio::test]
async fn what_cosign_made_of_one_component_does_not_count_for_another() {
    let recording = recording(KEYS[0]);
    let registry = Registry::with_referrers();
    push::component(&registry).await;
    let other = push::manifest(push::LAYOUTS[0], b"\0asm\x0d\0\x01\0\0\0");
    let digest = push::artifact(&registry, &other, &[b"{}", b"\0asm\x0d\0\x01\0\0\0"]).await;
    replay(&registry, &recording["payload"]).await;
    let manifest = &recording["payload"]["manifests"][0];
    let text = manifest["text"].as_str().expect("text");
    push::manifest_as(&registry, &push::tags(&digest)[1], MANIFEST, text).await;
    let error = registry.repository(PATH).verify_cosign(&digest, &public_key(&recording)).await;
    let signed = Digest::of(push::manifest(push::LAYOUTS[0], push::COMPONENT).as_bytes()).to_string();
    let expected = Rejection::OtherDigest { found: signed };
    assert!(
        matches!(&error, Err(VerifyError::Rejected { rejection, .. }) if *rejection == expected),
        "{error:?}"
    );
}

/// Stores what was recorded: blobs, and then manifests, those first that others name.
async fn replay(registry: &Registry, recorded: &Value) {
    for text in recorded["blobs"].as_array().expect("blobs") {
        push::blob(registry, text.as_str().expect("text").as_bytes()).await;
    }
    for manifest in recorded["manifests"].as_array().expect("manifests") {
        let part = |name: &str| manifest[name].as_str().expect("text");
        push::manifest_as(registry, part("reference"), part("type"), part("text")).await;
    }
}

#[tokio::test]
#[ignore = "builds cosign, which takes minutes"]
async fn what_cosign_signs_now_is_verified_and_recorded() {
    let cosign = Cosign::new();
    for key in KEYS {
        let pem = cosign.import(key);
        let mut recording = json!({ "key": pem });
        for (form, format, with_referrers) in FORMS {
            let storage = Directory::new();
            let registry = start(with_referrers, &storage);
            let digest = push::component(&registry).await;
            cosign.sign(key, format, &registry, &digest);
            let verified = registry.repository(PATH).verify_cosign(&digest, &public_key(&recording)).await;
            let verified = verified.unwrap_or_else(|error| panic!("{key}, {form}: {error}"));
            assert_eq!(verified.format, format, "{key}");
            recording[form] = record(&registry, form, &digest).await;
        }
        if std::env::var_os("UPDATE").is_some() {
            let text = serde_json::to_string_pretty(&recording).expect("JSON");
            std::fs::write(fixtures().join(format!("{key}.json")), text + "\n").expect("it can be written");
        }
    }
}

/// The program, and a home of its own.
struct Cosign {
    program: PathBuf,
    home: Directory,
}

impl Cosign {
    fn new() -> Self {
        let home = Directory::new();
        home.write("signing-config.json", SIGNING_CONFIG);
        Self { program: Tools::cosign().expect("cosign can be built"), home }
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.home.path()).env("HOME", self.home.path());
        command.env("DOCKER_CONFIG", self.home.path()).env("COSIGN_PASSWORD", "test");
        let output = command.output().expect("cosign starts");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes a private key one of `cosign`'s; answers with the public one.
    fn import(&self, key: &str) -> String {
        let file = fixtures().join(format!("keys/{key}.pem"));
        let file = file.to_str().expect("text");
        self.run(&["import-key-pair", "-y", "--key", file, "--output-key-prefix", key]);
        std::fs::read_to_string(self.home.path().join(format!("{key}.pub"))).expect("a key")
    }

    fn sign(&self, key: &str, format: Format, registry: &Registry, digest: &Digest) {
        let key = format!("{key}.key");
        let reference = format!("{}/{PATH}@{digest}", registry.address);
        let how = match format {
            Format::Bundle => &["--signing-config", "signing-config.json"][..],
            Format::SimpleSigning => &OLDER,
        };
        self.run(&[&["sign", "-y", "--key", key.as_str()], how, &[reference.as_str()]].concat());
    }
}

/// What a form is made of in a registry.
async fn record(registry: &Registry, form: &str, digest: &Digest) -> Value {
    let [list, payloads] = push::tags(digest);
    let mut parts = Parts::default();
    match form {
        "bundle" => {
            let index = get(registry, &format!("referrers/{digest}")).await.1;
            let index: Value = serde_json::from_str(&index).expect("an index");
            for descriptor in index["manifests"].as_array().expect("manifests") {
                parts.add(registry, descriptor["digest"].as_str().expect("a digest")).await;
            }
        }
        "bundle-by-tag" => parts.add(registry, &list).await,
        _ => parts.add(registry, &payloads).await,
    }
    json!({ "blobs": parts.blobs, "manifests": parts.manifests })
}

/// What was found so far: what others are made of comes first.
#[derive(Default)]
struct Parts {
    blobs: Vec<String>,
    manifests: Vec<Value>,
}

impl Parts {
    async fn add(&mut self, registry: &Registry, reference: &str) {
        let (media_type, text) = get(registry, &format!("manifests/{reference}")).await;
        let manifest: Value = serde_json::from_str(&text).expect("JSON");
        let named = |name: &str| manifest[name].as_array().cloned().unwrap_or_default();
        for descriptor in named("manifests") {
            Box::pin(self.add(registry, descriptor["digest"].as_str().expect("a digest"))).await;
        }
        for descriptor in named("layers").iter().chain(manifest.get("config")) {
            let digest = descriptor["digest"].as_str().expect("a digest");
            self.blobs.push(get(registry, &format!("blobs/{digest}")).await.1);
        }
        self.manifests.push(json!({ "reference": reference, "type": media_type, "text": text }));
    }
}

/// Media type and text of what lies in a repository.
async fn get(registry: &Registry, path: &str) -> (String, String) {
    let url = format!("http://{}/v2/{PATH}/{path}", registry.address);
    let request = reqwest::Client::new().get(url).header(ACCEPT, format!("{MANIFEST}, {INDEX}"));
    let answer = request.send().await.expect("the registry answers");
    assert!(answer.status().is_success(), "{answer:?}");
    let media_type = answer.headers()[CONTENT_TYPE].to_str().expect("text").to_owned();
    (media_type, answer.text().await.expect("text"))
}
