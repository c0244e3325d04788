//! Tells a person what is being done, which of how many, and for how long.
//!
//! On a terminal the line changes in place; elsewhere there is one line at the start, one at the end, and one every
//! half minute in between. It never hides a failure: the caller reports that.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

const TICK: Duration = Duration::from_millis(200);
const HEARTBEAT: Duration = Duration::from_secs(30);

/// One step that is being shown.
pub struct Step {
    what: String,
    started: Instant,
    shown: Instant,
    terminal: bool,
}

impl Step {
    /// Begins to show `what`, which reads like "building kube-apiserver (3 of 12)".
    pub fn start(what: impl Into<String>) -> Self {
        let now = Instant::now();
        let step = Self { what: what.into(), started: now, shown: now, terminal: std::io::stderr().is_terminal() };
        step.print(if step.terminal { "" } else { "\n" });
        step
    }

    /// Shows the elapsed time, if it is time to.
    pub fn tick(&mut self) {
        let due = if self.terminal { Duration::from_secs(1) } else { HEARTBEAT };
        if self.shown.elapsed() >= due {
            self.shown = Instant::now();
            self.print(if self.terminal { "" } else { "\n" });
        }
    }

    /// Shows that the step is over.
    pub fn done(self) {
        // Where lines cannot change, a quick step has said all it has to say.
        if self.terminal || self.started.elapsed() >= Duration::from_secs(2) {
            self.print(" done\n");
        }
    }

    /// Leaves the line as it is, so that an error message starts on its own line.
    pub fn failed(self) {
        if self.terminal {
            self.print(" failed\n");
        }
    }

    fn print(&self, end: &str) {
        let back = if self.terminal { "\r\x1b[K" } else { "" };
        let seconds = self.started.elapsed().as_secs();
        let elapsed = if seconds == 0 { String::new() } else { format!(", {seconds} s") };
        // A closed stderr is no reason to stop working.
        let _ = write!(std::io::stderr(), "{back}{}{elapsed}{end}", self.what);
        let _ = std::io::stderr().flush();
    }
}

/// Runs a command to its end while showing `what`; its output goes to `log`.
///
/// # Errors
/// When it cannot be started or ends with another status than 0; the message has the log's last lines and its path.
pub fn run(what: impl Into<String>, command: &mut Command, log: &Path) -> Result<()> {
    let mut step = Step::start(what);
    let output = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let errors = output.try_clone().context("sharing the log between stdout and stderr")?;
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn().with_context(|| format!("starting {program}"))?;
    let status = loop {
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for {program}"))? {
            break status;
        }
        std::thread::sleep(TICK);
        step.tick();
    };
    if status.success() {
        step.done();
        return Ok(());
    }
    step.failed();
    bail!("{program} ended with {status}:\n{}\nall of it is in {}", last_lines(log, 15), log.display())
}

/// The last `count` lines of a file; empty when it cannot be read.
pub fn last_lines(path: &Path, count: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
