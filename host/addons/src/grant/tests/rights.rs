//! Roles and bindings give no more than is granted.

use super::*;

fn grants() -> Value {
    json!({
        "objects": [
            {"group": RBAC, "kinds": ["ClusterRole", "ClusterRoleBinding"], "names": ["own"]},
            {"group": RBAC, "kinds": ["Role", "RoleBinding"], "namespaces": ["own", "other"], "names": ["own"]},
            {"kinds": ["ServiceAccount"], "namespaces": ["own"], "names": ["own"]},
        ],
        "roles": [{"group": RBAC, "kinds": ["Role"], "namespaces": ["kube-system"], "names": ["reader"]}],
        "urls": ["/metrics"],
        "rights": [
            {"groups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list"]},
            {"groups": [""], "resources": ["nodes"], "verbs": ["*"]},
            {"groups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
            {"namespace": "own", "groups": [""], "resources": ["secrets"], "verbs": ["get"]},
            {"groups": [""], "resources": ["configmaps"], "verbs": ["update"], "names": ["a", "b"]},
        ],
    })
}

fn role(namespace: Option<&str>, rules: Value) -> Vec<String> {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let metadata = json!({"name": "own", "namespace": namespace});
    let role =
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules});
    let said = denied_of(role, grants());
    said.into_iter()
        .map(|it| it.split_once(" <- ").map_or(String::new(), |(message, _)| message.to_owned()))
        .collect()
}

fn allows(namespace: Option<&str>, groups: &[&str], resources: &[&str], verbs: &[&str]) -> Vec<String> {
    role(namespace, json!([{"apiGroups": groups, "resources": resources, "verbs": verbs}]))
}

#[test]
fn a_role_allows_what_is_granted_in_whatever_order() {
    assert_eq!(allows(None, &[""], &["pods", "nodes"], &["list", "get"]), [""; 0]);
    assert_eq!(allows(None, &[""], &["nodes"], &["get", "*"]), [""; 0], "two grants together");
    assert_eq!(allows(Some("own"), &[""], &["secrets"], &["get"]), [""; 0]);
    assert_eq!(allows(Some("own"), &[""], &["pods"], &["get"]), [""; 0]);
    assert_eq!(role(None, Value::Null), [""; 0]);
    assert_eq!(role(None, json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])), [""; 0]);
}

#[test]
fn each_right_beyond_is_named() {
    assert_eq!(
        allows(None, &[""], &["pods", "nodes"], &["get", "delete", "patch"]),
        ["the right to delete, patch nodes is not granted", "the right to delete, patch pods is not granted"]
    );
    assert_eq!(allows(None, &["*"], &["*"], &["*"]), ["the right to \"*\" \"*\" of \"*\" is not granted"]);
    assert_eq!(
        allows(None, &["", "apps"], &["nodes"], &["get"]),
        ["the right to get nodes of apps is not granted"]
    );
    for resource in ["pods/exec", "nodes/proxy", "serviceaccounts/token"] {
        assert_eq!(
            allows(None, &[""], &[resource], &["create"]),
            [format!("the right to create {resource} is not granted")]
        );
    }
    for verb in ["bind", "escalate", "impersonate"] {
        assert_eq!(
            allows(None, &[""], &["pods"], &[verb]),
            [format!("the right to {verb} pods is not granted")]
        );
    }
    let secrets = ["the right to get secrets is not granted"];
    assert_eq!(allows(None, &[""], &["secrets"], &["get"]), secrets, "in one namespace only");
    assert_eq!(allows(Some("other"), &[""], &["secrets"], &["get"]), secrets);
    assert_eq!(
        role(None, json!([{"nonResourceURLs": ["/metrics", "*"], "verbs": ["get"]}])),
        ["the right to use the URL \"*\" is not granted"]
    );
    assert!(role(None, json!("all"))[0].starts_with("the role cannot be read: "));
}

#[test]
fn a_right_to_named_objects_is_no_right_to_others() {
    let with = |names: Value| {
        role(
            None,
            json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": names, "verbs": ["update"]}]),
        )
    };
    assert_eq!(with(json!(["a"])), [""; 0]);
    assert_eq!(with(json!(["b", "a"])), [""; 0]);
    let denied = ["the right to update configmaps is not granted"];
    assert_eq!(with(json!(["a", "c"])), denied);
    assert_eq!(with(json!([])), denied);
    assert_eq!(with(Value::Null), denied);
}

