//! `sandbox logs`. Works after `sandbox down` too, since that keeps the logs.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use sandbox::world::launch;

use super::Name;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    name: Name,
    /// Which log; without it, all are listed
    log: Option<String>,
    /// Go on printing what is added
    #[arg(long, short)]
    follow: bool,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let directory = launch::directory(&arguments.name.name)?.join("logs");
    let entries = std::fs::read_dir(&directory)
        .with_context(|| format!("there are no logs in {}", directory.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str().map(str::to_owned)).collect();
    names.sort();
    let Some(wanted) = &arguments.log else {
        names.iter().for_each(|name| println!("{}", name.trim_end_matches(".log")));
        return Ok(ExitCode::SUCCESS);
    };
    let Some(file) = names.iter().find(|name| *name == wanted || name.trim_end_matches(".log") == wanted)
    else {
        bail!("there is no log {wanted:?}; `sandbox logs` lists them");
    };
    let mut command = Command::new(if arguments.follow { "tail" } else { "cat" });
    if arguments.follow {
        command.args(["-n", "+1", "-f"]);
    }
    Err(command.arg(directory.join(file)).exec()).context("starting cat or tail")
}
