//! The Python environment of the AWS emulator: a virtual environment in the cache, every package pinned by
//! hash.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{create_directory, hash, read, system};
use crate::parts::Meter;
use crate::paths;

/// The environment's directory: what it holds is in its name.
///
/// # Errors
/// When the list of packages cannot be read.
pub fn entry(cache: &Path) -> Result<PathBuf> {
    let requirements = requirements();
    Ok(cache.join(hash(&[&read(&requirements)?])))
}

/// Makes the environment where it is missing.
///
/// # Errors
/// When there is no Python with `venv`, or a package cannot be had.
pub fn ensure(cache: &Path, meter: &Meter) -> Result<()> {
    let entry = entry(cache)?;
    // Written last: an environment without it was interrupted.
    let finished = entry.join("finished");
    let reused = finished.exists();
    if !reused {
        create_directory(cache)?;
        let log = cache.join("install.log");
        meter.show(0.0, "creating the Python environment".to_owned());
        let mut create = Command::new(system::python()?);
        create.args(["-m", "venv", "--clear"]).arg(&entry);
        meter
            .run(&mut create, &log, |_, _| true)
            .context("creating the Python environment (`make setup` installs python3-venv)")?;
        meter.show(0.1, "installing Python packages".to_owned());
        let mut install = Command::new(entry.join("bin/python"));
        install
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--require-hashes",
                "-r",
            ])
            .arg(requirements());
        meter
            .run(&mut install, &log, |_, _| true)
            .context("installing the AWS emulator's Python packages")?;
        std::fs::write(&finished, "").with_context(|| format!("writing {}", finished.display()))?;
    }
    meter.result("Python packages".to_owned(), reused);
    Ok(())
}

fn requirements() -> PathBuf {
    paths::source().join("tests/emulator/requirements.txt")
}
