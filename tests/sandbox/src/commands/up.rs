//! `sandbox up`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use sandbox::world::launch;
use sandbox::{Options, Parts};

use super::Name;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    name: Name,
    /// Bring up only a part
    #[arg(long, value_enum)]
    only: Option<Parts>,
    /// Seconds that the emulator stays in each transitional state
    #[arg(long, default_value_t = 2.0)]
    delay: f64,
    /// The operator's program [default: the one built together with this program]
    #[arg(long, value_name = "PATH")]
    operator: Option<PathBuf>,
    /// Bring up everything but the operator
    #[arg(long, conflicts_with_all = ["operator", "only"])]
    no_operator: bool,
    /// A further argument of the operator's `run`
    #[arg(long = "operator-argument", value_name = "ARGUMENT", allow_hyphen_values = true)]
    operator_arguments: Vec<String>,
    /// A further argument of the emulator
    #[arg(long = "emulator-argument", value_name = "ARGUMENT", allow_hyphen_values = true)]
    emulator_arguments: Vec<String>,
}

pub fn run(arguments: Arguments) -> Result<()> {
    let parts = if arguments.no_operator { Parts::Management } else { arguments.only.unwrap_or_default() };
    let operator = arguments
        .operator
        .map(|path| std::path::absolute(&path))
        .transpose()
        .context("finding the operator")?;
    let options = Options {
        name: arguments.name.name,
        parts,
        delay: Duration::try_from_secs_f64(arguments.delay).context("reading --delay")?,
        operator,
        operator_arguments: arguments.operator_arguments,
        emulator_arguments: arguments.emulator_arguments,
        boots: true,
        tied: false,
    };
    let own = std::env::current_exe().context("finding this program")?;
    // The world goes on when this process ends.
    let (running, _launcher) = launch::up(&options, &own)?;
    println!(
        "sandbox {:?} is up; its logs are in {}",
        options.name,
        running.directory.join("logs").display()
    );
    println!("try: sandbox kubectl get pods -A, sandbox aws ec2 describe-vpcs, sandbox status, sandbox down");
    Ok(())
}
