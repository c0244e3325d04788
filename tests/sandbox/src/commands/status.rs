//! `sandbox status`.

use anyhow::Result;
use sandbox::control::{self, Request};
use sandbox::emulator;
use sandbox::world::state::State;

use super::{Name, block_on};

pub fn run(name: &Name) -> Result<()> {
    let running = name.running()?;
    let state = State::read(&running.directory).unwrap_or_default();
    println!("sandbox {:?} in {}", name.name, running.directory.display());
    for done in &state.done {
        println!("  {:6.1} s  {}", done.time.as_secs_f64(), done.step);
    }
    match (state.failed, state.ready) {
        (Some(reason), _) => println!("failed: {reason}"),
        (None, false) => println!("now: {}", state.step),
        (None, true) => block_on(show(&running.directory))?,
    }
    Ok(())
}

async fn show(directory: &std::path::Path) -> Result<()> {
    let answer = control::ask(directory, Request::Processes).await?;
    println!("{:<26} {:>8} {:>9}  ENDED LAST WITH", "PROCESS", "PID", "RESTARTS");
    for (name, report) in answer.processes {
        let pid = report.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        println!("{name:<26} {pid:>8} {:>9}  {}", report.restarts, report.ended.unwrap_or_default());
    }
    let emulator = emulator::Client::through(&directory.join("emulator.sock"))?;
    if let Ok(account) = emulator.account().await {
        let mut found = account.iter().filter(|(_, ids)| !ids.is_empty()).peekable();
        println!(
            "{}",
            if found.peek().is_some() { "in the AWS account:" } else { "the AWS account is empty" }
        );
        for (kind, ids) in found {
            println!("  {:>3} {kind}", ids.len());
        }
    }
    Ok(())
}
