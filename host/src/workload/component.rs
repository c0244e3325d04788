//! The components that installed add-ons, and their plans, in ConfigMaps of the workload cluster beside the
//! records: one for each component, named by its digest, so that writing another leaves the one before.

use std::collections::BTreeMap;

use addons::ObjectRef;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::record::{NAMESPACE, config_map};
use super::{OWN_MANAGER, WorkloadCluster, WorkloadError};

/// Label of a ConfigMap with a component; its value is the plugin's name.
const LABEL: &str = "cluster.kurator.dev/component";
/// Characters of the digest in a name.
const DIGITS: usize = 16;

impl WorkloadCluster {
    /// What is stored of the component with this digest: whoever can write to the cluster can write it.
    /// Empty when nothing is.
    ///
    /// # Errors
    /// The API did not answer.
    pub async fn stored(
        &self,
        module: &str,
        digest: &str,
    ) -> Result<BTreeMap<String, Vec<u8>>, WorkloadError> {
        let live = self.get_only(&component_object(module, digest), &["/binaryData"]).await?;
        let data = live.as_ref().and_then(|it| it.get("binaryData")).and_then(Value::as_object);
        let decoded = data
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), BASE64_STANDARD.decode(value.as_str()?).ok()?)));
        Ok(decoded.collect())
    }

    /// Stores a component and its plan, as [`pack`](addons::stored::pack) makes them.
    ///
    /// # Errors
    /// The API did not answer, or refused it.
    pub async fn store(
        &self,
        module: &str,
        digest: &str,
        data: &BTreeMap<&'static str, Vec<u8>>,
    ) -> Result<(), WorkloadError> {
        let object = component_object(module, digest);
        let data: BTreeMap<_, _> =
            data.iter().map(|(key, value)| (*key, BASE64_STANDARD.encode(value))).collect();
        let config_map = json!({
            "apiVersion": object.api_version, "kind": object.kind,
            "metadata": {"name": object.name, "namespace": object.namespace, "labels": {LABEL: module}},
            "binaryData": data,
        });
        self.apply(&config_map, OWN_MANAGER, true).await.map(drop)
    }

    /// Deletes all components of a plugin but the one with this digest.
    ///
    /// # Errors
    /// The API did not answer.
    pub async fn delete_stored(&self, module: &str, but: Option<&str>) -> Result<(), WorkloadError> {
        let kept = but.map(|digest| component_object(module, digest).name);
        let labelled = ListParams::default().labels(&format!("{LABEL}={module}"));
        let found =
            self.lists().selected("v1", "ConfigMap", NAMESPACE, labelled, &["/metadata/name"]).await?;
        let names = found.iter().filter_map(|live| live.pointer("/metadata/name")?.as_str());
        let is_other = |name: &&str| name.starts_with(&prefix(module)) && kept.as_deref() != Some(*name);
        for name in names.filter(is_other) {
            self.delete(&config_map(name.to_owned())).await?;
        }
        Ok(())
    }
}

/// What the names of a plugin's components begin with. No record's name does.
fn prefix(module: &str) -> String {
    format!("cluster-component-{module}-")
}

fn component_object(module: &str, digest: &str) -> ObjectRef {
    let digits: String =
        digest.trim_start_matches("sha256:").chars().filter(char::is_ascii_hexdigit).take(DIGITS).collect();
    config_map(format!("{}{}", prefix(module), digits.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_a_name_for_kubernetes_whatever_its_digest_is() {
        assert_eq!(
            component_object("calico", &format!("sha256:{}", "0AF".repeat(20))).name,
            "cluster-component-calico-0af0af0af0af0af0"
        );
        assert_eq!(component_object("calico", "sha256:../Z").name, "cluster-component-calico-");
    }
}
