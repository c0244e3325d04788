//! The objects of the Amazon VPC CNI, those with a namespace in `kube-system`. Left out is the agent for
//! network policies: it needs a controller and CustomResourceDefinitions of its own.

use crate::{Config, PodSubnet};
use plugin_sdk::objects::{READ, cluster_role, cluster_role_binding, rule, service_account};
use plugin_sdk::settings::LogLevel;
use plugin_sdk::steps::Object;
use plugin_sdk::{facts, identity, settings};
use serde_json::{Map, Value, json};

pub const NAMESPACE: &str = "kube-system";
pub const NAME: &str = "aws-node";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
const ENI_CONFIG: &str = "crd.k8s.amazonaws.com/v1alpha1";

pub const DAEMON_SET: Object<'static> =
    Object { api_version: "apps/v1", kind: "DaemonSet", namespace: Some(NAMESPACE), name: NAME };
pub const SERVICE_ACCOUNT: Object<'static> =
    Object { api_version: "v1", kind: "ServiceAccount", namespace: Some(NAMESPACE), name: NAME };
pub const CLUSTER_ROLE: Object<'static> =
    Object { api_version: RBAC, kind: "ClusterRole", namespace: None, name: NAME };
pub const CLUSTER_ROLE_BINDING: Object<'static> =
    Object { api_version: RBAC, kind: "ClusterRoleBinding", namespace: None, name: NAME };
pub const ENI_CONFIG_CRD: Object<'static> = Object {
    api_version: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    namespace: None,
    name: "eniconfigs.crd.k8s.amazonaws.com",
};

/// The service account and what it may do.
pub fn access() -> Vec<Value> {
    let rules = vec![
        rule("crd.k8s.amazonaws.com", &["eniconfigs"], READ),
        rule("", &["namespaces", "nodes", "pods"], READ),
        rule("", &["events"], &["create", "list", "patch"]),
        rule("events.k8s.io", &["events"], &["create", "list", "patch"]),
        rule("vpcresources.k8s.aws", &["cninodes"], &["get", "list", "patch", "watch"]),
    ];
    vec![
        service_account(NAMESPACE, NAME),
        cluster_role(NAME, rules),
        cluster_role_binding(NAME, NAME, NAMESPACE, NAME),
    ]
}

/// Subnets for Pods are objects of this kind. The CNI reads it even when there are none.
pub fn eni_config_crd() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "apiVersion": ENI_CONFIG_CRD.api_version, "kind": ENI_CONFIG_CRD.kind,
        "metadata": { "name": ENI_CONFIG_CRD.name },
        "spec": {
            "group": "crd.k8s.amazonaws.com",
            "scope": "Cluster",
            "names": { "kind": "ENIConfig", "listKind": "ENIConfigList", "plural": "eniconfigs", "singular": "eniconfig" },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object",
                "description": "Where Pods of the nodes with this name as their label get their network \
                                interfaces.",
                "properties": {
                    "spec": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                        "properties": { "subnet": text, "securityGroups": { "type": "array", "items": text } },
                    },
                    "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                },
            } } }],
        },
    })
}

/// The object that stands for a subnet for Pods. It has the name of its zone, which is the value of a label
/// of each node.
pub fn eni_config(subnet: &PodSubnet) -> Value {
    let mut spec = json!({ "subnet": subnet.subnet_id });
    if !subnet.security_group_ids.is_empty() {
        spec["securityGroups"] = json!(subnet.security_group_ids);
    }
    json!({ "apiVersion": ENI_CONFIG, "kind": "ENIConfig", "metadata": { "name": subnet.zone }, "spec": spec })
}

