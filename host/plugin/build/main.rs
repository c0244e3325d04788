//! Compiles the built-in plugins, and writes the list of them that `src/built_in.rs` includes.

mod compile;

use std::fs;
use std::path::Path;

use compile::{components, write};

/// The crate in `plugins/` that is no plugin.
const SDK: &str = "sdk";

fn main() {
    compile::run(&["wit/cluster-plugin.wit", "plugins", "Cargo.lock", "host/plugin/build"], |root, out| {
        let plugins = plugins(&root.join("plugins"))?;
        let mut list = String::from("&[\n");
        for (plugin, component) in plugins.iter().zip(components(root, &plugins, out)?) {
            list += &format!("    ({plugin:?}, include_bytes!({component:?})),\n");
        }
        write(&out.join("built_in.rs"), (list + "]\n").as_bytes())
    });
}

/// The names of the built-in plugins, which are those of their folders.
fn plugins(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let crates = entries.flatten().filter(|entry| entry.path().join("Cargo.toml").is_file());
    let names = crates.filter_map(|entry| entry.file_name().into_string().ok());
    let mut plugins: Vec<String> = names.filter(|name| name != SDK).collect();
    plugins.sort();
    Ok(plugins)
}
