//! What a plugin may ask of the workload cluster. A query is judged before anything is read for it.

use contract::{ObjectsQuery, OutputsQuery, Query};
use crds::plugin_module::QueryGrant;
use serde_json::Value;

use super::cover::group_of;
use crate::ObjectRef;

/// Where the records of add-ons are, and how their names begin.
const RECORDS: (&str, [&str; 2]) = ("kube-system", ["cluster-plugin-", "cluster-component-"]);
/// The field that has to be granted to select by labels.
const LABELS: &str = "/metadata/labels";

/// How far a granted query may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Wherever it asks.
    Granted,
    /// Only if its kind has no namespaces: those of others were not granted.
    ClusterScoped,
}

/// Judges a query by what is granted to the plugin.
///
/// # Errors
/// It is not granted: what the plugin is told, which names the grant that would allow it.
pub fn judge(query: &Query, grants: &[QueryGrant]) -> Result<Reach, String> {
    let mut of_kind = grants.iter().filter(|it| it.kind == query.kind());
    match query {
        Query::Objects(query) => judge_objects(query, of_kind),
        Query::Outputs(OutputsQuery { plugin }) => {
            let covers = |it: &QueryGrant| it.names.is_empty() || it.names.contains(plugin);
            let denial = || format!("needs grants.queries of kind {} with name {plugin}", OutputsQuery::KIND);
            of_kind.any(covers).then_some(Reach::Granted).ok_or_else(denial)
        }
        Query::Nodes(_) | Query::Apis(_) | Query::OwnObjects(_) => {
            let denial = || format!("needs grants.queries of kind {}", query.kind());
            of_kind.next().map(|_| Reach::Granted).ok_or_else(denial)
        }
    }
}

fn judge_objects<'a>(
    query: &ObjectsQuery,
    mut grants: impl Iterator<Item = &'a QueryGrant>,
) -> Result<Reach, String> {
    if is_secret(&query.kind) {
        return Err("Secrets are told to no plugin, whatever is granted".to_owned());
    }
    let named = query.name.as_deref().zip(query.namespace.as_deref());
    if named.is_some_and(|(name, namespace)| is_record(&query.kind, Some(namespace), name)) {
        return Err("the records of add-ons are told to no plugin, whatever is granted".to_owned());
    }
    let selector = (!query.label_selector.is_empty()).then_some(LABELS);
    let fields = || query.fields.iter().map(String::as_str).chain(selector);
    let covers = |it: &QueryGrant| {
        let is_named = it.names.is_empty() || query.name.as_ref().is_some_and(|name| it.names.contains(name));
        let is_told = |field: &str| it.fields.iter().any(|granted| is_at_or_below(field, granted));
        let is_kind = it.group == group_of(&query.api_version) && it.kinds.contains(&query.kind);
        (is_kind && is_named && fields().all(is_told)).then(|| reach(query, it)).flatten()
    };
    let best = grants.by_ref().filter_map(covers).min_by_key(|reach| *reach != Reach::Granted);
    best.ok_or_else(|| {
        let place = query.namespace.as_deref().map_or_else(
            || "in all namespaces (*), or of a kind without any".to_owned(),
            |it| format!("in namespace {it}"),
        );
        let name = query.name.as_ref().map(|it| format!(", name {it}")).unwrap_or_default();
        let fields: Vec<&str> = fields().collect();
        let fields = if fields.is_empty() { String::new() } else { format!(", fields {}", fields.join(" ")) };
        format!(
            "needs grants.queries of kind {}: {} of group {:?} {place}{name}{fields}",
            ObjectsQuery::KIND,
            query.kind,
            group_of(&query.api_version)
        )
    })
}

/// How far a grant lets a query reach; `None` when it is not about its namespace.
fn reach(query: &ObjectsQuery, grant: &QueryGrant) -> Option<Reach> {
    if grant.namespaces.iter().any(|it| it == "*") {
        return Some(Reach::Granted);
    }
    match &query.namespace {
        Some(namespace) => grant.namespaces.contains(namespace).then_some(Reach::Granted),
        None => grant.namespaces.is_empty().then_some(Reach::ClusterScoped),
    }
}

