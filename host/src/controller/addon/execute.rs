//! Carries out the steps of an authorized plan, one at a time. Which step comes next is decided in
//! `contract::order`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use addons::certificate::with_bundle;
use addons::{self, ObjectRef, WRITERS};
use contract::{ApplySpec, DeleteSpec, FieldWaitSpec, Step, StepSpec, WaitSpec};
use serde_json::Value;
use tokio::time::Instant;

use super::apply::apply;
use super::certificate::Authority;
use super::check;
use super::diagnosis::diagnose;
use super::options::ApplyOptions;
use super::progress::{Awaited, StepProgress};
use crate::workload::{Dependents, WorkloadCluster, WorkloadError};

/// What waits read of an object, and who wrote it, which is then not asked for again.
const WAITED: [&str; 7] = [
    "/metadata/generation",
    "/spec/replicas",
    "/spec/selector",
    "/status",
    WRITERS[0],
    WRITERS[1],
    WRITERS[2],
];

/// How long what was just applied may take to come up before its Pods are asked why it does not.
const STARTING: Duration = Duration::from_secs(10);

/// Carries out what can be carried out of `steps` now; `done` grows as they are.
pub async fn execute(
    cluster: &WorkloadCluster,
    steps: &[Step],
    done: &mut BTreeSet<String>,
    options: &ApplyOptions<'_>,
) -> StepProgress {
    loop {
        let before = done.len();
        let mut waiting: Option<Awaited> = None;
        for step in contract::order::runnable(steps, done) {
            match execute_step(cluster, step, options).await {
                Ok(()) => drop(done.insert(step.id.clone())),
                Err(StepProgress::Waiting(it)) => waiting = Some(waiting.unwrap_or_default().and(it)),
                Err(other) => return other,
            }
        }
        if done.len() == before {
            return waiting.map_or(StepProgress::Done, StepProgress::Waiting);
        }
    }
}

async fn execute_step(
    cluster: &WorkloadCluster,
    step: &Step,
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    let spec = step
        .typed()
        .map_err(|it| StepProgress::Refused(crds::conditions::reason::PLAN_INVALID, it.to_string()))?;
    check_time(options)?;
    match spec {
        StepSpec::Apply(spec) => {
            for object in content(&step.id, &spec, options.authority)?.iter() {
                check_time(options)?;
                apply(cluster, object, options).await?;
            }
            Ok(())
        }
        StepSpec::Wait(spec) => wait(cluster, &step.id, &spec, options).await,
        StepSpec::FieldWait(spec) => wait_for_fields(cluster, &step.id, &spec, options).await,
        StepSpec::Delete(spec) => delete(cluster, spec, options).await,
        StepSpec::SecurityGroupRule(_) if options.rules_are_there => Ok(()),
        StepSpec::SecurityGroupRule(_) => Err(StepProgress::waiting("security-group rules are being made")),
        StepSpec::IamRole(_) | StepSpec::InstanceRoles(_) | StepSpec::EfsFileSystem(_) => {
            match check::refusal(options.findings, &step.id) {
                Some((reason, message)) => Err(StepProgress::Refused(reason, message)),
                None => Ok(()),
            }
        }
        StepSpec::Certificate(spec) => match options.authority {
            Some(authority) => {
                Ok(authority.certify(cluster, &spec, options.field_manager, options.force).await?)
            }
            None => Err(StepProgress::waiting("for an authority of certificates")),
        },
    }
}

fn check_time(options: &ApplyOptions<'_>) -> Result<(), StepProgress> {
    if Instant::now() >= options.until { Err(StepProgress::out_of_time()) } else { Ok(()) }
}

async fn wait(
    cluster: &WorkloadCluster,
    step: &str,
    spec: &WaitSpec,
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    let object = ObjectRef {
        api_version: spec.api_version.clone(),
        kind: spec.kind.clone(),
        namespace: spec.namespace.clone(),
        name: spec.name.clone(),
    };
    let live = cluster.get_only(&object, &WAITED).await?;
    options.objects.observe(&object, live.as_ref());
    let described =
        match addons::subject_of(spec).filter(|_| addons::waited(spec, live.as_ref(), None).is_ok()) {
            Some(described) => cluster.get_only(&described, &["/metadata/generation"]).await?,
            None => None,
        };
    let generation = described.and_then(|it| it.pointer("/metadata/generation")?.as_i64());
    let outcome = match (addons::waited(spec, live.as_ref(), generation), &live) {
        (Err(what), Some(live)) if options.was_complete || options.memory.is_overdue(step, STARTING) => {
            diagnose(cluster, &object, spec.condition, live, what).await
        }
        (outcome, _) => outcome,
    };
    awaited(step, outcome, spec.timeout_seconds, options)
}

/// Waits for what the fields of any object hold.
async fn wait_for_fields(
    cluster: &WorkloadCluster,
    step: &str,
    spec: &FieldWaitSpec,
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    let object = ObjectRef::at((&spec.api_version, &spec.kind, spec.namespace.as_deref(), &spec.name));
    let parts = spec.parts();
    let parts: Vec<&str> = WRITERS.into_iter().chain(parts.iter().map(String::as_str)).collect();
    let live = cluster.get_only(&object, &parts).await?;
    options.objects.observe(&object, live.as_ref());
    awaited(step, addons::waited_for_fields(spec, live.as_ref()), spec.timeout_seconds, options)
}

/// What becomes of a step that waits, by what it still awaits.
fn awaited(
    step: &str,
    outcome: Result<(), String>,
    seconds: u32,
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    let Err(what) = outcome else {
        options.memory.end_wait(step);
        return Ok(());
    };
    let patience = Duration::from_secs(seconds.into());
    let is_overdue = options.memory.is_overdue(step, patience);
    let what = if is_overdue { format!("{what}, for more than {} s", patience.as_secs()) } else { what };
    Err(StepProgress::Waiting(Awaited { what, is_overdue }))
}

