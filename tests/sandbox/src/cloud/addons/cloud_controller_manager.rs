//! The AWS cloud controller manager: the real one, talking to the emulator as the instance's role.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use tokio::sync::watch;

use super::Host;
use super::service_account::Credentials;
use crate::cloud::boot;
use crate::cloud::kubelet::process::{Program, State, supervise};
use crate::cloud::kubelet::variables;
use crate::cloud::machine::root::{LOGS, OURS};
use crate::emulator;

/// Puts the pod's credentials where client libraries look for them; seen by this process alone.
const MOUNT: &str = "\
directory=/run/secrets/kubernetes.io/serviceaccount
mkdir -p $directory && mount --bind \"$1\" $directory && shift && exec \"$@\"";

/// How long it must have run to count as ready.
const STARTUP: Duration = Duration::from_secs(2);

/// Runs it until it is cancelled.
pub async fn run(host: Arc<Host>, pod: Pod, container: Container, state: watch::Sender<State>) {
    let credentials = Credentials::obtain(&host, &pod).await;
    let program = program(&host, &pod, &container, &credentials);
    tokio::join!(supervise(program, state.clone()), settle(state), Credentials::renew(&host, &pod));
}

fn program(host: &Host, pod: &Pod, container: &Container, credentials: &Credentials) -> Program {
    let mut arguments: Vec<OsString> = ["--mount", "--", "/bin/sh", "-c", MOUNT, "sh"].into_iter().map(OsString::from).collect();
    arguments.push(credentials.directory.clone().into());
    arguments.push(format!("{OURS}/programs/aws-cloud-controller-manager").into());
    // A command, where there is one, names the program first.
    let words = container.command.iter().flatten().skip(1).chain(container.args.iter().flatten());
    arguments.extend(words.map(OsString::from));
    let server = host.server.parse::<axum::http::Uri>().unwrap_or_default();
    let mut environment = vec![
        ("PATH".to_owned(), boot::PATH.to_owned()),
        ("AWS_ENDPOINT_URL".to_owned(), emulator::ENDPOINT.to_owned()),
        ("KUBERNETES_SERVICE_HOST".to_owned(), server.host().unwrap_or_default().to_owned()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), server.port_u16().unwrap_or(443).to_string()),
    ];
    environment.extend(variables(container, pod));
    let log = PathBuf::from(LOGS).join(format!("machine-{}-{}.log", host.instance, pod.name_any()));
    Program { path: PathBuf::from("/usr/bin/unshare"), arguments, environment, log }
}

/// Makes it ready when it has run for a while.
async fn settle(state: watch::Sender<State>) {
    let mut changes = state.subscribe();
    loop {
        let since = changes.borrow_and_update().since;
        if since.is_some() && !state.borrow().ready {
            tokio::time::sleep(STARTUP).await;
            state.send_if_modified(|state| {
                let settled = state.since == since && !state.ready;
                state.ready |= settled;
                settled
            });
        }
        if changes.changed().await.is_err() {
            return;
        }
    }
}
