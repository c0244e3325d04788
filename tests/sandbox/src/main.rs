//! The command line of the test bed. Each subcommand has its file in `commands`; this one only chooses.

mod commands;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let result = commands::run(commands::Arguments::parse());
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("sandbox: {error:#}");
            ExitCode::FAILURE
        }
    }
}
