//! What a plugin may ask for. A plan is carried out with wide reach, so the whole of it is authorized before
//! its first step; whatever is not granted is denied. This holds for plugins that come with the host too.

use serde_json::Value;

use crate::ObjectRef;
use contract::{RoleMode, Step, StepSpec, WaitCondition, WaitSpec};

mod pods;
mod queries;
mod rights;
mod take_over;
mod webhooks;

pub use crds::plugin_module::{Grants, ObjectGrant, QueryGrant, Right, TakeOver};
pub use queries::{Reach, is_withheld, judge, told};
pub use take_over::taken_over;

/// The API group of roles and bindings.
pub const RBAC: &str = "rbac.authorization.k8s.io";

/// API version, kind, namespace and name of an object.
type At<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

/// One thing that a plan asks for and that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub step: String,
    pub message: String,
}

/// Authorizes all steps, those of the removal too. An empty answer grants the plan.
pub fn authorize<'a>(steps: impl IntoIterator<Item = &'a Step>, grants: &Grants) -> Vec<Denial> {
    let mut res = Vec::new();
    for step in steps {
        let mut deny = |message: String| res.push(Denial { step: step.id.clone(), message });
        if !grants.steps.contains(&step.kind) {
            deny(format!("step kind {} is not granted", step.kind));
            continue;
        }
        match step.typed() {
            Err(error) => deny(error.to_string()),
            Ok(StepSpec::Apply(spec)) => {
                spec.objects.iter().for_each(|it| check_object(it, grants, &mut deny))
            }
            Ok(StepSpec::Delete(spec)) => {
                let at = (
                    spec.api_version.as_str(),
                    spec.kind.as_str(),
                    spec.namespace.as_deref(),
                    spec.name.as_str(),
                );
                check_reference(at, grants, &mut deny);
            }
            Ok(StepSpec::Wait(spec)) if is_for_all(&spec) => (),
            Ok(StepSpec::Wait(spec)) => {
                let at = (
                    spec.api_version.as_str(),
                    spec.kind.as_str(),
                    spec.namespace.as_deref(),
                    spec.name.as_str(),
                );
                check_reference(at, grants, &mut deny);
            }
            Ok(StepSpec::FieldWait(spec)) => {
                let at = (
                    spec.api_version.as_str(),
                    spec.kind.as_str(),
                    spec.namespace.as_deref(),
                    spec.name.as_str(),
                );
                check_reference(at, grants, &mut deny);
                if is_withheld(&ObjectRef::at(at)) {
                    deny(format!("{} is told to no plugin, not even by a wait", spec.kind));
                }
            }
            Ok(StepSpec::IamRole(spec)) => {
                if spec.mode == RoleMode::Ensure {
                    deny("changing IAM roles is not granted".to_owned());
                }
                // A role is looked at for a service account that the plugin may make, or for the instances.
                if let Some(account) = &spec.service_account {
                    check_reference(
                        ("v1", "ServiceAccount", spec.namespace.as_deref(), account),
                        grants,
                        &mut deny,
                    );
                }
            }
            Ok(StepSpec::Certificate(spec)) => {
                check_reference(
                    ("v1", "Secret", Some(&spec.namespace), &spec.secret_name),
                    grants,
                    &mut deny,
                );
            }
            // Security-group rules name roles of this cluster only; roles of its instances and file systems
            // are only looked at.
            Ok(StepSpec::SecurityGroupRule(_) | StepSpec::InstanceRoles(_) | StepSpec::EfsFileSystem(_)) => {}
        }
    }
    res
}

/// Whether a plugin may touch this object.
pub fn is_granted(object: &ObjectRef, grants: &Grants) -> bool {
    covers(
        &grants.objects,
        (
            object.api_version.as_str(),
            object.kind.as_str(),
            object.namespace.as_deref(),
            object.name.as_str(),
        ),
    )
}

/// Whether any plugin may wait for it: for an API to be served, or for what Calico's operator says of itself.
/// Both tell nothing of what runs in the cluster, and belong to others than the plugin that waits: a grant
/// for one would let it delete it.
fn is_for_all(spec: &WaitSpec) -> bool {
    let group = group_of(&spec.api_version);
    let is_open = match spec.condition {
        WaitCondition::CrdEstablished => group == "apiextensions.k8s.io",
        WaitCondition::TigerastatusAvailable => group == "operator.tigera.io",
        WaitCondition::AvailableDeployment
        | WaitCondition::ReadyDaemonset
        | WaitCondition::Exists
        | WaitCondition::Gone => false,
    };
    is_open && spec.namespace.is_none()
}

