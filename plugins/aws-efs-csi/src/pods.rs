//! The programs of the EFS CSI driver: a controller that makes access points, and on every node one through
//! which all mounts go.
//!
//! Timeouts, probes and tolerations are those of the release's chart: `charts/aws-efs-csi-driver/values.yaml`
//! and its templates in kubernetes-sigs/aws-efs-csi-driver at the tag in `versions.rs`.

use crate::Config;
use crate::config::{CONTROLLER_ARGS, NODE_ARGS};
use crate::objects::{CONTROLLER, CONTROLLER_ACCOUNT, NAMESPACE, NODE, NODE_ACCOUNT};
use crate::role;
use crate::versions::Sidecars;
use plugin_sdk::{facts, identity, settings};
use serde_json::{Value, json};

/// Where images come from.
pub struct Images<'a> {
    pub registry: &'a str,
    /// Tag of the driver.
    pub tag: &'a str,
    pub sidecars: &'a Sidecars,
}

impl Images<'_> {
    fn driver(&self) -> String {
        [self.registry, "/efs-csi-driver/amazon/aws-efs-csi-driver:", self.tag].concat()
    }

    fn sidecar(&self, name: &str, tag: &str) -> String {
        [self.registry, "/csi-components/", name, ":", tag].concat()
    }
}

const SOCKET_DIRECTORY: &str = "/var/lib/csi/sockets/pluginproxy/";
const CONTROLLER_HEALTH: u16 = 9909;
/// A port of the host: the Pods use its network.
const NODE_HEALTH: u16 = 9809;

pub fn controller(config: &Config, aws: &facts::Aws, images: &Images<'_>) -> Value {
    let labels = json!({ "app": CONTROLLER });
    let sidecar = |name: &str, image: String, args: &[&str]| {
        json!({
            "name": name,
            "image": image,
            "args": args,
            "resources": { "requests": { "cpu": "10m", "memory": "40Mi" } },
            "securityContext": confined(),
            "volumeMounts": [{ "name": "socket-dir", "mountPath": SOCKET_DIRECTORY }],
        })
    };
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
        "serviceAccountName": CONTROLLER_ACCOUNT,
        "priorityClassName": "system-cluster-critical",
        "securityContext": { "fsGroup": 0, "runAsGroup": 0, "runAsNonRoot": false, "runAsUser": 0 },
        "containers": [
            driver(config, aws, images),
            sidecar("csi-provisioner", images.sidecar("csi-provisioner", images.sidecars.provisioner), &provision),
            sidecar("liveness-probe", images.sidecar("livenessprobe", images.sidecars.liveness), &[address, "--health-port=9909"]),
        ],
        "volumes": [{ "name": "socket-dir", "emptyDir": {} }],
    });
    // Where nodes start with the taint that the driver's node part takes away, its controller still has to
    // start.
    let starting = json!({ "key": "efs.csi.aws.com/agent-not-ready", "operator": "Exists" });
    let tolerations: Vec<Value> = [starting].into_iter().chain(config.tolerations.iter().cloned()).collect();
    settings::place(&mut pod, config.role_arn.is_some(), &tolerations, &config.node_selector, CONTROLLER);
    if let Some(role) = &config.role_arn {
        identity::assume(&mut pod, &["efs-plugin"], role, &aws.region);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": CONTROLLER, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "replicas": config.replicas.unwrap_or(2),
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
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
        "volumeMounts": [{ "name": "socket-dir", "mountPath": SOCKET_DIRECTORY }],
    })
}

/// Mounts end when this Pod ends, because they go through a program in it; so it is changed one node at a
/// time and never made anew.
pub fn node(config: &Config, images: &Images<'_>) -> Value {
    let labels = json!({ "app": NODE });
    let requests = json!({ "requests": { "cpu": "10m", "memory": "40Mi" } });
    let mount = |name: &str, path: &str| json!({ "name": name, "mountPath": path });
    let host = |name: &str, path: &str, kind: &str| json!({ "name": name, "hostPath": { "path": path, "type": kind } });
    let pod = json!({
        "serviceAccountName": NODE_ACCOUNT,
        "priorityClassName": "system-node-critical",
        "hostNetwork": true,
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": { "kubernetes.io/os": "linux" },
        // Volumes are mounted wherever Pods run.
        "tolerations": [{ "operator": "Exists" }],
        "containers": [
            node_driver(config, images, &requests),
            {
                "name": "csi-driver-registrar",
                "image": images.sidecar("csi-node-driver-registrar", images.sidecars.registrar),
                "args": [
                    "--csi-address=/csi/csi.sock",
                    "--kubelet-registration-path=/var/lib/kubelet/plugins/efs.csi.aws.com/csi.sock",
                    "--v=2",
                ],
                "resources": requests,
                "securityContext": confined(),
                "volumeMounts": [mount("plugin-dir", "/csi"), mount("registration-dir", "/registration")],
            },
            {
                "name": "liveness-probe",
                "image": images.sidecar("livenessprobe", images.sidecars.liveness),
                "args": ["--csi-address=/csi/csi.sock", "--health-port=9809"],
                "resources": requests,
                "securityContext": confined(),
                "volumeMounts": [mount("plugin-dir", "/csi")],
            },
        ],
        "volumes": [
            host("kubelet-dir", "/var/lib/kubelet", "Directory"),
            host("plugin-dir", "/var/lib/kubelet/plugins/efs.csi.aws.com/", "DirectoryOrCreate"),
            host("registration-dir", "/var/lib/kubelet/plugins_registry/", "Directory"),
            host("efs-state-dir", "/var/run/efs", "DirectoryOrCreate"),
            host("efs-utils-config", "/var/amazon/efs", "DirectoryOrCreate"),
            host("efs-utils-config-legacy", "/etc/amazon/efs", "DirectoryOrCreate"),
        ],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": NODE, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": 1 } },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
}

fn node_driver(config: &Config, images: &Images<'_>, requests: &Value) -> Value {
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
        "resources": requests,
        "securityContext": { "privileged": true },
        "volumeMounts": [
            { "name": "kubelet-dir", "mountPath": "/var/lib/kubelet", "mountPropagation": "Bidirectional" },
            { "name": "plugin-dir", "mountPath": "/csi" },
            { "name": "efs-state-dir", "mountPath": "/var/run/efs" },
            { "name": "efs-utils-config", "mountPath": "/var/amazon/efs" },
            { "name": "efs-utils-config-legacy", "mountPath": "/etc/amazon/efs-legacy" },
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

fn node_name() -> Value {
    json!({ "name": "CSI_NODE_NAME", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } })
}

fn confined() -> Value {
    json!({ "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true })
}
