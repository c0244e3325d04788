//! Makes several things side by side, since some of each wait for a single core, and shows in one line what
//! is being made, how far it is and about how long still.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::progress::{Step, last_lines};

const TICK: Duration = Duration::from_millis(200);
/// Before that, nobody can say how long it takes.
const GUESS_AFTER: Duration = Duration::from_secs(20);

/// One of the things that are made.
pub struct Part {
    name: &'static str,
    /// Processor time that it takes when nothing of it is there: what it weighs in the estimate.
    cost: Duration,
    make: Box<dyn FnOnce(&Meter) -> Result<()> + Send>,
}

impl Part {
    pub fn new(
        name: &'static str,
        cost: Duration,
        make: impl FnOnce(&Meter) -> Result<()> + Send + 'static,
    ) -> Self {
        Self { name, cost, make: Box::new(make) }
    }
}

/// Where a part says how far it is.
#[derive(Clone)]
pub struct Meter {
    reading: Arc<Mutex<Reading>>,
    /// Another part failed: what this one makes is of no use now.
    stop: Arc<AtomicBool>,
}

/// How far a part is.
#[derive(Clone, Debug, Default)]
struct Reading {
    /// From 0 to 1.
    done: f64,
    /// Such as "Rust 312 of 545 crates (aws-sdk-ec2)".
    text: String,
    /// What there is when the part is over, such as "12 Go programs"; and whether it was there before.
    result: Option<(String, bool)>,
    over: bool,
}

impl Meter {
    fn new(stop: Arc<AtomicBool>) -> Self {
        Self { reading: Arc::default(), stop }
    }

    /// Says how far the part is: `done` from 0 to 1, and the same in words.
    pub fn show(&self, done: f64, text: String) {
        let mut reading = self.reading();
        reading.done = done.clamp(0.0, 1.0);
        reading.text = text;
    }

    /// Says what there is now, and whether it was made before.
    pub fn result(&self, what: String, reused: bool) {
        self.reading().result = Some((what, reused));
    }

