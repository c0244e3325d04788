//! Prints the plugins that this program brings, as `host/plugin/released.txt` lists those of releases, and writes
//! their components to files.

use std::path::PathBuf;

use anyhow::Context;

/// What to do with them.
#[derive(clap::Args)]
pub struct Options {
    /// Folder to write the components to, `<name>.wasm`. It is made if it is not there.
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

/// Prints name, version and digest of each, a line each.
///
/// # Errors
/// This machine cannot run compiled code, or a file cannot be written.
pub fn print(options: &Options) -> anyhow::Result<()> {
    let engine = plugin::Engine::new(plugin::Limits::default(), None)?;
    if let Some(folder) = &options.output {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    for built_in in plugin::built_in() {
        let plugin = engine.load(built_in.name, built_in.bytes)?;
        println!("{} {} {}", built_in.name, plugin.describe()?.value.version, built_in.digest);
        if let Some(folder) = &options.output {
            let file = folder.join(built_in.name).with_extension("wasm");
            std::fs::write(&file, built_in.bytes).with_context(|| format!("writing {}", file.display()))?;
        }
    }
    Ok(())
}
