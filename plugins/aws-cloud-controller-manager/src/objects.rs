//! The objects of the cloud controller manager, all in `kube-system`.

use crate::{Config, EXTRA_ARGS};
use plugin_sdk::settings;
use plugin_sdk::steps::Object;
use serde_json::{Value, json};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "aws-cloud-controller-manager";
const ACCOUNT: &str = "cloud-controller-manager";
const ROLE: &str = "system:cloud-controller-manager";
const READER: &str = "cloud-controller-manager:apiserver-authentication-reader";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

pub const DAEMON_SET: Object<'static> =
    Object { api_version: "apps/v1", kind: "DaemonSet", namespace: Some(NAMESPACE), name: NAME };
pub const SERVICE_ACCOUNT: Object<'static> =
    Object { api_version: "v1", kind: "ServiceAccount", namespace: Some(NAMESPACE), name: ACCOUNT };
pub const ROLE_BINDING: Object<'static> =
    Object { api_version: RBAC, kind: "RoleBinding", namespace: Some(NAMESPACE), name: READER };
pub const CLUSTER_ROLE: Object<'static> =
    Object { api_version: RBAC, kind: "ClusterRole", namespace: None, name: ROLE };
pub const CLUSTER_ROLE_BINDING: Object<'static> =
    Object { api_version: RBAC, kind: "ClusterRoleBinding", namespace: None, name: ROLE };

/// The service account and what it may do.
pub fn access() -> Vec<Value> {
    let subjects = json!([{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }]);
    vec![
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": ACCOUNT, "namespace": NAMESPACE } }),
        json!({ "apiVersion": RBAC, "kind": "ClusterRole", "metadata": { "name": ROLE }, "rules": rules() }),
        json!({
            "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": { "name": ROLE },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE },
            "subjects": subjects,
        }),
        json!({
            "apiVersion": RBAC, "kind": "RoleBinding", "metadata": { "name": READER, "namespace": NAMESPACE },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "extension-apiserver-authentication-reader" },
            "subjects": subjects,
        }),
    ]
}

fn rules() -> Value {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    json!([
        rule("", &["nodes"], &["*"]),
        rule("", &["nodes/status"], &["patch"]),
        rule("", &["services", "services/status"], &["list", "patch", "update", "watch"]),
        rule("", &["events"], &["create", "patch", "update"]),
        // Each of its controllers acts under a service account of its own, which it makes and asks tokens
        // for.
        rule("", &["serviceaccounts"], &["create", "get", "list", "watch"]),
        rule("", &["serviceaccounts/token"], &["create"]),
        rule("", &["persistentvolumes"], &["get", "list", "update", "watch"]),
        rule("", &["endpoints"], &["create", "get", "list", "update", "watch"]),
        rule("coordination.k8s.io", &["leases"], &["create", "get", "list", "update", "watch"]),
        rule("authentication.k8s.io", &["tokenreviews"], &["create"]),
        rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]),
    ])
}

/// The program, on every control-plane node that the user does not leave out: it acts with the role of their
/// instances.
pub fn daemon_set(config: &Config, image: &str, cluster: &str) -> Value {
    let labels = json!({ "k8s-app": NAME });
    let mut pod = json!({
        "serviceAccountName": ACCOUNT,
        "priorityClassName": "system-node-critical",
        "hostNetwork": true,
        // There is no cluster DNS before this runs.
        "dnsPolicy": "Default",
        "nodeSelector": { "node-role.kubernetes.io/control-plane": "" },
        // A node is uninitialized until this has run and not ready until the network has, and neither may
        // wait for the other.
        "tolerations": [{ "operator": "Exists" }],
        "containers": [container(config, image, cluster)],
    });
    settings::select_nodes(&mut pod, &config.node_selector);
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "selector": { "matchLabels": labels },
            "updateStrategy": { "type": "RollingUpdate" },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
}

fn container(config: &Config, image: &str, cluster: &str) -> Value {
    let mut args = vec![
        ["--v=", config.log_level.verbosity()].concat(),
        "--cloud-provider=aws".to_owned(),
        ["--cluster-name=", cluster].concat(),
        "--use-service-account-credentials=true".to_owned(),
        "--configure-cloud-routes=false".to_owned(),
    ];
    args.extend(settings::extra_args(&config.extra_args, EXTRA_ARGS));
    json!({
        "name": NAME,
        "image": image,
        "args": args,
        "resources": config.resources.or("100m", "64Mi"),
    })
}
