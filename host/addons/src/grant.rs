//! The judge of plans: what a plugin may ask for. A plan is carried out with wide reach, so the whole of it
//! is judged before its first step; whatever is not granted is denied. Plugins that come with the host have
//! grants of their own and the same judge.

use serde_json::Value;

use crate::ObjectRef;
use contract::{RoleMode, Step, StepSpec, WaitCondition, WaitSpec};

mod built_in;
mod pods;
mod rights;
mod take_over;
mod webhooks;

pub use built_in::built_in;
pub use rights::Right;
pub use take_over::{TakeOver, taken_over};

const RBAC: &str = "rbac.authorization.k8s.io";

/// API version, kind, namespace and name of an object.
type At<'a> = (&'a str, &'a str, Option<&'a str>, &'a str);

/// What one plugin may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Step kinds, such as `k8s.apply/v1`.
    pub steps: Vec<String>,
    /// Objects that it may apply, delete and wait for.
    pub objects: Vec<ObjectGrant>,
    /// Where images may come from: the part of the reference before the last path segments, such as
    /// `quay.io/tigera`.
    pub registries: Vec<String>,
    /// Secrets with which the images of its Pods may be pulled; it may do nothing else with them.
    pub pull_secrets: Vec<String>,
    /// What the roles that it makes may allow.
    pub rights: Vec<Right>,
    /// Roles that others made and that it may give to its service accounts, besides its own.
    pub roles: Vec<ObjectGrant>,
    /// Which requests its webhooks may be asked about.
    pub webhooks: Vec<Right>,
    /// Whether its Pods may use what belongs to the machine: its network, ports, files and privileges.
    pub host: bool,
    /// Whose fields of its objects it may take over.
    pub taken_over: Vec<TakeOver>,
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
                spec.objects.iter().for_each(|it| judge_object(it, grants, &mut deny))
            }
            Ok(StepSpec::Delete(spec)) => {
                let at = (
                    spec.api_version.as_str(),
                    spec.kind.as_str(),
                    spec.namespace.as_deref(),
                    spec.name.as_str(),
                );
                judge_reference(at, grants, &mut deny);
            }
            Ok(StepSpec::Wait(spec)) if is_for_all(&spec) => (),
            Ok(StepSpec::Wait(spec)) => {
                let at = (
                    spec.api_version.as_str(),
                    spec.kind.as_str(),
                    spec.namespace.as_deref(),
                    spec.name.as_str(),
                );
                judge_reference(at, grants, &mut deny);
            }
            Ok(StepSpec::IamRole(spec)) => {
                if spec.mode == RoleMode::Ensure {
                    deny("changing IAM roles is not granted".to_owned());
                }
                // A role is looked at for a service account that the plugin may make, or for the instances.
                if let Some(account) = &spec.service_account {
                    judge_reference(
                        ("v1", "ServiceAccount", spec.namespace.as_deref(), account),
                        grants,
                        &mut deny,
                    );
                }
            }
            Ok(StepSpec::Certificate(spec)) => {
                judge_reference(
                    ("v1", "Secret", Some(&spec.namespace), &spec.secret_name),
                    grants,
                    &mut deny,
                );
            }
            // Security-group rules name roles of this cluster only; roles of its instances and file systems
            // are only looked at.
            Ok(StepSpec::SecurityGroupRule(_) | StepSpec::InstanceRoles(_) | StepSpec::EfsFileSystem(_)) => {
                ()
            }
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

fn judge_object(object: &Value, grants: &Grants, deny: &mut impl FnMut(String)) {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let (api_version, kind) = (text("/apiVersion").unwrap_or(""), text("/kind").unwrap_or(""));
    let namespace = text("/metadata/namespace");
    if !judge_reference((api_version, kind, namespace, text("/metadata/name").unwrap_or("")), grants, deny) {
        return;
    }
    let asked = match (group_of(api_version), kind) {
        (RBAC, "Role" | "ClusterRole") => return rights::judge_role(object, &grants.rights, deny),
        (RBAC, _) => return judge_binding(object, grants, deny),
        ("admissionregistration.k8s.io", _) => webhooks::judge_webhooks(object, &grants.webhooks, deny),
        ("apiextensions.k8s.io", _) => match webhooks::converter(object) {
            Ok(asked) => asked.into_iter().collect(),
            Err(why) => return deny(why),
        },
        _ => Vec::new(),
    };
    match (group_of(api_version), kind) {
        ("operator.tigera.io", _) => judge_registry(object, grants, deny),
        ("", "Service") => judge_service(object, deny),
        _ => (),
    }
    for (namespace, name) in asked {
        judge_reference(("v1", "Service", Some(&namespace), &name), grants, deny);
    }
    judge_pods(object, (group_of(api_version), namespace), grants, deny);
}

