//! The judge of plans: what a plugin may ask for. A plan is carried out with wide reach, so the whole of it is judged before its first
//! step; whatever is not granted is denied. Plugins that come with the host have grants of their own and the same judge.

use serde_json::Value;

use crate::contract::{Step, StepSpec};

/// What one plugin may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Step kinds, such as `k8s.apply/v1`.
    pub steps: Vec<String>,
    /// Objects that it may apply and delete.
    pub objects: Vec<ObjectGrant>,
    /// Where images may come from: the part of the reference before the last path segments, such as `quay.io/tigera`.
    pub registries: Vec<String>,
}

/// Kinds of one API group, in some namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectGrant {
    /// Empty for the core group.
    pub group: String,
    pub kinds: Vec<String>,
    /// Empty for cluster-scoped objects.
    pub namespaces: Vec<String>,
    /// Names, where only some are granted; empty for all.
    pub names: Vec<String>,
}

/// One thing that a plan asks for and that is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    pub step: String,
    pub message: String,
}

/// Judges all steps, those of the removal too. An empty answer grants the plan.
pub fn judge<'a>(steps: impl IntoIterator<Item = &'a Step>, grants: &Grants) -> Vec<Denial> {
    let mut res = Vec::new();
    for step in steps {
        let mut deny = |message: String| res.push(Denial { step: step.id.clone(), message });
        if !grants.steps.contains(&step.kind) {
            deny(format!("step kind {} is not granted", step.kind));
            continue;
        }
        match step.typed() {
            Err(error) => deny(error.to_string()),
            Ok(StepSpec::Apply(spec)) => spec.objects.iter().for_each(|it| judge_object(it, grants, &mut deny)),
            Ok(StepSpec::Delete(spec)) => {
                let at = (spec.api_version.as_str(), spec.kind.as_str(), spec.namespace.as_deref(), spec.name.as_str());
                judge_reference(at, grants, &mut deny);
            }
            // Waiting reads one object's status; security-group rules name roles of this cluster only.
            Ok(StepSpec::Wait(_) | StepSpec::SecurityGroupRule(_) | StepSpec::IamRole(_) | StepSpec::Certificate(_)) => (),
        }
    }
    res
}

fn judge_object(object: &Value, grants: &Grants, deny: &mut impl FnMut(String)) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let (api_version, kind) = (text("/apiVersion").unwrap_or(""), text("/kind").unwrap_or(""));
    judge_reference((api_version, kind, text("/metadata/namespace"), text("/metadata/name").unwrap_or("")), grants, deny);
    let mut images = Vec::new();
    collect_images(object, &mut images);
    for image in images {
        if !grants.registries.iter().any(|it| image.strip_prefix(it.as_str()).is_some_and(|rest| rest.starts_with('/'))) {
            deny(format!("image {image} comes from a registry that is not granted"));
        }
    }
}

fn judge_reference((api_version, kind, namespace, name): (&str, &str, Option<&str>, &str), grants: &Grants, deny: &mut impl FnMut(String)) {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_granted = grants.objects.iter().any(|it| {
        let in_scope = match namespace {
            Some(namespace) => it.namespaces.iter().any(|it| it == namespace),
            None => it.namespaces.is_empty(),
        };
        it.group == group
            && it.kinds.iter().any(|it| it == kind)
            && in_scope
            && (it.names.is_empty() || it.names.iter().any(|it| it == name))
    });
    if !is_granted {
        let place = namespace.map_or(String::new(), |it| format!(" in namespace {it}"));
        deny(format!("{kind} {name} of {}{place} is not granted", if api_version.is_empty() { "no API" } else { api_version }));
    }
}

/// The images of all containers of all pod templates in the object, wherever they are.
fn collect_images<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            for (key, it) in map {
                match (key.as_str(), it) {
                    ("containers" | "initContainers" | "ephemeralContainers", Value::Array(all)) => {
                        into.extend(all.iter().filter_map(|it| it.get("image").and_then(Value::as_str)));
                    }
                    _ => collect_images(it, into),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|it| collect_images(it, into)),
        _ => (),
    }
}

