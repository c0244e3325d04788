//! Compiles the plugins of this folder.

#[path = "../../host/plugin/build/compile.rs"]
mod compile;

use compile::{components, path_of};

fn main() {
    if let Err(message) = run() {
        println!("cargo::error={}", message.replace('\n', " | "));
    }
}

fn run() -> Result<(), String> {
    let root =
        path_of("CARGO_MANIFEST_DIR")?.join("../..").canonicalize().map_err(|error| error.to_string())?;
    for watched in ["wit/cluster-plugin.wit", "plugins/sdk", "tests/guests", "host/plugin/build"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    components(&root, &["scripted".to_owned()], &path_of("OUT_DIR")?).map(drop)
}
