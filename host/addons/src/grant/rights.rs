//! What roles of an add-on allow, and who gets them. A role of the workload cluster outlives the plan that
//! made it, and whoever has it acts without the host: so each right in it must be granted, as Kubernetes
//! itself asks of whoever makes a role.

use std::collections::BTreeSet;

use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef, Subject};
use serde::Deserialize;
use serde_json::Value;

use super::Right;

/// A Role or a ClusterRole.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Role {
    rules: Option<Vec<PolicyRule>>,
    aggregation_rule: Option<Value>,
}

/// A RoleBinding or a ClusterRoleBinding.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    role_ref: RoleRef,
    subjects: Option<Vec<Subject>>,
}

/// A role or a service account: kind, namespace and name.
pub(super) type Reference = (&'static str, Option<String>, String);

/// What is wrong with what a Role or ClusterRole allows.
pub(super) fn check_role(role: &Value, rights: &[Right], deny: &mut impl FnMut(String)) {
    let namespace = role.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let role = match Role::deserialize(role) {
        Ok(role) => role,
        Err(error) => return deny(format!("the role cannot be read: {error}")),
    };
    if role.aggregation_rule.is_some() {
        deny("a role that takes its rules from others (aggregationRule) is not granted".to_owned());
    }
    for rule in role.rules.iter().flatten() {
        if let Some(missing) = missing(rule, namespace, rights) {
            deny(missing);
        }
    }
}

/// What a binding gives, and to whom; an error is why that is nobody's to grant.
pub(super) fn binding(object: &Value) -> Result<Vec<Reference>, String> {
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned);
    let binding =
        Binding::deserialize(object).map_err(|error| format!("the binding cannot be read: {error}"))?;
    let mut res = vec![match binding.role_ref.kind.as_str() {
        "ClusterRole" => ("ClusterRole", None, binding.role_ref.name),
        "Role" => ("Role", namespace, binding.role_ref.name),
        other => return Err(format!("binding a {other} is not granted")),
    }];
    for subject in binding.subjects.into_iter().flatten() {
        match (subject.kind.as_str(), subject.namespace) {
            ("ServiceAccount", Some(namespace)) => {
                res.push(("ServiceAccount", Some(namespace), subject.name))
            }
            (kind, _) => {
                return Err(format!(
                    "binding a role to {kind} {} is not granted; bind it to a ServiceAccount",
                    subject.name
                ));
            }
        }
    }
    Ok(res)
}

fn missing(rule: &PolicyRule, namespace: &str, rights: &[Right]) -> Option<String> {
    if let Some(url) = rule.non_resource_urls.iter().flatten().next() {
        return Some(format!("the right to use the URL {url} is not granted"));
    }
    let none = Vec::new();
    let (groups, resources) =
        (rule.api_groups.as_ref().unwrap_or(&none), rule.resources.as_ref().unwrap_or(&none));
    uncovered(groups, resources, &rule.verbs, namespace, rights)
}

