//! The programs of the EBS CSI driver: a controller that makes and attaches volumes, and on every node one
//! that mounts them.
//!
//! Arguments, timeouts and probes are those of the release's own manifests:
//! `deploy/kubernetes/base/controller.yaml` and `node.yaml` of kubernetes-sigs/aws-ebs-csi-driver at the tag
//! in `versions.rs`, unless a line says otherwise.

use crate::Config;
use crate::config::EXTRA_ARGS;
use crate::objects::DRIVER;
use crate::versions::{Kubernetes, Sidecars};
use plugin_sdk::csi::{
    Images, SOCKET, SOCKET_DIRECTORY, confined, confined_container, host_path, kubelet_mount, mount,
    node_name, requests, sidecar,
};
use plugin_sdk::{facts, identity, settings};
use serde_json::{Value, json};

const RETRY: &str = "--retry-interval-max=30m";

pub fn controller(
    config: &Config,
    cluster: &facts::Cluster,
    aws: &facts::Aws,
    images: &Images<'_>,
    tags: &Sidecars,
    kubernetes: Kubernetes,
) -> Value {
    let mut containers = vec![driver(config, cluster, aws, images)];
    containers.extend(sidecars(config, images, tags, kubernetes));
    let mut pod = json!({
        "serviceAccountName": DRIVER.controller_account,
        "priorityClassName": "system-cluster-critical",
        "securityContext": { "fsGroup": 1000, "runAsGroup": 1000, "runAsNonRoot": true, "runAsUser": 1000 },
        "containers": containers,
        "volumes": [{ "name": "socket-dir", "emptyDir": {} }],
    });
    settings::place(
        &mut pod,
        config.role_arn.is_some(),
        &config.tolerations,
        &config.node_selector,
        DRIVER.controller,
    );
    if let Some(role) = &config.role_arn {
        identity::assume(&mut pod, &["ebs-plugin"], role, &aws.region);
    }
    DRIVER.controller(config.replicas.unwrap_or(2), pod)
}

fn driver(config: &Config, cluster: &facts::Cluster, aws: &facts::Aws, images: &Images<'_>) -> Value {
    let endpoint = ["unix://", SOCKET].concat();
    let mut args: Vec<String> = vec!["controller".into(), ["--endpoint=", &endpoint].concat()];
    // Marks volumes as the cluster's, so that they are found when it is gone.
    args.push(["--k8s-tag-cluster-id=", &cluster.name].concat());
    args.extend(settings::tags(&aws.tags, '=', ',').map(|tags| ["--extra-tags=", &tags].concat()));
    // One call to EC2 for many volumes, where the driver by itself makes one for each.
    if !config.extra_args.contains_key("batching") {
        args.push("--batching=true".into());
    }
    args.push(["--v=", config.log_level.verbosity()].concat());
    args.extend(settings::extra_args(&config.extra_args, EXTRA_ARGS));
    // Asked for its health the controller calls EC2 until that has answered once; a first call takes long.
    let probe = |failures: u32| {
        json!({
            "httpGet": { "path": "/healthz", "port": "healthz" },
            "initialDelaySeconds": 10, "timeoutSeconds": 60, "periodSeconds": 10, "failureThreshold": failures,
        })
    };
    json!({
        "name": "ebs-plugin",
        "image": images.driver(),
        "args": args,
        "env": [node_name(), { "name": "AWS_REGION", "value": aws.region }],
        "ports": [{ "name": "healthz", "containerPort": 9808 }],
        "livenessProbe": probe(10),
        "readinessProbe": probe(5),
        "resources": config.resources.or("10m", "40Mi"),
        "securityContext": confined(),
        "volumeMounts": [mount("socket-dir", SOCKET_DIRECTORY)],
    })
}

fn sidecars(config: &Config, images: &Images<'_>, tags: &Sidecars, kubernetes: Kubernetes) -> Vec<Value> {
    let address = ["--csi-address=", SOCKET].concat();
    let verbosity = ["--v=", config.log_level.verbosity()].concat();
    let beside = |name: &str, image: &str, tag: &str, more: &[&str]| {
        let mut args = vec![address.as_str(), verbosity.as_str()];
        args.extend_from_slice(more);
        sidecar(name, images.sidecar(image, tag), &args)
    };
    const LEAD: &str = "--leader-election=true";
    // The sidecars' own 5 requests a second and 10 workers make many volumes wait for each other.
    const QPS: [&str; 2] = ["--kube-api-qps=20", "--kube-api-burst=100"];
    const WORKERS: &str = "--worker-threads=100";
    // The provisioner's and the resizer's own timeout is 10 s. The attacher's is 15 s: an attachment that it
    // gives up taints the name of the device.
    let provision = [
        &[
            "--timeout=60s",
            "--feature-gates=Topology=true",
            "--extra-create-metadata",
            LEAD,
            "--default-fstype=ext4",
        ],
        &QPS[..],
        &[WORKERS, RETRY],
    ]
    .concat();
    let mut attach = [&["--timeout=6m", LEAD], &QPS[..], &[WORKERS, "--retry-interval-max=5m"]].concat();
    if kubernetes.updates_allocatable {
        attach.push("--feature-gates=MutableCSINodeAllocatableCount=true");
    }
    let resize = [
        &["--timeout=60s", "--extra-modify-metadata", "--handle-volume-inuse-error=false", LEAD],
        &QPS[..],
        &["--workers=100", RETRY],
    ]
    .concat();
    let mut all = vec![
        beside("csi-provisioner", "csi-provisioner", tags.provisioner, &provision),
        beside("csi-attacher", "csi-attacher", tags.attacher, &attach),
        beside("csi-resizer", "csi-resizer", tags.resizer, &resize),
        beside("liveness-probe", "livenessprobe", tags.liveness, &["--probe-timeout=60s"]),
    ];
    if kubernetes.has_only_beta_attributes {
        // Without it, AWS's builds of provisioner and resizer look for VolumeAttributesClasses in
        // `storage.k8s.io/v1` alone.
        for index in [0, 2] {
            all[index]["env"] = json!([{ "name": "ENABLE_VAC_FALLBACK", "value": "true" }]);
        }
    }
    if config.snapshots {
        let snapshot = [&["--extra-create-metadata", LEAD], &QPS[..], &[WORKERS, RETRY]].concat();
        all.push(beside("csi-snapshotter", "csi-snapshotter", tags.snapshotter, &snapshot));
    }
    all
}

