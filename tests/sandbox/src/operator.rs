//! The program under test, run inside a world with the rights of its ServiceAccount and nothing more.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use crate::management::{ApiServer, Credentials, Kubectl, kubeconfig};
use crate::world::options::Options;
use crate::world::process::{Recipe, Supervisor};
use crate::world::{World, enter};
use crate::{emulator, paths};

/// Its access key, which may do what `deploy/iam` allows and nothing else.
pub const ACCESS_KEY: &str = "operator";
/// Its name among the world's processes, and its log's.
pub const NAME: &str = "operator";
/// Namespace and ServiceAccount of the manifests in `deploy/`.
const NAMESPACE: &str = "cluster-operator-system";
/// File name of the program.
const PROGRAM: &str = "cluster-operator";
const SERVICE_ACCOUNT: &str = "cluster-operator";
const SERVER: &str = "https://127.0.0.1:6443";
/// Inside the world only this process listens here.
const METRICS_ADDRESS: &str = "127.0.0.1:8080";
const HEALTH_ADDRESS: &str = "127.0.0.1:8081";

/// The operator of one world.
pub struct Operator {
    supervisor: Supervisor,
    kubectl: Kubectl,
    program: PathBuf,
    arguments: Vec<String>,
    kubeconfig: PathBuf,
}

impl Operator {
    pub fn new(world: &World, supervisor: &Supervisor, options: &Options) -> Self {
        Self {
            supervisor: supervisor.clone(),
            kubectl: Kubectl::new(world),
            program: options.operator.clone().unwrap_or_else(default_program),
            arguments: options.operator_arguments.clone(),
            kubeconfig: world.management().join("operator.kubeconfig"),
        }
    }

    /// Makes its kubeconfig: a token of its ServiceAccount.
    ///
    /// # Errors
    /// When the program or its ServiceAccount is missing.
    pub async fn prepare(&mut self, server: &ApiServer) -> Result<()> {
        if !self.program.exists() {
            bail!(
                "there is no operator at {}; `cargo build -p cluster-operator` makes it",
                self.program.display()
            );
        }
        let token =
            self.kubectl.token(NAMESPACE, SERVICE_ACCOUNT).await.context("making the operator's token")?;
        let text = kubeconfig(SERVER, &server.authority().certificate, &Credentials::Token(token));
        std::fs::write(&self.kubeconfig, text)
            .with_context(|| format!("writing {}", self.kubeconfig.display()))
    }

    /// Starts it; it is started again whenever it ends by itself.
    pub async fn start(&mut self) -> Result<()> {
        if !self.kubeconfig.exists() {
            bail!("this sandbox was brought up without an operator");
        }
        let recipe = Recipe::new(NAME, &self.program)
            .arguments(["run", "--metrics-address", METRICS_ADDRESS, "--health-address", HEALTH_ADDRESS])
            .arguments(self.arguments.clone())
            .environment([
                ("POD_NAME", format!("{NAME}-0")),
                ("KUBECONFIG", self.kubeconfig.display().to_string()),
                ("AWS_ENDPOINT_URL", emulator::ENDPOINT.to_owned()),
                ("AWS_REGION", enter::REGION.to_owned()),
                ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
                ("AWS_SECRET_ACCESS_KEY", "operator".to_owned()),
                ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ]);
        self.supervisor.start(recipe)
    }

    /// Ends it: politely with SIGTERM, or not at all politely with SIGKILL.
    pub async fn stop(&mut self, politely: bool) -> Result<()> {
        self.supervisor.stop(NAME, if politely { Signal::TERM } else { Signal::KILL }).await
    }
}

/// What was built together with this program, or else where cargo puts it.
pub fn default_program() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    if let Some(beside) = own.ancestors().skip(1).take(2).map(|it| it.join(PROGRAM)).find(|it| it.is_file()) {
        return beside;
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| paths::source().join("target"), PathBuf::from);
    target.join("debug").join(PROGRAM)
}
