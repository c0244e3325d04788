//! What drivers of the Container Storage Interface have in common: a controller that makes volumes, on every
//! node a program that mounts them, and the rights of both. Each driver decides for itself what its programs
//! are told and what its rights are.

use crate::Step;
use crate::objects::{cluster_role, cluster_role_binding, role, role_binding, rule, service_account};
use crate::settings;
use crate::steps::{self, Condition, Object};
use serde_json::{Value, json};

/// Where the objects of a driver are.
pub const NAMESPACE: &str = "kube-system";
/// Where the socket of a controller is, in its containers.
pub const SOCKET_DIRECTORY: &str = "/var/lib/csi/sockets/pluginproxy/";
/// The socket of a controller.
pub const SOCKET: &str = "/var/lib/csi/sockets/pluginproxy/csi.sock";

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// What the objects of a driver are called.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// The name by which Kubernetes knows it, such as `ebs.csi.aws.com`.
    pub name: &'static str,
    /// The Deployment that makes volumes.
    pub controller: &'static str,
    /// The DaemonSet that mounts them.
    pub node: &'static str,
    /// The controller's ServiceAccount.
    pub controller_account: &'static str,
    /// The ServiceAccount of what runs on nodes.
    pub node_account: &'static str,
    /// The Role, and its RoleBinding, by which copies of the controller agree on who works.
    pub leases: &'static str,
    /// The ClusterRoles.
    pub roles: &'static [Role],
}

/// A ClusterRole of a driver.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// Its name.
    pub name: &'static str,
    /// The name of its ClusterRoleBinding.
    pub binding: &'static str,
    /// The ServiceAccount that has it.
    pub account: &'static str,
}

impl Driver {
    /// The controller.
    pub const fn deployment(&self) -> Object<'static> {
        local("apps/v1", "Deployment", self.controller)
    }

    /// What runs on nodes.
    pub const fn daemon_set(&self) -> Object<'static> {
        local("apps/v1", "DaemonSet", self.node)
    }

    /// What tells Kubernetes what the driver can do.
    pub const fn csi_driver(&self) -> Object<'static> {
        cluster_wide("storage.k8s.io/v1", "CSIDriver", self.name)
    }

    /// The service accounts and what they may do: each of `roles` what `rules` has for its name.
    pub fn access<'a>(
        &self,
        roles: impl IntoIterator<Item = &'a Role>,
        rules: impl Fn(&str) -> Vec<Value>,
    ) -> Vec<Value> {
        let mut all = vec![
            service_account(NAMESPACE, self.controller_account),
            service_account(NAMESPACE, self.node_account),
        ];
        for role in roles {
            all.push(cluster_role(role.name, rules(role.name)));
            all.push(cluster_role_binding(role.binding, role.name, NAMESPACE, role.account));
        }
        let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
        all.push(role(NAMESPACE, self.leases, vec![rule("coordination.k8s.io", &["leases"], &verbs)]));
        all.push(role_binding(NAMESPACE, self.leases, self.leases, self.controller_account));
        all
    }

    /// The Deployment of the controller's Pods.
    pub fn controller(&self, replicas: u32, pod: Value) -> Value {
        let labels = json!({ "app": self.controller });
        workload(self.deployment(), &labels, json!({ "replicas": replicas }), pod)
    }

    /// The DaemonSet of the Pods on nodes, of which as many at a time are replaced.
    pub fn node(&self, max_unavailable: Value, pod: Value) -> Value {
        let labels = json!({ "app": self.node });
        let strategy =
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": max_unavailable } });
        workload(self.daemon_set(), &labels, json!({ "updateStrategy": strategy }), pod)
    }

    /// Applies the objects of the driver after what has to be so before, and waits until they work.
    pub fn install(&self, objects: Vec<Value>, before: Vec<String>) -> [Step; 3] {
        let wait = |id: &str, object: Object<'_>, condition: Condition| {
            steps::wait(id, object, condition, 300).after(["driver"])
        };
        [
            steps::apply("driver", objects).after(before),
            wait("controller-available", self.deployment(), Condition::AvailableDeployment),
            wait("nodes-ready", self.daemon_set(), Condition::ReadyDaemonset),
        ]
    }

    /// Removes StorageClasses, each given as the id of its step and its name, then the programs, so that
    /// nothing new is made first.
    pub fn removal(&self, classes: &[(String, &str)]) -> Vec<Step> {
        let class = |(id, name): &(String, &str)| {
            steps::delete(id, cluster_wide("storage.k8s.io/v1", "StorageClass", name))
        };
        let mut removal: Vec<Step> = classes.iter().map(class).collect();
        let first: Vec<&str> = classes.iter().map(|(id, _)| id.as_str()).collect();
        removal.push(steps::delete("controller", self.deployment()).after(first));
        removal.push(steps::delete("nodes", self.daemon_set()).after(["controller"]));
        removal.push(steps::delete("csi-driver", self.csi_driver()).after(["nodes"]));
        removal
    }

    /// Removes what [`Driver::access`] makes of all roles: bindings before what they bind.
    pub fn access_removal(&self) -> Vec<Step> {
        let bindings = self.roles.iter().map(|role| cluster_wide(RBAC, "ClusterRoleBinding", role.binding));
        let roles = self.roles.iter().map(|role| cluster_wide(RBAC, "ClusterRole", role.name));
        let mut all: Vec<Object<'static>> = bindings.chain(roles).collect();
        all.extend([
            local(RBAC, "RoleBinding", self.leases),
            local(RBAC, "Role", self.leases),
            local("v1", "ServiceAccount", self.controller_account),
            local("v1", "ServiceAccount", self.node_account),
        ]);
        settings::delete_after(&all, "nodes")
    }
}

