//! The program of the controller, the Service by which the API server reaches it, and its IngressClass.

use crate::Config;
use crate::config::{EXTRA_ARGS, IngressClass};
use plugin_sdk::settings::LogLevel;
use plugin_sdk::steps::Object;
use plugin_sdk::{facts, identity, settings};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "kube-system";
pub const NAME: &str = "aws-load-balancer-controller";
pub const SERVICE_NAME: &str = "aws-load-balancer-webhook-service";
pub const SECRET_NAME: &str = "aws-load-balancer-tls";
/// Names under which the API server calls the webhooks.
pub const DNS_NAMES: &[&str] = &[
    "aws-load-balancer-webhook-service.kube-system.svc",
    "aws-load-balancer-webhook-service.kube-system.svc.cluster.local",
];
/// Port of the Pod on which webhooks are served.
pub const WEBHOOK_PORT: u16 = 9443;

pub const DEPLOYMENT: Object<'static> =
    Object { api_version: "apps/v1", kind: "Deployment", namespace: Some(NAMESPACE), name: NAME };
pub const SERVICE: Object<'static> =
    Object { api_version: "v1", kind: "Service", namespace: Some(NAMESPACE), name: SERVICE_NAME };
pub const SECRET: Object<'static> =
    Object { api_version: "v1", kind: "Secret", namespace: Some(NAMESPACE), name: SECRET_NAME };
pub const BUDGET: Object<'static> =
    Object { api_version: "policy/v1", kind: "PodDisruptionBudget", namespace: Some(NAMESPACE), name: NAME };

pub fn ingress_class(class: &str) -> Object<'_> {
    Object { api_version: "networking.k8s.io/v1", kind: "IngressClass", namespace: None, name: class }
}

pub fn ingress_class_params(class: &str) -> Object<'_> {
    Object { api_version: "elbv2.k8s.aws/v1beta1", kind: "IngressClassParams", namespace: None, name: class }
}

/// The class and what its load balancers have in common.
pub fn classes(class: &IngressClass) -> Vec<Value> {
    let name = class.name();
    let (kind, params) = (ingress_class(name), ingress_class_params(name));
    let spec = class.scheme.as_ref().map_or(json!({}), |scheme| json!({ "scheme": scheme }));
    let is_default = if class.is_default { "true" } else { "false" };
    vec![
        json!({ "apiVersion": params.api_version, "kind": params.kind, "metadata": { "name": name }, "spec": spec }),
        json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": { "name": name, "annotations": { "ingressclass.kubernetes.io/is-default-class": is_default } },
            "spec": {
                "controller": "ingress.k8s.aws/alb",
                "parameters": { "apiGroup": "elbv2.k8s.aws", "kind": params.kind, "name": name },
            },
        }),
    ]
}

pub fn service() -> Value {
    json!({
        "apiVersion": SERVICE.api_version, "kind": SERVICE.kind,
        // The label keeps the controller's webhook for Services away from this one.
        "metadata": { "name": SERVICE_NAME, "namespace": NAMESPACE, "labels": { "app.kubernetes.io/name": NAME } },
        "spec": {
            "ports": [{ "name": "webhook-server", "port": 443, "protocol": "TCP", "targetPort": "webhook-server" }],
            "selector": { "app": NAME },
        },
    })
}

pub fn budget() -> Value {
    json!({
        "apiVersion": BUDGET.api_version, "kind": BUDGET.kind,
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": NAME } } },
    })
}

pub fn deployment(config: &Config, cluster: &facts::Cluster, aws: &facts::Aws, image: &str) -> Value {
    let selector = json!({ "app": NAME });
    let labels = json!({ "app": NAME, "app.kubernetes.io/name": NAME });
    let mut pod = json!({
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": 10,
        "securityContext": { "fsGroup": 65534 },
        "containers": [container(config, arguments(config, cluster, aws), image)],
        "volumes": [{ "name": "cert", "secret": { "secretName": SECRET_NAME } }],
    });
    settings::place(&mut pod, config.role_arn.is_some(), &config.tolerations, &config.node_selector, NAME);
    if let Some(role) = &config.role_arn {
        identity::assume(&mut pod, &["controller"], role, &aws.region);
    }
    json!({
        "apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.kind,
        "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "replicas": config.replicas.unwrap_or(2),
            "selector": { "matchLabels": selector },
            "template": { "metadata": { "labels": labels }, "spec": pod },
        },
    })
}

/// Region and VPC are given, so that nothing has to be asked of the instance.
fn arguments(config: &Config, cluster: &facts::Cluster, aws: &facts::Aws) -> Vec<String> {
    let flag = |name: &str, value: &str| ["--", name, "=", value].concat();
    let switch = |on: bool| if on { "true" } else { "false" };
    let mut arguments = vec![
        flag("cluster-name", &cluster.name),
        flag("aws-region", &aws.region),
        flag("aws-vpc-id", &aws.vpc_id),
        flag("ingress-class", config.ingress_class.name()),
        flag("default-target-type", config.target_type.as_str()),
        flag("enable-waf", "false"),
        flag("enable-wafv2", switch(config.waf)),
        flag("enable-shield", switch(config.shield)),
        // Their CustomResourceDefinitions and rights are not there.
        flag("feature-gates", "ALBGatewayAPI=false,NLBGatewayAPI=false"),
    ];
    arguments.extend(settings::tags(&config.tags(aws), '=', ',').map(|tags| flag("default-tags", &tags)));
    if !config.external_managed_tags.is_empty() {
        arguments.push(flag("external-managed-tags", &config.external_managed_tags.join(",")));
    }
    let chosen = [
        ("default-load-balancer-scheme", &config.default_scheme),
        ("default-ssl-policy", &config.default_ssl_policy),
        ("backend-security-group", &config.backend_security_group_id),
    ];
    arguments.extend(chosen.into_iter().filter_map(|(name, value)| Some(flag(name, value.as_deref()?))));
    if config.log_level == LogLevel::Debug {
        arguments.push(flag("log-level", "debug"));
    }
    arguments.extend(settings::extra_args(&config.extra_args, EXTRA_ARGS));
    arguments
}

fn container(config: &Config, arguments: Vec<String>, image: &str) -> Value {
    let probe = |path: &str, delay: u32| json!({ "httpGet": { "path": path, "port": 61779, "scheme": "HTTP" }, "initialDelaySeconds": delay, "timeoutSeconds": 10, "failureThreshold": 2 });
    json!({
        "name": "controller",
        "image": image,
        "args": arguments,
        "ports": [
            { "name": "webhook-server", "containerPort": WEBHOOK_PORT, "protocol": "TCP" },
            { "name": "metrics-server", "containerPort": 8080, "protocol": "TCP" },
        ],
        "livenessProbe": probe("/healthz", 30),
        "readinessProbe": probe("/readyz", 10),
        "resources": config.resources.or("100m", "200Mi"),
        "securityContext": { "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true },
        "volumeMounts": [{ "name": "cert", "mountPath": "/tmp/k8s-webhook-server/serving-certs", "readOnly": true }],
    })
}
