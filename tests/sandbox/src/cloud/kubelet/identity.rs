//! How the node gets its certificate: TLS bootstrap on machines that join, kubeadm's own file on the first
//! one.
//!
//! <https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/>. Certificates are not
//! rotated: no machine here lives that long.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

const KUBECONFIG: &str = "/etc/kubernetes/kubelet.conf";
const BOOTSTRAP: &str = "/etc/kubernetes/bootstrap-kubelet.conf";
/// Where kubeadm expects the kubelet's current certificate and key.
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";

/// Waits until the node has an identity; returns it and the API server's URL.
pub async fn establish(node: &str) -> (Config, String) {
    loop {
        match attempt(node).await {
            Ok(Some(found)) => return found,
            Ok(None) => {}
            Err(error) => tracing::warn!("getting a certificate: {error:#}"),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn attempt(node: &str) -> Result<Option<(Config, String)>> {
    if !Path::new(KUBECONFIG).exists() {
        if !Path::new(BOOTSTRAP).exists() {
            return Ok(None);
        }
        request(node).await?;
    }
    let kubeconfig = Kubeconfig::read_from(KUBECONFIG).with_context(|| format!("reading {KUBECONFIG}"))?;
    keep()?;
    let config = load(kubeconfig).await?;
    let server = config.cluster_url.to_string();
    Ok(Some((config, server)))
}

async fn load(kubeconfig: Kubeconfig) -> Result<Config> {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("reading a kubeconfig")?;
    // A watch is idle for long; everything else is answered at once or not at all.
    config.connect_timeout = Some(Duration::from_secs(5));
    Ok(config)
}

/// On the first machine kubeadm puts certificate and key into the kubeconfig, and later looks for them here.
fn keep() -> Result<()> {
    let text = std::fs::read_to_string(KUBECONFIG).with_context(|| format!("reading {KUBECONFIG}"))?;
    let kubeconfig: Value = serde_saphyr::from_str(&text).with_context(|| format!("parsing {KUBECONFIG}"))?;
    let user = &kubeconfig["users"][0]["user"];
    let (Some(certificate), Some(key)) =
        (user["client-certificate-data"].as_str(), user["client-key-data"].as_str())
    else {
        return Ok(());
    };
    let mut pem = STANDARD.decode(certificate).context("decoding the client certificate")?;
    pem.extend(STANDARD.decode(key).context("decoding the client key")?);
    std::fs::write(CERTIFICATE, pem).with_context(|| format!("writing {CERTIFICATE}"))
}

/// Has a certificate signed with the bootstrap token, and writes the kubeconfig that uses it.
async fn request(node: &str) -> Result<()> {
    let bootstrap = Kubeconfig::read_from(BOOTSTRAP).with_context(|| format!("reading {BOOTSTRAP}"))?;
    let cluster =
        bootstrap.clusters.first().and_then(|named| named.cluster.clone()).context("no cluster named")?;
    let client = Client::try_from(load(bootstrap).await?).context("making the bootstrap client")?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).context("making a key")?;
    let certificate = sign(client, node, &key).await?;
    let mut pem = certificate;
    pem.extend(key.serialize_pem().into_bytes());
    std::fs::write(CERTIFICATE, pem).with_context(|| format!("writing {CERTIFICATE}"))?;
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "default-context",
        "clusters": [{"name": "default-cluster", "cluster": cluster}],
        "users": [{"name": "default-auth", "user": {"client-certificate": CERTIFICATE, "client-key": CERTIFICATE}}],
        "contexts": [{"name": "default-context", "context": {
            "cluster": "default-cluster", "user": "default-auth", "namespace": "default"}}],
    });
    std::fs::write(KUBECONFIG, kubeconfig.to_string()).with_context(|| format!("writing {KUBECONFIG}"))
}

async fn sign(client: Client, node: &str, key: &KeyPair) -> Result<Vec<u8>> {
    let mut parameters = CertificateParams::default();
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "system:nodes");
    name.push(DnType::CommonName, format!("system:node:{node}"));
    parameters.distinguished_name = name;
    let request = parameters.serialize_request(key).context("making a certificate request")?;
    let request = CertificateSigningRequest {
        metadata: ObjectMeta { generate_name: Some("node-csr-".to_owned()), ..ObjectMeta::default() },
        spec: CertificateSigningRequestSpec {
            request: ByteString(request.pem().context("encoding the certificate request")?.into_bytes()),
            signer_name: "kubernetes.io/kube-apiserver-client-kubelet".to_owned(),
            usages: Some(["digital signature", "client auth"].map(str::to_owned).to_vec()),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    };
    let requests: Api<CertificateSigningRequest> = Api::all(client);
    let created =
        requests.create(&PostParams::default(), &request).await.context("requesting a certificate")?;
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let current = requests.get(&created.name_any()).await.context("reading the certificate request")?;
        if let Some(certificate) = current.status.and_then(|status| status.certificate) {
            return Ok(certificate.0);
        }
    }
    anyhow::bail!("nobody signed {}", created.name_any())
}
