//! `sandbox demo`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use sandbox::Options;
use sandbox::demo::{self, Shape};

use super::Name;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    name: Name,
    /// Name of the cluster
    #[arg(long, default_value = "demo")]
    cluster: String,
    /// Control-plane machines
    #[arg(long, default_value_t = 1)]
    control_planes: u32,
    /// Worker machines
    #[arg(long, default_value_t = 2)]
    workers: u32,
    /// Seconds that the emulator stays in each transitional state
    #[arg(long, default_value_t = 2.0)]
    delay: f64,
    /// The operator's program [default: the one built together with this program]
    #[arg(long, value_name = "PATH")]
    operator: Option<PathBuf>,
}

pub fn run(arguments: Arguments) -> Result<()> {
    let operator = arguments
        .operator
        .map(|path| std::path::absolute(&path))
        .transpose()
        .context("finding the operator")?;
    let delay = Duration::try_from_secs_f64(arguments.delay).context("reading --delay")?;
    let options = Options { name: arguments.name.name, delay, operator, ..Options::default() };
    let shape = Shape {
        name: arguments.cluster,
        control_planes: arguments.control_planes,
        workers: arguments.workers,
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    let ended = runtime.block_on(demo::run(options, shape));
    // Whoever was waited for at the keyboard need not press Enter any more.
    runtime.shutdown_background();
    ended
}
