//! Reads the component of a module from where its spec says, and checks that it is the one that is meant.

use crds::conditions::reason;
use crds::plugin_module::{ConfigMapSource, PluginModuleSpec};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::controller::addon::plugins::ModuleProblem;
use crate::management::Error;
use crate::object_name::ObjectName;

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
}

/// The component, verified.
///
/// # Errors
/// It is not there, is another one, or is not signed as it should be.
pub async fn read(context: &Context, spec: &PluginModuleSpec) -> Result<Vec<u8>, ModuleProblem> {
    match (&spec.source.oci, &spec.source.config_map) {
        (Some(_), _) => Err(problem(reason::PULL_FAILED, "registries are not asked yet".to_owned())),
        (None, Some(source)) => of_config_map(context, source).await,
        (None, None) => Err(problem(
            reason::COMPONENT_NOT_FOUND,
            "spec.source names neither oci nor configMap".to_owned(),
        )),
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
    let is_temporary = !error.is_forbidden();
    ModuleProblem { reason: reason::PULL_FAILED, message: error.told().to_string(), is_temporary }
}

fn problem(reason: &'static str, message: String) -> ModuleProblem {
    ModuleProblem { reason, message, is_temporary: false }
}
