//! Secrets, Services, ConfigMaps, storage: what of their values needs a grant.

use super::*;

/// What is denied of an object of namespace `own` that may be made, with these grants besides.
fn of(api_version: &str, kind: &str, rest: Value, more: Value) -> Vec<String> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_in_namespace = !["StorageClass", "CSIDriver", "Installation"].contains(&kind);
    let namespaces = if is_in_namespace { json!(["own"]) } else { json!([]) };
    let mut grants =
        json!({"objects": [{"group": group, "kinds": [kind], "namespaces": namespaces, "names": ["a"]}]});
    let more = granted(more);
    grants["registries"] = json!(["quay.io/tigera"]);
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}});
    if is_in_namespace {
        object["metadata"]["namespace"] = "own".into();
    }
    for (field, value) in rest.as_object().into_iter().flatten() {
        match (field.as_str(), value) {
            ("annotations", value) => object["metadata"]["annotations"] = value.clone(),
            (field, value) => object[field] = value.clone(),
        }
    }
    denied(&applying(vec![object]), &merged(&granted(grants), &more))
}

#[test]
fn a_secret_is_no_token_of_somebody_elses_service_account() {
    let token = |account: &str, grants: Value| {
        let rest = json!({"type": "kubernetes.io/service-account-token", "annotations": {"kubernetes.io/service-account.name": account}});
        of("v1", "Secret", rest, grants)
    };
    let field = "Secret.serviceAccountToken";
    let denied_field = format!(": {field} is not granted <- grants.fields: [{field}]");
    let own = json!({"objects": [{"kinds": ["ServiceAccount"], "namespaces": ["own"], "names": ["own"]}], "fields": [field]});
    assert_eq!(token("own", own.clone()), [""; 0]);
    assert_eq!(
        token("namespace-controller", own),
        [
            "ServiceAccount namespace-controller of v1 in namespace own is not granted <- grants.objects: [{group: \"\", kinds: [ServiceAccount], names: [namespace-controller], namespaces: [own]}]"
        ]
    );
    assert_eq!(token("own", json!({})).first(), Some(&denied_field));
    let typeless = json!({"annotations": {"kubernetes.io/service-account.name": "admin"}});
    assert_eq!(
        of("v1", "Secret", typeless, json!({})).len(),
        2,
        "the Secret may be one of that type already"
    );
    for kind in ["bootstrap.kubernetes.io/token", "kubernetes.io/surprise"] {
        assert_eq!(
            of("v1", "Secret", json!({"type": kind}), json!({})),
            [format!("a Secret of type {kind:?} is not granted <- nothing")]
        );
    }
    for kind in ["Opaque", "kubernetes.io/tls", "example.com/mine"] {
        assert_eq!(of("v1", "Secret", json!({"type": kind, "stringData": {"a": "b"}}), json!({})), [""; 0]);
    }
}

#[test]
fn a_secret_for_a_certificate_cannot_be_applied() {
    let grants = granted(
        json!({"steps": ["tls.certificate/v1"], "certificates": [{"namespace": "kube-system", "secrets": ["tls"]}]}),
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "namespace": "kube-system"}});
    assert_eq!(denied(&applying(vec![secret]), &grants).len(), 1);
    let step = |kind: &str, spec: Value| Step { id: "it".into(), kind: kind.into(), spec, after: vec![] };
    let certificate = |secret: &str| {
        step(
            "tls.certificate/v1",
            json!({"namespace": "kube-system", "secretName": secret, "dnsNames": ["a.svc"]}),
        )
    };
    assert_eq!(denied(&certificate("tls"), &grants), [""; 0]);
    assert_eq!(
        denied(&certificate("admin"), &grants),
        [
            "Secret admin of v1 in namespace kube-system is not granted <- grants.certificates: [{namespace: kube-system, secrets: [admin]}]"
        ]
    );
    let delete = step(
        "k8s.delete/v1",
        json!({"apiVersion": "v1", "kind": "Secret", "namespace": "kube-system", "name": "tls", "wait": true}),
    );
    assert_eq!(denied(&delete, &grants), [""; 0]);
}

