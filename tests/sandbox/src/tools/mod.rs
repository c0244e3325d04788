//! The programs that the bed runs: found when the right version is there, built or unpacked into a cache when not.
//!
//! Nothing is ever installed on the machine itself.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Paths of the programs the bed runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Tools {
    /// Directory with etcd, etcdctl, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kubeadm,
    /// capi-core, capi-bootstrap, capi-controlplane, clusterctl, kwok and aws-cloud-controller-manager.
    pub bin: PathBuf,
    /// Python environment: `bin/python` and `bin/aws`.
    pub python: PathBuf,
    /// The unpacked Debian packages of cloud-init: `usr/bin/cloud-init` and `usr/lib/python3/dist-packages`.
    pub cloud_init: PathBuf,
}
