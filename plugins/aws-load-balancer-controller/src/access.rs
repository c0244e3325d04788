//! The service account of the controller and what it may do. It may not read Secrets: who wants it to for an
//! Ingress that asks users to log in grants that Secret.

use crate::objects::{NAME, NAMESPACE};
use plugin_sdk::objects::{
    READ, cluster_role, cluster_role_binding, role, role_binding, rule, service_account,
};
use plugin_sdk::steps::Object;
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const ROLE: &str = "aws-load-balancer-controller-role";
const BINDING: &str = "aws-load-balancer-controller-rolebinding";
const LEADER: &str = "aws-load-balancer-controller-leader-election-role";
const LEADER_BINDING: &str = "aws-load-balancer-controller-leader-election-rolebinding";

pub fn objects() -> Vec<Value> {
    vec![
        service_account(NAMESPACE, NAME),
        cluster_role(ROLE, rules()),
        cluster_role_binding(BINDING, ROLE, NAMESPACE, NAME),
        role(NAMESPACE, LEADER, leader_rules()),
        role_binding(NAMESPACE, LEADER_BINDING, LEADER, NAME),
    ]
}

fn rules() -> Vec<Value> {
    const ELB: &str = "elbv2.k8s.aws";
    const NETWORKING: &str = "networking.k8s.io";
    const CHANGE: &[&str] = &["get", "list", "patch", "update", "watch"];
    const STATUS: &[&str] = &["patch", "update"];
    vec![
        rule("", &["endpoints", "namespaces", "nodes", "pods"], READ),
        rule("discovery.k8s.io", &["endpointslices"], READ),
        rule(NETWORKING, &["ingressclasses"], READ),
        rule(ELB, &["ingressclassparams"], READ),
        rule("", &["events"], &["create", "patch"]),
        // Which targets are this cluster's, when a target group is shared between clusters.
        rule("", &["configmaps"], &["create", "delete", "get", "update"]),
        rule("", &["services"], CHANGE),
        rule("", &["pods/status", "services/status"], STATUS),
        rule(NETWORKING, &["ingresses"], CHANGE),
        rule(NETWORKING, &["ingresses/status"], STATUS),
        rule(ELB, &["targetgroupbindings"], &["create", "delete", "get", "list", "patch", "update", "watch"]),
        rule(ELB, &["targetgroupbindings/status"], STATUS),
    ]
}

fn leader_rules() -> Vec<Value> {
    let own = |group: &str, resource: &str| {
        json!({
            "apiGroups": [group], "resources": [resource], "resourceNames": ["aws-load-balancer-controller-leader"],
            "verbs": ["get", "patch", "update"],
        })
    };
    vec![
        rule("", &["configmaps"], &["create"]),
        own("", "configmaps"),
        rule("coordination.k8s.io", &["leases"], &["create"]),
        own("coordination.k8s.io", "leases"),
    ]
}

/// Names of it all, for the removal: bindings before what they bind.
pub fn references() -> [Object<'static>; 5] {
    let cluster_wide =
        |kind: &'static str, name: &'static str| Object { api_version: RBAC, kind, namespace: None, name };
    let local = |api_version: &'static str, kind: &'static str, name: &'static str| Object {
        api_version,
        kind,
        namespace: Some(NAMESPACE),
        name,
    };
    [
        cluster_wide("ClusterRoleBinding", BINDING),
        cluster_wide("ClusterRole", ROLE),
        local(RBAC, "RoleBinding", LEADER_BINDING),
        local(RBAC, "Role", LEADER),
        local("v1", "ServiceAccount", NAME),
    ]
}
