//! cloud-init as Debian and Ubuntu package it, unpacked into the cache.
//!
//! It is never installed: on the user's own machine it would run at the next boot.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{debian, hash, publish, read};
use crate::parts::Meter;

/// The directory that the packages are unpacked into.
///
/// # Errors
/// When this machine does not say which release it is.
pub fn entry(cache: &Path) -> Result<PathBuf> {
    // Packages of one release of a distribution fit its own Python and no other.
    Ok(cache.join(hash(&[&read(Path::new("/etc/os-release"))?])))
}

/// Downloads and unpacks the packages where that was not done yet.
///
/// # Errors
/// When apt has no such packages, with the line that helps.
pub fn ensure(cache: &Path, meter: &Meter) -> Result<()> {
    let entry = entry(cache)?;
    let reused = entry.exists();
    if !reused {
        make(cache, &entry, meter)?;
    }
    meter.result("cloud-init".to_owned(), reused);
    Ok(())
}

fn make(cache: &Path, entry: &Path, meter: &Meter) -> Result<()> {
    let partial = cache.join(".partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).with_context(|| format!("removing {}", partial.display()))?;
    }
    meter.show(0.0, "downloading cloud-init".to_owned());
    let root = debian::unpacked(&names()?, &partial, &cache.join("download.log"), meter)?;
    if !root.join("usr/bin/cloud-init").exists() {
        bail!("the packages in {} hold no usr/bin/cloud-init", partial.display());
    }
    publish(&root, entry)?;
    std::fs::remove_dir_all(&partial).with_context(|| format!("removing {}", partial.display()))
}

/// cloud-init and the Python packages it needs, the interpreter itself excepted.
fn names() -> Result<Vec<String>> {
    let output = Command::new("apt-cache")
        .args(["depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks"])
        .args(["--no-replaces", "--no-enhances", "cloud-init"])
        .output()
        .context("starting apt-cache")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut names: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with("cloud-init") || line.starts_with("python3-"))
        .filter(|line| !line.contains(':') && *line != "python3-minimal")
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    if !names.iter().any(|name| name == "cloud-init") {
        bail!("apt knows no package cloud-init: sudo apt-get update");
    }
    Ok(names)
}
