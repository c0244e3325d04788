//! kubectl, from inside the world, against the management cluster as its administrator.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::world::{World, enter};

/// Runs kubectl.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    pub fn new(world: &World) -> Self {
        Self { program: world.tools.program("kubectl"), kubeconfig: enter::kubeconfig(&world.directory) }
    }

    /// Runs kubectl to its end and returns what it printed.
    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .output()
            .await
            .context("starting kubectl")?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).context("kubectl printed something that is not UTF-8")
    }

    /// Applies objects on the server's side, all in one call, after writing them to `file` for whoever
    /// wonders.
    pub async fn apply(&self, file: &Path, objects: &[Value]) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        std::fs::write(file, list.to_string()).with_context(|| format!("writing {}", file.display()))?;
        let file = file.display().to_string();
        // Validating would have kubectl download the server's whole schema, which changes with every
        // definition.
        self.run(&[
            "apply",
            "--server-side",
            "--force-conflicts",
            "--field-manager=sandbox",
            "--validate=ignore",
            "-f",
            &file,
        ])
        .await
        .map(drop)
    }

    /// Waits until every custom resource is served.
    pub async fn established(&self) -> Result<()> {
        let arguments =
            ["wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinitions", "--all"];
        self.run(&arguments).await.map(drop)
    }

    /// A token of a ServiceAccount, good for a day.
    pub async fn token(&self, namespace: &str, service_account: &str) -> Result<String> {
        let token =
            self.run(&["create", "token", service_account, "-n", namespace, "--duration=24h"]).await?;
        Ok(token.trim().to_owned())
    }

    /// Whether an object exists.
    pub async fn exists(&self, arguments: &[&str]) -> Result<bool> {
        let found = self.run(&[&["get", "--ignore-not-found", "-o", "name"], arguments].concat()).await?;
        Ok(!found.trim().is_empty())
    }
}
