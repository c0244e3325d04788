//! A pod's service account token, requested by the node as a kubelet does, bound to the pod.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::ResourceExt;
use kube::api::{Api, PostParams};

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

    async fn attempt(host: &Host, pod: &Pod) -> Result<Self> {
        let namespace = pod.namespace().context("the pod has no namespace")?;
        let uid = pod.uid().context("the pod has no uid")?;
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.clone());
        let account = account.unwrap_or_else(|| "default".to_owned());
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: Vec::new(),
                expiration_seconds: i64::try_from(LIFETIME.as_secs()).ok(),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: Some(pod.name_any()),
                    uid: Some(uid.clone()),
                }),
            },
            ..TokenRequest::default()
        };
        let accounts: Api<ServiceAccount> = Api::namespaced(host.client.clone(), &namespace);
        let answer = accounts
            .create_token_request(&account, &PostParams::default(), &request)
            .await
            .with_context(|| format!("requesting a token of {namespace}/{account}"))?;
        let token = answer.status.context("the answer has no token")?.token;
        let directory = PathBuf::from("/var/lib/kubelet/pods").join(uid).join("serviceaccount");
        std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
        let authority = std::fs::read_to_string(AUTHORITY).with_context(|| format!("reading {AUTHORITY}"))?;
        for (name, content) in [("token", token), ("namespace", namespace), ("ca.crt", authority)] {
            let path = directory.join(name);
            std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(Self { directory })
    }
}
