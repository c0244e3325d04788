//! The short forms in which grants of built-in add-ons are written.

use serde_json::Value;

use crds::plugin_module::{
    CertificateGrant, HostPathGrant, MachineRole, PodGrants, RuleProtocol, SecurityGroupRuleGrant,
};

use crate::grant::{Grants, ObjectGrant, Right};

/// Group, kinds, namespace (empty for cluster-scoped objects) and names (empty for all).
pub type Objects<'a> = (&'a str, &'a [&'a str], &'a str, &'a [&'a str]);

/// Namespace (empty for the whole cluster), groups, resources and verbs.
pub type Rights<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

pub const SYSTEM: &str = "kube-system";
pub const APPLY: &str = "k8s.apply/v1";
pub const WAIT: &str = "k8s.wait/v1";
pub const DELETE: &str = "k8s.delete/v1";
pub const SECURITY_GROUP_RULE: &str = "aws.sg-rule/v1";
pub const IAM_ROLE: &str = "aws.iam-role/v1";
pub const IAM_ROLE_WITH_TAGS: &str = "aws.iam-role/v2";
pub const INSTANCE_ROLES: &str = "aws.instance-roles/v1";
pub const EFS_FILE_SYSTEM: &str = "aws.efs-file-system/v1";
pub const CERTIFICATE: &str = "tls.certificate/v1";

pub const COORDINATION: &str = "coordination.k8s.io";
pub const STORAGE: &str = "storage.k8s.io";
pub const READ: &[&str] = &["get", "list", "watch"];
pub const OWN: &[&str] = &["create", "delete", "get", "list", "update", "watch"];
pub const OWN_AND_PATCH: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// Grants of these steps, registries and objects, and of nothing else.
pub fn grant(steps: &[&str], registries: &[&str], objects: &[Objects<'_>]) -> Grants {
    Grants {
        steps: texts(steps),
        objects: objects.iter().map(object).collect(),
        registries: texts(registries),
        ..Grants::default()
    }
}

pub fn object((group, kinds, namespace, names): &Objects<'_>) -> ObjectGrant {
    ObjectGrant {
        group: (*group).to_owned(),
        kinds: texts(kinds),
        namespaces: if namespace.is_empty() { Vec::new() } else { vec![(*namespace).to_owned()] },
        names: texts(names),
        unread: false,
    }
}

/// The same for objects that nobody reads.
pub fn unread(all: &[Objects<'_>]) -> Vec<ObjectGrant> {
    all.iter().map(|it| ObjectGrant { unread: true, ..object(it) }).collect()
}

/// Whom tokens are for that AWS takes.
pub const STS: &str = "sts.amazonaws.com";
/// PriorityClasses of what runs on every machine.
pub const CRITICAL_ON_NODES: &[&str] = &["system-node-critical"];
/// The same, and of what the cluster needs.
pub const CRITICAL: &[&str] = &["system-cluster-critical", "system-node-critical"];

/// The taint and the label of machines of the control plane.
pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// What Pods of an add-on that may run on the control plane have: these fields, paths of the machine, taints
/// and PriorityClasses. What the user's configuration names of taints and labels of machines is added.
pub fn pods(
    config: &Value,
    fields: &[&str],
    host_paths: &[&str],
    tolerations: &[&str],
    priority_classes: &[&str],
) -> PodGrants {
    let host_path = |it: &&str| HostPathGrant { path: (*it).to_owned(), read_only: false };
    let chosen = chosen_taints(config).filter(|_| !tolerations.contains(&"*"));
    PodGrants {
        fields: texts(fields),
        host_paths: host_paths.iter().map(host_path).collect(),
        tolerations: texts(tolerations).into_iter().chain(chosen).collect(),
        node_labels: chosen_labels(config),
        control_plane: true,
        priority_classes: texts(priority_classes),
        ..PodGrants::default()
    }
}

fn chosen_taints(config: &Value) -> impl Iterator<Item = String> {
    let all = config.get("tolerations").and_then(Value::as_array).into_iter().flatten();
    all.map(|it| it.get("key").and_then(Value::as_str).filter(|it| !it.is_empty()).unwrap_or("*").to_owned())
}

fn chosen_labels(config: &Value) -> Vec<String> {
    let labels = config.get("nodeSelector").and_then(Value::as_object);
    labels.into_iter().flatten().map(|(label, _)| label.clone()).collect()
}

/// Traffic from any machine of some roles to any of others: groups, peers, protocol and ports.
pub fn rule(
    groups: &[MachineRole],
    peers: &[MachineRole],
    protocol: RuleProtocol,
    ports: Option<(u16, u16)>,
) -> SecurityGroupRuleGrant {
    SecurityGroupRuleGrant {
        groups: groups.to_vec(),
        peers: peers.to_vec(),
        protocol,
        from_port: ports.map(|it| it.0),
        to_port: ports.map(|it| it.1),
        etcd: false,
    }
}

/// A Secret for a serving certificate.
pub fn certificate(namespace: &str, secret: &str) -> CertificateGrant {
    CertificateGrant { namespace: namespace.to_owned(), secrets: vec![secret.to_owned()] }
}

pub fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|it| (*it).to_owned()).collect()
}

pub fn rights(all: &[Rights<'_>]) -> Vec<Right> {
    let right = |(namespace, groups, resources, verbs): &Rights<'_>| Right {
        namespace: (*namespace).to_owned(),
        groups: texts(groups),
        resources: texts(resources),
        verbs: texts(verbs),
        names: Vec::new(),
    };
    all.iter().map(right).collect()
}

/// A name that the user may choose, and the one that is taken otherwise.
pub fn chosen<'a>(config: &'a Value, path: &str, otherwise: &'a str) -> &'a str {
    config.pointer(path).and_then(Value::as_str).unwrap_or(otherwise)
}
