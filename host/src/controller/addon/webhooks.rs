//! Checks whether somebody answers for the webhooks of an add-on in a workload cluster.

use std::time::Duration;

use addons::{self, ObjectRef, SLICE_PARTS};
use contract::AddOnPlan;
use kube::api::ListParams;

use super::execute::delete_own;
use super::options::ApplyOptions;
use super::progress::{Awaited, StepProgress};
use crate::workload::{WorkloadCluster, WorkloadError};

/// Label of the EndpointSlices of a Service, with its name.
const SERVICE: &str = "kubernetes.io/service-name";

/// How long they may take before that is too long: their Pods are available by then.
const PATIENCE: Duration = Duration::from_secs(60);
/// Stands for them among the steps of a plan, whose ids have no colon.
const STEP: &str = ":webhooks";

/// How far a plan has come whose steps are all done: somebody has to answer for its webhooks.
pub async fn check_webhooks(
    cluster: &WorkloadCluster,
    plan: &AddOnPlan,
    options: &ApplyOptions<'_>,
) -> StepProgress {
    match unanswered(cluster, plan).await {
        Ok(None) => {
            options.memory.end_wait(STEP);
            StepProgress::Done
        }
        Ok(Some(what)) => {
            StepProgress::Waiting(Awaited { what, is_overdue: options.memory.is_overdue(STEP, PATIENCE) })
        }
        Err(error) => error.into(),
    }
}

/// Deletes those webhook configurations of an add-on for which nobody answers: the API server would refuse
/// what they are to be asked about, which the add-on may apply itself. Its plan applies them again when
/// somebody answers.
pub async fn remove_unanswered(
    cluster: &WorkloadCluster,
    objects: &[ObjectRef],
    manager: &str,
) -> Result<(), WorkloadError> {
    for object in objects.iter().filter(|it| it.kind.ends_with("WebhookConfiguration")) {
        let Some(live) = cluster.get_only(object, &["/kind", "/metadata/name", "/webhooks"]).await? else {
            continue;
        };
        for (namespace, name) in addons::services_of_webhooks(&live) {
            if !is_answered(cluster, &namespace, &name).await? {
                tracing::info!(%object, "nobody answers for it: deleting it until somebody does");
                delete_own(cluster, object, manager).await?;
                break;
            }
        }
    }
    Ok(())
}

/// What is awaited of the webhooks of a plan; `None` when there are none, or somebody answers for each.
async fn unanswered(cluster: &WorkloadCluster, plan: &AddOnPlan) -> Result<Option<String>, WorkloadError> {
    for ((namespace, name), configuration) in addons::webhook_services(&plan.steps) {
        if !is_answered(cluster, &namespace, &name).await? {
            let what = format!(
                "Service {namespace}/{name} has no ready endpoints, so the API server refuses what \
                 {configuration} is to be asked about"
            );
            return Ok(Some(what));
        }
    }
    Ok(None)
}

/// Whether a Service has somebody behind it.
async fn is_answered(cluster: &WorkloadCluster, namespace: &str, name: &str) -> Result<bool, WorkloadError> {
    let selected = ListParams::default().labels(&format!("{SERVICE}={name}"));
    let slices = cluster
        .lists()
        .selected("discovery.k8s.io/v1", "EndpointSlice", namespace, selected, &SLICE_PARTS)
        .await?;
    Ok(addons::has_ready_endpoint(&slices))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::workload::fake::{cluster, holding};

    async fn awaited(endpoints: Value) -> Option<String> {
        const PATH: &str = "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices";
        let slices = json!({"metadata": {}, "items": [{"metadata": {"namespace": "n", "name": "s-a"},
            "endpoints": endpoints}]});
        let server = holding([(PATH.to_owned(), slices)].into()).await.0;
        let webhook = json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}});
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "w"}, "webhooks": [webhook]});
        let step = json!({"id": "a", "kind": "k8s.apply/v1", "spec": {"objects": [object]}, "after": []});
        let plan = json!({"steps": [step], "removal": [], "diagnostics": [], "extra": {}});
        let plan: AddOnPlan = serde_json::from_value(plan).expect("a plan");
        let awaited = unanswered(&cluster(&server).await, &plan).await.expect("it answers");
        let asked = format!("GET {PATH}?");
        assert!(
            server.requests().iter().any(|it| it.starts_with(&asked) && it.contains("service-name%3Ds")),
            "{:?}",
            server.requests()
        );
        awaited
    }

    #[tokio::test]
    async fn a_webhook_that_nobody_answers_for_is_named() {
        let expected = "Service n/s has no ready endpoints, so the API server refuses what \
                        ValidatingWebhookConfiguration w is to be asked about";
        assert_eq!(awaited(json!([{"conditions": {"ready": false}}])).await.as_deref(), Some(expected));
        assert_eq!(awaited(json!([{"conditions": {"ready": true}}])).await, None);
    }

    /// Whether a webhook configuration that was applied by this manager stays, where its Service has these
    /// endpoints.
    async fn stays(manager: &str, endpoints: Value) -> bool {
        const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/w";
        let webhook = json!({"clientConfig": {"service": {"namespace": "n", "name": "s"}}});
        let (api_version, kind) = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
        let managed = json!([{"manager": manager, "operation": "Apply"}]);
        let live = json!({"apiVersion": api_version, "kind": kind, "webhooks": [webhook],
            "metadata": {"name": "w", "uid": "1", "managedFields": managed}});
        let slices =
            json!({"metadata": {}, "items": [{"metadata": {"name": "s-a"}, "endpoints": endpoints}]});
        let slices_path = "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices".to_owned();
        let (server, objects) =
            holding([(PATH.to_owned(), live.clone()), (slices_path, slices)].into()).await;
        let object = ObjectRef::of(&live).expect("an object");
        remove_unanswered(&cluster(&server).await, &[object], "ours").await.expect("it answers");
        let objects = objects.lock().expect("no test panicked");
        objects.contains_key(PATH)
    }

    #[tokio::test]
    async fn webhooks_of_ours_that_nobody_answers_for_are_taken_off() {
        let (ready, none) = (json!([{"conditions": {"ready": true}}]), json!([]));
        assert!(!stays("ours", none.clone()).await);
        assert!(stays("ours", ready).await);
        assert!(stays("somebody", none).await, "it is not ours");
    }
}
