//! API servers for tests, with answers that a test sets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use sandbox::answers::{Answer, Server};
use serde_json::{Value, json};

use super::budget::Budget;
use super::{Workload, WorkloadCluster};

/// A server's client.
pub async fn cluster(server: &Server) -> WorkloadCluster {
    cluster_in(server, &Budget::with(Duration::from_secs(2))).await
}

pub(super) async fn cluster_in(server: &Server, budget: &Budget) -> WorkloadCluster {
    let workload = Workload {
        budget: budget.clone(),
        ..Workload::new(Default::default(), Arc::new(["127.0.0.0/8".parse().expect("a range")]))
    };
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("http://127.0.0.1:{}", server.port)}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a",
        "user": {"token": "abc"}}]});
    let cluster = workload
        .cluster("default", "one", kubeconfig.to_string().as_bytes(), Vec::new())
        .await
        .expect("a kubeconfig");
    Arc::into_inner({
        workload.evict("default", "one");
        cluster
    })
    .expect("nobody else has it")
}

/// What every API server answers about the kinds that tests use.
pub fn kinds(target: &str) -> Option<Answer> {
    let of = |all: &[(&str, &str, bool)]| {
        let one = |(name, kind, namespaced): &(&str, &str, bool)| {
            json!({"name": name, "kind": kind,
            "namespaced": namespaced})
        };
        Answer::json(
            &json!({"kind": "APIResourceList", "resources": all.iter().map(one).collect::<Vec<_>>()}),
        )
    };
    match target {
        "GET /api/v1" => Some(of(&[
            ("configmaps", "ConfigMap", true),
            ("secrets", "Secret", true),
            ("pods", "Pod", true),
            ("nodes", "Node", false),
            ("namespaces", "Namespace", false),
        ])),
        "GET /apis/admissionregistration.k8s.io/v1" => {
            Some(of(&[("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false)]))
        }
        "GET /apis/apiextensions.k8s.io/v1" => {
            Some(of(&[("customresourcedefinitions", "CustomResourceDefinition", false)]))
        }
        "GET /apis/discovery.k8s.io/v1" => Some(of(&[("endpointslices", "EndpointSlice", true)])),
        "GET /apis/apps/v1" => {
            Some(of(&[("daemonsets", "DaemonSet", true), ("deployments", "Deployment", true)]))
        }
        _ => None,
    }
}

/// An honest one that holds these objects by their paths: what is deleted is gone.
pub async fn holding(objects: BTreeMap<String, Value>) -> (Server, Arc<Mutex<BTreeMap<String, Value>>>) {
    let objects = Arc::new(Mutex::new(objects));
    let held = objects.clone();
    let server = Server::start(move |target| {
        if let Some(answer) = kinds(target) {
            return answer;
        }
        let (method, path) = target.split_once(' ').unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        let mut held = held.lock().expect("no test panicked");
        let missing = || Answer::Text(404, json!({"kind": "Status", "message": "not found"}).to_string());
        match method {
            "GET" => held.get(path).map_or_else(missing, Answer::json),
            "DELETE" => held
                .remove(path)
                .map_or_else(missing, |_| Answer::json(&json!({"kind": "Status", "status": "Success"}))),
            _ => Answer::json(&json!({})),
        }
    });
    (server.await, objects)
}