fn is_at_or_below(field: &str, granted: &str) -> bool {
    let rest = field.strip_prefix(granted.trim_end_matches('/'));
    granted.starts_with('/') && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Secrets of any API: who serves them under another name is asked for them under no name.
fn is_secret(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("Secret")
}

fn is_record(kind: &str, namespace: Option<&str>, name: &str) -> bool {
    let (place, prefixes) = RECORDS;
    kind == "ConfigMap" && namespace == Some(place) && prefixes.iter().any(|it| name.starts_with(it))
}

/// Whether nobody is told of an object, though its kind is granted: it is a Secret or a record of an add-on.
pub fn is_withheld(object: &ObjectRef) -> bool {
    is_secret(&object.kind) || is_record(&object.kind, object.namespace.as_deref(), &object.name)
}

/// The objects of a list of one kind that may be told.
#[must_use]
pub fn told(kind: &str, mut objects: Vec<Value>) -> Vec<Value> {
    let text = |object: &Value, path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
    objects.retain(|object| {
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        !is_secret(kind) && !is_record(kind, namespace.as_deref(), &name.unwrap_or_default())
    });
    let place = |it: &Value| (text(it, "/metadata/namespace"), text(it, "/metadata/name"));
    objects.sort_by_cached_key(place);
    objects
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn grants() -> Vec<QueryGrant> {
        let all = json!([
            {"kind": "k8s.objects/v1", "group": "apps", "kinds": ["Deployment"], "namespaces": ["shop"], "fields": ["/status", "/metadata/labels"]},
            {"kind": "k8s.objects/v1", "group": "", "kinds": ["ConfigMap", "Secret"], "namespaces": ["*"], "fields": ["/data"]},
            {"kind": "k8s.objects/v1", "group": "", "kinds": ["Node"], "fields": ["/metadata/labels"]},
            {"kind": "k8s.objects/v1", "group": "", "kinds": ["Pod"], "namespaces": ["kube-system"], "names": ["etcd"], "fields": ["/status"]},
            {"kind": "k8s.nodes/v1"},
            {"kind": "outputs/v1", "names": ["metrics"]}]);
        serde_json::from_value(all).expect("grants")
    }

    fn asked(kind: &str, spec: Value) -> Result<Reach, String> {
        judge(&Query::read(&json!({"kind": kind, "spec": spec})).expect("a query"), &grants())
    }

    fn objects(api_version: &str, kind: &str, more: Value) -> Result<Reach, String> {
        let mut spec = json!({"apiVersion": api_version, "kind": kind, "limit": 10});
        spec.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        asked("k8s.objects/v1", spec)
    }

    #[test]
    fn what_is_granted_is_answered_and_no_more() {
        let in_shop = |more: Value| {
            let mut all = json!({"namespace": "shop"});
            all.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            objects("apps/v1", "Deployment", all)
        };
        assert_eq!(in_shop(json!({})), Ok(Reach::Granted));
        assert_eq!(in_shop(json!({"fields": ["/status/replicas", "/status"]})), Ok(Reach::Granted));
        assert_eq!(in_shop(json!({"labelSelector": {"a": "b"}})), Ok(Reach::Granted));
        for field in ["/statuses", "/spec", "/metadata"] {
            assert!(in_shop(json!({"fields": [field]})).is_err(), "{field}");
        }
        assert!(objects("apps/v1", "Deployment", json!({})).is_err(), "all namespaces");
        assert!(objects("apps/v1", "Deployment", json!({"namespace": "other"})).is_err());
        assert!(objects("extensions/v1", "Deployment", json!({"namespace": "shop"})).is_err());
        assert_eq!(objects("v1", "ConfigMap", json!({})), Ok(Reach::Granted));
        assert!(
            objects("v1", "ConfigMap", json!({"labelSelector": {"a": "b"}})).is_err(),
            "labels are no data"
        );
        let pod = |more: Value| objects("v1", "Pod", more);
        assert_eq!(pod(json!({"namespace": "kube-system", "name": "etcd"})), Ok(Reach::Granted));
        assert!(pod(json!({"namespace": "kube-system"})).is_err(), "the others too");
        assert_eq!(asked("k8s.nodes/v1", json!({})), Ok(Reach::Granted));
        assert!(asked("k8s.apis/v1", json!({})).is_err() && asked("own-objects/v1", json!({})).is_err());
        assert_eq!(asked("outputs/v1", json!({"plugin": "metrics"})), Ok(Reach::Granted));
        expect_test::expect!["needs grants.queries of kind outputs/v1 with name vault"]
            .assert_eq(&asked("outputs/v1", json!({"plugin": "vault"})).unwrap_err());
    }

    #[test]
    fn a_grant_without_namespaces_reaches_into_none() {
        assert_eq!(objects("v1", "Node", json!({})), Ok(Reach::ClusterScoped));
        assert!(objects("v1", "Node", json!({"namespace": "shop"})).is_err());
    }

    #[test]
    fn a_denial_names_the_grant() {
        let query = json!({"namespace": "shop", "name": "a", "fields": ["/spec"], "labelSelector": {}});
        expect_test::expect![[
            r#"needs grants.queries of kind k8s.objects/v1: Deployment of group "apps" in namespace shop, name a, fields /spec"#
        ]]
        .assert_eq(&objects("apps/v1", "Deployment", query).unwrap_err());
    }

    #[test]
    fn secrets_and_records_are_told_to_nobody() {
        assert!(objects("v1", "Secret", json!({})).unwrap_err().contains("whatever is granted"));
        let record = json!({"namespace": "kube-system", "name": "cluster-plugin-calico"});
        assert!(objects("v1", "ConfigMap", record).unwrap_err().contains("whatever is granted"));
        let config_map =
            |namespace: &str, name: &str| json!({"metadata": {"namespace": namespace, "name": name}});
        let all = vec![
            config_map("shop", "b"),
            config_map("kube-system", "cluster-plugin-calico"),
            config_map("kube-system", "cluster-component-calico-0af0"),
            config_map("shop", "a"),
            config_map("shop", "cluster-plugin-mine"),
        ];
        let names: Vec<Value> =
            told("ConfigMap", all.clone()).iter().map(|it| it["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["a", "b", "cluster-plugin-mine"]);
        assert_eq!(told("Secret", all), [] as [Value; 0]);
        let object = |kind: &str, name: &str| ObjectRef {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: Some("kube-system".into()),
            name: name.into(),
        };
        assert!(is_withheld(&object("Secret", "a")) && is_withheld(&object("ConfigMap", "cluster-plugin-a")));
        assert!(!is_withheld(&object("ConfigMap", "a")));
    }
}
