//! Builds the Go programs into the cache, one entry per module and hash of what pins it, and prints Cluster API's
//! manifests from the same module.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::programs::{PROGRAMS, Program, linker_flags};
use super::{create_directory, hash, read, system};
use crate::{paths, progress};

/// Folders of Cluster API's module that hold a provider's manifests, and the names they get here.
const MANIFESTS: [(&str, &str); 3] = [
    ("core/config/default", "core.yaml"),
    ("bootstrap/kubeadm/config/default", "bootstrap.yaml"),
    ("controlplane/kubeadm/config/default", "control-plane.yaml"),
];

/// Returns the directory with all programs and the one with the manifests.
pub fn ensure(cache: &Path) -> Result<(PathBuf, PathBuf)> {
    let mut entries = Vec::new();
    for program in &PROGRAMS {
        entries.push(entry(cache, program.module)?);
    }
    let missing: Vec<usize> = (0..PROGRAMS.len()).filter(|&index| !entries[index].join(PROGRAMS[index].name).exists()).collect();
    for (position, &index) in missing.iter().enumerate() {
        let count = format!("({} of {})", position + 1, missing.len());
        obtain(&PROGRAMS[index], &entries[index], &count)?;
    }
    let bin = join(cache, &entries)?;
    let manifests = manifests(&entry(cache, "capi")?, &bin)?;
    Ok((bin, manifests))
}

/// The cache entry of a module: everything that can change what is built is in its name.
fn entry(cache: &Path, module: &str) -> Result<PathBuf> {
    let folder = folder(module);
    let pins = [read(&folder.join("go.mod"))?, read(&folder.join("go.sum"))?];
    let name = hash(&[&pins[0], &pins[1], linker_flags(module).as_bytes()]);
    Ok(cache.join(format!("{module}-{name}")))
}

fn folder(module: &str) -> PathBuf {
    paths::source().join("tests/tools").join(module)
}

fn obtain(program: &Program, entry: &Path, count: &str) -> Result<()> {
    create_directory(entry)?;
    let partial = entry.join(format!(".{}.partial", program.name));
    if let Some(found) = find(program) {
        std::fs::copy(&found, &partial).with_context(|| format!("copying {}", found.display()))?;
    } else {
        build(program, &partial, entry, count)?;
    }
    let finished = entry.join(program.name);
    std::fs::rename(&partial, &finished).with_context(|| format!("renaming to {}", finished.display()))
}

/// A program of the pinned version in `KUBEBUILDER_ASSETS` or on the `PATH`.
fn find(program: &Program) -> Option<PathBuf> {
    let (arguments, expected) = program.version?;
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    assets.into_iter().chain(std::env::split_paths(&path)).map(|directory| directory.join(program.name)).find(|file| {
        let output = Command::new(file).args(arguments).output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout);
            text.lines().any(|line| line.trim() == expected)
        })
    })
}

fn build(program: &Program, to: &Path, entry: &Path, count: &str) -> Result<()> {
    system::check_go()?;
    let mut command = go(program.module);
    command.args(["build", "-trimpath", "-ldflags", &linker_flags(program.module), "-o"]).arg(to).arg(program.package);
    let log = entry.join(format!("{}.log", program.name));
    progress::run(format!("building {} {count}", program.name), &mut command, &log).with_context(|| format!("building {}", program.name))
}

fn go(module: &str) -> Command {
    let mut command = Command::new("go");
    command.current_dir(folder(module)).env("CGO_ENABLED", "0").env("GOWORK", "off").env("GOFLAGS", "-mod=readonly");
    command
}

/// Makes one directory of hard links to all programs, so that one entry on a `PATH` or one bind mount is enough.
fn join(cache: &Path, entries: &[PathBuf]) -> Result<PathBuf> {
    let names: Vec<OsString> = entries.iter().filter_map(|entry| Some(entry.file_name()?.to_owned())).collect();
    let parts: Vec<&[u8]> = names.iter().map(|name| name.as_encoded_bytes()).collect();
    let bin = cache.join(format!("bin-{}", hash(&parts)));
    create_directory(&bin)?;
    for (program, entry) in PROGRAMS.iter().zip(entries) {
        let link = bin.join(program.name);
        if !link.exists() {
            std::fs::hard_link(entry.join(program.name), &link).with_context(|| format!("linking {}", link.display()))?;
        }
    }
    Ok(bin)
}

fn manifests(entry: &Path, bin: &Path) -> Result<PathBuf> {
    let directory = entry.join("manifests");
    if directory.exists() {
        return Ok(directory);
    }
    let partial = entry.join(".manifests.partial");
    create_directory(&partial)?;
    let module = module_directory()?;
    for (source, name) in MANIFESTS {
        let output = Command::new(bin.join("kubectl"))
            .args(["kustomize", "--load-restrictor", "LoadRestrictionsNone"])
            .arg(module.join(source))
            .output()
            .context("starting kubectl kustomize")?;
        if !output.status.success() {
            bail!("kubectl kustomize {source}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let file = partial.join(name);
        std::fs::write(&file, output.stdout).with_context(|| format!("writing {}", file.display()))?;
    }
    super::publish(&partial, &directory)?;
    Ok(directory)
}

/// Where the sources of Cluster API lie, downloaded when only its programs were in the cache.
fn module_directory() -> Result<PathBuf> {
    system::check_go()?;
    let module = "sigs.k8s.io/cluster-api";
    let output = go("capi").args(["mod", "download", "-json", module]).output().context("starting go mod download")?;
    if !output.status.success() {
        bail!("go mod download {module}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).context("reading go mod download's answer")?;
    let directory = answer["Dir"].as_str().context("go mod download named no directory")?;
    Ok(PathBuf::from(directory))
}
