//! What the operator is told: the Installation, which is the cluster's network, the APIServer, and
//! settings of calico-node.

use crate::Config;
use plugin_sdk::settings::Resources;
use plugin_sdk::steps::Object;
use serde_json::{Map, Value, json};

pub const INSTALLATION: Object<'static> =
    Object { api_version: "operator.tigera.io/v1", kind: "Installation", namespace: None, name: "default" };

pub const API_SERVER: Object<'static> =
    Object { api_version: "operator.tigera.io/v1", kind: "APIServer", namespace: None, name: "default" };

/// What calico-node reads its settings from. Others set fields of it too, and the operator does.
const FELIX_CONFIGURATION: Object<'static> = Object {
    api_version: "crd.projectcalico.org/v1",
    kind: "FelixConfiguration",
    namespace: None,
    name: "default",
};

/// The network, with these pools.
pub fn installation(config: &Config, pools: Vec<Value>) -> Value {
    let mut network = json!({
        "bgp": if config.encapsulation.needs_bgp() { "Enabled" } else { "Disabled" },
        "ipPools": pools,
        "linuxDataplane": "Iptables",
    });
    if let Some(mtu) = config.mtu {
        network["mtu"] = mtu.into();
    }
    let mut spec = json!({
        "variant": "Calico",
        "cni": { "type": "Calico", "ipam": { "type": "Calico" } },
        "calicoNetwork": network,
        // Leaves out Calico's CSI driver, which only serves policies for application layers.
        "kubeletVolumePluginPath": "None",
    });
    if let Some(registry) = &config.image_registry {
        spec["registry"] = [registry, "/"].concat().into();
    }
    // The operator hands them on to all that it makes.
    if !config.image_pull_secrets.is_empty() {
        spec["imagePullSecrets"] = config.image_pull_secrets.as_slice().into();
    }
    control_plane(config, &mut spec);
    for (field, container, resources) in [
        ("calicoNodeDaemonSet", "calico-node", &config.resources),
        ("typhaDeployment", "calico-typha", &config.typha_resources),
    ] {
        if let Some(requests) = requests(resources) {
            let containers = json!([{ "name": container, "resources": { "requests": requests } }]);
            spec[field] = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        }
    }
    object(INSTALLATION, spec)
}

/// Serves `projectcalico.org/v3`. Without it the operator changes no pool once there is one, and makes no
/// policies of its own.
pub fn api_server() -> Value {
    object(API_SERVER, json!({}))
}

/// What of calico-node's settings the user set, if any.
pub fn felix_configuration(config: &Config) -> Option<Value> {
    let mut spec = Map::new();
    if let Some(check) = config.source_destination_check {
        spec.insert("awsSrcDstCheck".to_owned(), check.as_str().into());
    }
    if let Some(level) = config.log_level {
        spec.insert("logSeverityScreen".to_owned(), level.as_str().into());
    }
    (!spec.is_empty()).then(|| object(FELIX_CONFIGURATION, spec.into()))
}

/// How many copies there are of what does not run on every node, and where it runs.
fn control_plane(config: &Config, spec: &mut Value) {
    if let Some(replicas) = config.control_plane_replicas {
        spec["controlPlaneReplicas"] = replicas.into();
    }
    if !config.control_plane_node_selector.is_empty() {
        spec["controlPlaneNodeSelector"] = config.control_plane_node_selector.clone().into();
    }
    if !config.control_plane_tolerations.is_empty() {
        let tolerations =
            STARTING.map(|key| json!({ "key": key, "operator": "Exists", "effect": "NoSchedule" }));
        spec["controlPlaneTolerations"] =
            tolerations.into_iter().chain(config.control_plane_tolerations.iter().cloned()).collect();
    }
}

/// Keys of taints that nodes have until calico-node runs, which waits for Typha, and of those that are not
/// for programs of a cluster itself. The operator has Typha tolerate them by itself, but in place of that
/// what is given here, where anything is.
const STARTING: [&str; 5] = [
    "CriticalAddonsOnly",
    "node-role.kubernetes.io/control-plane",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/network-unavailable",
    "node.cloudprovider.kubernetes.io/uninitialized",
];

fn object(of: Object<'_>, spec: Value) -> Value {
    json!({ "apiVersion": of.api_version, "kind": of.kind, "metadata": { "name": of.name }, "spec": spec })
}

/// What is set; the operator asks for what it thinks right otherwise.
fn requests(resources: &Resources) -> Option<Value> {
    let mut requests = Map::new();
    for (name, quantity) in [("cpu", &resources.cpu), ("memory", &resources.memory)] {
        if let Some(quantity) = quantity {
            requests.insert(name.to_owned(), quantity.as_str().into());
        }
    }
    (!requests.is_empty()).then_some(requests.into())
}
