//! Whom the API server asks in an add-on's name: webhooks see what they are asked about, and some change it.

use k8s_openapi::api::admissionregistration::v1::{RuleWithOperations, ServiceReference};
use serde::Deserialize;
use serde_json::Value;

use super::Right;
use super::rights::uncovered;

/// A configuration of either kind.
#[derive(Deserialize)]
struct Configuration {
    webhooks: Option<Vec<Webhook>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Webhook {
    name: String,
    client_config: ClientConfig,
    rules: Option<Vec<RuleWithOperations>>,
}

#[derive(Deserialize)]
struct ClientConfig {
    url: Option<String>,
    service: Option<ServiceReference>,
}

/// What is wrong with what webhooks are asked about. Returns namespace and name of each Service that is
/// asked.
pub(super) fn check_webhooks(
    object: &Value,
    granted: &[Right],
    deny: &mut impl FnMut(String),
) -> Vec<(String, String)> {
    let configuration = match Configuration::deserialize(object) {
        Ok(configuration) => configuration,
        Err(error) => {
            deny(format!("the webhooks cannot be read: {error}"));
            return Vec::new();
        }
    };
    let mut res = Vec::new();
    for webhook in configuration.webhooks.into_iter().flatten() {
        let name = webhook.name;
        for rule in webhook.rules.iter().flatten() {
            let none = Vec::new();
            let [groups, resources, operations] =
                [&rule.api_groups, &rule.resources, &rule.operations].map(|it| it.as_ref().unwrap_or(&none));
            if let Some(missing) = uncovered(groups, resources, operations, "", granted) {
                deny(format!("webhook {name}: {missing}"));
            }
        }
        match (webhook.client_config.url, webhook.client_config.service) {
            (None, Some(service)) => res.push((service.namespace, service.name)),
            _ => deny(format!("webhook {name}: only a Service can be asked")),
        }
    }
    res
}

/// The Service that converts the objects of a CustomResourceDefinition, if one does.
pub(super) fn converter(object: &Value) -> Result<Option<(String, String)>, String> {
    let Some(client) = object.pointer("/spec/conversion/webhook/clientConfig") else { return Ok(None) };
    match ClientConfig::deserialize(client) {
        Ok(ClientConfig { url: None, service: Some(service) }) => Ok(Some((service.namespace, service.name))),
        _ => Err("only a Service can convert objects".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn denials_of(
        client: Value,
        group: &str,
        resource: &str,
        operation: &str,
    ) -> (Vec<(String, String)>, Vec<String>) {
        let right = Right {
            groups: vec!["networking.k8s.io".into()],
            resources: vec!["ingresses".into()],
            verbs: vec!["CREATE".into(), "UPDATE".into()],
            ..Right::default()
        };
        let rule = json!({"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": [operation]});
        let mut denials = Vec::new();
        let object = json!({"webhooks": [{"name": "a.b.c", "clientConfig": client, "rules": [rule]}]});
        (check_webhooks(&object, &[right], &mut |it| denials.push(it)), denials)
    }

    #[test]
    fn a_webhook_is_a_service_that_is_asked_about_what_is_granted() {
        let service = json!({"service": {"namespace": "n", "name": "s"}, "caBundle": "QQ=="});
        let asked = vec![("n".to_owned(), "s".to_owned())];
        assert_eq!(
            denials_of(service.clone(), "networking.k8s.io", "ingresses", "UPDATE"),
            (asked.clone(), vec![])
        );
        assert_eq!(
            denials_of(service.clone(), "", "secrets", "CREATE"),
            (asked.clone(), vec!["webhook a.b.c: the right to CREATE secrets is not granted".to_owned()])
        );
        let all = vec!["webhook a.b.c: the right to * * of * is not granted".to_owned()];
        assert_eq!(denials_of(service, "*", "*", "*"), (asked, all));
    }

    #[test]
    fn whoever_is_outside_of_the_cluster_is_not_asked() {
        for client in [
            json!({"url": "https://example.com"}),
            json!({}),
            json!({"url": "https://a", "service": {"namespace": "n", "name": "s"}}),
        ] {
            let (asked, denials) = denials_of(client.clone(), "networking.k8s.io", "ingresses", "CREATE");
            assert_eq!(
                (asked, denials),
                (vec![], vec!["webhook a.b.c: only a Service can be asked".to_owned()]),
                "{client}"
            );
            let definition =
                json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}});
            assert_eq!(converter(&definition), Err("only a Service can convert objects".to_owned()));
        }
        assert_eq!(converter(&json!({"spec": {}})), Ok(None));
    }
}