/// A role of its own, or one that it may give on, to service accounts of its own.
fn judge_binding(object: &Value, grants: &Grants, deny: &mut impl FnMut(String)) {
    let bound = match rights::binding(object) {
        Ok(bound) => bound,
        Err(why) => return deny(why),
    };
    for (kind, namespace, name) in bound {
        let api_version = if kind == "ServiceAccount" { "v1".to_owned() } else { format!("{RBAC}/v1") };
        let at = (api_version.as_str(), kind, namespace.as_deref(), name.as_str());
        if !covers(&grants.roles, at) {
            judge_reference(at, grants, deny);
        }
    }
}

fn judge_pods(
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
        judge_reference(("v1", "ServiceAccount", namespace, account), grants, deny);
    }
    for secret in &used.secrets {
        judge_reference(("v1", "Secret", namespace, secret), grants, deny);
    }
    for secret in used.pull_secrets.iter().filter(|it| !grants.pull_secrets.contains(it)) {
        judge_reference(("v1", "Secret", namespace, secret), grants, deny);
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
fn judge_service(object: &Value, deny: &mut impl FnMut(String)) {
    let is_set = |path: &str| {
        object.pointer(path).is_some_and(|it| !matches!(it, Value::Null) && it != &Value::Array(Vec::new()))
    };
    for field in ["externalName", "externalIPs"].into_iter().filter(|it| is_set(&format!("/spec/{it}"))) {
        deny(format!("{field} of a Service is not granted: it leads out of the cluster"));
    }
}

/// Calico's operator takes images from where its Installation says.
fn judge_registry(object: &Value, grants: &Grants, deny: &mut impl FnMut(String)) {
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
fn judge_reference(at: At<'_>, grants: &Grants, deny: &mut impl FnMut(String)) -> bool {
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
mod tests {
    use serde_json::json;

    use super::*;

    fn grants() -> Grants {
        Grants {
            steps: ["k8s.apply/v1", "k8s.wait/v1", "k8s.delete/v1", "aws.iam-role/v1", "tls.certificate/v1"]
                .map(str::to_owned)
                .into(),
            objects: vec![
                ObjectGrant {
                    group: String::new(),
                    kinds: vec!["Secret".into(), "ServiceAccount".into()],
                    namespaces: vec!["kube-system".into()],
                    names: vec!["own".into()],
                },
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
            ..Grants::default()
        }
    }

    fn denials(kind: &str, spec: Value) -> Vec<String> {
        let step = Step { id: "it".into(), kind: kind.into(), spec, after: vec![] };
        authorize([&step], &grants()).into_iter().map(|it| it.message).collect()
    }

    fn deployment(namespace: &str, image: &str) -> Value {
        json!({"objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": namespace},
            "spec": {"template": {"spec": {"serviceAccountName": "own", "containers": [{"name": "a", "image": image}]}}}}]})
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
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "name": "kube-system", "wait": false});
        assert_eq!(denials("k8s.delete/v1", namespace), ["Namespace kube-system of v1 is not granted"]);
    }

    #[test]
    fn a_secret_to_pull_images_with_can_be_used_for_nothing_else() {
        let pod = |rest: Value| {
            let mut pod = json!({"serviceAccountName": "own", "containers": [{"name": "a", "image": "quay.io/tigera/operator:v1"}]});
            pod.as_object_mut().expect("an object").extend(rest.as_object().cloned().expect("an object"));
            let metadata = json!({"name": "a", "namespace": "kube-system"});
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": {"spec": pod}}})
        };
        let judged = |granted: &[&str], object: Value| {
            let step = Step {
                id: "it".into(),
                kind: "k8s.apply/v1".into(),
                spec: json!({"objects": [object]}),
                after: vec![],
            };
            let grants =
                Grants { pull_secrets: granted.iter().map(|it| (*it).to_owned()).collect(), ..grants() };
            authorize([&step], &grants).into_iter().map(|it| it.message).collect::<Vec<_>>()
        };
        let pulled = pod(json!({"imagePullSecrets": [{"name": "mirror"}]}));
        assert_eq!(judged(&["mirror"], pulled.clone()), [""; 0]);
        let denied = ["Secret mirror of v1 in namespace kube-system is not granted"];
        assert_eq!(judged(&["other"], pulled), denied);
        assert_eq!(
            judged(&["mirror"], pod(json!({"volumes": [{"name": "a", "secret": {"secretName": "mirror"}}]}))),
            denied
        );
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mirror", "namespace": "kube-system"}});
        assert_eq!(judged(&["mirror"], secret), denied);
    }

    #[test]
    fn what_would_outlive_the_plan_is_judged_too() {
        let mut pod = json!({"serviceAccountName": "admin", "hostNetwork": true, "containers": [],
            "volumes": [{"name": "a", "secret": {"secretName": "token"}}]});
        let deployment = |pod: &Value| {
            let metadata = json!({"name": "a", "namespace": "kube-system"});
            json!({"objects": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": {"spec": pod}}}]})
        };
        assert_eq!(
            denials("k8s.apply/v1", deployment(&pod)),
            [
                "ServiceAccount admin of v1 in namespace kube-system is not granted",
                "Secret token of v1 in namespace kube-system is not granted",
                "hostNetwork of a Pod is not granted: it belongs to the machine",
            ]
        );
        pod["serviceAccountName"] = Value::Null;
        assert_eq!(
            denials("k8s.apply/v1", deployment(&pod))[0],
            "ServiceAccount default of v1 in namespace kube-system is not granted"
        );
        let mut all = grants();
        let cluster_wide = |group: &str, kind: &str| ObjectGrant {
            group: group.into(),
            kinds: vec![kind.into()],
            namespaces: vec![],
            names: vec!["a".into()],
        };
        let groups = [
            ("", "Service"),
            (RBAC, "ClusterRole"),
            (RBAC, "ClusterRoleBinding"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            ("operator.tigera.io", "Installation"),
        ];
        all.objects.extend(groups.map(|(group, kind)| cluster_wide(group, kind)));
        let judged = |group: &str, kind: &str, rest: Value| {
            let api_version = format!("{group}/v1").trim_start_matches('/').to_owned();
            let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
            rest.as_object().into_iter().flatten().for_each(|(field, value)| object[field] = value.clone());
            let step = Step {
                id: "it".into(),
                kind: "k8s.apply/v1".into(),
                spec: json!({"objects": [object]}),
                after: vec![],
            };
            authorize([&step], &all).into_iter().map(|it| it.message).collect::<Vec<_>>()
        };
        let rules = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
        assert_eq!(judged(RBAC, "ClusterRole", rules), ["the right to * * of * is not granted"]);
        let binding = |role: &str, account: &str| {
            let role = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": role});
            json!({"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]})
        };
        assert_eq!(judged(RBAC, "ClusterRoleBinding", binding("a", "own")), [""; 0]);
        assert_eq!(
            judged(RBAC, "ClusterRoleBinding", binding("cluster-admin", "other")),
            [
                "ClusterRole cluster-admin of rbac.authorization.k8s.io/v1 is not granted",
                "ServiceAccount other of v1 in namespace kube-system is not granted",
            ]
        );
        let service = json!({"service": {"namespace": "default", "name": "spy"}});
        let webhooks = json!({"webhooks": [{"name": "a", "clientConfig": service, "rules": []}]});
        let denied = ["Service spy of v1 in namespace default is not granted"];
        assert_eq!(
            judged("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", webhooks),
            denied
        );
        let conversion = json!({"spec": {"conversion": {"webhook": {"clientConfig": service}}}});
        assert_eq!(judged("apiextensions.k8s.io", "CustomResourceDefinition", conversion), denied);
        let service = |field: &str, value: Value| judged("", "Service", json!({"spec": {field: value}}));
        assert_eq!(service("externalIPs", json!([])), [""; 0]);
        assert_eq!(
            service("externalIPs", json!(["192.0.2.1"])),
            ["externalIPs of a Service is not granted: it leads out of the cluster"]
        );
        assert_eq!(
            service("externalName", json!("example.com")),
            ["externalName of a Service is not granted: it leads out of the cluster"]
        );
        let installation = |field: &str, value: &str| {
            judged("operator.tigera.io", "Installation", json!({"spec": {field: value}}))
        };
        assert_eq!(installation("registry", "quay.io/tigera/"), [""; 0]);
        assert_eq!(
            installation("registry", "example.com/"),
            ["images from example.com/ (spec.registry) are not granted"]
        );
        assert_eq!(installation("imagePath", "evil"), ["images from evil (spec.imagePath) are not granted"]);
    }

    #[test]
    fn waits_are_for_granted_objects_and_for_what_apis_there_are() {
        let wait = |kind: &str, namespace: Option<&str>, name: &str, condition: &str| {
            let (api_version, kind) = kind.rsplit_once('/').unwrap();
            let spec = json!({"apiVersion": api_version, "kind": kind, "name": name, "condition": condition, "timeoutSeconds": 1});
            let in_namespace = |namespace: &str| {
                let mut spec = spec.clone();
                spec["namespace"] = namespace.into();
                spec
            };
            denials("k8s.wait/v1", namespace.map_or_else(|| spec.clone(), in_namespace))
        };
        assert_eq!(wait("apps/v1/Deployment", Some("kube-system"), "a", "available-deployment"), [""; 0]);
        assert_eq!(wait("v1/Namespace", None, "tigera-operator", "gone"), [""; 0]);
        assert_eq!(
            wait("apps/v1/Deployment", Some("default"), "a", "available-deployment"),
            ["Deployment a of apps/v1 in namespace default is not granted"]
        );
        assert_eq!(
            wait("v1/Secret", Some("kube-system"), "admin", "exists"),
            ["Secret admin of v1 in namespace kube-system is not granted"]
        );
        let definition = "apiextensions.k8s.io/v1/CustomResourceDefinition";
        assert_eq!(wait(definition, None, "a.b", "crd-established"), [""; 0]);
        assert_eq!(
            wait(definition, None, "a.b", "gone"),
            ["CustomResourceDefinition a.b of apiextensions.k8s.io/v1 is not granted"]
        );
        assert_eq!(
            wait("example.com/v1/CustomResourceDefinition", None, "a.b", "crd-established"),
            ["CustomResourceDefinition a.b of example.com/v1 is not granted"]
        );
        assert_eq!(
            wait("operator.tigera.io/v1/TigeraStatus", None, "calico", "tigerastatus-available"),
            [""; 0]
        );
    }

    #[test]
    fn roles_are_only_looked_at_and_only_for_ones_own_service_accounts() {
        let role = |mode: &str, account: &str| json!({"roleArn": "arn", "trust": "irsa", "namespace": "kube-system", "serviceAccount": account, "actions": [], "mode": mode});
        assert_eq!(denials("aws.iam-role/v1", role("check", "own")), [""; 0]);
        assert_eq!(denials("aws.iam-role/v1", role("ensure", "own")), ["changing IAM roles is not granted"]);
        assert_eq!(
            denials("aws.iam-role/v1", role("check", "other")),
            ["ServiceAccount other of v1 in namespace kube-system is not granted"]
        );
    }

    #[test]
    fn a_certificate_goes_only_into_a_granted_secret() {
        let certificate = |secret: &str| json!({"namespace": "kube-system", "secretName": secret, "dnsNames": ["a.kube-system.svc"]});
        assert_eq!(denials("tls.certificate/v1", certificate("own")), [""; 0]);
        assert_eq!(
            denials("tls.certificate/v1", certificate("admin")),
            ["Secret admin of v1 in namespace kube-system is not granted"]
        );
    }
}