/// The first right that is in none of those granted.
pub(super) fn uncovered(
    groups: &[String],
    resources: &[String],
    verbs: &[String],
    namespace: &str,
    rights: &[Right],
) -> Option<String> {
    let rights: Vec<&Right> =
        rights.iter().filter(|it| it.namespace.is_empty() || it.namespace == namespace).collect();
    let says = |group: &str, resource: &str, verb: &str| {
        let of = if group.is_empty() { String::new() } else { format!(" of {group}") };
        Some(format!("the right to {verb} {resource}{of} is not granted"))
    };
    // Each once, and none that no right knows: what is left to combine is small, however much a plan lists.
    let distinct = |all: &'_ [String]| all.iter().cloned().collect::<BTreeSet<String>>();
    let (groups, resources, verbs) = (distinct(groups), distinct(resources), distinct(verbs));
    let first = |all: &BTreeSet<String>| all.first().cloned().unwrap_or_default();
    let known = |name: &String, of: fn(&Right) -> &Vec<String>| rights.iter().any(|it| of(it).contains(name));
    if let Some(group) = groups.iter().find(|it| !known(it, |right| &right.groups)) {
        return says(group, &first(&resources), &first(&verbs));
    }
    if let Some(resource) = resources.iter().find(|it| !known(it, |right| &right.resources)) {
        return says(&first(&groups), resource, &first(&verbs));
    }
    if let Some(verb) = verbs.iter().find(|it| !known(it, |right| &right.verbs)) {
        return says(&first(&groups), &first(&resources), verb);
    }
    for group in &groups {
        for resource in &resources {
            let of_resource = |it: &&&Right| it.groups.contains(group) && it.resources.contains(resource);
            let fitting: Vec<&&Right> = rights.iter().filter(of_resource).collect();
            if let Some(verb) = verbs.iter().find(|verb| !fitting.iter().any(|it| it.verbs.contains(verb))) {
                return says(group, resource, verb);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn right(namespace: &str, group: &str, resources: &[&str], verbs: &[&str]) -> Right {
        let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        Right {
            namespace: namespace.to_owned(),
            groups: vec![group.to_owned()],
            resources: texts(resources),
            verbs: texts(verbs),
        }
    }

    fn denials(role: Value) -> Vec<String> {
        let rights = [
            right("", "", &["nodes", "pods"], &["get", "list"]),
            right("", "", &["nodes"], &["*"]),
            right("", "apps", &["deployments"], &["get"]),
            right("own", "", &["secrets"], &["get"]),
        ];
        let mut res = Vec::new();
        check_role(&role, &rights, &mut |it| res.push(it));
        res
    }

    fn allows(namespace: Option<&str>, groups: &[&str], resources: &[&str], verbs: &[&str]) -> Vec<String> {
        denials(
            json!({"metadata": {"namespace": namespace}, "rules": [{"apiGroups": groups, "resources": resources, "verbs": verbs}]}),
        )
    }

    #[test]
    fn a_role_allows_what_is_granted_in_whatever_order() {
        assert_eq!(allows(None, &[""], &["pods", "nodes"], &["list", "get"]), [""; 0]);
        assert_eq!(allows(None, &[""], &["nodes"], &["get", "*"]), [""; 0], "two grants together");
        assert_eq!(allows(Some("own"), &[""], &["secrets", "pods"], &["get"]), [""; 0]);
        assert_eq!(denials(json!({"metadata": {}, "rules": null})), [""; 0]);
    }

    #[test]
    fn each_right_beyond_is_named() {
        assert_eq!(
            allows(None, &[""], &["pods"], &["get", "delete"]),
            ["the right to delete pods is not granted"]
        );
        assert_eq!(allows(None, &[""], &["pods"], &["*"]), ["the right to * pods is not granted"]);
        assert_eq!(allows(None, &["*"], &["*"], &["*"]), ["the right to * * of * is not granted"]);
        assert_eq!(
            allows(None, &["", "apps"], &["nodes"], &["get"]),
            ["the right to get nodes of apps is not granted"]
        );
        assert_eq!(
            allows(None, &[""], &["pods/exec"], &["get"]),
            ["the right to get pods/exec is not granted"]
        );
        assert_eq!(
            allows(None, &[""], &["secrets"], &["get"]),
            ["the right to get secrets is not granted"],
            "in one namespace only"
        );
        assert_eq!(
            allows(Some("other"), &[""], &["secrets"], &["get"]),
            ["the right to get secrets is not granted"]
        );
        let urls = json!({"rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]});
        assert_eq!(denials(urls), ["the right to use the URL /metrics is not granted"]);
        let aggregated = json!({"aggregationRule": {"clusterRoleSelectors": [{}]}});
        assert_eq!(
            denials(aggregated),
            ["a role that takes its rules from others (aggregationRule) is not granted"]
        );
        let text = json!({"rules": "all"});
        assert!(denials(text)[0].starts_with("the role cannot be read: "));
    }

    #[test]
    fn long_lists_are_checked_by_what_is_in_them() {
        let all: Vec<String> =
            (0..30_000).map(|it| if it % 2 == 0 { "get".to_owned() } else { "list".to_owned() }).collect();
        let resources: Vec<String> =
            (0..30_000).map(|it| if it % 2 == 0 { "pods".to_owned() } else { "nodes".to_owned() }).collect();
        let role = json!({"rules": [{"apiGroups": vec![""; 30_000], "resources": resources, "verbs": all}]});
        assert_eq!(denials(role), [""; 0]);
    }

    #[test]
    fn bindings_are_for_service_accounts() {
        let of = |role: Value, subjects: Value| {
            binding(&json!({"metadata": {"namespace": "n"}, "roleRef": role, "subjects": subjects}))
        };
        let role = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "a"});
        let account = json!([{"kind": "ServiceAccount", "namespace": "n", "name": "b"}]);
        let namespace = || Some("n".to_owned());
        assert_eq!(
            of(role("Role"), account.clone()),
            Ok(vec![("Role", namespace(), "a".into()), ("ServiceAccount", namespace(), "b".into())])
        );
        assert_eq!(of(role("ClusterRole"), json!([])), Ok(vec![("ClusterRole", None, "a".into())]));
        assert_eq!(of(role("User"), json!([])), Err("binding a User is not granted".to_owned()));
        for kind in ["User", "Group", "ServiceAccount"] {
            let refused = of(role("Role"), json!([{"kind": kind, "name": "system:authenticated"}]));
            let text = format!(
                "binding a role to {kind} system:authenticated is not granted; bind it to a ServiceAccount"
            );
            assert_eq!(refused, Err(text), "without a namespace");
        }
        assert!(of(json!("a"), json!([])).is_err());
    }
}
