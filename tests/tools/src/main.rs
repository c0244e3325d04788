//! `tools build ARGUMENTS...`: makes what the bed runs and `cargo build ARGUMENTS...` side by side. `tools
//! python`, `tools cosign`: only prints where that is, making it first when it is missing.

use std::process::ExitCode;

use anyhow::{Result, bail};
use tools::Tools;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tools: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Vec<String>) -> Result<()> {
    match arguments.first().map(String::as_str) {
        Some("build") => Tools::ensure_and_build(arguments.split_off(1)).map(drop),
        Some("python") => {
            println!("{}", Tools::ensure()?.python.join("bin/python").display());
            Ok(())
        }
        Some("cosign") => {
            println!("{}", Tools::cosign()?.display());
            Ok(())
        }
        _ => bail!("usage: tools build CARGO-ARGUMENTS... | tools python | tools cosign"),
    }
}
