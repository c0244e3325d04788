//! The subcommands and their arguments.

mod demo;
mod down;
mod exec;
mod logs;
mod operator;
mod status;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use sandbox::world::launch::{self, Running};
use tracing_subscriber::EnvFilter;

/// A private world in which Cluster API, Kubernetes and cluster-operator run for real against an emulated
/// AWS.
#[derive(Parser)]
#[command(name = "sandbox", version)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Which world.
#[derive(Args, Clone)]
pub struct Name {
    /// Name of the sandbox
    #[arg(long, default_value = "default")]
    pub name: String,
}

impl Name {
    /// The world, which must be up.
    pub fn running(&self) -> Result<Running> {
        launch::find(&self.name)?
            .with_context(|| format!("sandbox {:?} is not up; `sandbox up` starts it", self.name))
    }
}

#[derive(Subcommand)]
enum Command {
    /// Bring a sandbox up and return when it is ready
    Up(up::Arguments),
    /// End a sandbox and remove everything of it but its logs
    Down(Name),
    /// Run a command inside, with kubectl, clusterctl, aws and the rest on its PATH
    Exec(exec::Arguments),
    /// Run kubectl against the management cluster, or a workload cluster with --cluster
    Kubectl(exec::KubectlArguments),
    /// Run aws against the emulator
    Aws(exec::AwsArguments),
    /// Show what runs and how it came up
    Status(Name),
    /// List the logs, or print one
    Logs(logs::Arguments),
    /// Start or end the operator
    Operator(operator::Arguments),
    /// Make a cluster, show how it comes to life, and delete it again
    Demo(demo::Arguments),
    /// Say what this machine has and lacks for sandboxes, and why that matters
    Doctor,
    /// A world's own process
    #[command(hide = true)]
    World {
        directory: PathBuf,
        /// End when stdin ends
        #[arg(long)]
        tied: bool,
    },
    /// The kubelet's stand-in, first process of a machine
    #[command(hide = true)]
    Kubelet {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Runs the subcommand.
pub fn run(arguments: Arguments) -> Result<ExitCode> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(std::io::stderr).init();
    match arguments.command {
        Command::Up(arguments) => up::run(arguments)?,
        Command::Down(name) => down::run(&name)?,
        Command::Exec(arguments) => return exec::run(&arguments),
        Command::Kubectl(arguments) => return exec::kubectl(&arguments),
        Command::Aws(arguments) => return exec::aws(&arguments),
        Command::Status(name) => status::run(&name)?,
        Command::Logs(arguments) => return logs::run(&arguments),
        Command::Operator(arguments) => operator::run(&arguments)?,
        Command::Demo(arguments) => demo::run(arguments)?,
        Command::Doctor => return exec::become_command(&mut tools::system::doctor()),
        Command::World { directory, tied } => sandbox::world::inside::main(&directory, tied)?,
        Command::Kubelet { arguments } => sandbox::cloud::kubelet::main(arguments)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a future on a runtime of its own.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(future)
}
