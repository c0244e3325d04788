//! Functions that make the objects that every add-on has: a service account and what it may do.

use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// What may be read without changing anything.
pub const READ: &[&str] = &["get", "list", "watch"];

/// A ServiceAccount, by which [`cluster_role_binding`] and [`role_binding`] name Pods.
pub fn service_account(namespace: &str, name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": name, "namespace": namespace } })
}

/// A rule of a role: `verbs` on `resources` of one API group, which is empty for the core group.
pub fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": [group], "resources": resources, "verbs": verbs })
}

/// A ClusterRole of rules that [`rule`] makes: in all namespaces, and for cluster-scoped kinds.
pub fn cluster_role(name: &str, rules: Vec<Value>) -> Value {
    json!({ "apiVersion": RBAC, "kind": "ClusterRole", "metadata": { "name": name }, "rules": rules })
}

/// A Role of rules that [`rule`] makes: in its own namespace alone.
pub fn role(namespace: &str, name: &str, rules: Vec<Value>) -> Value {
    json!({ "apiVersion": RBAC, "kind": "Role", "metadata": { "name": name, "namespace": namespace }, "rules": rules })
}

/// Gives the ClusterRole of this name to the service account.
pub fn cluster_role_binding(name: &str, cluster_role: &str, namespace: &str, service_account: &str) -> Value {
    json!({
        "apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": { "name": name },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": cluster_role },
        "subjects": [{ "kind": "ServiceAccount", "name": service_account, "namespace": namespace }],
    })
}

/// Gives the Role of this name to the service account of the same namespace.
pub fn role_binding(namespace: &str, name: &str, role: &str, service_account: &str) -> Value {
    json!({
        "apiVersion": RBAC, "kind": "RoleBinding", "metadata": { "name": name, "namespace": namespace },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": service_account, "namespace": namespace }],
    })
}
