//! Command line of the operator: `run`, `crds`, `plan`, `diff`, `built-in-plugins`, and `compile-plugin`, which is for the
//! operator itself. Everything else is in the modules; this file only chooses between them.

mod admin;
mod built_in;
mod context;
mod controller;
mod diff;
mod lease;
mod logging;
mod management;
mod metrics;
mod object_name;
mod preview;
mod read_only;
mod rules;
mod run;
mod system;
mod workload;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

/// Many small objects live short lives on many threads here; the C library's allocator keeps several times
/// what is in use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Cluster API infrastructure provider for AWS, with add-ons as sandboxed WebAssembly plugins.
#[derive(Parser)]
#[command(version)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Leftovers after the objects of a management cluster.
    Run(Box<run::Options>),
    /// Print the CustomResourceDefinitions.
    Crds,
    /// Print what would be created for the objects of a file, without doing it.
    Plan(preview::Options),
    /// Print what the operator would change in AWS and in workload clusters, without doing it.
    Diff(Box<diff::Options>),
    /// Print name, version and digest of the plugins that this program brings.
    BuiltInPlugins(built_in::Options),
    /// Compile a plugin from outside for the operator, which starts this in a process of its own.
    #[command(hide = true)]
    CompilePlugin,
}

// One thread: AWS takes a handful of calls a second from one account, and what is done between two of them is
// little. Only plugins calculate for long, and they have threads of their own.
#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let command = match CommandLine::try_parse() {
        Ok(CommandLine { command }) => command,
        Err(error) => {
            // Who reads it may have gone. The code is not clap's 2, which means something else after `diff`.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    let done = |()| ExitCode::SUCCESS;
    let result = match command {
        Command::Run(options) => run::run(*options).await.map(done),
        Command::Crds => print_crds().map(done),
        Command::Plan(options) => preview::print(options).await.map(done),
        Command::Diff(options) => diff::print(*options).await,
        Command::BuiltInPlugins(options) => built_in::print(&options).map(done),
        Command::CompilePlugin => Ok(plugin::compile_in_child()),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            // One line, with every cause.
            eprintln!("cluster-operator: {}", format!("{error:#}").replace('\n', " "));
            ExitCode::FAILURE
        }
    }
}

fn print_crds() -> anyhow::Result<()> {
    use std::io::Write as _;
    let files = crds::yaml().context("the CustomResourceDefinitions cannot be printed")?;
    let text: Vec<String> = files.into_iter().map(|(_, text)| text).collect();
    match std::io::stdout().write_all(text.join("---\n").as_bytes()) {
        // Whoever reads may stop reading.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
