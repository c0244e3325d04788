//! Builds the Go programs into the cache, where one entry holds all that one set of pins gives, and prints
//! Cluster API's manifests from the same module.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::parts::Meter;
use super::programs::{PROGRAMS, Program, builds, linker_flags};
use super::{create_directory, hash, publish, read};
use crate::paths;

/// Folders of Cluster API's module that hold a provider's manifests, and the names they get here.
const MANIFESTS: [(&str, &str); 3] = [
    ("core/config/default", "core.yaml"),
    ("bootstrap/kubeadm/config/default", "bootstrap.yaml"),
    ("controlplane/kubeadm/config/default", "control-plane.yaml"),
];
const CLUSTER_API_MODULE: &str = "sigs.k8s.io/cluster-api";

/// The cache entry: everything that can change what is built is in its name.
///
/// # Errors
/// When the pins cannot be read.
pub fn entry(cache: &Path) -> Result<PathBuf> {
    let folder = folder();
    let pins = [read(&folder.join("go.mod"))?, read(&folder.join("go.sum"))?];
    let packages: String =
        PROGRAMS.iter().map(|program| format!("{}={}\n", program.name, program.package)).collect();
    Ok(cache.join(hash(&[&pins[0], &pins[1], packages.as_bytes(), linker_flags().as_bytes()])))
}

/// The directory of an entry that holds all programs and nothing else.
pub fn programs(entry: &Path) -> PathBuf {
    entry.join("bin")
}

/// The directory of an entry that holds the manifests.
pub fn manifests(entry: &Path) -> PathBuf {
    entry.join("manifests")
}

/// Makes what is missing of the programs and the manifests.
///
/// # Errors
/// When a build fails, with what Go said.
pub fn ensure(entry: &Path, meter: &Meter) -> Result<()> {
    let bin = programs(entry);
    create_directory(&bin)?;
    let mut missing = Vec::new();
    for program in PROGRAMS.into_iter().filter(|program| !bin.join(program.name).exists()) {
        match find(&program) {
            Some(found) => copy(&found, entry, program.name)?,
            None => missing.push(program),
        }
    }
    let reused = missing.is_empty();
    if !reused {
        build(&missing, entry, meter)?;
    }
    if !manifests(entry).exists() {
        print_manifests(entry)?;
    }
    meter.result(format!("{} Go programs", PROGRAMS.len()), reused);
    Ok(())
}

fn folder() -> PathBuf {
    paths::source().join("tests/tools")
}

/// A program of the pinned version in `KUBEBUILDER_ASSETS` or on the `PATH`.
fn find(program: &Program) -> Option<PathBuf> {
    let (arguments, expected) = program.version?;
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    assets.into_iter().chain(std::env::split_paths(&path)).map(|directory| directory.join(program.name)).find(
        |file| {
            let output = Command::new(file).args(arguments).output();
            output.is_ok_and(|output| {
                let text = String::from_utf8_lossy(&output.stdout);
                text.lines().any(|line| line.trim() == expected)
            })
        },
    )
}

fn copy(found: &Path, entry: &Path, name: &str) -> Result<()> {
    let partial = entry.join(format!(".{name}.partial"));
    std::fs::copy(found, &partial).with_context(|| format!("copying {}", found.display()))?;
    publish(&partial, &programs(entry).join(name))
}

/// Builds with as few runs of Go as names allow: what programs share is compiled once, and they are linked
/// side by side.
fn build(missing: &[Program], entry: &Path, meter: &Meter) -> Result<()> {
    meter.show(0.0, "Go programs: fetching modules".to_owned());
    // Gigabytes that nobody needs once the programs are there; what an interrupted build left is gone on
    // with.
    let cache = entry.join("go-build");
    let total = count(missing)?;
    let mut compiled = 0;
    for (number, build) in builds(missing).into_iter().enumerate() {
        let partial = entry.join(format!(".partial-{number}"));
        create_directory(&partial)?;
        let mut command = go();
        command
            .env("GOCACHE", &cache)
            .args(["build", "-v", "-trimpath", "-ldflags", &linker_flags(), "-o"])
            .arg(&partial);
        command.args(build.iter().map(|program| program.package));
        meter.run(&mut command, &entry.join(format!("build-{number}.log")), |_, line| {
            match line.strip_prefix("go: downloading ") {
                Some(module) => meter.show(0.0, format!("Go programs: downloading {module}")),
                None => {
                    compiled += 1;
                    // Linking, which nothing counts, is about a tenth of the work.
                    let done = 0.9 * f64::from(compiled) / f64::from(total.max(1));
                    meter.show(done, format!("Go {} of {total} packages", compiled.min(total)));
                }
            }
            true
        })?;
        for program in build {
            publish(&partial.join(program.built_as()), &programs(entry).join(program.name))?;
        }
        std::fs::remove_dir(&partial).with_context(|| format!("removing {}", partial.display()))?;
    }
    std::fs::remove_dir_all(&cache).with_context(|| format!("removing {}", cache.display()))
}

/// Builds one program of a module of its own.
///
/// # Errors
/// When the build fails, with what Go said.
pub fn build_one(module: &Path, package: &str, program: &Path, log: &Path, meter: &Meter) -> Result<()> {
    let cache = program.with_extension("go-build");
    let mut command = go();
    command.current_dir(module).env("GOCACHE", &cache);
    command.args(["build", "-trimpath", "-ldflags", "-s -w", "-o"]).arg(program).arg(package);
    meter.run(&mut command, log, |_, _| true)?;
    std::fs::remove_dir_all(&cache).with_context(|| format!("removing {}", cache.display()))
}

/// The number of packages that programs are made of. Modules that are not there yet are downloaded.
fn count(programs: &[Program]) -> Result<u32> {
    let output = go()
        .args(["list", "-deps"])
        .args(programs.iter().map(|it| it.package))
        .output()
        .context("starting go list")?;
    if !output.status.success() {
        bail!("go list: {}", String::from_utf8_lossy(&output.stderr));
    }
    u32::try_from(output.stdout.iter().filter(|byte| **byte == b'\n').count()).context("counting packages")
}

fn go() -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(folder())
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env("GOFLAGS", "-mod=readonly -buildvcs=false");
    command
}

fn print_manifests(entry: &Path) -> Result<()> {
    let partial = entry.join(".manifests.partial");
    create_directory(&partial)?;
    let module = module_directory()?;
    for (source, name) in MANIFESTS {
        let output = Command::new(programs(entry).join("kubectl"))
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
    publish(&partial, &manifests(entry))
}

/// Where the sources of Cluster API lie, downloaded when only its programs were in the cache.
fn module_directory() -> Result<PathBuf> {
    let output = go()
        .args(["mod", "download", "-json", CLUSTER_API_MODULE])
        .output()
        .context("starting go mod download")?;
    if !output.status.success() {
        bail!("go mod download {CLUSTER_API_MODULE}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let answer: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("reading go mod download's answer")?;
    let directory = answer["Dir"].as_str().context("go mod download named no directory")?;
    Ok(PathBuf::from(directory))
}
