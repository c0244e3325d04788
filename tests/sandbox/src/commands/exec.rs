//! `sandbox exec`, `sandbox kubectl` and `sandbox aws`: this process becomes the command.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use sandbox::kubeconfig::Cluster;

use super::{Name, block_on};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    name: Name,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<String>,
}

#[derive(clap::Args)]
pub struct KubectlArguments {
    #[command(flatten)]
    name: Name,
    /// Name of a workload cluster
    #[arg(long)]
    cluster: Option<String>,
    /// With --cluster, the namespace of the Cluster object; otherwise kubectl's own
    #[arg(long)]
    namespace: Option<String>,
    /// kubectl's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(clap::Args)]
pub struct AwsArguments {
    #[command(flatten)]
    name: Name,
    /// aws' arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (program, rest) = arguments.command.split_first().context("there is no command")?;
    become_command(arguments.name.running()?.command(program).args(rest))
}

pub fn kubectl(arguments: &KubectlArguments) -> Result<ExitCode> {
    let running = arguments.name.running()?;
    let mut command = running.command("kubectl");
    match (&arguments.cluster, &arguments.namespace) {
        (Some(name), namespace) => {
            let namespace = namespace.clone().unwrap_or_else(|| "default".to_owned());
            let cluster = Cluster { namespace, name: name.clone() };
            command.arg("--kubeconfig").arg(block_on(cluster.kubeconfig(&running))?);
        }
        (None, Some(namespace)) => {
            command.arg("--namespace").arg(namespace);
        }
        (None, None) => {}
    }
    become_command(command.args(&arguments.arguments))
}

pub fn aws(arguments: &AwsArguments) -> Result<ExitCode> {
    become_command(arguments.name.running()?.command("aws").args(&arguments.arguments))
}

/// Replaces this process by the command.
pub fn become_command(command: &mut Command) -> Result<ExitCode> {
    let error = command.exec();
    Err(error).with_context(|| format!("starting {}", command.get_program().to_string_lossy()))
}