/// The program, on every node.
pub fn daemon_set(
    config: &Config,
    cluster: &facts::Cluster,
    aws: &facts::Aws,
    registry: &str,
    tag: &str,
) -> Value {
    let labels = json!({ "k8s-app": NAME });
    let mut pod = json!({
        "serviceAccountName": NAME,
        "priorityClassName": "system-node-critical",
        "hostNetwork": true,
        "terminationGracePeriodSeconds": 10,
        // Nothing else can run on a node before this does.
        "tolerations": [{ "operator": "Exists" }],
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [
            { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
            { "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"] },
        ] }] } } },
        "initContainers": [init_container(&[registry, "/amazon-k8s-cni-init:", tag].concat())],
        "containers": [container(config, cluster, aws, &[registry, "/amazon-k8s-cni:", tag].concat(), tag)],
        "volumes": [
            host_path("cni-bin-dir", "/opt/cni/bin", None),
            host_path("cni-net-dir", "/etc/cni/net.d", None),
            host_path("log-dir", "/var/log/aws-routed-eni", Some("DirectoryOrCreate")),
            host_path("run-dir", "/var/run/aws-node", Some("DirectoryOrCreate")),
            host_path("xtables-lock", "/run/xtables.lock", Some("FileOrCreate")),
        ],
    });
    settings::select_nodes(&mut pod, &config.node_selector);
    if let Some(role) = &config.role_arn {
        identity::assume(&mut pod, &[NAME], role, &aws.region);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "updateStrategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": "10%" } },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
}

/// Puts the CNI's programs on the node and sets what the kernel needs.
fn init_container(image: &str) -> Value {
    json!({
        "name": "aws-vpc-cni-init",
        "image": image,
        "env": [
            { "name": "DISABLE_TCP_EARLY_DEMUX", "value": "false" },
            { "name": "ENABLE_IPv6", "value": "false" },
        ],
        "resources": { "requests": { "cpu": "25m" } },
        "securityContext": { "privileged": true },
        "volumeMounts": [{ "name": "cni-bin-dir", "mountPath": "/host/opt/cni/bin" }],
    })
}

/// Hands out addresses.
fn container(config: &Config, cluster: &facts::Cluster, aws: &facts::Aws, image: &str, tag: &str) -> Value {
    let probe = |delay: u32| {
        let command = [
            "/app/grpc-health-probe",
            "-addr=unix:///var/run/aws-node/ipamd.sock",
            "-connect-timeout=5s",
            "-rpc-timeout=5s",
        ];
        json!({ "exec": { "command": command }, "initialDelaySeconds": delay, "timeoutSeconds": 10 })
    };
    json!({
        "name": NAME,
        "image": image,
        "env": environment(config, cluster, aws, tag),
        "ports": [{ "name": "metrics", "containerPort": 61678 }],
        "livenessProbe": probe(60),
        "readinessProbe": probe(1),
        "resources": config.resources.or("25m", "64Mi"),
        "securityContext": { "capabilities": { "add": ["NET_ADMIN", "NET_RAW"] } },
        "volumeMounts": [
            { "name": "cni-bin-dir", "mountPath": "/host/opt/cni/bin" },
            { "name": "cni-net-dir", "mountPath": "/host/etc/cni/net.d" },
            { "name": "log-dir", "mountPath": "/host/var/log/aws-routed-eni" },
            { "name": "run-dir", "mountPath": "/var/run/aws-node" },
            { "name": "xtables-lock", "mountPath": "/run/xtables.lock" },
        ],
    })
}