/// What a plugin that comes with the host may do; nothing at all for any other name. `config` is its configuration: a registry that the
/// user names there is granted.
pub fn built_in(module: &str, config: &Value) -> Grants {
    let objects = |all: &[(&str, &[&str], &[&str], &[&str])]| -> Vec<ObjectGrant> {
        let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let grant = |(group, kinds, namespaces, names): &(&str, &[&str], &[&str], &[&str])| ObjectGrant {
            group: (*group).to_owned(),
            kinds: texts(kinds),
            namespaces: texts(namespaces),
            names: texts(names),
        };
        all.iter().map(grant).collect()
    };
    let (granted, registry): (Vec<ObjectGrant>, &str) = match module {
        "aws-cloud-controller-manager" => (
            objects(&[
                ("", &["ServiceAccount"], &["kube-system"], &["cloud-controller-manager"]),
                ("apps", &["DaemonSet"], &["kube-system"], &["aws-cloud-controller-manager"]),
                (
                    "rbac.authorization.k8s.io",
                    &["RoleBinding"],
                    &["kube-system"],
                    &["cloud-controller-manager:apiserver-authentication-reader"],
                ),
                ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"], &[], &["system:cloud-controller-manager"]),
            ]),
            "registry.k8s.io/provider-aws",
        ),
        "calico" => (
            objects(&[
                ("", &["Namespace"], &[], &["tigera-operator"]),
                ("", &["ServiceAccount", "ConfigMap"], &["tigera-operator"], &[]),
                ("apps", &["Deployment"], &["tigera-operator"], &["tigera-operator"]),
                ("rbac.authorization.k8s.io", &["RoleBinding", "Role"], &["tigera-operator"], &[]),
                ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"], &[], &["tigera-operator", "tigera-operator-secrets"]),
                ("operator.tigera.io", &["Installation", "APIServer"], &[], &["default"]),
            ]),
            "quay.io/tigera",
        ),
        _ => return Grants::default(),
    };
    let steps = ["k8s.apply/v1", "k8s.wait/v1", "k8s.delete/v1", "aws.sg-rule/v1"];
    let mut registries = vec![registry.to_owned()];
    let named = config.get("imageRegistry").and_then(Value::as_str);
    registries.extend(named.map(|it| it.trim_end_matches('/').to_owned()));
    Grants { steps: steps.iter().map(|it| (*it).to_owned()).collect(), objects: granted, registries }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grants() -> Grants {
        Grants {
            steps: vec!["k8s.apply/v1".into(), "k8s.delete/v1".into()],
            objects: vec![
                ObjectGrant {
                    group: "apps".into(),
                    kinds: vec!["Deployment".into()],
                    namespaces: vec!["kube-system".into()],
                    names: vec![],
                },
                ObjectGrant {
                    group: String::new(),
                    kinds: vec!["Namespace".into()],
                    namespaces: vec![],
                    names: vec!["tigera-operator".into()],
                },
            ],
            registries: vec!["quay.io/tigera".into()],
        }
    }

    fn denials(kind: &str, spec: Value) -> Vec<String> {
        let step = Step { id: "it".into(), kind: kind.into(), spec, after: vec![] };
        judge([&step], &grants()).into_iter().map(|it| it.message).collect()
    }

    fn deployment(namespace: &str, image: &str) -> Value {
        json!({"objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": namespace},
            "spec": {"template": {"spec": {"containers": [{"name": "a", "image": image}]}}}}]})
    }

    #[test]
    fn what_is_granted_passes() {
        assert_eq!(denials("k8s.apply/v1", deployment("kube-system", "quay.io/tigera/operator:v1")), [""; 0]);
    }

    #[test]
    fn everything_else_is_denied_and_named() {
        assert_eq!(denials("aws.sg-rule/v1", json!({})), ["step kind aws.sg-rule/v1 is not granted"]);
        assert_eq!(
            denials("k8s.apply/v1", deployment("default", "quay.io/tigera/operator:v1")),
            ["Deployment a of apps/v1 in namespace default is not granted"]
        );
        assert_eq!(
            denials("k8s.apply/v1", deployment("kube-system", "quay.io/tigera-evil/operator:v1")),
            ["image quay.io/tigera-evil/operator:v1 comes from a registry that is not granted"]
        );
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "name": "kube-system", "wait": false});
        assert_eq!(denials("k8s.delete/v1", namespace), ["Namespace kube-system of v1 is not granted"]);
    }
}
