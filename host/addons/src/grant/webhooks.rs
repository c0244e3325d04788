//! Whom the API server asks in an add-on's name: webhooks see what they are asked about, and some change it.

use k8s_openapi::api::admissionregistration::v1::{RuleWithOperations, ServiceReference};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::denial::named;
use super::judge::{Judge, Place};
use super::rights::{Needed, check_rights};
use crds::plugin_module::Grants;

/// Seconds that an API server waits for a webhook by itself.
const USUAL_TIMEOUT: u64 = 10;

#[derive(Deserialize)]
struct ClientConfig {
    url: Option<String>,
    service: Option<ServiceReference>,
}

/// What a webhook is asked about.
pub(super) fn check_asked_about(judge: &mut Judge<'_>, value: &Value, place: Place<'_>) {
    let webhook = named(place.parent.get("name").and_then(Value::as_str).unwrap_or_default());
    let rules: Vec<RuleWithOperations> = match Deserialize::deserialize(value) {
        Ok(rules) => rules,
        Err(error) => {
            return judge.deny("webhooks", format!("webhook {webhook} cannot be read: {error}"), None);
        }
    };
    for rule in rules {
        let [groups, resources, verbs] =
            [rule.api_groups, rule.resources, rule.operations].map(Option::unwrap_or_default);
        let needed = Needed { namespace: "", groups, resources, verbs, names: Vec::new() };
        let (webhooks, prefix) = (&judge.grants.webhooks, format!("webhook {webhook}: "));
        let grant = |right| Grants { webhooks: vec![right], ..Grants::default() };
        check_rights(judge, webhooks, needed, ("webhooks", &prefix), grant);
    }
}

/// Who is asked: a Service of the plugin's own.
pub(super) fn check_asked(judge: &mut Judge<'_>, value: &Value) {
    match ClientConfig::deserialize(value) {
        Ok(ClientConfig { url: None, service: Some(service) }) => {
            judge.needs_object(("v1", "Service", Some(&service.namespace), &service.name));
        }
        _ => {
            let message = format!("{}: only a Service can be asked", judge.path());
            judge.deny("webhooks", message, None);
        }
    }
}

/// A webhook that fails, or whose Pods do not run, refuses what it is asked about, but with `Ignore`.
pub(super) fn check_failure_policy(judge: &mut Judge<'_>, webhook: &Map<String, Value>) {
    if webhook.get("failurePolicy").and_then(Value::as_str) != Some("Ignore") {
        judge.needs_field("Webhook.failurePolicy");
    }
}

/// It is asked again about what others changed.
pub(super) fn check_reinvocation(judge: &mut Judge<'_>, value: &Value) {
    if value.as_str() != Some("Never") {
        judge.needs_field("Webhook.reinvocationPolicy");
    }
}

pub(super) fn check_timeout(judge: &mut Judge<'_>, value: &Value) {
    if value.as_u64().is_none_or(|it| it > USUAL_TIMEOUT) {
        judge.needs_field("Webhook.timeoutSeconds");
    }
}