    /// Runs a command to its end; what it writes goes to `log`, and line by line to `hear`, which says
    /// whether the log needs the line. Lines of stdout come with `true`. A carriage return ends a line too.
    ///
    /// # Errors
    /// When it cannot be started or ends with another status than 0: with the log's last lines and its path.
    pub fn run(
        &self,
        command: &mut Command,
        log: &Path,
        mut hear: impl FnMut(bool, &str) -> bool,
    ) -> Result<()> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut file = std::fs::File::create(log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {program}"))?;
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            send_lines(stdout, true, sender.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            send_lines(stderr, false, sender);
        }
        loop {
            match lines.recv_timeout(TICK) {
                Ok((stdout, line)) => {
                    if hear(stdout, &line) {
                        writeln!(file, "{line}").with_context(|| format!("writing {}", log.display()))?;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if self.stop.load(Ordering::Relaxed) => {
                    // It may have ended by itself just now; what it started may hold its output open for a
                    // while.
                    let _ = child.kill();
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let status = child.wait().with_context(|| format!("waiting for {program}"))?;
        if !status.success() {
            bail!(
                "{program} ended with {status}:\n{}\nall of it is in {}",
                last_lines(log, 30),
                log.display()
            );
        }
        Ok(())
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send_lines(input: impl Read + Send + 'static, stdout: bool, sender: Sender<(bool, String)>) {
    std::thread::spawn(move || {
        let mut input = BufReader::new(input);
        let mut bytes = Vec::new();
        // Whatever cannot be read any more is over.
        while matches!(input.read_until(b'\n', &mut bytes), Ok(count) if count > 0) {
            let text = String::from_utf8_lossy(&bytes);
            for line in text.split(['\r', '\n']).filter(|line| !line.trim().is_empty()) {
                if sender.send((stdout, line.trim_end().to_owned())).is_err() {
                    return;
                }
            }
            bytes.clear();
        }
    });
}

/// Makes all parts side by side.
///
/// # Errors
/// That of the part that failed first; the others are stopped then.
pub fn make(what: &str, parts: Vec<Part>) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut step = Step::start(what);
    let mut shown: Vec<(Duration, Meter)> = Vec::new();
    let mut threads = Vec::new();
    for part in parts {
        let meter = Meter::new(stop.clone());
        shown.push((part.cost, meter.clone()));
        let stop = stop.clone();
        threads.push(std::thread::spawn(move || {
            let made = (part.make)(&meter).with_context(|| part.name);
            meter.reading().over = true;
            // Only the first failure is told: what follows from it is not news.
            if made.is_err() && stop.swap(true, Ordering::Relaxed) { Ok(()) } else { made }
        }));
    }
    while threads.iter().any(|thread| !thread.is_finished()) {
        std::thread::sleep(TICK);
        let elapsed = step.elapsed();
        step.tell(|| {
            let readings: Vec<(Duration, Reading)> =
                shown.iter().map(|(cost, meter)| (*cost, meter.reading().clone())).collect();
            Some(line(what, &readings, elapsed))
        });
    }
    for thread in threads {
        let made = thread.join().unwrap_or_else(|_| bail!("a thread of the build panicked"));
        if made.is_err() {
            step.failed();
            return made;
        }
    }
    let results: Vec<(String, bool)> =
        shown.iter().filter_map(|(_, meter)| meter.reading().result.clone()).collect();
    step.done_with(outcome(&results));
    Ok(())
}

/// The line that is shown while parts are being made.
fn line(what: &str, parts: &[(Duration, Reading)], elapsed: Duration) -> String {
    let doing: Vec<&str> = parts
        .iter()
        .filter(|(_, it)| !it.over && !it.text.is_empty())
        .map(|(_, it)| it.text.as_str())
        .collect();
    let mut line = format!("{what}: {}", doing.join("; "));
    if let Some(left) = left(parts, elapsed) {
        line += &format!("; about {} more", about(left));
    }
    line
}

/// How long it will still take, when all goes on as fast as it went: the parts share the machine.
fn left(parts: &[(Duration, Reading)], elapsed: Duration) -> Option<Duration> {
    // What was there before says nothing about speed.
    let made: Vec<&(Duration, Reading)> =
        parts.iter().filter(|(_, it)| it.result.as_ref().is_none_or(|(_, reused)| !reused)).collect();
    let all: Duration = made.iter().map(|(cost, _)| *cost).sum();
    let done: Duration =
        made.iter().map(|(cost, it)| cost.mul_f64(if it.over { 1.0 } else { it.done })).sum();
    let begun = elapsed >= GUESS_AFTER && done > all.mul_f64(0.02);
    begun.then(|| elapsed.mul_f64(all.saturating_sub(done).div_duration_f64(done)))
}

fn about(time: Duration) -> String {
    if time < Duration::from_secs(60) {
        "a minute".to_owned()
    } else {
        format!("{} min", time.as_secs().div_ceil(60))
    }
}

/// What was made and what was reused.
fn outcome(results: &[(String, bool)]) -> String {
    let of = |reused: bool| -> Vec<&str> {
        results.iter().filter(|it| it.1 == reused).map(|it| it.0.as_str()).collect()
    };
    let (made, reused) = (of(false), of(true));
    let mut parts = Vec::new();
    if !made.is_empty() {
        parts.push(format!("made {}", made.join(", ")));
    }
    if !reused.is_empty() {
        parts.push(format!("reused {}", reused.join(", ")));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(done: f64, text: &str) -> Reading {
        Reading { done, text: text.to_owned(), ..Reading::default() }
    }

    #[test]
    fn what_was_there_before_does_not_make_the_rest_look_quick() {
        let mut there = reading(1.0, "");
        there.result = Some(("12 Go programs".into(), true));
        there.over = true;
        let parts = [(Duration::from_secs(1000), there), (Duration::from_secs(100), reading(0.5, "Rust"))];
        assert_eq!(left(&parts, Duration::from_secs(60)), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_part_that_fails_ends_the_others_and_is_the_one_that_is_told() {
        let log = |name: &str| std::env::temp_dir().join(format!("{name}-{}.log", std::process::id()));
        let (quick, slow) = (log("quick"), log("slow"));
        let run = |script: &'static str, log: std::path::PathBuf| {
            move |meter: &Meter| meter.run(Command::new("sh").args(["-c", script]), &log, |_, _| true)
        };
        let started = std::time::Instant::now();
        let parts = vec![
            Part::new("slow", TICK, run("exec sleep 60", slow.clone())),
            Part::new("quick", TICK, run("echo why; exit 3", quick.clone())),
        ];
        let error = format!("{:#}", make("test", parts).expect_err("one fails"));
        assert!(error.starts_with("quick: sh ended with exit status: 3:\nwhy\n"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(30), "the other part was not stopped");
        for file in [quick, slow] {
            std::fs::remove_file(file).expect("the log is there");
        }
    }
}