async fn delete(
    cluster: &WorkloadCluster,
    spec: DeleteSpec,
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    let object = ObjectRef {
        api_version: spec.api_version,
        kind: spec.kind,
        namespace: spec.namespace,
        name: spec.name,
    };
    let is_gone = if options.own_only {
        delete_own(cluster, &object, options.field_manager).await?
    } else {
        cluster.delete(&object).await?
    };
    if spec.wait && !is_gone {
        return Err(StepProgress::waiting(&format!("{object} is being deleted")));
    }
    Ok(())
}

/// The objects of a step as they are applied.
pub(super) fn content<'a>(
    step: &str,
    spec: &ApplySpec<'a>,
    authority: Option<&Authority>,
) -> Result<Cow<'a, [Value]>, StepProgress> {
    match (&spec.ca_bundle_from, authority) {
        (None, _) => Ok(Cow::Borrowed(spec.objects)),
        (Some(_), Some(authority)) => Ok(Cow::Owned(with_bundle(spec.objects, &authority.bundle()))),
        // Webhooks that nobody vouches for would refuse whatever they are asked about.
        (Some(from), None) => {
            let message =
                format!("step {step:?}: caBundleFrom names {from:?}, and the plan makes no certificate");
            Err(StepProgress::Refused(crds::conditions::reason::PLAN_INVALID, message))
        }
    }
}

/// Asks for the deletion of an object if this field manager applied it; `true` when it is not there any more,
/// or somebody else's.
pub(super) async fn delete_own(
    cluster: &WorkloadCluster,
    object: &ObjectRef,
    manager: &str,
) -> Result<bool, WorkloadError> {
    let Some(uid) = cluster.managed_by(object, manager).await? else { return Ok(true) };
    match cluster.delete_exactly(object, Some(&uid), Dependents::Later).await {
        // Another one has its name by now.
        Err(WorkloadError::Conflict { .. }) => Ok(true),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::applied::AppliedObjects;
    use super::super::check::Findings;
    use super::super::memory::Memories;
    use super::super::timing::BUDGET;
    use super::*;
    use crate::object_name::ObjectName;
    use crate::workload::fake::{cluster, holding};

    /// What becomes of one step against a cluster that holds this one object, if any, by its path.
    async fn executed(
        step: Step,
        held: Option<(&str, Value)>,
        was_complete: bool,
    ) -> (StepProgress, Vec<String>) {
        let held = held.map(|(path, object)| (path.to_owned(), object));
        let server = holding(held.into_iter().collect()).await.0;
        let (memories, findings, name) =
            (Memories::default(), Findings::new(), ObjectName::new("default", "one"));
        let options = ApplyOptions {
            field_manager: "cluster-operator-a",
            force: false,
            rules_are_there: true,
            findings: &findings,
            authority: None,
            memory: memories.of(&name, "a"),
            until: Instant::now() + BUDGET,
            taken_over: &[],
            own_only: false,
            objects: &AppliedObjects::default(),
            is_repair: false,
            was_complete,
            keeps_definitions: false,
        };
        let outcome = execute(&cluster(&server).await, &[step], &mut BTreeSet::new(), &options).await;
        (outcome, server.requests())
    }

    /// Whether Pods are asked why their DaemonSet is not ready, the first time that it is read.
    async fn are_pods_asked(was_complete: bool) -> bool {
        let live = json!({"metadata": {"generation": 1}, "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2,
            "numberAvailable": 0}});
        let spec = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "default", "name": "a",
            "condition": "ready-daemonset",
            "timeoutSeconds": 600});
        let step = Step { id: "a".into(), kind: "k8s.wait/v1".into(), spec, after: vec![] };
        let path = "/apis/apps/v1/namespaces/default/daemonsets/a";
        let (outcome, asked) = executed(step, Some((path, live)), was_complete).await;
        assert!(matches!(outcome, StepProgress::Waiting(_)), "{outcome:?}");
        asked.iter().any(|it| it.contains("/pods?"))
    }

    #[tokio::test]
    async fn pods_that_are_just_starting_are_not_asked_why_they_do_not_run() {
        assert!(!are_pods_asked(false).await);
        assert!(are_pods_asked(true).await, "what ran and does not any more has a reason");
    }

    #[tokio::test]
    async fn any_object_is_awaited_by_what_its_fields_hold() {
        let path = "/apis/apps/v1/namespaces/default/deployments/a";
        let live = |phase: &str| {
            let conditions = json!([{"type": "Other", "status": "True"}, {"type": "Ready", "status": phase}]);
            json!({"metadata": {"name": "a", "generation": 2}, "status": {"observedGeneration": 2, "conditions": conditions}})
        };
        let said = async |held: Option<Value>, seconds: u32| {
            let ready = json!({"path": "/status/conditions/[type=Ready]/status", "operator": "Equals", "value": "True"});
            let current = json!({"path": "/status/observedGeneration", "operator": "GreaterOrEqual", "valueFrom": "/metadata/generation"});
            let spec = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "a",
                "conditions": [current, ready], "timeoutSeconds": seconds});
            let step = Step { id: "a".into(), kind: "k8s.wait/v2".into(), spec, after: vec![] };
            executed(step, held.map(|it| (path, it)), false).await.0
        };
        assert_eq!(said(Some(live("True")), 60).await, StepProgress::Done);
        let what = "Deployment default/a: /status/conditions/[type=Ready]/status is not \"True\"";
        assert_eq!(said(Some(live("False")), 60).await, StepProgress::waiting(what));
        assert_eq!(said(None, 60).await, StepProgress::waiting("Deployment default/a is not there yet"));
    }
}
