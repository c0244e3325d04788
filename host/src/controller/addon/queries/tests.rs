//! What a workload cluster is asked for plugins, against API servers that answer in many ways.

use std::collections::BTreeSet;

use addons::grant::Grants;
use contract::{HostInfo, Operation};

use super::*;
use crate::workload::fake::{Answer, Server, cluster, kinds};

/// Grants of everything that can be asked for.
fn grants() -> Grants {
    let query = |kind: &str| json!({"kind": kind});
    let value = json!({
        "queries": [
            {"kind": "k8s.objects/v1", "kinds": ["Pod", "ConfigMap", "Secret"], "namespaces": ["*"], "fields": ["/data", "/metadata", "/status"]},
            {"kind": "k8s.objects/v1", "kinds": ["Node"], "fields": ["/status"]},
            {"kind": "k8s.objects/v1", "group": "apps", "kinds": ["Deployment"], "fields": ["/status"]},
            {"kind": "k8s.objects/v1", "group": "example.com", "kinds": ["Database"], "namespaces": ["*"]},
            query("k8s.nodes/v1"), query("k8s.apis/v1"), query("own-objects/v1"), query("outputs/v1")],
        "objects": [{"group": "", "kinds": ["ConfigMap", "Secret"], "namespaces": ["shop"]}]});
    serde_json::from_value(value).expect("grants")
}

fn record(standing: Standing) -> Inventory {
    let object =
        |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "namespace": "shop", "name": name});
    let value = json!({"module": "metrics", "version": "1", "digest": "", "config": {}, "planHash": "", "complete": true,
        "objects": [object("ConfigMap", "a"), object("ConfigMap", "gone"), object("Secret", "password"), object("Pod", "of-others")],
        "outputs": {"endpoint": "https://example.com"}, "removal": []});
    Inventory { standing, ..serde_json::from_value(value).expect("a record") }
}

async fn asked_of(queries: &Queries, kind: &str, spec: Value) -> FactValue {
    let (grants, record) = (grants(), record(Standing::Proven));
    let asking = Asking { module: "metrics", grants: &grants, installed: Ok(Some(&record)) };
    queries.answer(&Query::read(&json!({"kind": kind, "spec": spec})).expect("a query"), asking).await
}

async fn queries(server: &Server) -> Queries {
    let workload = Arc::new(cluster(server).await);
    Queries::of(Some(workload), Ok(&[record(Standing::Proven)]), Instant::now() + Duration::from_secs(60))
}

/// A cluster with some objects, of which lists have this many.
async fn serving(pods: usize) -> Server {
    Server::start(move |target| {
        if let Some(answer) = kinds(target) {
            return answer;
        }
        let path = target.split('?').next().unwrap_or_default();
        let object = |namespace: &str, name: &str| {
            json!({"metadata": {"name": name, "namespace": namespace, "labels": {"a": "b"}},
                "data": {"key": "value"}, "status": {"phase": "Running"}, "spec": {"secret": "of the cluster"}})
        };
        let list = |items: Vec<Value>| Answer::json(&json!({"metadata": {}, "items": items}));
        match path {
            "GET /api/v1/pods" | "GET /api/v1/namespaces/shop/pods" => {
                list((0..pods).rev().map(|it| object("shop", &format!("p{it:04}"))).collect())
            }
            "GET /api/v1/nodes" => list(vec![json!({"metadata": {"name": "n"}, "status": {
                "nodeInfo": {"architecture": "arm64"}, "conditions": [{"type": "Ready", "status": "True"}]}})]),
            "GET /api/v1/configmaps" => {
                list(vec![object("kube-system", "cluster-plugin-calico"), object("shop", "a")])
            }
            "GET /api/v1/namespaces/shop/configmaps/a" => Answer::json(&object("shop", "a")),
            "GET /api" => Answer::json(&json!({"versions": ["v1"]})),
            "GET /apis" => Answer::json(&json!({"groups": [{"name": "apps", "versions": [{"groupVersion": "apps/v1"}]},
                {"name": "evil", "versions": [{"groupVersion": "../v1"}]}]})),
            _ => Answer::Text(404, json!({"kind": "Status", "message": "not found"}).to_string()),
        }
    })
    .await
}

fn pods(limit: u32) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "fields": ["/status/phase"], "limit": limit})
}

#[tokio::test]
async fn objects_are_told_with_what_was_asked_for_alone() {
    let server = serving(2).await;
    let queries = queries(&server).await;
    let FactValue::Present(all) = asked_of(&queries, "k8s.objects/v1", pods(10)).await else {
        panic!("told")
    };
    expect_test::expect![[
        r#"[{"metadata":{"name":"p0000","namespace":"shop"},"status":{"phase":"Running"}},{"metadata":{"name":"p0001","namespace":"shop"},"status":{"phase":"Running"}}]"#
    ]]
    .assert_eq(&all.to_string());
    let labelled = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "labelSelector": {"a": "b"}, "limit": 10});
    asked_of(&queries, "k8s.objects/v1", labelled).await;
    let asked = server.requests();
    assert!(
        asked.iter().any(|it| it.contains("/namespaces/shop/pods?") && it.contains("labelSelector=a%3Db"))
    );
}

