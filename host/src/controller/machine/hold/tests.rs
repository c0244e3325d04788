//! A management API that answers what it is told: whether a control plane of another kind than kubeadm's is
//! asked, how, and what follows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::*;
use crate::metrics::Metrics;

const NAMESPACED: &str = "namespaces/default";
const CONTROL_PLANE: &str =
    "/apis/controlplane.cluster.x-k8s.io/v1beta1/namespaces/default/rke2controlplanes/prod";
/// What a control plane machine is told while its control plane goes too.
const HELD: &str = "kept until the cluster's add-ons are removed";

/// Objects by their path, and the paths that were asked for.
#[derive(Clone, Default)]
struct Api {
    objects: Arc<BTreeMap<String, Value>>,
    asked: Arc<Mutex<Vec<String>>>,
}

fn json(code: StatusCode, body: &Value) -> Response {
    (code, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn respond(State(api): State<Api>, uri: Uri) -> Response {
    api.asked.lock().unwrap().push(uri.path().to_owned());
    let status = |code: StatusCode, reason: &str| {
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
            "message": reason, "code": code.as_u16()});
        json(code, &body)
    };
    match api.objects.get(uri.path()) {
        Some(Value::Null) => status(StatusCode::FORBIDDEN, "Forbidden"),
        Some(object) => json(StatusCode::OK, object),
        None => status(StatusCode::NOT_FOUND, "NotFound"),
    }
}

fn metadata(name: &str, deleting: bool) -> Value {
    let mut res = json!({"name": name, "namespace": "default", "uid": name, "resourceVersion": "1",
        "finalizers": ["plugin.cluster.kurator.dev"], "labels": {"cluster.x-k8s.io/control-plane": ""}});
    if deleting {
        res["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
    }
    res
}

/// Why a control plane machine is kept, and what was asked for. `control_plane`: what the API answers for it,
/// `Null` is a refusal.
async fn asked(cluster_deleting: bool, control_plane: Option<Value>) -> (Option<String>, Vec<String>) {
    let reference =
        json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "RKE2ControlPlane", "name": "prod"});
    let version = json!({"groupVersion": "controlplane.cluster.x-k8s.io/v1beta1", "version": "v1beta1"});
    let resource = json!({"name": "rke2controlplanes", "singularName": "", "namespaced": true,
        "kind": "RKE2ControlPlane", "verbs": ["get"]});
    let plugin = json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPlugin",
        "metadata": metadata("prod", false),
        "spec": {"clusterName": "prod"}});
    let mut objects = BTreeMap::from([
        (
            format!("/apis/cluster.x-k8s.io/v1beta2/{NAMESPACED}/clusters/prod"),
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                "metadata": metadata("prod", cluster_deleting),
                "spec": {"controlPlaneRef": reference}}),
        ),
        (
            format!("/apis/infrastructure.cluster.x-k8s.io/v1beta2/{NAMESPACED}/awsmachines/cp"),
            json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachine",
                "metadata": metadata("cp", true),
                "spec": {"instanceType": "t3.large"}}),
        ),
        (
            format!("/apis/cluster.kurator.dev/v1alpha1/{NAMESPACED}/clusterplugins"),
            json!({"apiVersion": "cluster.kurator.dev/v1alpha1", "kind": "ClusterPluginList",
                "metadata": {}, "items": [plugin]}),
        ),
        (
            "/apis".to_owned(),
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [
                {"name": "controlplane.cluster.x-k8s.io", "versions": [version.clone()],
                    "preferredVersion": version}]}),
        ),
        (
            "/apis/controlplane.cluster.x-k8s.io/v1beta1".to_owned(),
            json!({"kind": "APIResourceList", "apiVersion": "v1",
                "groupVersion": "controlplane.cluster.x-k8s.io/v1beta1", "resources": [resource]}),
        ),
    ]);
    objects.extend(control_plane.map(|it| (CONTROL_PLANE.to_owned(), it)));
    let api = Api { objects: Arc::new(objects), asked: Arc::default() };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().fallback(respond).with_state(api.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let management = Management::start(kube::Client::try_from(config).unwrap(), None, Metrics::new());
    let machine = management.live::<AWSMachine>(&ObjectName::new("default", "cp")).await.unwrap().unwrap();
    let held = live(&management, &ObjectName::new("default", "prod"), &machine).await.unwrap();
    let asked = api.asked.lock().unwrap().clone();
    (held, asked)
}

fn control_plane(deleting: bool) -> Value {
    json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "RKE2ControlPlane",
        "metadata": metadata("prod", deleting)})
}

#[tokio::test]
async fn another_control_plane_is_read_in_a_version_that_is_served() {
    assert_eq!(asked(true, Some(control_plane(true))).await.0.as_deref(), Some(HELD));
    assert_eq!(
        asked(true, Some(control_plane(false))).await.0,
        None,
        "its own controller removes the member first"
    );
    assert_eq!(asked(true, None).await.0.as_deref(), Some(HELD), "it is gone already");
}

#[tokio::test]
async fn a_control_plane_is_not_read_while_its_cluster_stays() {
    let (held, asked) = asked(false, Some(Value::Null)).await;
    assert_eq!(held, None);
    assert!(!asked.iter().any(|it| it.contains("rke2controlplanes") || it == "/apis"), "{asked:?}");
}

#[tokio::test]
async fn a_right_that_is_missing_keeps_the_machine_and_is_named() {
    let (held, _) = asked(true, Some(Value::Null)).await;
    let held = held.expect("it is kept");
    assert!(held.contains("RKE2ControlPlane prod") && held.contains(names::AGGREGATE_LABEL), "{held}");
}