const fn local(api_version: &'static str, kind: &'static str, name: &'static str) -> Object<'static> {
    Object { api_version, kind, namespace: Some(NAMESPACE), name }
}

const fn cluster_wide<'a>(api_version: &'a str, kind: &'a str, name: &'a str) -> Object<'a> {
    Object { api_version, kind, namespace: None, name }
}

/// Values are put in rather than named in `json!`, which copies what it is given.
fn workload(object: Object<'_>, labels: &Value, mut spec: Value, pod: Value) -> Value {
    spec["selector"] = json!({ "matchLabels": labels });
    spec["template"] = json!({ "metadata": { "labels": labels } });
    spec["template"]["spec"] = pod;
    let mut workload = json!({
        "apiVersion": object.api_version, "kind": object.kind,
        "metadata": { "name": object.name, "namespace": NAMESPACE, "labels": labels },
    });
    workload["spec"] = spec;
    workload
}

/// Where the images of a driver come from.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    /// The registry of all of them.
    pub registry: &'a str,
    /// The path of the driver's image below the registry.
    pub path: &'static str,
    /// The tag of the driver's image.
    pub tag: &'a str,
}

impl Images<'_> {
    /// The driver's image.
    pub fn driver(&self) -> String {
        [self.registry, "/", self.path, ":", self.tag].concat()
    }

    /// The image of a program that all drivers share.
    pub fn sidecar(&self, name: &str, tag: &str) -> String {
        [self.registry, "/csi-components/", name, ":", tag].concat()
    }
}

/// What a container reserves where the user sets nothing.
pub fn requests() -> Value {
    json!({ "requests": { "cpu": "10m", "memory": "40Mi" } })
}

/// The security context of a container that needs nothing of its node.
pub fn confined() -> Value {
    json!({ "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true })
}

/// Tells a driver the name of its node.
pub fn node_name() -> Value {
    json!({ "name": "CSI_NODE_NAME", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } })
}

/// A container's mount of the Pod's volume of this name.
pub fn mount(name: &str, path: &str) -> Value {
    json!({ "name": name, "mountPath": path })
}

/// A container's mount of the kubelet's folder, in which mounts show on the node too.
pub fn kubelet_mount() -> Value {
    json!({ "name": "kubelet-dir", "mountPath": "/var/lib/kubelet", "mountPropagation": "Bidirectional" })
}

/// A Pod's volume that is a folder of the node.
pub fn host_path(name: &str, path: &str, kind: &str) -> Value {
    json!({ "name": name, "hostPath": { "path": path, "type": kind } })
}

/// A container beside the driver's that talks to it, in Pods of the controller.
pub fn sidecar(name: &str, image: String, args: &[&str]) -> Value {
    confined_container(name, image, args, vec![mount("socket-dir", SOCKET_DIRECTORY)])
}

/// A container beside the driver's, in any Pod.
pub fn confined_container(name: &str, image: String, args: &[&str], mounts: Vec<Value>) -> Value {
    let mut container = json!({ "name": name, "image": image });
    container["args"] = args.into();
    container["resources"] = requests();
    container["securityContext"] = confined();
    container["volumeMounts"] = mounts.into();
    container
}