#[tokio::test]
async fn a_list_that_was_cut_does_not_look_whole() {
    let server = serving(11).await;
    let queries = queries(&server).await;
    let cut = asked_of(&queries, "k8s.objects/v1", pods(10)).await;
    assert_eq!(cut, FactValue::Unknown("there are more than 10 objects of kind Pod".into()));
    assert!(matches!(asked_of(&queries, "k8s.objects/v1", pods(11)).await, FactValue::Present(_)));
}

#[tokio::test]
async fn what_is_not_there_is_absent_and_what_does_not_answer_unknown() {
    let server = serving(0).await;
    let queries = queries(&server).await;
    assert_eq!(asked_of(&queries, "k8s.objects/v1", pods(10)).await, FactValue::Present(json!([])));
    let named = json!({"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "gone", "limit": 1});
    assert_eq!(asked_of(&queries, "k8s.objects/v1", named).await, FactValue::Absent);
    let kind = json!({"apiVersion": "example.com/v1", "kind": "Database", "limit": 1});
    assert_eq!(asked_of(&queries, "k8s.objects/v1", kind).await, FactValue::Absent);
    let down = Server::start(|_| Answer::Text(503, "{}".into())).await;
    let queries = self::queries(&down).await;
    for (kind, spec) in [
        ("k8s.objects/v1", pods(10)),
        ("k8s.nodes/v1", json!({})),
        ("k8s.apis/v1", json!({})),
        ("own-objects/v1", json!({})),
    ] {
        let answer = asked_of(&queries, kind, spec).await;
        assert!(matches!(answer, FactValue::Unknown(_)), "{kind}: {answer:?}");
    }
    let nobody = Queries::of(None, Err("no answer"), Instant::now());
    for kind in ["k8s.nodes/v1", "own-objects/v1"] {
        assert!(matches!(asked_of(&nobody, kind, json!({})).await, FactValue::Unknown(_)), "{kind}");
    }
    let outputs = asked_of(&nobody, "outputs/v1", json!({"plugin": "metrics"})).await;
    assert_eq!(outputs, FactValue::Unknown("no answer".into()));
}

#[tokio::test]
async fn a_grant_for_what_has_no_namespaces_reaches_into_none() {
    let server = serving(0).await;
    let queries = queries(&server).await;
    let of = async |query: Value| match asked_of(&queries, "k8s.objects/v1", query).await {
        FactValue::Denied(why) => why,
        other => panic!("{other:?}"),
    };
    let everywhere = json!({"apiVersion": "apps/v1", "kind": "Deployment", "limit": 1});
    assert!(of(everywhere).await.contains("needs grants.queries with namespaces *"));
    let somewhere = json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "limit": 1});
    assert!(of(somewhere).await.contains("by its namespace too"));
    assert!(!server.requests().iter().any(|it| it.contains("/deployments") || it.contains("/pods")));
}

#[tokio::test]
async fn secrets_and_records_leave_no_cluster() {
    let server = serving(0).await;
    let queries = queries(&server).await;
    let secrets =
        json!({"apiVersion": "v1", "kind": "Secret", "namespace": "shop", "fields": ["/data"], "limit": 10});
    assert!(matches!(asked_of(&queries, "k8s.objects/v1", secrets).await, FactValue::Denied(_)));
    let maps = json!({"apiVersion": "v1", "kind": "ConfigMap", "fields": ["/data"], "limit": 10});
    let FactValue::Present(told) = asked_of(&queries, "k8s.objects/v1", maps).await else { panic!("told") };
    assert_eq!(told, json!([{"metadata": {"name": "a", "namespace": "shop"}, "data": {"key": "value"}}]));
    let own = asked_of(&queries, "own-objects/v1", json!({"fields": ["/data"]})).await;
    let FactValue::Present(own) = own else { panic!("{own:?}") };
    let names: Vec<(&Value, bool)> =
        own.as_array().expect("a list").iter().map(|it| (&it["name"], it["object"].is_null())).collect();
    assert_eq!(names, [(&json!("a"), false), (&json!("gone"), true)], "no Secret, and nothing of others");
    assert!(!server.requests().iter().any(|it| it.contains("secrets")), "{:?}", server.requests());
}

#[tokio::test]
async fn a_record_that_somebody_else_wrote_tells_of_nothing() {
    let server = serving(0).await;
    let queries = queries(&server).await;
    let (grants, forged) = (grants(), record(Standing::Unknown));
    let asking = Asking { module: "metrics", grants: &grants, installed: Ok(Some(&forged)) };
    let query = Query::read(&json!({"kind": "own-objects/v1", "spec": {}})).expect("a query");
    assert!(matches!(queries.answer(&query, asking).await, FactValue::Unknown(_)));
    let all = [record(Standing::Foreign)];
    let queries = Queries::of(None, Ok(&all), Instant::now());
    let outputs = asked_of(&queries, "outputs/v1", json!({"plugin": "metrics"})).await;
    assert_eq!(outputs, FactValue::Absent);
}