#[test]
fn in_the_systems_namespaces_only_what_is_named_is_granted() {
    let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "kube-system"}});
    let grants = |names: Value| json!({"objects": [{"kinds": ["ConfigMap", "Secret", "ServiceAccount"], "namespaces": ["kube-system"], "names": names}]});
    for name in
        ["coredns", "kube-proxy", "kubeadm-config", "extension-apiserver-authentication", "aws-auth", "own"]
    {
        assert_eq!(denied_of(object("ConfigMap", name), grants(json!([]))).len(), 1, "{name}");
        assert_eq!(denied_of(object("ConfigMap", name), grants(json!([name]))), [""; 0]);
    }
    assert_eq!(
        denied_of(object("ServiceAccount", "clusterrole-aggregation-controller"), grants(json!([]))).len(),
        1
    );
    for name in ["cluster-plugin-calico", "cluster-component-calico-0a"] {
        assert_eq!(
            denied_of(object("ConfigMap", name), grants(json!([name]))),
            [format!(
                "ConfigMap {name} of v1 in namespace kube-system is not granted: it is a record of the operator <- nothing"
            )]
        );
    }
    assert_eq!(
        denied_of(object("Secret", "bootstrap-token-abcdef"), grants(json!(["bootstrap-token-abcdef"]))),
        [
            "Secret bootstrap-token-abcdef of v1 in namespace kube-system is not granted: whoever has it makes a machine of the cluster <- nothing"
        ]
    );
    let unnamed = json!({"objects": [{"kinds": ["Namespace"]}, {"group": RBAC, "kinds": ["ClusterRole"]}]});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}});
    let role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": "cluster-admin"}, "rules": []});
    for object in [namespace, role] {
        assert_eq!(denied_of(object, unnamed.clone()).len(), 1, "cluster-scoped kinds have to be named too");
    }
}

#[test]
fn a_service_stays_in_the_cluster_unless_granted() {
    let service = |spec: Value| of("v1", "Service", json!({"spec": spec}), json!({}));
    assert_eq!(
        service(
            json!({"selector": {"app": "a"}, "ports": [{"port": 80}], "clusterIP": "None", "externalIPs": []})
        ),
        [""; 0]
    );
    for (spec, field) in [
        (json!({"externalIPs": ["192.0.2.1"]}), "externalIPs"),
        (json!({"externalName": "example.com"}), "externalName"),
    ] {
        assert_eq!(service(spec), [format!("spec.{field} is not granted <- nothing")]);
    }
    for (spec, path, name) in [
        (json!({"type": "NodePort"}), "type", "Service.type.NodePort"),
        (json!({"type": "LoadBalancer"}), "type", "Service.type.LoadBalancer"),
        (json!({"clusterIP": "10.96.0.10"}), "clusterIP", "Service.clusterIP"),
        (json!({"clusterIPs": ["10.96.0.10"]}), "clusterIPs", "Service.clusterIP"),
        (json!({"ports": [{"port": 80, "nodePort": 30000}]}), "ports[0].nodePort", "Service.nodePort"),
    ] {
        assert_eq!(service(spec), [format!("spec.{path}: {name} is not granted <- grants.fields: [{name}]")]);
    }
    assert_eq!(
        service(json!({"type": "ExternalName"})),
        ["a Service of type \"ExternalName\" is not granted <- nothing"]
    );
}

#[test]
fn storage_gets_no_tokens_and_no_secrets_of_others() {
    let driver = |spec: Value| of("storage.k8s.io/v1", "CSIDriver", json!({"spec": spec}), json!({}));
    assert_eq!(driver(json!({"attachRequired": false})), [""; 0]);
    assert_eq!(
        driver(json!({"tokenRequests": [{"audience": "sts.amazonaws.com"}]})),
        [
            "spec.tokenRequests: CSIDriver.tokenRequests is not granted <- grants.fields: [CSIDriver.tokenRequests]"
        ]
    );
    let class = |parameters: Value| {
        of(
            "storage.k8s.io/v1",
            "StorageClass",
            json!({"provisioner": "a", "parameters": parameters}),
            json!({}),
        )
    };
    assert_eq!(class(json!({"csi.storage.k8s.io/fstype": "ext4"})), [""; 0]);
    for parameter in [
        "csi.storage.k8s.io/provisioner-secret-name",
        "csi.storage.k8s.io/node-publish-secret-namespace",
        "adminSecretName",
    ] {
        assert_eq!(
            class(json!({parameter: "admin"})),
            [
                "parameters: StorageClass.secretParameters is not granted <- grants.fields: [StorageClass.secretParameters]"
            ]
        );
    }
}

#[test]
fn calicos_images_come_from_where_it_is_granted() {
    let installation =
        |spec: Value| of("operator.tigera.io/v1", "Installation", json!({"spec": spec}), json!({}));
    assert_eq!(installation(json!({"registry": "quay.io/tigera/"})), [""; 0]);
    assert_eq!(
        installation(json!({"registry": "example.com/"})),
        ["images from example.com/ (spec.registry) are not granted <- grants.registries: [example.com]"]
    );
    assert_eq!(
        installation(json!({"imagePath": "evil"})),
        ["images from evil (spec.imagePath) are not granted <- nothing"]
    );
    assert_eq!(
        installation(json!({"imagePullSecrets": [{"name": "mirror"}]})),
        ["Secret mirror (spec.imagePullSecrets) is not granted <- grants.pullSecrets: [mirror]"]
    );
    let overlay = json!({"calicoNodeDaemonSet": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "evil.example.com/a"}]}}}}});
    assert_eq!(
        installation(overlay),
        [
            "image evil.example.com/a comes from a registry that is not granted <- grants.registries: [evil.example.com]"
        ]
    );
}