#[test]
fn nobody_takes_rules_from_others_or_gives_to_their_roles() {
    let mut role = json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": "own"}, "rules": []});
    role["aggregationRule"] = json!({"clusterRoleSelectors": [{}]});
    assert_eq!(denied_of(role.clone(), grants()), ["aggregationRule is not granted <- nothing"]);
    role["aggregationRule"] = Value::Null;
    let label = "rbac.authorization.k8s.io/aggregate-to-admin";
    role["metadata"]["labels"] = json!({label: "true"});
    assert_eq!(
        denied_of(role.clone(), grants()),
        [format!("metadata.labels: label {label} is not granted <- grants.labels: [{label}]")]
    );
    let label = "cluster.kurator.dev/aggregate-to-cluster-operator";
    role["metadata"]["labels"] = json!({label: "true"});
    assert_eq!(
        denied_of(role, grants()),
        [format!("metadata.labels: label {label} is not granted: it is the operator's own <- nothing")]
    );
}

#[test]
fn long_lists_are_judged_by_what_is_in_them() {
    let two = |one: &str, other: &str| -> Vec<String> {
        (0..30_000).map(|it| if it % 2 == 0 { one.to_owned() } else { other.to_owned() }).collect()
    };
    let rule = json!({"apiGroups": vec![""; 30_000], "resources": two("pods", "nodes"), "verbs": two("get", "list")});
    assert_eq!(role(None, json!([rule])), [""; 0]);
    let many = |word: &str| (0..30_000).map(|it| format!("{word}{it}")).collect::<Vec<_>>();
    let rule = json!({"apiGroups": many("a"), "resources": many("b"), "verbs": ["get"]});
    let said = role(None, json!([rule]));
    assert_eq!(
        (said.len(), said.last().map(String::as_str)),
        (51, Some("more rights of this rule are not granted"))
    );
    let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": many("c")});
    assert_eq!(role(None, json!([rule])), ["more than 200 verbs or names are not granted"]);
}

#[test]
fn bindings_give_granted_roles_to_ones_own_service_accounts() {
    let binding = |namespace: Option<&str>, role: (&str, &str), subject: Value| {
        let kind = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        let role = json!({"apiGroup": RBAC, "kind": role.0, "name": role.1});
        let object = json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": {"name": "own", "namespace": namespace},
            "roleRef": role, "subjects": [subject]});
        let mut all = grants();
        let system =
            json!({"group": RBAC, "kinds": ["RoleBinding"], "namespaces": ["kube-system"], "names": ["own"]});
        all["objects"].as_array_mut().expect("a list").push(system);
        denied_of(object, all)
    };
    let account = |name: &str| json!({"kind": "ServiceAccount", "namespace": "own", "name": name});
    assert_eq!(binding(None, ("ClusterRole", "own"), account("own")), [""; 0]);
    assert_eq!(binding(Some("own"), ("Role", "own"), account("own")), [""; 0]);
    assert_eq!(binding(Some("kube-system"), ("Role", "reader"), account("own")), [""; 0]);
    assert_eq!(
        binding(None, ("ClusterRole", "cluster-admin"), account("other")),
        [
            "ClusterRole cluster-admin of rbac.authorization.k8s.io/v1 is not granted <- grants.roles: [{group: rbac.authorization.k8s.io, kinds: [ClusterRole], names: [cluster-admin]}]",
            "ServiceAccount other of v1 in namespace own is not granted <- grants.objects: [{group: \"\", kinds: [ServiceAccount], names: [other], namespaces: [own]}]",
        ]
    );
    assert_eq!(
        binding(Some("own"), ("User", "a"), account("own")),
        ["binding a User is not granted <- nothing"]
    );
    for kind in ["User", "Group", "ServiceAccount"] {
        assert_eq!(
            binding(None, ("ClusterRole", "own"), json!({"kind": kind, "name": "system:authenticated"})),
            [format!(
                "binding a role to {kind} system:authenticated is not granted; bind it to a ServiceAccount <- nothing"
            )]
        );
    }
}