/// Sorted by name. All that the release wants to be set is set: it does not start without some of it.
fn environment(config: &Config, cluster: &facts::Cluster, aws: &facts::Aws, tag: &str) -> Vec<Value> {
    let level = match config.log_level {
        LogLevel::Info => "INFO",
        LogLevel::Debug => "DEBUG",
    };
    let yes = |on: bool| if on { "true" } else { "false" }.to_owned();
    let endpoint = [
        "https://",
        &cluster.control_plane_endpoint.host,
        ":",
        &cluster.control_plane_endpoint.port.to_string(),
    ]
    .concat();
    let mut all: Vec<(&str, String)> = vec![
        ("ADDITIONAL_ENI_TAGS", eni_tags(aws)),
        ("AWS_VPC_CNI_NODE_PORT_SUPPORT", yes(true)),
        ("AWS_VPC_ENI_MTU", config.mtu().to_string()),
        ("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", yes(!config.custom_networking.is_empty())),
        ("AWS_VPC_K8S_CNI_EXTERNALSNAT", yes(config.external_snat)),
        ("AWS_VPC_K8S_CNI_LOGLEVEL", level.to_owned()),
        ("AWS_VPC_K8S_CNI_LOG_FILE", "/host/var/log/aws-routed-eni/ipamd.log".to_owned()),
        ("AWS_VPC_K8S_CNI_RANDOMIZESNAT", "prng".to_owned()),
        ("AWS_VPC_K8S_CNI_VETHPREFIX", "eni".to_owned()),
        ("AWS_VPC_K8S_PLUGIN_LOG_FILE", "/var/log/aws-routed-eni/plugin.log".to_owned()),
        ("AWS_VPC_K8S_PLUGIN_LOG_LEVEL", level.to_owned()),
        ("CLUSTER_ENDPOINT", endpoint),
        ("CLUSTER_NAME", cluster.name.clone()),
        ("DISABLE_INTROSPECTION", yes(false)),
        ("DISABLE_METRICS", yes(false)),
        ("DISABLE_NETWORK_RESOURCE_PROVISIONING", yes(false)),
        ("ENABLE_IPv4", yes(true)),
        ("ENABLE_IPv6", yes(false)),
        ("ENABLE_POD_ENI", yes(false)),
        ("ENABLE_PREFIX_DELEGATION", yes(config.prefix_delegation)),
        ("ENABLE_SUBNET_DISCOVERY", yes(true)),
        ("VPC_CNI_VERSION", tag.to_owned()),
        ("VPC_ID", aws.vpc_id.clone()),
        ("WARM_ENI_TARGET", config.warm_eni_target.unwrap_or(1).to_string()),
        ("WARM_PREFIX_TARGET", config.warm_prefix_target.unwrap_or(1).to_string()),
    ];
    if !config.custom_networking.is_empty() {
        all.push(("ENI_CONFIG_LABEL_DEF", "topology.kubernetes.io/zone".to_owned()));
    }
    all.extend(config.warm_ip_target.map(|target| ("WARM_IP_TARGET", target.to_string())));
    all.extend(config.minimum_ip_target.map(|target| ("MINIMUM_IP_TARGET", target.to_string())));
    all.extend(config.max_eni.map(|most| ("MAX_ENI", most.to_string())));
    all.extend(config.pod_mtu.map(|mtu| ("POD_MTU", mtu.to_string())));
    if !config.exclude_snat_cidrs.is_empty() {
        all.push(("AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS", config.exclude_snat_cidrs.join(",")));
    }
    all.retain(|(name, _)| !config.extra_env.contains_key(*name));
    all.extend(
        config
            .extra_env
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default().to_owned())),
    );
    all.sort();
    let mut all: Vec<Value> =
        all.into_iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
    let field =
        |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    all.extend([field("MY_NODE_NAME", "spec.nodeName"), field("MY_POD_NAME", "metadata.name")]);
    all
}

/// Tags of the user as JSON, for the network interfaces that the CNI makes.
fn eni_tags(aws: &facts::Aws) -> String {
    let allowed = aws.tags.iter().filter(|(key, _)| settings::is_free_tag(key));
    Value::Object(
        allowed.map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect::<Map<_, _>>(),
    )
    .to_string()
}

fn host_path(name: &str, path: &str, kind: Option<&str>) -> Value {
    let mut volume = json!({ "name": name, "hostPath": { "path": path } });
    if let Some(kind) = kind {
        volume["hostPath"]["type"] = kind.into();
    }
    volume
}
