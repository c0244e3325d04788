//! A registry inside the world, artifacts in it, and signatures in cosign's form by a key of the test's own; that the
//! real cosign's count is shown by the tests of `registry`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use end_to_end::MOMENT;
use guests::{SCRIPTED, scripted_with};
use rcgen::{KeyPair, SigningKey as _};
use sandbox::Bed;
use serde_json::{Value, json};
use tools::Tools;

use crate::module::{Module, digest};
use crate::{note, notes, plugin, running, select};

const PATH: &str = "plugins/notes";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const SIGNATURE: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Media types of configuration and layer: CNCF's, and those of older tools.
const LAYOUTS: [(&str, &str); 2] = [
    ("application/vnd.wasm.config.v0+json", "application/wasm"),
    ("application/vnd.wasm.config.v1+json", "application/vnd.wasm.content.layer.v1+wasm"),
];

/// Registers components from a registry: one that nobody signed is refused, a signed one is installed, and another
/// one is an upgrade of it, also where the registry is gone by then.
pub async fn are_pulled_and_verified(bed: &Bed) -> Result<()> {
    let registry = Registry::start(bed)?;
    let signer = KeyPair::generate()?;
    let first = registry.push(bed, LAYOUTS[0], SCRIPTED).await?;
    let module = |manifest: &str, address: &str| {
        let source = json!({"oci": {"repository": format!("{address}/{PATH}"), "digest": manifest, "plainHTTP": true}});
        let verify = json!({"cosign": {"publicKey": signer.public_key_pem()}});
        Module::new("acme", SCRIPTED).of_source(source, verify)
    };
    let acme = module(&first, &registry.address);
    acme.register(bed).await?;
    let refused = acme.condition(bed, "SignatureInvalid").await?;
    ensure!(refused.contains("is not signed"), "{refused}");
    registry.sign(bed, &KeyPair::generate()?, &first).await?;
    select(bed, "one", json!([notes(json!({"objects": [note("a")]}))])).await?;
    let second = registry.push(bed, LAYOUTS[1], &scripted_with(&[("1.0.0", "1.0.1")])).await?;
    registry.sign(bed, &signer, &second).await?;
    module(&second, &registry.address).register(bed).await?;
    running(bed, "one", "1.0.1").await?;

    // Signed by another key, it is refused, and what served goes on.
    module(&first, &registry.address).register(bed).await?;
    let refused = acme.condition(bed, "SignatureInvalid").await?;
    ensure!(refused.contains("none of 1 signatures") && refused.contains("version 1.0.1 "), "{refused}");
    // What was pulled and verified once needs no registry any more, not even after a restart.
    let address = registry.address.clone();
    bed.exec("kill", &[&registry.inside]).await?;
    drop(registry);
    bed.kill_operator().await?;
    bed.start_operator().await?;
    bed.wait_for("the operator to have resolved it again", MOMENT, async || {
        let said = acme.condition_now(bed).await?;
        ensure!(said["reason"] == "PullFailed" && said["message"].to_string().contains("1.0.1"), "{said}");
        Ok(())
    })
    .await?;
    module(&second, &address).register(bed).await?;
    acme.condition(bed, "Ready").await?;
    running(bed, "one", "1.0.1").await?;
    ensure!(plugin(bed, "one").await?["digest"] == digest(&scripted_with(&[("1.0.0", "1.0.1")])).as_str());
    Ok(())
}

/// A registry that runs inside the world, and ends with the value.
struct Registry {
    process: Child,
    /// Number of the process inside the world.
    inside: String,
    address: String,
}

impl Registry {
    fn start(bed: &Bed) -> Result<Registry> {
        // Its number inside the world, where it can be ended.
        let program = Tools::ensure()?.registry;
        let mut command = bed.running().command("sh");
        command.args(["-c", "echo $$; exec \"$0\""]).arg(program);
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("starting the registry")?;
        let mut lines = BufReader::new(process.stdout.take().context("its output")?).lines();
        let mut line = || lines.next().context("it ended")?.context("its output");
        let (inside, address) = (line()?, line()?);
        Ok(Registry { process, inside, address })
    }

    /// Stores a component, and returns the digest of its manifest.
    async fn push(&self, bed: &Bed, (config, layer): (&str, &str), component: &[u8]) -> Result<String> {
        let descriptor = |kind: &str, bytes: &[u8]| json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()});
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": descriptor(config, b"{}"),
            "layers": [descriptor(layer, component)]});
        self.store(bed, component).await?;
        self.store_manifest(bed, &digest(manifest.to_string().as_bytes()), &manifest).await
    }

    /// Signs a manifest as `cosign sign --key` of version 2 does.
    async fn sign(&self, bed: &Bed, signer: &KeyPair, manifest: &str) -> Result<()> {
        let payload = json!({"critical": {"identity": {"docker-reference": ""},
            "image": {"docker-manifest-digest": manifest}, "type": "cosign container image signature"}, "optional": null});
        let payload = payload.to_string();
        let signature = STANDARD.encode(signer.sign(payload.as_bytes())?);
        let layer = json!({"mediaType": SIGNATURE, "digest": digest(payload.as_bytes()), "size": payload.len(),
            "annotations": {"dev.cosignproject.cosign/signature": signature}});
        let config = json!({"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(b"{}"), "size": 2});
        let signed = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]});
        self.store(bed, payload.as_bytes()).await?;
        let tag = format!("{}.sig", manifest.replace(':', "-"));
        self.store_manifest(bed, &tag, &signed).await.map(drop)
    }

    async fn store_manifest(&self, bed: &Bed, reference: &str, manifest: &Value) -> Result<String> {
        self.store(bed, b"{}").await?;
        let (text, url) = (manifest.to_string(), format!("{}/manifests/{reference}", self.url()));
        put(bed, &url, MANIFEST, text.as_bytes()).await?;
        Ok(digest(text.as_bytes()))
    }

    /// Stores bytes in one request, which this registry takes.
    async fn store(&self, bed: &Bed, bytes: &[u8]) -> Result<()> {
        let begun = bed
            .exec(
                "curl",
                &[
                    "--silent",
                    "--fail",
                    "--include",
                    "--request",
                    "POST",
                    &format!("{}/blobs/uploads/", self.url()),
                ],
            )
            .await?;
        let location = begun
            .lines()
            .find_map(|it| it.to_lowercase().strip_prefix("location:").map(|_| it[9..].trim().to_owned()));
        let location = location.context("no upload begins")?;
        let url = format!("http://{}{location}?digest={}", self.address, digest(bytes));
        put(bed, &url, "application/octet-stream", bytes).await
    }

    fn url(&self) -> String {
        format!("http://{}/v2/{PATH}", self.address)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn put(bed: &Bed, url: &str, kind: &str, bytes: &[u8]) -> Result<()> {
    let file = bed.directory().join("artifact");
    std::fs::write(&file, bytes)?;
    let (kind, data) = (format!("Content-Type: {kind}"), format!("@{}", file.display()));
    let arguments =
        ["--silent", "--fail", "--request", "PUT", "--header", &kind, "--data-binary", &data, url];
    bed.exec("curl", &arguments).await.map(drop)
}
