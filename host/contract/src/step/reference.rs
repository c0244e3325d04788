//! What the parts of an object's reference may be. They become segments of the path of a URL, exactly as they
//! are, so one that could lead to another object, another resource or other parameters is refused.

use serde_json::Value;

/// Characters that Kubernetes takes in a name at most.
const LONGEST: usize = 253;

/// Why these cannot name an object, with the field that is to blame.
pub fn flaw(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Option<String> {
    let of_version = match api_version.split_once('/') {
        Some((group, version)) => segment_flaw("the group of apiVersion", group)
            .or_else(|| segment_flaw("the version of apiVersion", version)),
        None => segment_flaw("apiVersion", api_version),
    };
    of_version
        .or_else(|| segment_flaw("kind", kind))
        .or_else(|| segment_flaw("namespace", namespace?))
        .or_else(|| segment_flaw("name", name))
}

/// Why an object cannot be applied, to be read after its own place in the list.
pub fn object_flaw(object: &Value) -> Option<String> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (Some(api_version), Some(kind), Some(name)) =
        (text("/apiVersion"), text("/kind"), text("/metadata/name"))
    else {
        let missing =
            ["/apiVersion", "/kind", "/metadata/name"].into_iter().find(|path| text(path).is_none())?;
        return Some(format!(" has no {missing}"));
    };
    let namespace = match object.pointer("/metadata/namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) => Some(namespace.as_str()),
        Some(_) => return Some("/metadata/namespace is no text".to_owned()),
    };
    flaw(api_version, kind, namespace, name).map(|flaw| format!(": {flaw}"))
}

/// Why the text of this field cannot be one segment of a path. Kubernetes refuses `.`, `..`, `/` and `%`
/// itself (`path.IsValidPathSegmentName`), but only in what it gets as a name.
pub fn segment_flaw(field: &str, text: &str) -> Option<String> {
    let length = text.chars().count();
    if length == 0 || length > LONGEST {
        return Some(format!("{field} has {length} characters; give it 1 to {LONGEST}"));
    }
    if matches!(text, "." | "..") {
        return Some(format!("{field} is {text:?}, which stands for another place; give it a name"));
    }
    let stranger = text
        .chars()
        .find(|it| matches!(it, '/' | '%' | '?' | '#') || it.is_whitespace() || it.is_control())?;
    Some(format!(
        "{field} {text:?} has {stranger:?} in it; leave out '/', '%', '?', '#', blanks and control characters"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;
    use serde_json::json;

    fn refusal(kind: &str, spec: Value) -> Option<String> {
        let step = Step { id: "it".into(), kind: kind.into(), spec, after: vec![] };
        step.typed().err().map(|error| error.to_string())
    }

    fn delete(field: &str, text: &str) -> Option<String> {
        let mut spec = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "n", "name": "a", "wait": true});
        spec[field] = text.into();
        refusal("k8s.delete/v1", spec)
    }

    #[test]
    fn names_of_kubernetes_are_names() {
        let longest = "a".repeat(LONGEST);
        for name in
            ["a", "a.b-c", "system:cloud-controller-manager", "v1.apps", "...", "Größe", longest.as_str()]
        {
            assert_eq!(delete("name", name), None, "{name}");
        }
        assert_eq!(delete("apiVersion", "v1"), None);
        assert_eq!(delete("apiVersion", "rbac.authorization.k8s.io/v1"), None);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused_with_step_and_field() {
        assert_eq!(
            delete("name", "n1/proxy/metrics").unwrap(),
            "step \"it\": name \"n1/proxy/metrics\" has '/' in it; leave out '/', '%', '?', '#', blanks and control characters"
        );
        assert_eq!(
            delete("namespace", "..").unwrap(),
            "step \"it\": namespace is \"..\", which stands for another place; give it a name"
        );
        assert_eq!(
            delete("name", &"a".repeat(254)).unwrap(),
            "step \"it\": name has 254 characters; give it 1 to 253"
        );
        let elsewhere = [
            "x?propagationPolicy=Orphan&y=",
            "%2f",
            "%2e%2e",
            "a#b",
            "a b",
            "a\tb",
            "a\nb",
            "a\u{a0}b",
            "a\u{7f}b",
            ".",
            "..",
            "",
            "/",
        ];
        for text in elsewhere {
            for field in ["name", "namespace", "kind", "apiVersion"] {
                let refusal = delete(field, text).unwrap_or_default();
                assert!(
                    refusal.starts_with("step \"it\": ") && refusal.contains(field),
                    "{field} {text:?}: {refusal}"
                );
            }
        }
        for version in ["apps/v1/namespaces", "/v1", "apps/", "../v1", "apps/.."] {
            assert!(
                delete("apiVersion", version).is_some_and(|it| it.contains("of apiVersion")),
                "{version}"
            );
        }
    }

    #[test]
    fn so_is_one_in_every_other_kind_of_step() {
        let object = |namespace: Value, name: &str| {
            let good = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
            let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}});
            refusal("k8s.apply/v1", json!({"objects": [good, other]}))
        };
        assert_eq!(object(json!("n"), "a"), None);
        assert_eq!(object(Value::Null, "a"), None);
        assert_eq!(object(json!(7), "a").unwrap(), "step \"it\": objects/1/metadata/namespace is no text");
        assert!(
            object(json!("n"), "a/status")
                .unwrap()
                .starts_with("step \"it\": objects/1: name \"a/status\" has '/' in it")
        );
        assert!(
            object(json!("n?"), "a")
                .unwrap()
                .starts_with("step \"it\": objects/1: namespace \"n?\" has '?' in it")
        );
        let wait = json!({"apiVersion": "v1", "kind": "Node", "name": "n1/proxy", "condition": "exists", "timeoutSeconds": 1});
        assert!(refusal("k8s.wait/v1", wait).unwrap().contains("name \"n1/proxy\""));
        let certificate = json!({"namespace": "n", "secretName": "a?b", "dnsNames": []});
        assert!(refusal("tls.certificate/v1", certificate).unwrap().contains("secretName \"a?b\""));
        let role = json!({"roleArn": "arn", "trust": "irsa", "namespace": "n", "serviceAccount": "a%2f", "actions": [], "mode": "check"});
        assert!(refusal("aws.iam-role/v1", role).unwrap().contains("serviceAccount \"a%2f\""));
    }
}
