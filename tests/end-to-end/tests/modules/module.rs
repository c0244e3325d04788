//! PluginModules of tests, whose components are in ConfigMaps.

use anyhow::{Context, Result, ensure};
use end_to_end::MOMENT;
use sandbox::Bed;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A PluginModule, and its component.
#[derive(Clone)]
pub struct Module {
    name: String,
    component: Vec<u8>,
    namespaces: Value,
    /// Where it is from, and how it is verified, in place of a ConfigMap.
    source: Option<(Value, Value)>,
}

/// `sha256:` and the hash.
pub fn digest(bytes: &[u8]) -> String {
    let hash: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

impl Module {
    /// One for every namespace.
    pub fn new(name: &str, component: &[u8]) -> Self {
        Module { name: name.to_owned(), component: component.to_vec(), namespaces: json!({}), source: None }
    }

    /// The same with another component.
    pub fn with(&self, component: &[u8]) -> Self {
        Module { component: component.to_vec(), ..self.clone() }
    }

    /// The same for namespaces with certain labels.
    pub fn of_namespaces(&self, selector: Value) -> Self {
        Module { namespaces: json!({"selector": selector}), ..self.clone() }
    }

    /// The same from somewhere else.
    pub fn of_source(&self, source: Value, verify: Value) -> Self {
        Module { source: Some((source, verify)), ..self.clone() }
    }

    /// Registers it, or changes what is registered.
    pub async fn register(&self, bed: &Bed) -> Result<()> {
        if let Some((source, verify)) = &self.source {
            return self.apply(bed, json!({"source": source, "verify": verify})).await;
        }
        let (name, digest) = (&self.name, digest(&self.component));
        let stored = format!("{name}-{}", &digest["sha256:".len()..][..12]);
        let file = bed.directory().join(&stored);
        std::fs::write(&file, &self.component).context("writing the component")?;
        let from = format!("--from-file=plugin.wasm={}", file.display());
        if bed.kubectl(&["get", "configmap", &stored, "--namespace=plugins"]).await.is_err() {
            bed.kubectl(&["create", "configmap", &stored, "--namespace=plugins", &from]).await?;
        }
        let source = json!({"configMap": {"namespace": "plugins", "name": stored, "digest": digest}});
        self.apply(bed, json!({"source": source})).await
    }

    async fn apply(&self, bed: &Bed, mut spec: Value) -> Result<()> {
        let grants = json!({
            "steps": ["k8s.apply/v1", "k8s.wait/v1", "k8s.delete/v1"],
            "facts": ["kubernetes-version"],
            "objects": [{"kinds": ["ConfigMap"], "namespaces": ["default"]}],
        });
        (spec["allowedNamespaces"], spec["grants"]) = (self.namespaces.clone(), grants);
        let object = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "PluginModule",
            "metadata": {"name": self.name}, "spec": spec});
        bed.apply(&object.to_string()).await.map(drop)
    }

    /// What the operator says of it.
    pub async fn status(&self, bed: &Bed) -> Result<Value> {
        let object = bed.kubectl_json(&["get", "pluginmodule", &self.name]).await?;
        Ok(object["status"]["operators"][0].clone())
    }

    /// Its condition.
    pub async fn condition_now(&self, bed: &Bed) -> Result<Value> {
        Ok(self.status(bed).await?["conditions"][0].clone())
    }

    /// Waits until its condition has this reason, and returns what it says.
    pub async fn condition(&self, bed: &Bed, reason: &str) -> Result<String> {
        bed.wait_for("the module's condition", MOMENT, async || {
            let status = self.status(bed).await?;
            let condition = &status["conditions"][0];
            ensure!(condition["reason"] == reason, "{status}");
            Ok(condition["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }
}
