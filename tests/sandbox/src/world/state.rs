//! How far a world has come up, kept in a file that processes outside read.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What the file says.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct State {
    /// The step that is being taken now.
    pub step: String,
    pub done: Vec<Done>,
    pub ready: bool,
    /// Why the world could not come up.
    pub failed: Option<String>,
}

/// A step that was taken.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Done {
    pub step: String,
    pub time: Duration,
}

impl State {
    /// Reads the file of the world in `directory`; `None` before it was first written.
    pub fn read(directory: &Path) -> Option<Self> {
        let text = std::fs::read(file(directory)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Writes the file. One writer per world.
pub struct Reporter {
    file: PathBuf,
    inner: Mutex<(State, Instant)>,
}

impl Reporter {
    pub fn new(directory: &Path) -> Self {
        Self { file: file(directory), inner: Mutex::new((State::default(), Instant::now())) }
    }

    /// Ends the current step and begins the next.
    pub fn step(&self, step: &str) {
        tracing::info!(step, "begins");
        self.change(|state, started| {
            finish(state, started);
            step.clone_into(&mut state.step);
        });
    }

    /// Everything is up.
    pub fn ready(&self) {
        tracing::info!("ready");
        self.change(|state, started| {
            finish(state, started);
            state.step.clear();
            state.ready = true;
        });
    }

    /// The world cannot come up, or cannot go on.
    pub fn failed(&self, error: &anyhow::Error) {
        tracing::error!("{error:#}");
        self.change(|state, _| {
            state.failed = Some(format!("{error:#}"));
            state.ready = false;
        });
    }

    fn change(&self, edit: impl FnOnce(&mut State, &mut Instant)) {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (state, started) = &mut *inner;
        edit(state, started);
        if let Err(error) = write(&self.file, state) {
            tracing::error!("{error:#}");
        }
    }
}

fn finish(state: &mut State, started: &mut Instant) {
    if !state.step.is_empty() {
        state.done.push(Done { step: std::mem::take(&mut state.step), time: started.elapsed() });
    }
    *started = Instant::now();
}

fn file(directory: &Path) -> PathBuf {
    directory.join("state.json")
}

fn write(file: &Path, state: &State) -> Result<()> {
    let text = serde_json::to_vec_pretty(state).context("encoding the state")?;
    write_atomically(file, &text)
}

/// Writes a file so that a reader sees either the old or the new text whole.
pub fn write_atomically(file: &Path, text: &[u8]) -> Result<()> {
    let partial = file.with_extension("partial");
    std::fs::write(&partial, text).with_context(|| format!("writing {}", partial.display()))?;
    std::fs::rename(&partial, file).with_context(|| format!("renaming to {}", file.display()))
}
