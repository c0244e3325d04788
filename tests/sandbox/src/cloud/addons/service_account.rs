//! A pod's service account tokens, requested by the node as a kubelet does, bound to the pod.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::authentication::v1::{
    BoundObjectReference, TokenRequest, TokenRequestSpec, TokenRequestStatus,
};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::config::AuthInfo;
use kube::{Client, Config, ResourceExt};

use super::Host;

const LIFETIME: Duration = Duration::from_secs(3600);
/// The cluster's certificate authority, which kubeadm leaves on every node.
const AUTHORITY: &str = "/etc/kubernetes/pki/ca.crt";

/// What a pod finds at `/var/run/secrets/kubernetes.io/serviceaccount`.
pub struct Credentials {
    pub directory: PathBuf,
}

impl Credentials {
    /// Waits until the pod's token could be had, however long that takes.
    pub async fn obtain(host: &Host, pod: &Pod) -> Self {
        loop {
            match Self::attempt(host, pod).await {
                Ok(credentials) => return credentials,
                Err(error) => tracing::warn!(pod = pod.name_any(), "getting a token: {error:#}"),
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    /// Keeps the token fresh, for ever.
    pub async fn renew(host: &Host, pod: &Pod) {
        loop {
            tokio::time::sleep(LIFETIME * 3 / 4).await;
            Self::obtain(host, pod).await;
        }
    }

    /// A client of the API server that acts as the pod's service account.
    pub fn client(&self, host: &Host) -> Result<Client> {
        let authority =
            std::fs::read_to_string(self.directory.join("ca.crt")).context("reading the authority")?;
        let mut config = Config::new(host.server.parse().context("parsing the API server's URL")?);
        config.root_cert = Some(certificates(&authority)?);
        let token_file = self.directory.join("token").display().to_string();
        config.auth_info = AuthInfo { token_file: Some(token_file), ..AuthInfo::default() };
        Client::try_from(config).context("making the client")
    }

    async fn attempt(host: &Host, pod: &Pod) -> Result<Self> {
        let token = token(host, pod, None, LIFETIME).await?.token;
        let namespace = pod.namespace().context("the pod has no namespace")?;
        let directory = directory(pod)?.join("serviceaccount");
        std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
        let authority = std::fs::read_to_string(AUTHORITY).with_context(|| format!("reading {AUTHORITY}"))?;
        for (name, content) in [("token", token), ("namespace", namespace), ("ca.crt", authority)] {
            let path = directory.join(name);
            std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(Self { directory })
    }
}

/// Where what a pod has mounted lies on the machine.
///
/// # Errors
/// When the pod has no uid.
pub fn directory(pod: &Pod) -> Result<PathBuf> {
    Ok(PathBuf::from("/var/lib/kubelet/pods").join(pod.uid().context("the pod has no uid")?))
}

/// Requests a token of the pod's service account for an audience; for the API server's own without one.
///
/// # Errors
/// When the API server refuses it.
pub async fn token(
    host: &Host,
    pod: &Pod,
    audience: Option<&str>,
    lifetime: Duration,
) -> Result<TokenRequestStatus> {
    let namespace = pod.namespace().context("the pod has no namespace")?;
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
    let account = account.unwrap_or_else(|| "default".to_owned());
    let request = TokenRequest {
        spec: TokenRequestSpec {
            audiences: audience.map(str::to_owned).into_iter().collect(),
            expiration_seconds: i64::try_from(lifetime.as_secs()).ok(),
            bound_object_ref: Some(BoundObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                name: Some(pod.name_any()),
                uid: Some(pod.uid().context("the pod has no uid")?),
            }),
        },
        ..TokenRequest::default()
    };
    let accounts: Api<ServiceAccount> = Api::namespaced(host.client.clone(), &namespace);
    let answer = accounts.create_token_request(&account, &PostParams::default(), &request).await;
    answer
        .with_context(|| format!("requesting a token of {namespace}/{account}"))?
        .status
        .context("the answer has no token")
}

/// The certificates of a PEM file, in DER.
fn certificates(pem: &str) -> Result<Vec<Vec<u8>>> {
    let blocks = pem.split("-----BEGIN CERTIFICATE-----").skip(1);
    let decode = |block: &str| {
        let body: String = block.split("-----END").next().unwrap_or_default().split_whitespace().collect();
        STANDARD.decode(body).context("decoding the authority")
    };
    blocks.map(decode).collect()
}
