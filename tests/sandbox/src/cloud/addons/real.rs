//! Containers whose own program the bed has built: the AWS cloud controller manager, and the controller of
//! the EBS CSI driver with its sidecars. Each runs as a process with what its manifest says and what a
//! kubelet gives it.
//!
//! Left out are its user, its limits, and an own network: its address is the machine's.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::core::v1::{Container, Pod};
use kube::ResourceExt;
use tokio::sync::watch;

use super::Host;
use super::aws::metadata::Metadata;
use super::probe::{Check, Probes};
use super::service_account::Credentials;
use super::volumes::Volumes;
use crate::cloud::boot;
use crate::cloud::container::variables;
use crate::cloud::machine::root::{LOGS, OURS};
use crate::cloud::process::{Program, State, supervise};
use crate::emulator;

/// Programs of the EBS CSI driver's controller by the image's name.
const EBS: [(&str, &str); 4] = [
    ("/aws-ebs-csi-driver", "aws-ebs-csi-driver"),
    ("/csi-attacher", "csi-attacher"),
    ("/csi-provisioner", "csi-provisioner"),
    ("/csi-resizer", "csi-resizer"),
];

/// Gives the process a name of its own among replicas and puts what is mounted where it looks for it; nobody
/// else sees either.
const ENTER: &str = "\
hostname \"$1\" || exit 1
shift
while [ \"$1\" != -- ]; do
  mkdir -p \"$2\" && mount --bind \"$1\" \"$2\" || exit 1
  shift 2
done
shift && exec \"$@\"";

/// Where client libraries look for the pod's credentials.
const SERVICE_ACCOUNT: &str = "/run/secrets/kubernetes.io/serviceaccount";
/// How long one without a probe must have run to count as ready.
const STARTUP: Duration = Duration::from_secs(2);
/// Wait before one that was ended is started again.
const RESTART: Duration = Duration::from_secs(2);

/// The pod's containers that the bed has programs for, each with the program's name.
pub fn programs(pod: &Pod) -> Vec<(Container, &'static str)> {
    let containers = || pod.spec.iter().flat_map(|spec| &spec.containers);
    let is = |container: &&Container, part: &str| {
        container.image.as_deref().is_some_and(|image| image.contains(part))
    };
    if let Some(container) = containers().find(|container| is(container, "cloud-controller-manager")) {
        return vec![(container.clone(), "aws-cloud-controller-manager")];
    }
    // On nodes the same image mounts, for which there is nothing to mount.
    let controls = |container: &&Container| {
        is(container, EBS[0].0)
            && container.args.iter().flatten().next().is_some_and(|mode| mode == "controller")
    };
    if containers().find(controls).is_none() {
        return Vec::new();
    }
    let program = |container: &Container| {
        EBS.iter().find(|(part, _)| is(&container, part)).map(|(_, program)| *program)
    };
    containers().filter_map(|container| Some((container.clone(), program(container)?))).collect()
}

/// Runs a pod's programs until it is cancelled.
pub async fn run(host: Arc<Host>, pod: Pod, programs: Vec<(watch::Sender<State>, Container, &'static str)>) {
    let credentials = Credentials::obtain(&host, &pod).await;
    let all = programs.into_iter().map(|(state, container, program)| {
        let pod = Owned { host: &host, pod: &pod, credentials: &credentials };
        async move { pod.run(&container, program, state).await }
    });
    tokio::join!(join_all(all), Credentials::renew(&host, &pod));
}

struct Owned<'a> {
    host: &'a Host,
    pod: &'a Pod,
    credentials: &'a Credentials,
}

impl Owned<'_> {
    async fn run(&self, container: &Container, program: &str, state: watch::Sender<State>) {
        let volumes = Volumes::obtain(self.host, self.pod, container, &state).await;
        let program = self.program(container, program, &volumes).await;
        let probes = Probes::of(self.pod, container, |path| volumes.path(path));
        let work = async {
            loop {
                let why = tokio::select! {
                    () = supervise(program.clone(), state.clone()) => None,
                    () = ready(probes.readiness.as_ref(), &state) => None,
                    why = alive(probes.liveness.as_ref(), &state) => Some(why),
                };
                tracing::warn!(
                    pod = self.pod.name_any(),
                    container = container.name,
                    ?why,
                    "is started again"
                );
                state.send_modify(|state| state.end(why));
                tokio::time::sleep(RESTART).await;
            }
        };
        tokio::join!(work, volumes.maintain(self.host, self.pod));
    }

    async fn program(&self, container: &Container, program: &str, volumes: &Volumes) -> Program {
        let own_network = !self.pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default();
        let environment = self.environment(container, own_network).await;
        let name = if own_network { self.pod.name_any() } else { self.host.node.clone() };
        let mut arguments: Vec<OsString> =
            ["--mount", "--uts", "--", "/bin/sh", "-c", ENTER, "sh"].map(OsString::from).into();
        arguments.push(name.into());
        arguments.extend([self.credentials.directory.clone().into(), SERVICE_ACCOUNT.into()]);
        for (inside, source) in volumes.mounts() {
            arguments.extend([source.into(), inside.into()]);
        }
        arguments.extend(["--".into(), format!("{OURS}/programs/{program}").into()]);
        // A command, where there is one, names the program first.
        let words = container.command.iter().flatten().skip(1).chain(container.args.iter().flatten());
        arguments.extend(words.map(|word| OsString::from(expand(word, &environment))));
        let log = PathBuf::from(LOGS).join(format!(
            "machine-{}-{}-{}.log",
            self.host.instance,
            self.pod.name_any(),
            container.name
        ));
        Program { path: PathBuf::from("/usr/bin/unshare"), arguments, environment, log }
    }

    async fn environment(&self, container: &Container, own_network: bool) -> Vec<(String, String)> {
        let server = self.host.server.parse::<axum::http::Uri>().unwrap_or_default();
        let mut environment = vec![
            ("PATH".to_owned(), boot::PATH.to_owned()),
            ("AWS_ENDPOINT_URL".to_owned(), emulator::ENDPOINT.to_owned()),
            // Go's SDK looks for its credentials before it has read the one above.
            ("AWS_ENDPOINT_URL_STS".to_owned(), emulator::ENDPOINT.to_owned()),
            ("KUBERNETES_SERVICE_HOST".to_owned(), server.host().unwrap_or_default().to_owned()),
            ("KUBERNETES_SERVICE_PORT".to_owned(), server.port_u16().unwrap_or(443).to_string()),
        ];
        environment.extend(variables(container, self.pod));
        let has_role = environment.iter().any(|(name, _)| name == "AWS_ROLE_ARN");
        // From the machine's network the metadata service is nearer than it would be.
        if own_network && !has_role && metadata(2).await.is_err() {
            environment.push(("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned()));
        }
        environment
    }
}

/// Whether the metadata service answers who is so many hops away.
async fn metadata(hops: u32) -> anyhow::Result<String> {
    Metadata::new(hops).get("meta-data/instance-id").await
}

/// Makes it ready as its readiness probe says, for ever; without one, when it has run for a while.
async fn ready(check: Option<&Check>, state: &watch::Sender<State>) {
    let Some(check) = check else { return settle(state).await };
    let mut changes = state.subscribe();
    let mut failures = 0;
    loop {
        running(&mut changes, check.delay).await;
        failures = if check.passes().await { 0 } else { failures + 1 };
        let ready = failures == 0;
        state.send_if_modified(|state| {
            let changed =
                state.ready != ready && state.since.is_some() && (ready || failures >= check.failures);
            state.ready ^= changed;
            changed
        });
        tokio::time::sleep(check.period).await;
    }
}

/// Says why it has to be started again, as soon as its liveness probe has failed too often.
async fn alive(check: Option<&Check>, state: &watch::Sender<State>) -> String {
    let Some(check) = check else { return std::future::pending().await };
    let mut changes = state.subscribe();
    let mut failures = 0;
    loop {
        running(&mut changes, check.delay).await;
        failures = if check.passes().await { 0 } else { failures + 1 };
        if failures >= check.failures {
            return "the liveness probe failed".to_owned();
        }
        tokio::time::sleep(check.period).await;
    }
}

/// Waits until it has run for so long.
async fn running(changes: &mut watch::Receiver<State>, long: Duration) {
    loop {
        let since = changes.borrow_and_update().since;
        let ran = since.and_then(|since| {
            Duration::try_from(k8s_openapi::jiff::Timestamp::now().duration_since(since)).ok()
        });
        match ran.map(|ran| long.saturating_sub(ran)) {
            Some(left) if left.is_zero() => return,
            Some(left) => tokio::time::sleep(left).await,
            None if changes.changed().await.is_err() => return,
            None => {}
        }
    }
}

/// Makes it ready when it has run for a while, and again after every start.
async fn settle(state: &watch::Sender<State>) {
    let mut changes = state.subscribe();
    loop {
        running(&mut changes, STARTUP).await;
        state.send_if_modified(|state| {
            let settled = state.since.is_some() && !state.ready;
            state.ready |= settled;
            settled
        });
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Puts values of the environment in the place of `$(NAME)`, as a kubelet does in arguments.
fn expand(word: &str, environment: &[(String, String)]) -> String {
    environment.iter().fold(word.to_owned(), |word, (name, value)| word.replace(&format!("$({name})"), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: &[(&str, &[&str])]) -> Pod {
        let containers: Vec<_> = containers
            .iter()
            .map(
                |(image, args)| json!({"name": "c", "image": format!("registry/x/{image}:v1"), "args": args}),
            )
            .collect();
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": containers}}))
            .expect("a pod")
    }

    fn names(pod: &Pod) -> Vec<&'static str> {
        programs(pod).into_iter().map(|(_, program)| program).collect()
    }

    #[test]
    fn only_the_controller_of_ebs_runs_for_real_with_its_sidecars() {
        let sidecars: [(&str, &[&str]); 2] = [("csi-provisioner", &[]), ("livenessprobe", &[])];
        let with = |driver: (&str, &'static [&'static str])| pod(&[driver, sidecars[0], sidecars[1]]);
        assert_eq!(
            names(&with(("aws-ebs-csi-driver", &["controller"]))),
            ["aws-ebs-csi-driver", "csi-provisioner"]
        );
        assert!(names(&with(("aws-ebs-csi-driver", &["node"]))).is_empty());
        assert!(names(&with(("aws-efs-csi-driver", &["controller"]))).is_empty());
        assert_eq!(names(&pod(&[("cloud-controller-manager", &[])])), ["aws-cloud-controller-manager"]);
    }
}
