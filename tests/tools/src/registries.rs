//! Two registries of OCI that components are pulled from in tests, and `cosign`, which signs there: one that lists
//! what refers to an artifact, from a Go module of its own, and the one that Debian and Ubuntu package, which does
//! not. That one is never installed: it would run at once.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{create_directory, debian, go, hash, publish, read};
use crate::parts::Meter;
use crate::paths;

/// Debian's package of a registry, and its program.
const PACKAGE: &str = "docker-registry";
const COSIGN: &str = "github.com/sigstore/cosign/v3/cmd/cosign";

/// The directory that holds both registries.
///
/// # Errors
/// When the sources cannot be read, or this machine does not say which release it is.
pub fn entry(cache: &Path) -> Result<PathBuf> {
    let folder = folder("registry");
    let mut parts = vec![read(Path::new("/etc/os-release"))?];
    for file in ["go.mod", "go.sum", "main.go"] {
        parts.push(read(&folder.join(file))?);
    }
    Ok(cache.join(hash(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>())))
}

/// The one with the API of referrers, in a directory of both.
pub fn with_referrers(entry: &Path) -> PathBuf {
    entry.join("registry")
}

/// The one without, in a directory of both.
pub fn without_referrers(entry: &Path) -> PathBuf {
    entry.join(PACKAGE)
}

/// Builds one and unpacks the other where that was not done yet.
///
/// # Errors
/// When that fails, with what Go or apt said.
pub fn ensure(cache: &Path, meter: &Meter) -> Result<()> {
    let entry = entry(cache)?;
    let reused = entry.exists();
    if !reused {
        let partial = partial(cache)?;
        meter.show(0.0, "Go registry".to_owned());
        go::build_one(&folder("registry"), ".", &with_referrers(&partial), &cache.join("build.log"), meter)?;
        meter.show(0.9, "downloading a registry".to_owned());
        let unpacking = cache.join(".unpacking");
        let root = debian::unpacked(&[PACKAGE.to_owned()], &unpacking, &cache.join("download.log"), meter)?;
        let program = root.join("usr/bin").join(PACKAGE);
        std::fs::rename(&program, without_referrers(&partial))
            .with_context(|| format!("moving {}", program.display()))?;
        std::fs::remove_dir_all(&unpacking).with_context(|| format!("removing {}", unpacking.display()))?;
        publish(&partial, &entry)?;
    }
    meter.result("two registries".to_owned(), reused);
    Ok(())
}

/// `cosign`, built where that was not done yet: some minutes, and only for who asks for it.
///
/// # Errors
/// When the build fails, with what Go said.
pub fn cosign(cache: &Path, meter: &Meter) -> Result<PathBuf> {
    let folder = folder("cosign");
    let pins = [read(&folder.join("go.mod"))?, read(&folder.join("go.sum"))?];
    let entry = cache.join(hash(&[&pins[0], &pins[1]]));
    let program = entry.join("cosign");
    let reused = program.exists();
    if !reused {
        let partial = partial(cache)?;
        meter.show(0.0, "cosign".to_owned());
        go::build_one(&folder, COSIGN, &partial.join("cosign"), &cache.join("build.log"), meter)?;
        publish(&partial, &entry)?;
    }
    meter.result("cosign".to_owned(), reused);
    Ok(program)
}

fn folder(module: &str) -> PathBuf {
    paths::source().join("tests/tools").join(module)
}

/// An empty directory for what is not finished.
fn partial(cache: &Path) -> Result<PathBuf> {
    let partial = cache.join(".partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).with_context(|| format!("removing {}", partial.display()))?;
    }
    create_directory(&partial)?;
    Ok(partial)
}