fn check_object(object: &Value, grants: &Grants, deny: &mut impl FnMut(String)) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let (api_version, kind) = (text("/apiVersion").unwrap_or(""), text("/kind").unwrap_or(""));
    let namespace = text("/metadata/namespace");
    if !check_reference((api_version, kind, namespace, text("/metadata/name").unwrap_or("")), grants, deny) {
        return;
    }
    let asked = match (group_of(api_version), kind) {
        (RBAC, "Role" | "ClusterRole") => return rights::check_role(object, &grants.rights, deny),
        (RBAC, _) => return check_binding(object, grants, deny),
        ("admissionregistration.k8s.io", _) => webhooks::check_webhooks(object, &grants.webhooks, deny),
        ("apiextensions.k8s.io", _) => match webhooks::converter(object) {
            Ok(asked) => asked.into_iter().collect(),
            Err(why) => return deny(why),
        },
        _ => Vec::new(),
    };
    match (group_of(api_version), kind) {
        ("operator.tigera.io", _) => check_registry(object, grants, deny),
        ("", "Service") => check_service(object, deny),
        _ => (),
    }
    for (namespace, name) in asked {
        check_reference(("v1", "Service", Some(&namespace), &name), grants, deny);
    }
    check_pods(object, (group_of(api_version), namespace), grants, deny);
}

/// A role of its own, or one that it may give on, to service accounts of its own.
fn check_binding(object: &Value, grants: &Grants, deny: &mut impl FnMut(String)) {
    let bound = match rights::binding(object) {
        Ok(bound) => bound,
        Err(why) => return deny(why),
    };
    for (kind, namespace, name) in bound {
        let api_version = if kind == "ServiceAccount" { "v1".to_owned() } else { format!("{RBAC}/v1") };
        let at = (api_version.as_str(), kind, namespace.as_deref(), name.as_str());
        if !covers(&grants.roles, at) {
            check_reference(at, grants, deny);
        }
    }
}

fn check_pods(
    object: &Value,
    (group, namespace): (&str, Option<&str>),
    grants: &Grants,
    deny: &mut impl FnMut(String),
) {
    let makes_pods = ["", "apps", "batch"].contains(&group);
    let used = pods::used(object, makes_pods);
    for image in used.images.iter().filter(|it| !comes_from_granted(it, grants)) {
        deny(format!("image {image} comes from a registry that is not granted"));
    }
    for account in &used.service_accounts {
        check_reference(("v1", "ServiceAccount", namespace, account), grants, deny);
    }
    for secret in &used.secrets {
        check_reference(("v1", "Secret", namespace, secret), grants, deny);
    }
    for secret in used.pull_secrets.iter().filter(|it| !grants.pull_secrets.contains(it)) {
        check_reference(("v1", "Secret", namespace, secret), grants, deny);
    }
    for field in used.host.iter().filter(|_| !grants.host) {
        deny(format!("{field} of a Pod is not granted: it belongs to the machine"));
    }
}

fn comes_from_granted(image: &str, grants: &Grants) -> bool {
    grants
        .registries
        .iter()
        .any(|it| image.strip_prefix(it.as_str()).is_some_and(|rest| rest.starts_with('/')))
}

/// A Service that leads out of the cluster, or takes addresses that are somebody else's: with the first,
/// webhooks would be asked anywhere; the second is CVE-2020-8554.
fn check_service(object: &Value, deny: &mut impl FnMut(String)) {
    let is_set = |path: &str| {
        object.pointer(path).is_some_and(|it| !matches!(it, Value::Null) && it != &Value::Array(Vec::new()))
    };
    for field in ["externalName", "externalIPs"].into_iter().filter(|it| is_set(&format!("/spec/{it}"))) {
        deny(format!("{field} of a Service is not granted: it leads out of the cluster"));
    }
}

/// Calico's operator takes images from where its Installation says.
fn check_registry(object: &Value, grants: &Grants, deny: &mut impl FnMut(String)) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).filter(|it| !it.is_empty());
    match (text("/spec/registry"), text("/spec/imagePath")) {
        (Some(registry), _) if !grants.registries.iter().any(|it| it == registry.trim_end_matches('/')) => {
            deny(format!("images from {registry} (spec.registry) are not granted"));
        }
        (None, Some(path)) => deny(format!("images from {path} (spec.imagePath) are not granted")),
        _ => (),
    }
    let secrets = object.pointer("/spec/imagePullSecrets").and_then(Value::as_array).into_iter().flatten();
    for secret in secrets
        .filter_map(|it| it["name"].as_str())
        .filter(|it| !grants.pull_secrets.iter().any(|known| known == it))
    {
        deny(format!("Secret {secret} (spec.imagePullSecrets) is not granted"));
    }
}

/// Whether it is granted, too.
fn check_reference(at: At<'_>, grants: &Grants, deny: &mut impl FnMut(String)) -> bool {
    let is_granted = covers(&grants.objects, at);
    if !is_granted {
        let (api_version, kind, namespace, name) = at;
        let place = namespace.map_or(String::new(), |it| format!(" in namespace {it}"));
        deny(format!(
            "{kind} {name} of {}{place} is not granted",
            if api_version.is_empty() { "no API" } else { api_version }
        ));
    }
    is_granted
}

fn covers(granted: &[ObjectGrant], (api_version, kind, namespace, name): At<'_>) -> bool {
    granted.iter().any(|it| {
        let in_scope = match namespace {
            Some(namespace) => it.namespaces.iter().any(|it| it == namespace),
            None => it.namespaces.is_empty(),
        };
        it.group == group_of(api_version)
            && it.kinds.iter().any(|it| it == kind)
            && in_scope
            && (it.names.is_empty() || it.names.iter().any(|it| it == name))
    })
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests;
