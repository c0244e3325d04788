//! Compiles the plugins of this folder.

#[path = "../../host/plugin/build/compile.rs"]
mod compile;

fn main() {
    let watched =
        ["wit/cluster-plugin.wit", "plugins/sdk", "tests/guests", "Cargo.lock", "host/plugin/build"];
    compile::run(&watched, |root, out| compile::components(root, &["scripted".to_owned()], out).map(drop));
}
