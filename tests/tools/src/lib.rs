//! Makes what the bed runs, and the workspace itself beside it: Go programs, the emulator's Python
//! environment, cloud-init. What is there already is reused; all of it goes into a cache, and nothing is ever
//! installed on the machine itself.

mod cargo;
mod cloud_init;
mod debian;
mod go;
mod parts;
pub mod paths;
mod programs;
pub mod progress;
mod python;
mod registries;
pub mod system;

pub use programs::KUBERNETES_VERSION;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use parts::Part;

/// Paths of the programs the bed runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Tools {
    /// Directory with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kubeadm,
    /// capi-core, capi-bootstrap, capi-controlplane, clusterctl, kwok, aws-cloud-controller-manager, and the
    /// EBS CSI driver with csi-provisioner, csi-attacher and csi-resizer.
    pub bin: PathBuf,
    /// Python environment: `bin/python` and `bin/aws`.
    pub python: PathBuf,
    /// The unpacked Debian packages of cloud-init: `usr/bin/cloud-init` and `usr/lib/python3/dist-packages`.
    pub cloud_init: PathBuf,
    /// A registry of OCI that lists what refers to an artifact, in memory. It prints its address.
    pub registry: PathBuf,
    /// Debian's registry, which does not. It takes `serve` and a file of configuration.
    pub docker_registry: PathBuf,
    /// Cluster API's own manifests: `core.yaml`, `bootstrap.yaml`, `control-plane.yaml`.
    pub manifests: PathBuf,
}

impl Tools {
    /// Finds or makes everything, showing progress on stderr. Takes minutes with an empty cache and well
    /// under a second with a full one.
    ///
    /// # Errors
    /// When something is missing on this machine (the message has the line that installs it) or a build
    /// fails.
    pub fn ensure() -> Result<Self> {
        Self::make(None)
    }

    /// The same, and `cargo build` with these arguments side by side with it.
    ///
    /// # Errors
    /// Those of [`Tools::ensure`], and what the compiler says.
    pub fn ensure_and_build(arguments: Vec<String>) -> Result<Self> {
        Self::make(Some(arguments))
    }

    fn make(cargo: Option<Vec<String>>) -> Result<Self> {
        let root = paths::cache()?;
        create_directory(&root)?;
        let programs = go::entry(&root.join("tools"))?;
        let (python, cloud_init) = (root.join("python"), root.join("cloud-init"));
        let registries = root.join("registries");
        let registries_entry = registries::entry(&registries)?;
        let tools = Self {
            bin: go::programs(&programs),
            python: python::entry(&python)?,
            cloud_init: cloud_init::entry(&cloud_init)?,
            registry: registries::with_referrers(&registries_entry),
            docker_registry: registries::without_referrers(&registries_entry),
            manifests: go::manifests(&programs),
        };
        let show = cargo.is_some();
        if !show && tools.are_there() {
            return Ok(tools);
        }
        system::check()?;
        // Two worlds that start at once must not build the same things side by side.
        let lock = root.join("tools.lock");
        let lock = File::create(&lock).with_context(|| format!("creating {}", lock.display()))?;
        lock.lock().context("waiting for another sandbox that prepares its tools")?;
        // Costs are processor seconds, measured with nothing there.
        let seconds = std::time::Duration::from_secs;
        let mut parts = vec![
            Part::new("building the Go programs", seconds(980), move |meter| go::ensure(&programs, meter)),
            Part::new("making the Python environment", seconds(20), move |meter| {
                python::ensure(&python, meter)
            }),
            Part::new("unpacking cloud-init", seconds(10), move |meter| {
                cloud_init::ensure(&cloud_init, meter)
            }),
            Part::new("making the registries", seconds(30), move |meter| {
                registries::ensure(&registries, meter)
            }),
        ];
        if let Some(arguments) = cargo {
            let log = root.join("cargo.log");
            parts.insert(
                0,
                Part::new("building the workspace", seconds(1000), move |meter| {
                    cargo::build(&arguments, &log, meter)
                }),
            );
        }
        parts::make("building", parts)?;
        Ok(tools)
    }

    /// `cosign`, which takes minutes to build and is no part of the rest.
    ///
    /// # Errors
    /// When the build fails.
    pub fn cosign() -> Result<PathBuf> {
        let root = paths::cache()?.join("cosign");
        create_directory(&root)?;
        let lock = root.join("lock");
        let lock = File::create(&lock).with_context(|| format!("creating {}", lock.display()))?;
        lock.lock().context("waiting for another build of cosign")?;
        let (sender, program) = std::sync::mpsc::channel();
        let part = Part::new("building cosign", std::time::Duration::from_secs(290), move |meter| {
            sender.send(registries::cosign(&root, meter)?).context("handing over the path")
        });
        parts::make("building", vec![part])?;
        program.recv().context("no path of cosign")
    }

    /// Whether everything was made before.
    fn are_there(&self) -> bool {
        let programs = programs::PROGRAMS.iter().all(|program| self.program(program.name).exists());
        programs
            && self.manifests.exists()
            && self.python.join("finished").exists()
            && self.cloud_init.exists()
            && self.registry.exists()
            && self.docker_registry.exists()
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
    if entry.is_dir() {
        std::fs::remove_dir_all(entry).with_context(|| format!("removing {}", entry.display()))?;
    }
    std::fs::rename(partial, entry)
        .with_context(|| format!("renaming {} to {}", partial.display(), entry.display()))
}
