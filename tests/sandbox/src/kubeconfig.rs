//! Kubeconfigs of workload clusters, taken from the Secrets that Cluster API makes.

use std::path::PathBuf;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::world::launch::Running;

/// A workload cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub namespace: String,
    pub name: String,
}

impl Cluster {
    /// Writes the cluster's kubeconfig into the world's directory and returns its path.
    ///
    /// # Errors
    /// When the Secret does not exist yet.
    pub async fn kubeconfig(&self, running: &Running) -> Result<PathBuf> {
        let secret = format!("{}-kubeconfig", self.name);
        let arguments =
            ["get", "secret", &secret, "--namespace", &self.namespace, "-o", "jsonpath={.data.value}"];
        let text = running.exec("kubectl", &arguments, None).await?;
        let text = STANDARD.decode(text.trim()).with_context(|| format!("decoding Secret {secret}"))?;
        let directory = running.directory.join("workload");
        std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
        let file = directory.join(format!("{}-{}.kubeconfig", self.namespace, self.name));
        std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }
}
