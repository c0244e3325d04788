//! Whom the API server asks in an add-on's name.

use super::*;

fn grants() -> Value {
    json!({
        "objects": [
            {"group": "admissionregistration.k8s.io", "kinds": ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"], "names": ["a"]},
            {"group": "apiextensions.k8s.io", "kinds": ["CustomResourceDefinition"], "names": ["widgets.example.com"]},
            {"kinds": ["Service"], "namespaces": ["own"], "names": ["own"]},
        ],
        "webhooks": [{"groups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": ["CREATE", "UPDATE"]}],
    })
}

fn of(webhook: Value) -> Vec<String> {
    let mut whole = json!({"name": "a.b.c", "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": "own", "name": "own"}, "caBundle": "QQ=="},
        "rules": [{"apiGroups": ["networking.k8s.io"], "apiVersions": ["v1"], "resources": ["ingresses"], "operations": ["UPDATE"]}]});
    whole.as_object_mut().expect("an object").extend(webhook.as_object().cloned().expect("an object"));
    let of_kind = |kind: &str| {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "a"}, "webhooks": [whole]});
        denied_of(object, grants())
    };
    let said = of_kind("ValidatingWebhookConfiguration");
    if webhook.get("reinvocationPolicy").is_none() {
        assert_eq!(of_kind("MutatingWebhookConfiguration"), said);
        return said;
    }
    of_kind("MutatingWebhookConfiguration")
}

fn rule(group: &str, resource: &str, operation: &str) -> Value {
    json!({"rules": [{"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": [operation]}]})
}

#[test]
fn a_webhook_is_a_service_that_is_asked_about_what_is_granted() {
    assert_eq!(of(json!({"timeoutSeconds": 10, "namespaceSelector": {"matchLabels": {"a": "b"}}})), [""; 0]);
    assert_eq!(
        of(rule("", "secrets", "CREATE")),
        [
            "webhook a.b.c: the right to CREATE secrets is not granted <- grants.webhooks: [{groups: [\"\"], resources: [secrets], verbs: [CREATE]}]"
        ]
    );
    assert_eq!(
        of(rule("*", "*", "*")),
        [
            "webhook a.b.c: the right to \"*\" \"*\" of \"*\" is not granted <- grants.webhooks: [{groups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}]"
        ]
    );
    assert_eq!(
        of(json!({"clientConfig": {"service": {"namespace": "default", "name": "spy"}}})),
        [
            "Service spy of v1 in namespace default is not granted <- grants.objects: [{group: \"\", kinds: [Service], names: [spy], namespaces: [default]}]"
        ]
    );
}

#[test]
fn whoever_is_outside_of_the_cluster_is_not_asked() {
    let service = json!({"namespace": "own", "name": "own"});
    for client in
        [json!({"url": "https://example.com"}), json!({}), json!({"url": "https://a", "service": service})]
    {
        let said = of(json!({"clientConfig": client}));
        assert_eq!(said, ["webhooks[0].clientConfig: only a Service can be asked <- nothing"], "{client}");
        let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "conversion": conversion}});
        assert_eq!(
            denied_of(definition, grants()),
            ["spec.conversion.webhook.clientConfig: only a Service can be asked <- nothing"]
        );
    }
}

#[test]
fn what_can_stop_the_cluster_is_granted_by_name() {
    let cases = [
        (json!({"failurePolicy": "Fail"}), "failurePolicy", "webhooks[0]"),
        (json!({"failurePolicy": null}), "failurePolicy", "webhooks[0]"),
        (json!({"timeoutSeconds": 30}), "timeoutSeconds", "webhooks[0].timeoutSeconds"),
        (
            json!({"matchConditions": [{"name": "a", "expression": "true"}]}),
            "matchConditions",
            "webhooks[0].matchConditions",
        ),
        (json!({"reinvocationPolicy": "IfNeeded"}), "reinvocationPolicy", "webhooks[0].reinvocationPolicy"),
    ];
    for (webhook, name, path) in cases {
        assert_eq!(
            of(webhook),
            [format!("{path}: Webhook.{name} is not granted <- grants.fields: [Webhook.{name}]")]
        );
    }
}

#[test]
fn definitions_of_others_are_not_touched() {
    let definition = |name: &str| json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": {"group": "a"}});
    let unnamed =
        json!({"objects": [{"group": "apiextensions.k8s.io", "kinds": ["CustomResourceDefinition"]}]});
    assert_eq!(denied_of(definition("widgets.example.com"), grants()), [""; 0]);
    for grants in [grants(), unnamed] {
        assert_eq!(
            denied_of(definition("ippools.crd.projectcalico.org"), grants).len(),
            1,
            "it has to be named"
        );
    }
}
