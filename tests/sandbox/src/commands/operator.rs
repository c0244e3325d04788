//! `sandbox operator`.

use anyhow::Result;
use sandbox::control::{self, Request};

use super::{Name, block_on};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    name: Name,
    /// What shall happen to it
    #[arg(value_enum)]
    action: Action,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Action {
    /// Start it
    Start,
    /// End it with SIGTERM and leave it ended
    Stop,
    /// End it with SIGKILL and leave it ended
    Kill,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let request = match arguments.action {
        Action::Start => Request::OperatorStart,
        Action::Stop => Request::OperatorStop,
        Action::Kill => Request::OperatorKill,
    };
    block_on(control::ask(&arguments.name.running()?.directory, request)).map(drop)
}
