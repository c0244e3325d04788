//! The programs of the EFS CSI driver: a controller that makes access points, and on every node one through
//! which all mounts go.
//!
//! Timeouts, probes and tolerations are those of the release's chart: `charts/aws-efs-csi-driver/values.yaml`
//! and its templates in kubernetes-sigs/aws-efs-csi-driver at the tag in `versions.rs`.

use crate::Config;
use crate::config::{CONTROLLER_ARGS, NODE_ARGS};
use crate::objects::DRIVER;
use crate::role;
use crate::versions::Sidecars;
use plugin_sdk::csi::{
    Images, SOCKET_DIRECTORY, confined_container, host_path, kubelet_mount, mount, node_name, requests,
    sidecar,
};
use plugin_sdk::{facts, identity, settings};
use serde_json::{Value, json};

const CONTROLLER_HEALTH: u16 = 9909;
/// A port of the host: the Pods use its network.
const NODE_HEALTH: u16 = 9809;

pub fn controller(config: &Config, aws: &facts::Aws, images: &Images<'_>, tags: &Sidecars) -> Value {
    let address = "--csi-address=/var/lib/csi/sockets/pluginproxy/csi.sock";
    let verbosity = ["--v=", config.log_level.verbosity()].concat();
    let provision = [
        address,
        &verbosity,
        "--timeout=15s",
        "--feature-gates=Topology=true",
        "--extra-create-metadata",
        "--leader-election",
    ];
    let mut pod = json!({
        "serviceAccountName": DRIVER.controller_account,
        "priorityClassName": "system-cluster-critical",
        "securityContext": { "fsGroup": 0, "runAsGroup": 0, "runAsNonRoot": false, "runAsUser": 0 },
        "containers": [
            driver(config, aws, images),
            sidecar("csi-provisioner", images.sidecar("csi-provisioner", tags.provisioner), &provision),
            sidecar("liveness-probe", images.sidecar("livenessprobe", tags.liveness), &[address, "--health-port=9909"]),
        ],
        "volumes": [{ "name": "socket-dir", "emptyDir": {} }],
    });
    // Where nodes start with the taint that the driver's node part takes away, its controller still has to
    // start.
    let starting = json!({ "key": "efs.csi.aws.com/agent-not-ready", "operator": "Exists" });
    let tolerations: Vec<Value> = [starting].into_iter().chain(config.tolerations.iter().cloned()).collect();
    settings::place(
        &mut pod,
        config.role_arn.is_some(),
        &tolerations,
        &config.node_selector,
        DRIVER.controller,
    );
    if let Some(role) = &config.role_arn {
        identity::assume(&mut pod, &["efs-plugin"], role, &aws.region);
    }
    DRIVER.controller(config.replicas.unwrap_or(2), pod)
}

fn driver(config: &Config, aws: &facts::Aws, images: &Images<'_>) -> Value {
    let mut args: Vec<String> =
        vec!["--endpoint=unix:///var/lib/csi/sockets/pluginproxy/csi.sock".into(), "--logtostderr".into()];
    args.push(["--v=", config.log_level.verbosity()].concat());
    args.push(
        ["--delete-access-point-root-dir=", if config.delete_directories { "true" } else { "false" }]
            .concat(),
    );
    args.extend(role::tags_argument(config, &aws.tags).map(|tags| ["--tags=", &tags].concat()));
    args.extend(settings::extra_args(&config.extra_args, CONTROLLER_ARGS));
    json!({
        "name": "efs-plugin",
        "image": images.driver(),
        "args": args,
        // The second is for efs-utils, which mounts: it knows only that one, and asks the instance otherwise.
        "env": [node_name(), { "name": "AWS_REGION", "value": aws.region }, { "name": "AWS_DEFAULT_REGION", "value": aws.region }],
        "ports": [{ "name": "healthz", "containerPort": CONTROLLER_HEALTH }],
        "livenessProbe": probe(),
        "resources": config.resources.or("10m", "40Mi"),
        // It mounts the file system itself when it deletes directories.
        "securityContext": { "privileged": true },
        "volumeMounts": [mount("socket-dir", SOCKET_DIRECTORY)],
    })
}

/// Mounts end when this Pod ends, because they go through a program in it; so it is changed one node at a
/// time and never made anew.
pub fn node(config: &Config, images: &Images<'_>, tags: &Sidecars) -> Value {
    let address = "--csi-address=/csi/csi.sock";
    let registrar = confined_container(
        "csi-driver-registrar",
        images.sidecar("csi-node-driver-registrar", tags.registrar),
        &[address, "--kubelet-registration-path=/var/lib/kubelet/plugins/efs.csi.aws.com/csi.sock", "--v=2"],
        vec![mount("plugin-dir", "/csi"), mount("registration-dir", "/registration")],
    );
    let liveness = confined_container(
        "liveness-probe",
        images.sidecar("livenessprobe", tags.liveness),
        &[address, "--health-port=9809"],
        vec![mount("plugin-dir", "/csi")],
    );
    let pod = json!({
        "serviceAccountName": DRIVER.node_account,
        "priorityClassName": "system-node-critical",
        "hostNetwork": true,
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": { "kubernetes.io/os": "linux" },
        // Volumes are mounted wherever Pods run.
        "tolerations": [{ "operator": "Exists" }],
        "containers": [node_driver(config, images), registrar, liveness],
        "volumes": [
            host_path("kubelet-dir", "/var/lib/kubelet", "Directory"),
            host_path("plugin-dir", "/var/lib/kubelet/plugins/efs.csi.aws.com/", "DirectoryOrCreate"),
            host_path("registration-dir", "/var/lib/kubelet/plugins_registry/", "Directory"),
            host_path("efs-state-dir", "/var/run/efs", "DirectoryOrCreate"),
            host_path("efs-utils-config", "/var/amazon/efs", "DirectoryOrCreate"),
            host_path("efs-utils-config-legacy", "/etc/amazon/efs", "DirectoryOrCreate"),
        ],
    });
    DRIVER.node(1.into(), pod)
}

fn node_driver(config: &Config, images: &Images<'_>) -> Value {
    // The log level is not the user's: to change it would end all mounts once.
    let mut args: Vec<String> =
        ["--endpoint=unix:/csi/csi.sock", "--logtostderr", "--v=2"].map(str::to_owned).into();
    args.extend(settings::extra_args(&config.extra_args, NODE_ARGS));
    json!({
        "name": "efs-plugin",
        "image": images.driver(),
        "args": args,
        "env": [node_name()],
        "ports": [{ "name": "healthz", "containerPort": NODE_HEALTH }],
        "livenessProbe": probe(),
        "resources": requests(),
        "securityContext": { "privileged": true },
        "volumeMounts": [
            kubelet_mount(),
            mount("plugin-dir", "/csi"),
            mount("efs-state-dir", "/var/run/efs"),
            mount("efs-utils-config", "/var/amazon/efs"),
            mount("efs-utils-config-legacy", "/etc/amazon/efs-legacy"),
        ],
    })
}

/// The chart looks at a node's health every 2 s; every 10 s, as at the controller's, does as well, and a
/// change would end all mounts once.
fn probe() -> Value {
    json!({
        "httpGet": { "path": "/healthz", "port": "healthz" },
        "initialDelaySeconds": 10, "timeoutSeconds": 3, "periodSeconds": 10, "failureThreshold": 5,
    })
}
