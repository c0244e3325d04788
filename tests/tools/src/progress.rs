//! Tells a person what is being done, how far it is, and for how long.
//!
//! On a terminal the line changes in place; elsewhere there is one line at the start, one at the end, and one
//! every half minute in between. It never hides a failure: the caller reports that.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};

const HEARTBEAT: Duration = Duration::from_secs(30);

/// One step that is being shown.
pub struct Step {
    what: String,
    started: Instant,
    shown: Instant,
    terminal: bool,
}

impl Step {
    /// Begins to show `what`, which reads like "starting etcd".
    pub fn start(what: impl Into<String>) -> Self {
        let now = Instant::now();
        let step =
            Self { what: what.into(), started: now, shown: now, terminal: std::io::stderr().is_terminal() };
        step.print(if step.terminal { "" } else { "\n" });
        step
    }

    /// Shows the elapsed time, if it is time to.
    pub fn tick(&mut self) {
        self.tell(|| None);
    }

    /// Shows, if it is time to, what `what` says; it is not asked otherwise.
    pub fn tell(&mut self, what: impl FnOnce() -> Option<String>) {
        let due = if self.terminal { Duration::from_secs(1) } else { HEARTBEAT };
        if self.shown.elapsed() >= due {
            self.shown = Instant::now();
            self.what = what().unwrap_or_else(|| std::mem::take(&mut self.what));
            self.print(if self.terminal { "" } else { "\n" });
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows that the step is over.
    pub fn done(self) {
        // Where lines cannot change, a quick step has said all it has to say.
        if self.terminal || self.started.elapsed() >= Duration::from_secs(2) {
            self.print(" done\n");
        }
    }

    /// Shows that the step is over, and `what` came of it.
    pub fn done_with(mut self, what: String) {
        self.what = what;
        self.print("\n");
    }

    /// Leaves the line as it is, so that an error message starts on its own line.
    pub fn failed(self) {
        if self.terminal {
            self.print(" failed\n");
        }
    }

    fn print(&self, end: &str) {
        let back = if self.terminal { "\r\x1b[K" } else { "" };
        let elapsed = match self.started.elapsed().as_secs() {
            0 => String::new(),
            _ => format!(", {}", words(self.started.elapsed())),
        };
        // A closed stderr is no reason to stop working.
        let _ = write!(std::io::stderr(), "{back}{}{elapsed}{end}", self.what);
        let _ = std::io::stderr().flush();
    }
}

/// A time as people say it: "40 s", "3 min 20 s".
pub fn words(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

/// The last `count` lines of a file; empty when it cannot be read.
pub fn last_lines(path: &Path, count: usize) -> String {
    let text = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
