//! Compiles crates of the workspace to Wasm components, for build scripts.
//!
//! A nested cargo does it, in a target directory of its own so that it never waits for the one that runs this
//! script. It needs a Rust that knows `wasm32-unknown-unknown`: the toolchain at work, with that target or
//! with `rust-src`, or else one installed in /usr/bin.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use wit_component::ComponentEncoder;

const TARGET: &str = "wasm32-unknown-unknown";

const NO_TOOLCHAIN: &str = "plugins are compiled to WebAssembly, for which no installed Rust \
    has what it takes. `make setup` installs it";

/// Runs the build script of a crate two folders below the workspace, which depends on these paths of it. The
/// script is given the workspace and the folder for what it makes.
pub fn run(watched: &[&str], script: impl FnOnce(&Path, &Path) -> Result<(), String>) {
    let run = || {
        let root = path_of("CARGO_MANIFEST_DIR")?.join("../..").canonicalize();
        let root = root.map_err(|error| error.to_string())?;
        for watched in watched {
            println!("cargo::rerun-if-changed={}", root.join(watched).display());
        }
        script(&root, &path_of("OUT_DIR")?)
    };
    if let Err(message) = run() {
        println!("cargo::error={}", message.replace('\n', " | "));
    }
}

/// Compiles these crates of the workspace to components in the folder `out`, in their order.
///
/// # Errors
/// No Rust has what it takes, a crate does not compile, or a file cannot be written.
pub fn components(root: &Path, crates: &[String], out: &Path) -> Result<Vec<PathBuf>, String> {
    let modules = Toolchain::find(root)?.compile(root, crates, &target(out))?;
    let component = |name: &String| {
        let module = modules.join(name.replace('-', "_")).with_extension("wasm");
        let component = out.join(name).with_extension("wasm");
        write(&component, &encode(&module)?)?;
        Ok(component)
    };
    crates.iter().map(component).collect()
}

/// Where the nested cargo builds: one folder for all build scripts of a profile, which share what is compiled.
/// Theirs is `<target>/<profile>/build/<package>/out`.
fn target(out: &Path) -> PathBuf {
    out.ancestors().nth(3).unwrap_or(out).join("wasm")
}

/// Wraps a core module, which carries the type of its world with it, into a component.
fn encode(module: &Path) -> Result<Vec<u8>, String> {
    let bytes = fs::read(module).map_err(|error| format!("{}: {error}", module.display()))?;
    ComponentEncoder::default()
        .validate(true)
        .module(&bytes)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("{}: {error:#}", module.display()))
}

/// A Rust that can compile to Wasm.
struct Toolchain {
    cargo: OsString,
    rustc: OsString,
    /// Whether the standard library comes as source only.
    build_std: bool,
    /// What links, when the toolchain brings no linker for Wasm.
    linker: Option<&'static str>,
}

impl Toolchain {
    fn find(root: &Path) -> Result<Toolchain, String> {
        let at_work = env::var_os("CARGO").zip(env::var_os("RUSTC"));
        let installed = Some(("/usr/bin/cargo".into(), "/usr/bin/rustc".into()));
        let found: Vec<Toolchain> = [at_work, installed]
            .into_iter()
            .flatten()
            .filter_map(|(cargo, rustc)| Toolchain::inspect(root, cargo, rustc))
            .collect();
        let (source, ready): (Vec<_>, Vec<_>) = found.into_iter().partition(|toolchain| toolchain.build_std);
        ready.into_iter().chain(source).next().ok_or_else(|| NO_TOOLCHAIN.to_owned())
    }

    fn inspect(root: &Path, cargo: OsString, rustc: OsString) -> Option<Toolchain> {
        Command::new(&cargo)
            .arg("--version")
            .current_dir(root)
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let output = Command::new(&rustc).args(["--print", "sysroot"]).current_dir(root).output().ok()?;
        let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        let rustlib = sysroot.join("lib/rustlib");
        let prebuilt = has_libraries(&rustlib.join(TARGET).join("lib"));
        if !prebuilt && !rustlib.join("src/rust/library/std/Cargo.toml").is_file() {
            return None;
        }
        let own_linker = rustlib.join(env::var("HOST").ok()?).join("bin/rust-lld");
        let linker = if own_linker.is_file() {
            None
        } else {
            Command::new("wasm-ld").arg("--version").output().ok()?;
            Some("wasm-ld")
        };
        Some(Toolchain { cargo, rustc, build_std: !prebuilt, linker })
    }

    /// Compiles all plugins: fast, and within the size that a test holds. Returns the folder of the modules.
    fn compile(&self, root: &Path, plugins: &[String], target: &Path) -> Result<PathBuf, String> {
        let mut command = Command::new(&self.cargo);
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            // What was meant for the build of the host must not reach the plugins; the job server
            // (CARGO_MAKEFLAGS) may.
            let inherited = text.contains("RUSTFLAGS")
                || text.contains("_WRAPPER")
                || text.starts_with("CARGO_PROFILE_")
                || text.starts_with("CARGO_BUILD_");
            if inherited || text == "CARGO_TARGET_DIR" || text == "RUSTC_BOOTSTRAP" {
                command.env_remove(&name);
            }
        }
        command
            .current_dir(root)
            .env("RUSTC", &self.rustc)
            .env("CARGO_ENCODED_RUSTFLAGS", remapped(root))
            .envs([
                ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
                ("CARGO_PROFILE_RELEASE_LTO", "fat"),
                ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
                ("CARGO_PROFILE_RELEASE_PANIC", "abort"),
                ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
                ("CARGO_PROFILE_RELEASE_INCREMENTAL", "false"),
            ]);
        if self.build_std {
            command.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_abort");
        }
        if let Some(linker) = self.linker {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
        }
        command.args(["build", "--quiet", "--release", "--target", TARGET, "--target-dir"]).arg(target);
        command.args(plugins.iter().flat_map(|plugin| ["-p", plugin]));
        let output = command.output().map_err(|error| format!("{}: {error}", self.cargo.display()))?;
        if !output.status.success() {
            return Err(format!("plugins do not compile: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(target.join(TARGET).join("release"))
    }
}

/// Whether a target's folder holds its standard library: an installation that was broken off leaves the
/// folder without.
fn has_libraries(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
}

/// Flags that keep paths of the machine that builds out of what it builds, so that the digest is the same on
/// every machine.
fn remapped(root: &Path) -> String {
    let mut flags = vec![format!("--remap-path-prefix={}=.", root.display())];
    let home =
        env::var_os("CARGO_HOME").or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cargo").into()));
    if let Some(home) = home {
        flags.push(format!("--remap-path-prefix={}=cargo", home.display()));
    }
    flags.join("\x1f")
}

fn path_of(variable: &str) -> Result<PathBuf, String> {
    env::var_os(variable).map(PathBuf::from).ok_or_else(|| format!("{variable} is not set"))
}

pub fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}
