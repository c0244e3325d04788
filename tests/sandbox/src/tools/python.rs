//! The Python environment of the AWS emulator: a virtual environment in the cache, every package pinned by hash.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{create_directory, hash, read, system};
use crate::{paths, progress};

/// Returns the environment's directory.
pub fn ensure(cache: &Path) -> Result<PathBuf> {
    let requirements = paths::source().join("tests/emulator/requirements.txt");
    let entry = cache.join(hash(&[&read(&requirements)?]));
    // Written last: an environment without it was interrupted.
    let finished = entry.join("finished");
    if finished.exists() {
        return Ok(entry);
    }
    create_directory(cache)?;
    let log = cache.join("install.log");
    let mut create = Command::new(system::python()?);
    create.args(["-m", "venv", "--clear"]).arg(&entry);
    progress::run("creating the Python environment", &mut create, &log)
        .context("creating the Python environment (on Debian and Ubuntu: sudo apt-get install python3-venv)")?;
    let mut install = Command::new(entry.join("bin/python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"]);
    install.arg(&requirements);
    progress::run("installing the AWS emulator's Python packages", &mut install, &log).context("installing Python packages")?;
    std::fs::write(&finished, "").with_context(|| format!("writing {}", finished.display()))?;
    Ok(entry)
}
