//! The bed as tests and the demo use it: a world that ends with the value that stands for it.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::control::{self, Request};
use crate::emulator;
use crate::kubeconfig::Cluster;
use crate::world::launch::{self, Running};
use crate::world::options::Options;
use crate::world::process::Report;

const POLL: Duration = Duration::from_millis(500);

/// A world that runs. Dropping it kills the world; so does the end of this process, however it ends.
pub struct Bed {
    running: Running,
    emulator: emulator::Client,
    launcher: Child,
}

impl Bed {
    /// Brings a world up and waits until it is ready; progress goes to stderr.
    ///
    /// # Errors
    /// With the reason and the path of the logs; nothing is left running then.
    pub async fn up(options: Options) -> Result<Self> {
        let options = Options { tied: true, ..options };
        let sandbox = program()?;
        let up = tokio::task::spawn_blocking(move || launch::up(&options, &sandbox));
        let (running, launcher) = up.await.context("bringing the sandbox up")??;
        let emulator = emulator::Client::through(&running.directory.join("emulator.sock"))?;
        Ok(Self { running, emulator, launcher })
    }

    /// Client of the AWS emulator's control interface.
    pub fn emulator(&self) -> &emulator::Client {
        &self.emulator
    }

    /// The world's directory: `logs/` and more.
    pub fn directory(&self) -> &Path {
        &self.running.directory
    }

    /// The world as the commands see it.
    pub fn running(&self) -> &Running {
        &self.running
    }

    /// Runs a program inside to its end and returns what it printed.
    ///
    /// # Errors
    /// When it ends with another status than 0; the message has what it wrote to stderr.
    pub async fn exec(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Result<String> {
        self.running.exec(program, arguments, None).await
    }

    /// Runs kubectl against the management cluster.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        self.exec("kubectl", arguments).await
    }

    /// Runs kubectl with `-o json` and returns what it printed.
    pub async fn kubectl_json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.kubectl(&[arguments, &["-o", "json"]].concat()).await?;
        serde_json::from_str(&text).context("reading kubectl's JSON")
    }

    /// Runs `aws` against the emulator and returns what it printed, as JSON.
    pub async fn aws(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.exec("aws", &[arguments, &["--output", "json"]].concat()).await?;
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).context("reading aws' JSON")
    }

    /// Applies YAML to the management cluster, as a user does.
    pub async fn apply(&self, yaml: &str) -> Result<String> {
        self.running.exec("kubectl", &["apply", "-f", "-"], Some(yaml)).await
    }

    /// The workload cluster `name` of a namespace, once its kubeconfig Secret exists.
    pub async fn workload(&self, namespace: &str, name: &str) -> Result<Workload<'_>> {
        let cluster = Cluster { namespace: namespace.to_owned(), name: name.to_owned() };
        let kubeconfig = cluster.kubeconfig(&self.running).await?;
        Ok(Workload { bed: self, kubeconfig })
    }

    /// Asks again and again until `check` returns something.
    ///
    /// # Errors
    /// After `timeout`, with `what` and the reason that `check` gave last; `check` says "not yet" with an
    /// error.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        timeout: Duration,
        mut check: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + timeout;
        loop {
            match check().await {
                Ok(value) => return Ok(value),
                Err(error) if Instant::now() > deadline => {
                    return Err(error.context(format!(
                        "waited {} s for {what}; logs are in {}",
                        timeout.as_secs(),
                        self.running.directory.join("logs").display()
                    )));
                }
                Err(_) => tokio::time::sleep(POLL).await,
            }
        }
    }

    /// Ends the operator with SIGKILL and leaves it dead.
    pub async fn kill_operator(&self) -> Result<()> {
        control::ask(&self.running.directory, Request::OperatorKill).await.map(drop)
    }

    /// Ends the operator with SIGTERM and leaves it dead.
    pub async fn stop_operator(&self) -> Result<()> {
        control::ask(&self.running.directory, Request::OperatorStop).await.map(drop)
    }

    /// Starts the operator again.
    pub async fn start_operator(&self) -> Result<()> {
        control::ask(&self.running.directory, Request::OperatorStart).await.map(drop)
    }

    /// The world's long-running processes by name.
    pub async fn processes(&self) -> Result<std::collections::BTreeMap<String, Report>> {
        Ok(control::ask(&self.running.directory, Request::Processes).await?.processes)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if let Err(error) = launch::kill(&self.running.processes) {
            tracing::error!("{error:#}");
        }
        // It was killed just now; this only collects it.
        let _ = self.launcher.wait();
    }
}

/// A workload cluster of a bed.
pub struct Workload<'a> {
    bed: &'a Bed,
    kubeconfig: PathBuf,
}

impl Workload<'_> {
    /// Runs kubectl against this cluster.
    pub async fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let kubeconfig = self.kubeconfig.display().to_string();
        self.bed.kubectl(&[&["--kubeconfig", &kubeconfig, "--request-timeout=20s"], arguments].concat()).await
    }

    /// Runs kubectl with `-o json` and returns what it printed.
    pub async fn kubectl_json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.kubectl(&[arguments, &["-o", "json"]].concat()).await?;
        serde_json::from_str(&text).context("reading kubectl's JSON")
    }

    /// Applies YAML, as a user does.
    pub async fn apply(&self, yaml: &str) -> Result<String> {
        let kubeconfig = self.kubeconfig.display().to_string();
        let arguments = ["--kubeconfig", &kubeconfig, "apply", "-f", "-"];
        self.bed.running.exec("kubectl", &arguments, Some(yaml)).await
    }
}

/// The bed's own program: this one, or its neighbour in the target directory when this one is a test.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("finding this program")?;
    if own.file_name().is_some_and(|name| name == "sandbox") {
        return Ok(own);
    }
    let found = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|directory| directory.join("sandbox"))
        .find(|file| file.is_file());
    found.with_context(|| {
        format!("there is no program sandbox beside {}; `cargo build -p sandbox` makes it", own.display())
    })
}
