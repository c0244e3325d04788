//! The webhooks of the controller. The API server waits for it when such objects are made, so these
//! configurations come after the controller answers and go before it does. None of them names a CA: the host
//! fills it in.

use crate::objects::{NAME, NAMESPACE, SERVICE_NAME};
use plugin_sdk::steps::Object;
use serde_json::{Value, json};

const WEBHOOK: &str = "aws-load-balancer-webhook";
const REGISTRATION: &str = "admissionregistration.k8s.io/v1";

pub const MUTATING: Object<'static> = Object {
    api_version: REGISTRATION,
    kind: "MutatingWebhookConfiguration",
    namespace: None,
    name: WEBHOOK,
};
pub const VALIDATING: Object<'static> = Object {
    api_version: REGISTRATION,
    kind: "ValidatingWebhookConfiguration",
    namespace: None,
    name: WEBHOOK,
};

/// Both configurations; with `services`, new Services of type LoadBalancer become the controller's.
pub fn objects(services: bool) -> Vec<Value> {
    let configuration = |object: Object<'_>, webhooks: Vec<Value>| json!({ "apiVersion": object.api_version, "kind": object.kind, "metadata": { "name": object.name }, "webhooks": webhooks });
    vec![configuration(MUTATING, mutating(services)), configuration(VALIDATING, validating())]
}

fn mutating(services: bool) -> Vec<Value> {
    let mut pods =
        webhook("mpod.elbv2.k8s.aws", "/mutate-v1-pod", "Ignore", rule("", "v1", "pods", &["CREATE"]));
    pods["namespaceSelector"] = expression("elbv2.k8s.aws/pod-readiness-gate-inject", "In", "enabled");
    pods["objectSelector"] = expression("app.kubernetes.io/name", "NotIn", NAME);
    let bindings = rule("elbv2.k8s.aws", "v1beta1", "targetgroupbindings", &["CREATE", "UPDATE"]);
    let path = "/mutate-elbv2-k8s-aws-v1beta1-targetgroupbinding";
    let mut all = vec![pods, webhook("mtargetgroupbinding.elbv2.k8s.aws", path, "Fail", bindings)];
    if services {
        let mut services = webhook(
            "mservice.elbv2.k8s.aws",
            "/mutate-v1-service",
            "Fail",
            rule("", "v1", "services", &["CREATE"]),
        );
        // What the cluster itself is made of must never wait for the controller.
        services["namespaceSelector"] = expression("kubernetes.io/metadata.name", "NotIn", NAMESPACE);
        services["objectSelector"] = expression("app.kubernetes.io/name", "NotIn", NAME);
        all.push(services);
    }
    all
}

fn validating() -> Vec<Value> {
    const CHANGES: &[&str] = &["CREATE", "UPDATE"];
    let group = "elbv2.k8s.aws";
    vec![
        webhook(
            "vingressclassparams.elbv2.k8s.aws",
            "/validate-elbv2-k8s-aws-v1beta1-ingressclassparams",
            "Fail",
            rule(group, "v1beta1", "ingressclassparams", CHANGES),
        ),
        webhook(
            "vtargetgroupbinding.elbv2.k8s.aws",
            "/validate-elbv2-k8s-aws-v1beta1-targetgroupbinding",
            "Fail",
            rule(group, "v1beta1", "targetgroupbindings", CHANGES),
        ),
        webhook(
            "vingress.elbv2.k8s.aws",
            "/validate-networking-v1-ingress",
            "Fail",
            rule("networking.k8s.io", "v1", "ingresses", CHANGES),
        ),
    ]
}

fn webhook(name: &str, path: &str, failure_policy: &str, rule: Value) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": { "service": { "name": SERVICE_NAME, "namespace": NAMESPACE, "path": path } },
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "rules": [rule],
        "sideEffects": "None",
    })
}

fn rule(group: &str, version: &str, resource: &str, operations: &[&str]) -> Value {
    json!({ "apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [resource] })
}

fn expression(key: &str, operator: &str, value: &str) -> Value {
    json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": [value] }] })
}