#[tokio::test]
async fn apis_nodes_and_outputs_are_told() {
    let server = serving(0).await;
    let queries = queries(&server).await;
    let all = asked_of(&queries, "k8s.apis/v1", json!({})).await;
    assert_eq!(all, FactValue::Present(json!([{"apiVersion": "v1"}, {"apiVersion": "apps/v1"}])));
    let apps = asked_of(&queries, "k8s.apis/v1", json!({"groups": ["apps"]})).await;
    let expected = json!([{"apiVersion": "apps/v1", "kinds": ["DaemonSet", "Deployment"]}]);
    assert_eq!(apps, FactValue::Present(expected));
    let FactValue::Present(nodes) = asked_of(&queries, "k8s.nodes/v1", json!({})).await else {
        panic!("told")
    };
    assert_eq!((&nodes["count"], &nodes["architectures"]), (&json!(1), &json!({"arm64": 1})));
    let outputs = asked_of(&queries, "outputs/v1", json!({"plugin": "metrics"})).await;
    assert_eq!(outputs, FactValue::Present(json!({"endpoint": "https://example.com"})));
    assert_eq!(asked_of(&queries, "outputs/v1", json!({"plugin": "vault"})).await, FactValue::Absent);
}

#[tokio::test]
async fn the_same_question_is_asked_once_in_a_reconciliation() {
    let server = serving(1).await;
    let queries = queries(&server).await;
    for _ in 0..3 {
        asked_of(&queries, "k8s.objects/v1", pods(10)).await;
    }
    assert_eq!(server.requests().iter().filter(|it| it.contains("/pods")).count(), 1);
}

#[tokio::test]
async fn what_would_be_too_much_is_unknown() {
    let text = "x".repeat(300_000);
    let server = Server::start(move |target| match kinds(target) {
        Some(answer) => answer,
        None => {
            let map = |it: usize| json!({"metadata": {"name": format!("a{it}"), "namespace": "shop"}, "data": {"a": text}});
            let count = if target.contains("four") { 4 } else { 3 };
            Answer::json(&json!({"metadata": {}, "items": (0..count).map(map).collect::<Vec<_>>()}))
        }
    });
    let server = server.await;
    let queries = queries(&server).await;
    let maps = |namespace: String| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "fields": ["/data"], "limit": 10});
    let large = asked_of(&queries, "k8s.objects/v1", maps("four".into())).await;
    assert_eq!(large, FactValue::Unknown("the answer has more than 1048576 bytes".into()));
    let mut told = BTreeSet::new();
    for it in 0..6 {
        let answer = asked_of(&queries, "k8s.objects/v1", maps(format!("n{it}"))).await;
        told.extend(matches!(answer, FactValue::Present(_)).then_some(it));
    }
    assert_eq!(told, BTreeSet::from([0, 1, 2, 3]), "4 MiB in all");
}

#[tokio::test]
async fn a_cluster_that_answers_slowly_holds_up_a_plan_for_a_while_only() {
    let endless = |target: &str| {
        kinds(target).unwrap_or_else(|| Answer::chunks("{\"items\": [", " ", Duration::from_millis(20)))
    };
    let server = Server::start(endless).await;
    let workload = Some(Arc::new(cluster(&server).await));
    let queries = Queries::of(workload, Ok(&[]), Instant::now() + Duration::from_millis(200));
    let began = Instant::now();
    for _ in 0..3 {
        let late = asked_of(&queries, "k8s.objects/v1", pods(10)).await;
        assert_eq!(late, FactValue::Unknown("there was no time left to ask".into()));
    }
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
}

#[tokio::test]
async fn the_key_of_a_fact_is_no_key_of_an_answer() {
    let queries = Queries::unanswered("nobody is asked");
    let grants = grants();
    let asking = Asking { module: "metrics", grants: &grants, installed: Ok(None) };
    let mut request = Request {
        operation: Operation::Install,
        host: HostInfo { version: "1".into(), features: vec![] },
        installed_version: None,
        previous_config: None,
        config: json!({}),
        facts: vec![Fact { key: "aws".into(), value: FactValue::Absent }],
        extra: json!({}),
    };
    let before = request.clone();
    let need = |key: &str| Need { key: key.into(), query: json!({"kind": "k8s.nodes/v1", "spec": {}}) };
    let many = (0..=NEEDS).map(|it| need(&it.to_string())).collect();
    let shadows = [vec![need("aws")], vec![need("a"), need("storage-classes")], vec![need("a"), need("a")]];
    for needs in shadows.into_iter().chain([vec![], many]) {
        let refused = Rounds::default().answer(&needs, &mut request, &queries, asking).await;
        assert_eq!(refused.map_err(|it| it.0), Err(reason::NEEDS_INVALID), "{needs:?}");
    }
    assert_eq!(request, before);
    let answered = Rounds::default().answer(&[need("a")], &mut request, &queries, asking).await;
    assert_eq!((answered, request.facts.len()), (Ok(()), 2));
}
