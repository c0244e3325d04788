//! Whether somebody answers for the webhooks of an add-on: an API server refuses what they are to be
//! asked about as long as nobody does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::load_balancer_users::text;
use contract::{Step, StepSpec};

/// What decides of an EndpointSlice, as JSON pointers.
pub const SLICE_PARTS: [&str; 2] = ["/metadata/name", "/endpoints"];

/// The Services that webhooks of these steps ask, by namespace and name, each with the webhook configuration
/// that names it.
pub fn webhook_services(steps: &[Step]) -> BTreeMap<(String, String), String> {
    let mut res = BTreeMap::new();
    for step in steps {
        let Ok(StepSpec::Apply(spec)) = step.typed() else { continue };
        for object in spec.objects {
            let configuration = format!("{} {}", text(object, "/kind"), text(object, "/metadata/name"));
            let services = services_of_webhooks(object);
            res.extend(services.into_iter().map(|service| (service, configuration.clone())));
        }
    }
    res
}

/// Namespace and name of each Service that the webhooks of a configuration ask.
pub fn services_of_webhooks(configuration: &Value) -> BTreeSet<(String, String)> {
    let webhooks = configuration.get("webhooks").and_then(Value::as_array);
    let services = webhooks.into_iter().flatten().filter_map(|it| it.pointer("/clientConfig/service"));
    services.map(|it| (text(it, "/namespace").to_owned(), text(it, "/name").to_owned())).collect()
}

/// Whether one of the endpoints of a Service is ready. One that does not say counts as such (Kubernetes'
/// EndpointConditions).
pub fn has_ready_endpoint(slices: &[Value]) -> bool {
    let mut endpoints = slices.iter().filter_map(|slice| slice["endpoints"].as_array()).flatten();
    endpoints.any(|endpoint| endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn services_of_webhooks_are_found_once_each() {
        let webhook =
            |service: &str| json!({"clientConfig": {"service": {"namespace": "n", "name": service}}});
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "w"},
            "webhooks": [webhook("s"), webhook("s"), {"clientConfig": {"url": "https://example.com"}}]});
        let service =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "n", "name": "s"}});
        let spec = json!({"objects": [service, object]});
        let step = Step { id: "a".into(), kind: "k8s.apply/v1".into(), spec, after: vec![] };
        let expected = BTreeMap::from([(
            ("n".to_owned(), "s".to_owned()),
            "ValidatingWebhookConfiguration w".to_owned(),
        )]);
        assert_eq!(webhook_services(&[step]), expected);
    }

    #[test]
    fn one_ready_endpoint_is_enough() {
        let slice = |ready: Value| json!({"endpoints": [{"conditions": {"ready": ready}}]});
        assert!(!has_ready_endpoint(&[]));
        assert!(!has_ready_endpoint(&[json!({"endpoints": null}), slice(json!(false))]));
        assert!(has_ready_endpoint(&[slice(json!(false)), slice(json!(true))]));
        assert!(has_ready_endpoint(&[slice(json!(null))]));
    }
}
