//! Applies one object; one that cannot be changed in place is deleted and made anew where `addons` says that
//! this is safe, and fields that others hold are taken over where it says so. Nothing is
//! deleted or forced for another reason.

mod take_back;

use addons::grant;
use addons::{self, ObjectRef, Recreate, recreate};
use serde_json::Value;

use super::options::ApplyOptions;
use super::progress::StepProgress;
use crate::workload::{Dependents, WorkloadCluster, WorkloadError};
use take_back::take_back;

pub use take_back::dry_run;

/// Kind of what defines other kinds.
pub const DEFINITION: &str = "CustomResourceDefinition";

/// Applies `object`, once more if it had to be deleted before.
pub(super) async fn apply(
    cluster: &WorkloadCluster,
    object: &Value,
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    if options.keeps_definitions
        && object["kind"] == DEFINITION
        && let Some(reference) = ObjectRef::of(object)
        && let Some(writers) = cluster.writers(&reference).await?
    {
        options.objects.insert(object, &writers, options.field_manager);
        return Ok(());
    }
    match cluster.apply(object, options.field_manager, options.force).await {
        Ok(writers) => {
            options.objects.insert(object, &writers, options.field_manager);
            Ok(())
        }
        Err(WorkloadError::Conflict { object: reference, message, causes }) => {
            let managers = grant::taken_over(options.taken_over, &reference);
            if addons::may_take_over(&causes, &managers) {
                return take_over(cluster, object, &reference, &managers, options).await;
            }
            if take_back(cluster, object, options).await? {
                return Ok(());
            }
            Err(WorkloadError::Conflict { object: reference, message, causes }.into())
        }
        Err(WorkloadError::Refused { code: 422, object: reference, message, fields }) => {
            let refused = WorkloadError::Refused {
                code: 422,
                object: reference.clone(),
                message,
                fields: fields.clone(),
            };
            let Some(live) = cluster.get(&reference).await? else { return Err(refused.into()) };
            if live.pointer("/metadata/deletionTimestamp").is_some() {
                return Err(StepProgress::waiting(&format!(
                    "{reference} is being deleted, and is made anew then"
                )));
            }
            let decided = recreate(object, &live, options.field_manager, &fields, options.is_repair);
            // It may be large, and what follows takes its time.
            let uid = live.pointer("/metadata/uid").and_then(Value::as_str).map(str::to_owned);
            drop(live);
            match decided {
                Recreate::No => Err(refused.into()),
                Recreate::Refused(why) => {
                    Err(StepProgress::Refused(crds::conditions::reason::IMMUTABLE, why))
                }
                Recreate::Safe => recreate_object(cluster, object, &reference, uid.as_deref(), options).await,
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// Applies an object and takes the fields in conflict, if they are held by these managers alone. The version
/// is pinned before that is read, so that nobody comes in between whose fields are not to be taken.
async fn take_over(
    cluster: &WorkloadCluster,
    object: &Value,
    reference: &ObjectRef,
    managers: &[&str],
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    let being_changed = || StepProgress::waiting(&format!("{reference} is being changed by somebody else"));
    let live = cluster.get_only(reference, &["/metadata/resourceVersion"]).await?;
    let version = live
        .as_ref()
        .and_then(|it| it.pointer("/metadata/resourceVersion")?.as_str())
        .ok_or_else(being_changed)?;
    let mut pinned = object.clone();
    pinned["metadata"]["resourceVersion"] = version.into();
    let writers = match cluster.apply(&pinned, options.field_manager, false).await {
        Err(WorkloadError::Conflict { causes, .. }) if addons::may_take_over(&causes, managers) => {
            tracing::info!(object = %reference, managers = managers.join(", "), "taking over fields that \
                were filled in");
            match cluster.apply(&pinned, options.field_manager, true).await {
                Err(WorkloadError::Conflict { .. }) => return Err(being_changed()),
                other => other?,
            }
        }
        // Nobody holds them any more, or somebody else does.
        other => other?,
    };
    options.objects.insert(object, &writers, options.field_manager);
    Ok(())
}

async fn recreate_object(
    cluster: &WorkloadCluster,
    object: &Value,
    reference: &ObjectRef,
    uid: Option<&str>,
    options: &ApplyOptions<'_>,
) -> Result<(), StepProgress> {
    // Pods of a workload go with it: those of the old one must not count for the new one.
    let dependents = match reference.kind.as_str() {
        "Deployment" | "DaemonSet" | "Job" => Dependents::First,
        _ => Dependents::Later,
    };
    let being_deleted =
        || StepProgress::waiting(&format!("{reference} is being deleted, and is made anew then"));
    tracing::info!(object = %reference, "cannot be changed in place: deleting it to make it anew");
    match cluster.delete_exactly(reference, uid, dependents).await {
        // It was made anew by somebody else in between: the next reconciliation reads what it is now.
        Err(WorkloadError::Conflict { .. }) => return Err(being_deleted()),
        other => drop(other?),
    }
    // Without dependents and finalizers it is gone by now, whatever the answer was.
    match cluster.get_only(reference, &["/metadata/uid"]).await? {
        Some(_) => Err(being_deleted()),
        None => {
            let writers = cluster.apply(object, options.field_manager, options.force).await?;
            options.objects.insert(object, &writers, options.field_manager);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use addons::built_in;
    use serde_json::json;
    use tokio::time::Instant;

    use super::super::applied::AppliedObjects;
    use super::super::check::Findings;
    use super::super::memory::Memories;
    use super::*;
    use crate::object_name::ObjectName;
    use crate::workload::fake::{self, Answer, Server};

    const OPERATOR: &str = "conflict with \"tigera-operator\" using operator.tigera.io/v1";
    const USER: &str = "conflict with \"kubectl-edit\" using operator.tigera.io/v1";

    /// Applies Calico's Installation where the API server answers each attempt in turn with these causes, or
    /// takes it when there are none. What became of it, and what was asked.
    async fn applied(answers: &'static [&'static [&'static str]]) -> (Result<(), StepProgress>, Vec<String>) {
        let attempts = AtomicUsize::new(0);
        let server = Server::start(move |target| {
            if target == "GET /apis/operator.tigera.io/v1" {
                return Answer::json(&json!({"kind": "APIResourceList",
                    "resources": [{"name": "installations", "kind": "Installation", "namespaced": false}]}));
            }
            if target.starts_with("GET ") {
                return Answer::json(&json!({"metadata": {"resourceVersion": "7"}}));
            }
            let messages = answers.get(attempts.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or_default();
            if messages.is_empty() {
                return Answer::json(&json!({}));
            }
            let causes: Vec<Value> = messages
                .iter()
                .map(|it| json!({"reason": "FieldManagerConflict", "message": it, "field": ".spec"}))
                .collect();
            Answer::Text(
                409,
                json!({"kind": "Status", "message": "Apply failed", "details": {"causes": causes}})
                    .to_string(),
            )
        });
        let server = server.await;
        let grants = built_in::grants("calico", &json!({}));
        let (memories, findings, name) =
            (Memories::default(), Findings::new(), ObjectName::new("default", "one"));
        let options = ApplyOptions {
            field_manager: "cluster-operator-calico",
            force: false,
            rules_are_there: true,
            findings: &findings,
            authority: None,
            memory: memories.of(&name, "calico"),
            until: Instant::now() + std::time::Duration::from_secs(60),
            taken_over: &grants.taken_over,
            own_only: false,
            objects: &AppliedObjects::default(),
            is_repair: false,
            was_complete: false,
            keeps_definitions: false,
        };
        let object = json!({"apiVersion": "operator.tigera.io/v1", "kind": "Installation",
            "metadata": {"name": "default"}, "spec": {}});
        let outcome = apply(&fake::cluster(&server).await, &object, &options).await;
        let asked = server.requests().into_iter().filter(|it| it.contains("/installations/"));
        let line = |it: String| {
            let method = it.split(' ').next().unwrap_or_default().to_owned();
            if it.contains("force=true") { format!("{method} force") } else { method }
        };
        (outcome, asked.map(line).collect())
    }

    #[tokio::test]
    async fn what_the_operator_filled_in_is_taken_over_at_the_version_read() {
        let (outcome, asked) = applied(&[&[OPERATOR], &[OPERATOR]]).await;
        assert_eq!((outcome, asked.join(", ")), (Ok(()), "PATCH, GET, PATCH, PATCH force".to_owned()));
        let (outcome, asked) = applied(&[&[OPERATOR]]).await;
        assert_eq!(
            (outcome, asked.join(", ")),
            (Ok(()), "PATCH, GET, PATCH".to_owned()),
            "nobody holds it any more"
        );
    }

    #[tokio::test]
    async fn nobody_elses_field_is_taken_over_whenever_he_comes() {
        for (answers, desired) in [
            (&[&[USER] as &[&str]] as &'static [&'static [&'static str]], "PATCH"),
            (&[&[OPERATOR, USER]], "PATCH"),
            (&[&[OPERATOR], &[OPERATOR, USER]], "PATCH, GET, PATCH"),
        ] {
            let (outcome, asked) = applied(answers).await;
            assert_eq!(asked.join(", "), desired);
            let Err(StepProgress::Refused("Conflict", why)) = &outcome else { panic!("{outcome:?}") };
            assert!(why.contains("Installation default"), "{outcome:?}");
        }
        let (outcome, asked) = applied(&[&[OPERATOR], &[OPERATOR], &[USER]]).await;
        assert_eq!(asked.join(", "), "PATCH, GET, PATCH, PATCH force");
        assert_eq!(
            outcome,
            Err(StepProgress::waiting("Installation default is being changed by somebody else"))
        );
    }

    #[tokio::test]
    async fn definitions_of_a_later_component_stay_and_missing_ones_are_made() {
        for (is_there, expected) in [(true, "GET"), (false, "GET, PATCH")] {
            let server = Server::start(move |target| match fake::kinds(target) {
                Some(answer) => answer,
                None if target.starts_with("GET ") && !is_there => Answer::Text(404, "{}".into()),
                None => Answer::json(&json!({"metadata": {"uid": "1"}})),
            });
            let server = server.await;
            let (memories, findings) = (Memories::default(), Findings::new());
            let (name, objects) = (ObjectName::new("default", "one"), AppliedObjects::default());
            let options = ApplyOptions {
                field_manager: "cluster-operator-calico",
                force: false,
                rules_are_there: true,
                findings: &findings,
                authority: None,
                memory: memories.of(&name, "calico"),
                until: Instant::now() + std::time::Duration::from_secs(60),
                taken_over: &[],
                own_only: false,
                objects: &objects,
                is_repair: false,
                was_complete: false,
                keeps_definitions: true,
            };
            let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": DEFINITION,
                "metadata": {"name": "pools.example.com"}, "spec": {}});
            apply(&fake::cluster(&server).await, &definition, &options).await.expect("it is taken");
            let asked = server.requests().into_iter().filter(|it| it.contains("/pools.example.com"));
            let methods: Vec<String> =
                asked.map(|it| it.split(' ').next().unwrap_or_default().to_owned()).collect();
            assert_eq!(methods.join(", "), expected);
            let is_marked = objects.marks().len() == 1;
            assert!(is_marked, "what is there is in the record");
        }
    }
}
