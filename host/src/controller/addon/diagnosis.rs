//! Diagnoses why something of an add-on does not come up, and whether that is the add-on's fault: by its Pods
//! and Nodes, where it has any. The decision is in `addons`.

use addons::{self, NODE_PARTS, ObjectRef, POD_PARTS};
use contract::WaitCondition;
use kube::api::ListParams;
use serde_json::Value;

use crate::workload::{WorkloadCluster, WorkloadError, sanitize};

/// How many labels of a selector are used.
const LABELS: usize = 16;

/// What becomes of a wait that `what` keeps from its end: over all the same, or with the reason.
pub async fn diagnose(
    cluster: &WorkloadCluster,
    object: &ObjectRef,
    condition: WaitCondition,
    live: &Value,
    what: String,
) -> Result<(), String> {
    let diagnosis = match condition {
        WaitCondition::AvailableDeployment | WaitCondition::ReadyDaemonset => {
            of_pods(cluster, object, condition, live).await
        }
        WaitCondition::TigerastatusAvailable => {
            Ok(addons::tigera_status(live).map_or(Diagnosis::Unknown, Diagnosis::Problem))
        }
        WaitCondition::CrdEstablished | WaitCondition::Exists | WaitCondition::Gone => Ok(Diagnosis::Unknown),
    };
    match diagnosis {
        Ok(Diagnosis::Healthy) => Ok(()),
        Ok(Diagnosis::Problem(problem)) => {
            Err(format!("{what} ({}: {})", problem.subject, sanitize::quoted(&problem.words)))
        }
        Ok(Diagnosis::Unknown) => Err(what),
        Err(error) => {
            tracing::debug!(%object, %error, "its Pods do not say why it does not come up");
            Err(what)
        }
    }
}

enum Diagnosis {
    /// As far as there are nodes for it.
    Healthy,
    Problem(addons::Problem),
    Unknown,
}

async fn of_pods(
    cluster: &WorkloadCluster,
    object: &ObjectRef,
    condition: WaitCondition,
    live: &Value,
) -> Result<Diagnosis, WorkloadError> {
    let (Some(namespace), Some(selector)) = (&object.namespace, selector(live)) else {
        return Ok(Diagnosis::Unknown);
    };
    let mut lists = cluster.lists();
    let pods =
        lists.selected("v1", "Pod", namespace, ListParams::default().labels(&selector), &POD_PARTS).await?;
    if condition == WaitCondition::ReadyDaemonset && !pods.is_empty() {
        let nodes = lists.all("v1", "Node", &NODE_PARTS).await?;
        if addons::works_but_for(live, addons::on_lost_nodes(&pods, &nodes)) {
            return Ok(Diagnosis::Healthy);
        }
    }
    Ok(addons::find_problem(live, &pods).map_or(Diagnosis::Unknown, Diagnosis::Problem))
}

/// The labels by which a Deployment or DaemonSet selects its Pods. Ours select by nothing else.
fn selector(live: &Value) -> Option<String> {
    let labels = live.pointer("/spec/selector/matchLabels")?.as_object()?;
    let all: Option<Vec<String>> =
        labels.iter().take(LABELS).map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    all.filter(|it| !it.is_empty()).map(|it| it.join(","))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::workload::fake::{cluster, holding};

    async fn diagnosed(available: i64, nodes: &[(&str, &str)]) -> Result<(), String> {
        let pod = |node: &str| {
            let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
            let last =
                json!({"terminated": {"exitCode": 2, "message": "all is well\nReady: True \"really\""}});
            json!({"metadata": {"namespace": "kube-system", "name": format!("it-{node}")},
                "spec": {"nodeName": node},
                "status": {"containerStatuses": [{"name": "driver", "state": state, "lastState": last}]}})
        };
        let node = |(name, ready): &(&str, &str)| {
            json!({"metadata": {"name": name},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}})
        };
        let pods: Vec<Value> = nodes.iter().map(|it| pod(it.0)).collect();
        let nodes: Vec<Value> = nodes.iter().map(node).collect();
        let server = holding(BTreeMap::from([
            ("/api/v1/namespaces/kube-system/pods".to_owned(), json!({"metadata": {}, "items": pods})),
            ("/api/v1/nodes".to_owned(), json!({"metadata": {}, "items": nodes})),
        ]));
        let server = server.await.0;
        let live = json!({"metadata": {"generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "it"}}}, "status": {"observedGeneration": 1,
            "desiredNumberScheduled": nodes.len(), "updatedNumberScheduled": nodes.len(),
            "numberAvailable": available}});
        let object = ObjectRef {
            api_version: "apps/v1".into(),
            kind: "DaemonSet".into(),
            namespace: Some("kube-system".into()),
            name: "it".into(),
        };
        let result = diagnose(
            &cluster(&server).await,
            &object,
            WaitCondition::ReadyDaemonset,
            &live,
            "it is not ready".into(),
        )
        .await;
        let selects = |it: &String| {
            it.starts_with("GET /api/v1/namespaces/kube-system/pods?")
                && it.contains("labelSelector=app%3Dit")
        };
        assert!(server.requests().iter().any(selects), "{:?}", server.requests());
        result
    }

    #[tokio::test]
    async fn pods_that_crash_say_why_in_quotes() {
        let expected = "it is not ready (Pod kube-system/it-one, container driver: \"CrashLoopBackOff: exit \
                        code 2: all is well Ready: True 'really'\")";
        assert_eq!(diagnosed(0, &[("one", "True")]).await, Err(expected.to_owned()));
    }

    #[tokio::test]
    async fn a_node_that_is_lost_holds_up_no_add_on() {
        assert_eq!(diagnosed(1, &[("one", "True"), ("two", "Unknown")]).await, Ok(()));
        assert!(diagnosed(1, &[("one", "True"), ("two", "False")]).await.is_err());
    }
}