pub fn node(config: &Config, images: &Images<'_>, tags: &Sidecars) -> Value {
    let address = "--csi-address=/csi/csi.sock";
    let mut registrar = confined_container(
        "node-driver-registrar",
        images.sidecar("csi-node-driver-registrar", tags.registrar),
        &[
            address,
            "--kubelet-registration-path=/var/lib/kubelet/plugins/ebs.csi.aws.com/csi.sock",
            "--http-endpoint=0.0.0.0:9809",
            "--v=2",
        ],
        vec![
            mount("plugin-dir", "/csi"),
            mount("registration-dir", "/registration"),
            // Asked for its health, it writes there.
            mount("probe-dir", "/var/lib/kubelet/plugins/ebs.csi.aws.com/"),
        ],
    );
    registrar["ports"] = json!([{ "name": "healthz-ndr", "containerPort": 9809 }]);
    registrar["livenessProbe"] = json!({
        "httpGet": { "path": "/healthz", "port": "healthz-ndr" },
        "initialDelaySeconds": 30, "timeoutSeconds": 15, "periodSeconds": 90,
    });
    let liveness = confined_container(
        "liveness-probe",
        images.sidecar("livenessprobe", tags.liveness),
        &[address],
        vec![mount("plugin-dir", "/csi")],
    );
    let pod = json!({
        "serviceAccountName": DRIVER.node_account,
        "priorityClassName": "system-node-critical",
        "nodeSelector": { "kubernetes.io/os": "linux" },
        // Volumes are mounted wherever Pods run.
        "tolerations": [{ "operator": "Exists" }],
        "terminationGracePeriodSeconds": 30,
        "securityContext": { "fsGroup": 0, "runAsGroup": 0, "runAsNonRoot": false, "runAsUser": 0 },
        "containers": [node_driver(config, images), registrar, liveness],
        "volumes": [
            host_path("kubelet-dir", "/var/lib/kubelet", "Directory"),
            host_path("plugin-dir", "/var/lib/kubelet/plugins/ebs.csi.aws.com/", "DirectoryOrCreate"),
            host_path("registration-dir", "/var/lib/kubelet/plugins_registry/", "Directory"),
            host_path("device-dir", "/dev", "Directory"),
            { "name": "probe-dir", "emptyDir": {} },
        ],
    });
    DRIVER.node("10%".into(), pod)
}

fn node_driver(config: &Config, images: &Images<'_>) -> Value {
    let mut args = vec![
        "node".to_owned(),
        "--endpoint=unix:/csi/csi.sock".to_owned(),
        "--csi-mount-point-prefix=/var/lib/kubelet/plugins/kubernetes.io/csi/ebs.csi.aws.com/".to_owned(),
    ];
    args.extend(
        config.volume_attach_limit.map(|limit| ["--volume-attach-limit=", &limit.to_string()].concat()),
    );
    args.extend(
        config
            .reserved_volume_attachments
            .map(|reserved| ["--reserved-volume-attachments=", &reserved.to_string()].concat()),
    );
    args.push("--v=2".to_owned());
    let health = json!({ "path": "/healthz", "port": "healthz" });
    json!({
        "name": "ebs-plugin",
        "image": images.driver(),
        "args": args,
        "env": [node_name()],
        "ports": [{ "name": "healthz", "containerPort": 9808 }],
        "livenessProbe": {
            "httpGet": health, "initialDelaySeconds": 10, "timeoutSeconds": 3, "periodSeconds": 10, "failureThreshold": 5,
        },
        "readinessProbe": { "httpGet": health, "timeoutSeconds": 3, "periodSeconds": 5, "failureThreshold": 3 },
        // Tells Kubernetes that volumes are let go of before the node goes down.
        "lifecycle": { "preStop": { "exec": { "command": ["/bin/aws-ebs-csi-driver", "pre-stop-hook"] } } },
        "resources": requests(),
        "securityContext": { "privileged": true, "readOnlyRootFilesystem": true },
        "volumeMounts": [
            kubelet_mount(),
            mount("plugin-dir", "/csi"),
            mount("device-dir", "/dev"),
        ],
    })
}
