//! Commands that run inside a world, started from outside.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use tokio::io::AsyncWriteExt;

use super::launch::Running;
use crate::emulator;

/// Variables of the user's that would lead a command out of the world, or into the wrong account.
const FOREIGN: [&str; 14] = [
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "REQUESTS_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_ROLE_ARN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
];

/// Region that commands inside use unless they say otherwise.
pub const REGION: &str = "us-east-1";

impl Running {
    /// The administrator's kubeconfig of the management cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        kubeconfig(&self.directory)
    }

    /// A command that runs `program` inside, with the tools on its `PATH`, the management cluster as its
    /// cluster and the emulator as its AWS.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.processes.first.pid));
        if self.processes.user_namespace {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--mount", "--net", "--pid", "--", "env"]);
        // Entering a mount namespace leads to its root.
        if let Ok(directory) = std::env::current_dir() {
            command.arg("-C").arg(directory);
        }
        command.arg(program);
        for name in FOREIGN {
            command.env_remove(name);
        }
        command.envs(environment(&self.directory)).env("PATH", self.tools.search_path());
        command
    }

    /// Runs a program inside to its end and returns what it printed.
    ///
    /// # Errors
    /// When it ends with another status than 0; the message has what it wrote to stderr.
    pub async fn exec(
        &self,
        program: impl AsRef<std::ffi::OsStr>,
        arguments: &[&str],
        input: Option<&str>,
    ) -> Result<String> {
        let name = program.as_ref().to_string_lossy().into_owned();
        let mut command = tokio::process::Command::from(self.command(program));
        command.args(arguments).kill_on_drop(true);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("starting {name}"))?;
        if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
            // A program that ends before it has read everything says why on stderr.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        let output = child.wait_with_output().await.with_context(|| format!("waiting for {name}"))?;
        text(&name, arguments, output)
    }
}

fn text(name: &str, arguments: &[&str], output: Output) -> Result<String> {
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{name} {}: {}: {}", arguments.join(" "), output.status, errors.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} printed something that is not UTF-8"))
}

/// Where the administrator's kubeconfig of a world lies.
pub fn kubeconfig(directory: &Path) -> PathBuf {
    directory.join("management/admin.kubeconfig")
}

/// What a command inside is told about its cluster and its AWS.
pub fn environment(directory: &Path) -> [(&'static str, String); 8] {
    [
        // It would ask the internet, which is not there, for most of a minute.
        ("CLUSTERCTL_DISABLE_VERSIONCHECK", "true".to_owned()),
        ("KUBECONFIG", kubeconfig(directory).display().to_string()),
        ("AWS_ENDPOINT_URL", emulator::ENDPOINT.to_owned()),
        ("AWS_REGION", REGION.to_owned()),
        ("AWS_DEFAULT_REGION", REGION.to_owned()),
        ("AWS_ACCESS_KEY_ID", "sandbox".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "sandbox".to_owned()),
        ("AWS_PAGER", String::new()),
    ]
}
