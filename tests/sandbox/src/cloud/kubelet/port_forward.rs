//! The kubelet's port on control-plane machines, as far as KubeadmControlPlane needs it: port-forward to
//! etcd.
//!
//! kwok serves it and does nothing else: it manages no node and no pod.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cloud::boot;
use crate::cloud::machine::Specification;
use crate::cloud::machine::root::{LOGS, OURS};
use crate::cloud::process::{Program, State, supervise};

const KUBECONFIG: &str = "/etc/kubernetes/admin.conf";
const ETCD: &str = "/etc/kubernetes/manifests/etcd.yaml";
const CONFIGURATION: &str = "/var/lib/kubelet/kwok.yaml";
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet.crt";
const KEY: &str = "/var/lib/kubelet/pki/kubelet.key";

/// The port-forward, and one stage for nodes and one for pods that never match: without any, kwok ends.
const KWOK: &str = "\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: etcd}
spec: {forwards: [{ports: [2379], target: {address: 127.0.0.1, port: 2379}}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-never}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector: {matchLabels: {never: never}}
  next: {statusTemplate: ''}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-never}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector: {matchLabels: {never: never}}
  next: {statusTemplate: ''}
";

/// Serves the port once the machine turns out to be a control plane; ends when dropped.
pub fn start(machine: &Specification) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let (instance, address) = (machine.instance.clone(), machine.address.clone());
    tasks.spawn(async move {
        while !(Path::new(KUBECONFIG).exists() && Path::new(ETCD).exists()) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        if let Err(error) = prepare(&address) {
            tracing::error!("preparing the kubelet's port: {error:#}");
            return;
        }
        let log = PathBuf::from(LOGS).join(format!("machine-{instance}-port-forward.log"));
        supervise(program(&address, log), watch::Sender::new(State::default())).await;
    });
    tasks
}

fn prepare(address: &str) -> Result<()> {
    let pair = rcgen::generate_simple_self_signed([address.to_owned()]).context("making a certificate")?;
    let files =
        [(CONFIGURATION, KWOK), (CERTIFICATE, &pair.cert.pem()), (KEY, &pair.signing_key.serialize_pem())];
    files.into_iter().try_for_each(|(path, content)| {
        std::fs::write(path, content).with_context(|| format!("writing {path}"))
    })
}

fn program(address: &str, log: PathBuf) -> Program {
    let arguments = [
        "--config",
        CONFIGURATION,
        "--kubeconfig",
        KUBECONFIG,
        "--manage-nodes-with-label-selector",
        "none=none",
        "--node-ip",
        address,
        "--node-port",
        "10250",
        "--server-address",
        "0.0.0.0:10250",
        "--tls-cert-file",
        CERTIFICATE,
        "--tls-private-key-file",
        KEY,
    ];
    Program {
        path: Path::new(OURS).join("programs/kwok"),
        arguments: arguments.map(Into::into).to_vec(),
        environment: vec![
            ("PATH".to_owned(), boot::PATH.to_owned()),
            ("HOME".to_owned(), "/root".to_owned()),
        ],
        log,
    }
}
