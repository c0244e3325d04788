//! Reads the component of a module from where its spec says, and checks that it is the one that is meant.

use crds::conditions::reason;
use crds::plugin_module::{ConfigMapSource, OCISource, PluginModuleSpec};
use registry::{Digest as ArtifactDigest, Limits, PublicKey, PullError, Repository, Source, VerifyError};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::controller::addon::plugins::{ModuleProblem, Origin};
use crate::management::Error;
use crate::object_name::ObjectName;

/// Key of the content of a Secret of type `kubernetes.io/dockerconfigjson`.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

/// What a spec names: with the same one, the same component was read and verified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceId {
    /// Digest of an artifact's manifest, or of the component in a ConfigMap.
    pub digest: String,
    is_artifact: bool,
    /// Whose signature is asked for.
    key: Option<String>,
}

impl SourceId {
    pub fn of(spec: &PluginModuleSpec) -> Self {
        let (oci, config_map) = (&spec.source.oci, &spec.source.config_map);
        let digest = oci.as_ref().map(|it| &it.digest).or(config_map.as_ref().map(|it| &it.digest));
        let key = spec.verify.as_ref().and_then(|it| it.cosign.as_ref()).map(|it| it.public_key.clone());
        SourceId { digest: digest.cloned().unwrap_or_default(), is_artifact: oci.is_some(), key }
    }

    /// The same demands of another digest.
    pub fn with_digest(&self, digest: &str) -> Self {
        SourceId { digest: digest.to_owned(), ..self.clone() }
    }

    /// The text by which it is stored what was read and verified.
    pub fn text(&self) -> String {
        let kind = if self.is_artifact { "artifact" } else { "component" };
        format!("{kind}\n{}\n{}", self.digest, self.key.as_deref().unwrap_or_default())
    }
}

/// The component, verified.
///
/// # Errors
/// It is not there, is another one, or is not signed as it should be.
pub async fn read(context: &Context, spec: &PluginModuleSpec) -> Result<Vec<u8>, ModuleProblem> {
    match (&spec.source.oci, &spec.source.config_map) {
        (Some(source), _) => {
            let key = spec.verify.as_ref().and_then(|it| it.cosign.as_ref());
            of_registry(context, source, key.map(|it| it.public_key.as_str())).await
        }
        (None, Some(source)) => of_config_map(context, source).await,
        (None, None) => Err(problem(
            reason::COMPONENT_NOT_FOUND,
            "spec.source names neither oci nor configMap".to_owned(),
        )),
    }
}

async fn of_registry(
    context: &Context,
    source: &OCISource,
    key: Option<&str>,
) -> Result<Vec<u8>, ModuleProblem> {
    let invalid = |field: &str, why: String| problem(reason::INVALID_SPEC, format!("{field}: {why}"));
    let digest: ArtifactDigest =
        source.digest.parse().map_err(|error| invalid("spec.source.oci.digest", format!("{error}")))?;
    let key = key.map(PublicKey::from_pem).transpose();
    let key = key.map_err(|error| invalid("spec.verify.cosign.publicKey", error.to_string()))?;
    let of = Source {
        repository: source.repository.clone(),
        docker_config: docker_config(context, source).await?,
        ca_bundle: source.ca_bundle.clone(),
        plain_http: source.plain_http,
    };
    let repository = Repository::open(&of, Limits::default()).map_err(not_pulled)?;
    if let Some(key) = &key {
        repository.verify_cosign(&digest, key).await.map_err(not_verified)?;
    }
    Ok(repository.pull(&digest).await.map_err(not_pulled)?.component)
}

async fn docker_config(context: &Context, source: &OCISource) -> Result<Option<Vec<u8>>, ModuleProblem> {
    let Some(secret) = &source.pull_secret else { return Ok(None) };
    let name = ObjectName::new(secret.namespace.clone(), secret.name.clone());
    let found = context.management.secret(&name).await.map_err(unreadable)?;
    let content = found.and_then(|it| it.data?.remove(DOCKER_CONFIG));
    content.map(|it| Some(it.0)).ok_or_else(|| {
        let message = format!(
            "Secret {name} (spec.source.oci.pullSecret) is not there, or is not of type kubernetes.io/dockerconfigjson"
        );
        problem(reason::REGISTRY_DENIED, message)
    })
}

fn not_pulled(error: PullError) -> ModuleProblem {
    let reason = match &error {
        PullError::Unauthorized { .. } | PullError::PullSecret { .. } => reason::REGISTRY_DENIED,
        PullError::NotFound { .. } => reason::COMPONENT_NOT_FOUND,
        PullError::DigestMismatch { .. } => reason::DIGEST_MISMATCH,
        PullError::TooLarge { .. } => reason::COMPONENT_TOO_LARGE,
        PullError::NotAComponent { .. } => reason::INVALID_COMPONENT,
        _ => reason::PULL_FAILED,
    };
    let origin = if error.is_transient() { Origin::Outage } else { Origin::Source };
    ModuleProblem { reason, message: error.to_string(), origin }
}

fn not_verified(error: VerifyError) -> ModuleProblem {
    match error {
        VerifyError::Pull { error, digest } => {
            let found = not_pulled(error);
            let message = format!("signatures of {digest} could not be read: {}", found.message);
            ModuleProblem { message, ..found }
        }
        error => problem(reason::SIGNATURE_INVALID, error.to_string()),
    }
}

async fn of_config_map(context: &Context, source: &ConfigMapSource) -> Result<Vec<u8>, ModuleProblem> {
    let ConfigMapSource { namespace, name, key, digest } = source;
    let object = ObjectName::new(namespace.clone(), name.clone());
    let found = context.management.binary_data(&object, key).await.map_err(unreadable)?;
    let Some(bytes) = found else {
        let message = format!("ConfigMap {namespace}/{name} has no {key} in its binaryData");
        return Err(problem(reason::COMPONENT_NOT_FOUND, message));
    };
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if *digest != format!("sha256:{hash}") {
        let message = format!(
            "{key} of ConfigMap {namespace}/{name} has digest sha256:{hash}, and spec.source.configMap.digest \
             is {digest}"
        );
        return Err(problem(reason::DIGEST_MISMATCH, message));
    }
    Ok(bytes)
}

fn unreadable(error: Error) -> ModuleProblem {
    let origin = if error.is_forbidden() { Origin::Source } else { Origin::Outage };
    ModuleProblem { reason: reason::PULL_FAILED, message: error.told().to_string(), origin }
}

fn problem(reason: &'static str, message: String) -> ModuleProblem {
    ModuleProblem { reason, message, origin: Origin::Source }
}
