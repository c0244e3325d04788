//! A program that is kept running, as a kubelet keeps a container running.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use tokio::process::Command;
use tokio::sync::watch;

/// Wait before a program that ended is started again.
const RESTART: Duration = Duration::from_secs(2);

/// What to run.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(String, String)>,
    /// Output is appended to this file.
    pub log: PathBuf,
}

/// How the program fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Since when it runs; absent while it does not.
    pub since: Option<Timestamp>,
    /// Whether it also does what it is for, as far as anybody has checked.
    pub ready: bool,
    pub restarts: i32,
    /// Why it does not run, or not as it should.
    pub message: Option<String>,
}

impl State {
    /// Notes that the program ended.
    pub fn end(&mut self, message: Option<String>) {
        *self = Self { since: None, ready: false, restarts: self.restarts + 1, message };
    }
}

/// Runs the program until it is cancelled, which kills it; notes in `state` when it starts and ends.
pub async fn supervise(program: Program, state: watch::Sender<State>) {
    loop {
        match start(&program) {
            Ok(mut child) => {
                state.send_modify(|state| state.since = Some(Timestamp::now()));
                let status = child.wait().await;
                tracing::warn!(program = %program.path.display(), ?status, "ended");
            }
            Err(error) => tracing::error!(%error, program = %program.path.display(), "starting"),
        }
        state.send_modify(|state| state.end(None));
        tokio::time::sleep(RESTART).await;
    }
}

fn start(program: &Program) -> std::io::Result<tokio::process::Child> {
    let output = OpenOptions::new().create(true).append(true).open(&program.log)?;
    Command::new(&program.path)
        .args(&program.arguments)
        .env_clear()
        .envs(program.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .kill_on_drop(true)
        .spawn()
}
