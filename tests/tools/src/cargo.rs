//! Runs the workspace's own cargo build as one of the parts that are made side by side.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::parts::Meter;
use crate::paths;

/// Crates that take far longer than others, and how many others each is worth, as measured.
const HEAVY: [(&str, u32); 6] = [
    ("aws-sdk-ec2", 330),
    ("cranelift-codegen", 150),
    ("wasmtime", 65),
    ("aws-sdk-s3", 65),
    ("aws-sdk-iam", 60),
    ("plan", 45),
];

/// Runs `cargo build` with `arguments`.
///
/// # Errors
/// When it fails, with what the compiler said.
pub fn build(arguments: &[String], log: &Path, meter: &Meter) -> Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(paths::source())
        .args(["build", "--locked", "--message-format=json-render-diagnostics"])
        .args(arguments);
    // Its bar is read here, and shown as a part of ours.
    command.envs([
        ("CARGO_TERM_PROGRESS_WHEN", "always"),
        ("CARGO_TERM_PROGRESS_WIDTH", "160"),
        ("CARGO_TERM_COLOR", "never"),
    ]);
    meter.show(0.0, "Rust: fetching crates".to_owned());
    let mut progress = Progress::default();
    meter.run(&mut command, log, |stdout, line| {
        if stdout {
            progress.artifact(line);
            return false;
        }
        let Some(bar) = Bar::read(line) else { return true };
        meter.show(
            progress.done(&bar),
            format!("Rust {} of {} crates ({})", bar.done, bar.total, bar.current),
        );
        false
    })?;
    let (count, reused) = if progress.made == 0 { (progress.reused, true) } else { (progress.made, false) };
    meter.result(format!("{count} crates"), reused);
    Ok(())
}

/// What has been heard of crates that are finished.
#[derive(Default)]
struct Progress {
    made: u32,
    reused: u32,
    /// What heavy crates weigh that are finished or were there before.
    heavy: u32,
}

impl Progress {
    /// Hears a message of cargo's about a finished crate; other messages are ignored.
    fn artifact(&mut self, message: &str) {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(message) else { return };
        if message["reason"] != "compiler-artifact" {
            return;
        }
        *if message["fresh"] == true { &mut self.reused } else { &mut self.made } += 1;
        let is_lib = message["target"]["kind"] == serde_json::json!(["lib"]);
        let name = message["target"]["name"].as_str().unwrap_or_default().replace('_', "-");
        self.heavy +=
            HEAVY.iter().filter(|(heavy, _)| is_lib && *heavy == name).map(|(_, weight)| weight).sum::<u32>();
    }

    /// The part of the work that is done, from 0 to 1. What was there before is no work.
    fn done(&self, bar: &Bar) -> f64 {
        let heavy: u32 = HEAVY.iter().map(|(_, weight)| weight).sum();
        let done = (bar.done + self.heavy).saturating_sub(self.reused);
        let all = (bar.total + heavy).saturating_sub(self.reused);
        f64::from(done) / f64::from(all.max(1))
    }
}

/// What cargo's progress bar says.
#[derive(Debug, PartialEq, Eq)]
struct Bar {
    done: u32,
    total: u32,
    /// The first of the crates that are being compiled.
    current: String,
}

impl Bar {
    /// Reads "    Building [===>   ] 3/15: serde_json, anyhow(build.rs)".
    fn read(line: &str) -> Option<Bar> {
        let (_, numbers) = line.trim_start().strip_prefix("Building [")?.split_once("] ")?;
        let (numbers, crates) = numbers.split_once(": ").unwrap_or((numbers, ""));
        let (done, total) = numbers.split_once('/')?;
        let current = crates.split([',', '(']).next().unwrap_or_default().trim().to_owned();
        Some(Bar {
            done: done.trim().parse().ok()?,
            total: total.trim().trim_end_matches(':').parse().ok()?,
            current,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_read_as_cargo_prints_it() {
        let bar = |done, total, current: &str| Some(Bar { done, total, current: current.to_owned() });
        assert_eq!(
            Bar::read("    Building [====>      ] 3/15: serde_json(build.rs), zmij(build)"),
            bar(3, 15, "serde_json")
        );
        assert_eq!(Bar::read("    Building [==========>] 14/15: wb(bin)"), bar(14, 15, "wb"));
        assert_eq!(Bar::read("   Compiling serde_json v1.0.154"), None);
    }

    #[test]
    fn what_was_there_before_counts_neither_as_done_nor_as_work() {
        let mut progress = Progress::default();
        for _ in 0..50 {
            progress.artifact(
                r#"{"reason":"compiler-artifact","fresh":true,"target":{"kind":["lib"],"name":"anyhow"}}"#,
            );
        }
        progress.artifact(
            r#"{"reason":"compiler-artifact","fresh":true,"target":{"kind":["lib"],"name":"aws_sdk_ec2"}}"#,
        );
        progress.artifact(r#"{"reason":"build-script-executed"}"#);
        assert_eq!((progress.made, progress.reused), (0, 51));
        let begun = Bar { done: 51, total: 101, current: String::new() };
        let nothing = Progress { reused: 51, ..Progress::default() };
        assert!(progress.done(&begun) > nothing.done(&begun), "the heaviest crate was there");
    }
}
