//! What a plan is granted, and how a denial is worded.

use serde_json::json;

use super::*;

fn grants() -> Grants {
    Grants {
        steps: [
            "k8s.apply/v1",
            "k8s.wait/v1",
            "k8s.wait/v2",
            "k8s.delete/v1",
            "aws.iam-role/v1",
            "tls.certificate/v1",
        ]
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
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "name": "kube-system", "wait": false});
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
    let denials_of = |granted: &[&str], object: Value| {
        let step = Step {
            id: "it".into(),
            kind: "k8s.apply/v1".into(),
            spec: json!({"objects": [object]}),
            after: vec![],
        };
        let grants = Grants { pull_secrets: granted.iter().map(|it| (*it).to_owned()).collect(), ..grants() };
        authorize([&step], &grants).into_iter().map(|it| it.message).collect::<Vec<_>>()
    };
    let pulled = pod(json!({"imagePullSecrets": [{"name": "mirror"}]}));
    assert_eq!(denials_of(&["mirror"], pulled.clone()), [""; 0]);
    let denied = ["Secret mirror of v1 in namespace kube-system is not granted"];
    assert_eq!(denials_of(&["other"], pulled), denied);
    assert_eq!(
        denials_of(&["mirror"], pod(json!({"volumes": [{"name": "a", "secret": {"secretName": "mirror"}}]}))),
        denied
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mirror", "namespace": "kube-system"}});
    assert_eq!(denials_of(&["mirror"], secret), denied);
}

#[test]
fn what_pods_use_is_checked_too() {
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
}

/// What is denied of a cluster-scoped object `a`, which may be made as such.
fn denials_of(group: &str, kind: &str, rest: Value) -> Vec<String> {
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
    let api_version = format!("{group}/v1").trim_start_matches('/').to_owned();
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
    rest.as_object().into_iter().flatten().for_each(|(field, value)| object[field] = value.clone());
    let spec = json!({"objects": [object]});
    let step = Step { id: "it".into(), kind: "k8s.apply/v1".into(), spec, after: vec![] };
    authorize([&step], &all).into_iter().map(|it| it.message).collect()
}

#[test]
fn roles_and_bindings_give_no_more_than_is_granted() {
    let rules = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    assert_eq!(denials_of(RBAC, "ClusterRole", rules), ["the right to * * of * is not granted"]);
    let binding = |role: &str, account: &str| {
        let role = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": role});
        json!({"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}]})
    };
    assert_eq!(denials_of(RBAC, "ClusterRoleBinding", binding("a", "own")), [""; 0]);
    assert_eq!(
        denials_of(RBAC, "ClusterRoleBinding", binding("cluster-admin", "other")),
        [
            "ClusterRole cluster-admin of rbac.authorization.k8s.io/v1 is not granted",
            "ServiceAccount other of v1 in namespace kube-system is not granted",
        ]
    );
}

#[test]
fn nobody_else_is_asked_and_images_come_from_nowhere_else() {
    let service = json!({"service": {"namespace": "default", "name": "spy"}});
    let webhooks = json!({"webhooks": [{"name": "a", "clientConfig": service, "rules": []}]});
    let denied = ["Service spy of v1 in namespace default is not granted"];
    assert_eq!(
        denials_of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", webhooks),
        denied
    );
    let conversion = json!({"spec": {"conversion": {"webhook": {"clientConfig": service}}}});
    assert_eq!(denials_of("apiextensions.k8s.io", "CustomResourceDefinition", conversion), denied);
    let service = |field: &str, value: Value| denials_of("", "Service", json!({"spec": {field: value}}));
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
        denials_of("operator.tigera.io", "Installation", json!({"spec": {field: value}}))
    };
    assert_eq!(installation("registry", "quay.io/tigera/"), [""; 0]);
    assert_eq!(
        installation("registry", "example.com/"),
        ["images from example.com/ (spec.registry) are not granted"]
    );
    assert_eq!(installation("imagePath", "evil"), ["images from evil (spec.imagePath) are not granted"]);
}

#[test]
fn fields_are_awaited_of_granted_objects_alone_and_of_no_secret() {
    let wait = |api_version: &str, kind: &str, namespace: &str, name: &str| {
        let conditions = json!([{"path": "/status", "operator": "Exists"}]);
        denials(
            "k8s.wait/v2",
            json!({"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "conditions": conditions}),
        )
    };
    assert_eq!(wait("apps/v1", "Deployment", "kube-system", "a"), [""; 0]);
    assert_eq!(
        wait("apps/v1", "Deployment", "default", "a"),
        ["Deployment a of apps/v1 in namespace default is not granted"]
    );
    let own = "Secret is told to no plugin, not even by a wait";
    assert_eq!(wait("v1", "Secret", "kube-system", "own"), [own]);
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
    assert_eq!(wait("operator.tigera.io/v1/TigeraStatus", None, "calico", "tigerastatus-available"), [""; 0]);
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
