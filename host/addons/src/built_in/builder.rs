//! The short forms in which grants of built-in add-ons are written.

use serde_json::Value;

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
    }
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|it| (*it).to_owned()).collect()
}

pub fn rights(all: &[Rights<'_>]) -> Vec<Right> {
    let right = |(namespace, groups, resources, verbs): &Rights<'_>| Right {
        namespace: (*namespace).to_owned(),
        groups: texts(groups),
        resources: texts(resources),
        verbs: texts(verbs),
    };
    all.iter().map(right).collect()
}

/// A name that the user may choose, and the one that is taken otherwise.
pub fn chosen<'a>(config: &'a Value, path: &str, otherwise: &'a str) -> &'a str {
    config.pointer(path).and_then(Value::as_str).unwrap_or(otherwise)
}
