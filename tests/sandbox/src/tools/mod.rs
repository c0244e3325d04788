//! The programs that the bed runs: found when the right version is there, built or unpacked into a cache when not.
//!
//! Nothing is ever installed on the machine itself.

mod cloud_init;
mod go;
mod programs;
mod python;
pub mod system;

pub use programs::KUBERNETES_VERSION;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::paths;

/// Paths of the programs the bed runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Tools {
    /// Directory with etcd, etcdctl, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kubeadm,
    /// capi-core, capi-bootstrap, capi-controlplane, clusterctl, kwok and aws-cloud-controller-manager.
    pub bin: PathBuf,
    /// Python environment: `bin/python` and `bin/aws`.
    pub python: PathBuf,
    /// The unpacked Debian packages of cloud-init: `usr/bin/cloud-init` and `usr/lib/python3/dist-packages`.
    pub cloud_init: PathBuf,
    /// Cluster API's own manifests: `core.yaml`, `bootstrap.yaml`, `control-plane.yaml`.
    pub manifests: PathBuf,
}

impl Tools {
    /// Finds or makes everything, showing progress on stderr. Takes about 15 minutes with an empty cache on two
    /// cores and well under a second with a full one.
    ///
    /// # Errors
    /// When something is missing on this machine (the message has the line that installs it) or a build fails.
    pub fn ensure() -> Result<Self> {
        system::check()?;
        let root = paths::cache()?;
        std::fs::create_dir_all(&root).with_context(|| format!("creating {}", root.display()))?;
        // Two worlds that start at once must not build the same things side by side.
        let lock = root.join("tools.lock");
        let lock = File::create(&lock).with_context(|| format!("creating {}", lock.display()))?;
        lock.lock().context("waiting for another sandbox that prepares its tools")?;
        let (bin, manifests) = go::ensure(&root.join("tools"))?;
        let python = python::ensure(&root.join("python"))?;
        let cloud_init = cloud_init::ensure(&root.join("cloud-init"))?;
        Ok(Self { bin, python, cloud_init, manifests })
    }

    /// Path of a program in [`Tools::bin`].
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// A `PATH` on which the programs, `aws`, and the system's own directories are.
    pub fn search_path(&self) -> String {
        let system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        format!("{}:{}:{system}", self.bin.display(), self.python.join("bin").display())
    }
}

/// First 16 hexadecimal digits of the SHA-256 of all parts: the name of a cache entry.
fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}

fn create_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("creating {}", path.display()))
}

/// Moves a finished cache entry to its final name, replacing what a broken attempt left there.
fn publish(partial: &Path, entry: &Path) -> Result<()> {
    if entry.exists() {
        std::fs::remove_dir_all(entry).with_context(|| format!("removing {}", entry.display()))?;
    }
    std::fs::rename(partial, entry).with_context(|| format!("renaming {} to {}", partial.display(), entry.display()))
}
