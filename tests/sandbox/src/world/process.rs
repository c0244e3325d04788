//! The long-running processes of a world: each logs to a file of its own and is started again when it ends by
//! itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use tokio::process::{Child, Command};
use tokio::sync::watch;

const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// How to start a process.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub name: String,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

impl Recipe {
    pub fn new(name: &str, program: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    pub fn arguments<T: Into<String>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub fn environment<K: Into<String>, V: Into<String>>(
        mut self,
        values: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        self.environment.extend(values.into_iter().map(|(key, value)| (key.into(), value.into())));
        self
    }
}

/// What is known of a process.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Report {
    /// Process id inside the world, while it runs.
    pub pid: Option<u32>,
    /// How often it ended by itself and was started again.
    pub restarts: u32,
    /// How it ended last.
    pub ended: Option<String>,
}

struct Entry {
    report: Report,
    wanted: watch::Sender<bool>,
}

/// All processes of a world; cheap to clone.
#[derive(Clone)]
pub struct Supervisor {
    logs: PathBuf,
    entries: Arc<Mutex<BTreeMap<String, Entry>>>,
}

impl Supervisor {
    pub fn new(directory: &Path) -> Self {
        Self { logs: directory.join("logs"), entries: Arc::default() }
    }

    /// Starts a process and keeps it running until [`Supervisor::stop`].
    ///
    /// # Errors
    /// When it cannot be started at all, or already runs.
    pub fn start(&self, recipe: Recipe) -> Result<()> {
        let wanted = watch::Sender::new(true);
        let listener = wanted.subscribe();
        {
            let mut entries = self.entries();
            let earlier = entries.get(&recipe.name).map(|entry| entry.report.clone()).unwrap_or_default();
            if earlier.pid.is_some() {
                bail!("{} runs already", recipe.name);
            }
            entries.insert(recipe.name.clone(), Entry { report: earlier, wanted });
        }
        let child = self.spawn(&recipe)?;
        let supervisor = self.clone();
        tokio::spawn(async move { supervisor.keep(recipe, child, listener).await });
        Ok(())
    }

    /// Sends a signal to a process and waits until it has ended; it is not started again.
    pub async fn stop(&self, name: &str, signal: Signal) -> Result<()> {
        let pid = {
            let entries = self.entries();
            let entry = entries.get(name).with_context(|| format!("there is no process {name}"))?;
            entry.wanted.send_replace(false);
            entry.report.pid
        };
        let Some(pid) = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else { return Ok(()) };
        match rustix::process::kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(error).with_context(|| format!("sending a signal to {name}")),
        }
        while self.entries().get(name).is_some_and(|entry| entry.report.pid.is_some()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// What is known of every process, by name.
    pub fn reports(&self) -> BTreeMap<String, Report> {
        self.entries().iter().map(|(name, entry)| (name.clone(), entry.report.clone())).collect()
    }

    /// Fails when a process that should run has ended by itself, with the end of its log.
    pub fn check(&self, name: &str) -> Result<()> {
        let report = self.reports().remove(name).with_context(|| format!("there is no process {name}"))?;
        match report.ended {
            Some(ended) if report.restarts > 0 => {
                let log = self.log(name);
                bail!(
                    "{name} ended with {ended}:\n{}\nits log is {}",
                    tools::progress::last_lines(&log, 10),
                    log.display()
                )
            }
            _ => Ok(()),
        }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, recipe: &Recipe) -> Result<Child> {
        let path = self.log(&recipe.name);
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))?;
        let errors = log.try_clone().context("sharing the log between stdout and stderr")?;
        let child = Command::new(&recipe.program)
            .args(&recipe.arguments)
            .envs(recipe.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("starting {}", recipe.program.display()))?;
        self.report(&recipe.name, |report| report.pid = child.id());
        Ok(child)
    }

    async fn keep(self, recipe: Recipe, mut child: Child, wanted: watch::Receiver<bool>) {
        loop {
            let ended = describe(child.wait().await);
            let again = *wanted.borrow();
            self.report(&recipe.name, |report| {
                report.pid = None;
                report.ended = Some(ended.clone());
                report.restarts += u32::from(again);
            });
            if !again {
                return;
            }
            tracing::warn!(process = recipe.name, ended, "starting it again");
            child = loop {
                tokio::time::sleep(RESTART_PAUSE).await;
                if !*wanted.borrow() {
                    return;
                }
                match self.spawn(&recipe) {
                    Ok(child) => break child,
                    Err(error) => tracing::error!("{error:#}"),
                }
            };
        }
    }

    fn report(&self, name: &str, edit: impl FnOnce(&mut Report)) {
        if let Some(entry) = self.entries().get_mut(name) {
            edit(&mut entry.report);
        }
    }
}

fn describe(result: std::io::Result<ExitStatus>) -> String {
    match result {
        Ok(status) => status.to_string(),
        Err(error) => format!("an unknown status: {error}"),
    }
}
