//! The machine image: what an AMI for Cluster API has beside Kubernetes.
//!
//! It prepares directories of the world; the machines mount them. It changes neither the tools nor the host.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use super::machine;
use crate::World;

/// Such images let a boot go on when a part of the user data is not there yet
/// (`image-builder`, `images/capi/ansible/roles/providers/files`): the first pass over CAPA's user data has
/// an include of a file that its boothook only makes.
const OVERRIDE: &str = "ERROR_ON_USER_DATA_FAILURE = False\n";

/// Makes the world's copy of cloud-init; returns the directories that machines see at their own path.
pub async fn prepare(world: &World) -> Result<Vec<PathBuf>> {
    let target = machine::cloud_init(world);
    if !target.exists() {
        let status = Command::new("cp").arg("-r").arg(&world.tools.cloud_init).arg(&target).status().await;
        if !status.context("starting cp")?.success() {
            bail!("copying {} to {}", world.tools.cloud_init.display(), target.display());
        }
    }
    let file = target.join("usr/lib/python3/dist-packages/cloudinit/feature_overrides.py");
    std::fs::write(&file, OVERRIDE).with_context(|| format!("writing {}", file.display()))?;
    let base = base(&world.tools.python).await?;
    let kept = [world.tools.python.clone(), base];
    Ok(kept.into_iter().filter(|directory| !directory.starts_with("/usr")).collect())
}

/// The Python installation that an environment is based on.
async fn base(environment: &Path) -> Result<PathBuf> {
    let python = environment.join("bin/python");
    let output = Command::new(&python)
        .args(["-c", "import sys; print(sys.base_prefix)"])
        .output()
        .await
        .with_context(|| format!("starting {}", python.display()))?;
    if !output.status.success() {
        bail!(
            "{} ended with {}: {}",
            python.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}
