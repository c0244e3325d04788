//! Carries out steps of a judged plan, one at a time, and says how each went. Which step comes next is not
//! decided here.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use addons::certificate::with_bundle;
use addons::grant::TakeOver;
use addons::{self, ObjectRef, WRITERS};
use contract::{ApplySpec, Step, StepSpec};
use serde_json::Value;
use tokio::time::Instant;

use super::apply::apply;
use super::certificate::{Authority, CertificateError};
use super::check::{self, Findings};
use super::drift::Ledger;
use super::late::LatePlan;
use super::trouble::explained;
use crate::workload::{Dependents, WorkloadCluster, WorkloadError};

/// What of an object waits look at, and who wrote it, which is then not asked for again.
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

/// How far the steps of a plan have come.
#[derive(Debug, PartialEq)]
pub enum StepProgress {
    /// All are done.
    Out,
    /// These are not, and nobody has to act.
    Waiting(Awaited),
    /// The API server does not answer: there is no use in asking it for more now.
    Unreachable(String),
    /// Somebody has to act: a reason for a condition, and what to do.
    Refused(&'static str, String),
}

/// What steps wait for.
#[derive(Debug, Default, PartialEq)]
pub struct Awaited {
    pub what: String,
    /// Some of it takes longer than it should.
    pub late: bool,
}

impl Awaited {
    /// Both; what is said twice is said once.
    fn and(mut self, other: Self) -> Self {
        let known = self.what.split("; ").any(|it| it == other.what);
        if !known {
            let separator = if self.what.is_empty() { "" } else { "; " };
            self.what = format!("{}{separator}{}", self.what, other.what);
        }
        Self { what: self.what, late: self.late || other.late }
    }
}

impl From<&str> for Awaited {
    fn from(what: &str) -> Self {
        Self { what: what.to_owned(), ..Self::default() }
    }
}

/// In whose name, and how, objects are applied.
#[derive(Clone, Copy)]
pub struct ApplyOptions<'a> {
    pub field_manager: &'a str,
    pub force: bool,
    /// AWS was seen to have all security-group rules that the add-ons ask for.
    pub rules_are_there: bool,
    /// What was found in AWS about the steps that need something of it.
    pub findings: &'a Findings,
    /// Who vouches for the certificates of the plan; `None` when it has none.
    pub authority: Option<&'a Authority>,
    /// Since when its steps wait.
    pub late: LatePlan<'a>,
    /// After this nothing more is begun: what is done by then is remembered.
    pub until: Instant,
    /// Whose fields may be taken over.
    pub taken_over: &'a [TakeOver],
    /// Nobody vouches for the steps: only what the field manager applied is deleted.
    pub own_only: bool,
    /// What was seen and applied.
    pub ledger: &'a Ledger,
    /// What is applied was there before, and somebody changed it.
    pub is_repair: bool,
    /// All of it was carried out before: what is awaited was there once.
    pub was_complete: bool,
}

/// Carries out what can be carried out of `steps` now; `done` grows as they are.
pub async fn execute(
    cluster: &WorkloadCluster,
    steps: &[Step],
    done: &mut BTreeSet<String>,
    manner: &ApplyOptions<'_>,
) -> StepProgress {
    loop {
        let before = done.len();
        let mut waiting: Option<Awaited> = None;
        for step in contract::order::runnable(steps, done) {
            match one(cluster, step, manner).await {
                Ok(()) => drop(done.insert(step.id.clone())),
                Err(StepProgress::Waiting(it)) => waiting = Some(waiting.unwrap_or_default().and(it)),
                Err(other) => return other,
            }
        }
        if done.len() == before {
            return waiting.map_or(StepProgress::Out, StepProgress::Waiting);
        }
    }
}

async fn one(cluster: &WorkloadCluster, step: &Step, manner: &ApplyOptions<'_>) -> Result<(), StepProgress> {
    let spec = step
        .typed()
        .map_err(|it| StepProgress::Refused(crds::conditions::reason::PLAN_INVALID, it.to_string()))?;
    let is_time_over = || Instant::now() >= manner.until;
    if is_time_over() {
        return Err(slow());
    }
    match spec {
        StepSpec::Apply(spec) => {
            for object in content(&step.id, &spec, manner.authority)?.iter() {
                if is_time_over() {
                    return Err(slow());
                }
                apply(cluster, object, manner).await?;
            }
            Ok(())
        }
        StepSpec::Wait(spec) => {
            let object = ObjectRef {
                api_version: spec.api_version.clone(),
                kind: spec.kind.clone(),
                namespace: spec.namespace.clone(),
                name: spec.name.clone(),
            };
            let live = cluster.get_only(&object, &WAITED).await.map_err(carried)?;
            manner.ledger.seen(&object, live.as_ref());
            let told = match addons::tells_of(&spec)
                .filter(|_| addons::waited(&spec, live.as_ref(), None).is_ok())
            {
                Some(told) => cluster.get_only(&told, &["/metadata/generation"]).await.map_err(carried)?,
                None => None,
            };
            let told = told.and_then(|it| it.pointer("/metadata/generation")?.as_i64());
            let waited = match (addons::waited(&spec, live.as_ref(), told), &live) {
                (Err(what), Some(live)) if manner.was_complete || manner.late.waits(&step.id, STARTING) => {
                    explained(cluster, &object, spec.condition, live, what).await
                }
                (waited, _) => waited,
            };
            let Err(what) = waited else {
                manner.late.came(&step.id);
                return Ok(());
            };
            let patience = Duration::from_secs(spec.timeout_seconds.into());
            let late = manner.late.waits(&step.id, patience);
            let what = if late { format!("{what}, for more than {} s", patience.as_secs()) } else { what };
            Err(StepProgress::Waiting(Awaited { what, late }))
        }
        StepSpec::Delete(spec) => {
            let object = ObjectRef {
                api_version: spec.api_version,
                kind: spec.kind,
                namespace: spec.namespace,
                name: spec.name,
            };
            let gone = match manner.own_only {
                true => delete_own(cluster, &object, manner.field_manager).await,
                false => cluster.delete(&object).await,
            };
            match gone.map_err(carried)? {
                false if spec.wait => Err(waiting(&format!("{object} is being deleted"))),
                _ => Ok(()),
            }
        }
        StepSpec::SecurityGroupRule(_) if manner.rules_are_there => Ok(()),
        StepSpec::SecurityGroupRule(_) => Err(waiting("security-group rules are being made")),
        StepSpec::IamRole(_) | StepSpec::InstanceRoles(_) | StepSpec::EfsFileSystem(_) => {
            match check::refusal(manner.findings, &step.id) {
                Some((reason, message)) => Err(StepProgress::Refused(reason, message)),
                None => Ok(()),
            }
        }
        StepSpec::Certificate(spec) => match manner.authority {
            Some(authority) => authority
                .certify(cluster, &spec, manner.field_manager, manner.force)
                .await
                .map_err(uncertified),
            None => Err(waiting("for an authority of certificates")),
        },
    }
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

/// Not late.
pub(super) fn waiting(what: &str) -> StepProgress {
    StepProgress::Waiting(what.into())
}

fn slow() -> StepProgress {
    StepProgress::Unreachable("the API server answers slowly: there is more to do at the next look".into())
}

pub(super) fn carried(error: WorkloadError) -> StepProgress {
    match error {
        WorkloadError::Conflict { .. } => StepProgress::Refused(
            crds::conditions::reason::CONFLICT,
            format!("{error}; remove the field there, or set spec.conflicts to Force"),
        ),
        WorkloadError::Refused { code: 403 | 422 | 400, .. } => {
            StepProgress::Refused(crds::conditions::reason::APPLY_REFUSED, error.to_string())
        }
        WorkloadError::Kubeconfig(_)
        | WorkloadError::NotAllowed(_)
        | WorkloadError::NotAsked(_)
        | WorkloadError::Unreachable(_) => StepProgress::Unreachable(error.to_string()),
        WorkloadError::UnknownKind { .. } | WorkloadError::Refused { .. } => waiting(&error.to_string()),
    }
}

pub(super) fn uncertified(error: CertificateError) -> StepProgress {
    match error {
        CertificateError::Workload(error) => carried(error),
        other => StepProgress::Refused(crds::conditions::reason::CERTIFICATE_FAILED, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::super::ENOUGH;
    use super::super::late::Late;
    use super::*;
    use crate::context::ObjectName;
    use crate::workload::fake::{cluster, holding};

    /// Whether Pods are asked why their DaemonSet is not ready, at the first look at it.
    async fn are_pods_asked(was_complete: bool) -> bool {
        let live = json!({"metadata": {"generation": 1}, "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberAvailable": 0}});
        let server =
            holding(BTreeMap::from([("/apis/apps/v1/namespaces/default/daemonsets/a".to_owned(), live)]))
                .await
                .0;
        let (late, findings, name) = (Late::default(), Findings::new(), ObjectName::new("default", "one"));
        let manner = ApplyOptions {
            field_manager: "cluster-operator-a",
            force: false,
            rules_are_there: true,
            findings: &findings,
            authority: None,
            late: late.of(&name, "a"),
            until: Instant::now() + ENOUGH,
            taken_over: &[],
            own_only: false,
            ledger: &Ledger::default(),
            is_repair: false,
            was_complete,
        };
        let spec = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "namespace": "default", "name": "a", "condition": "ready-daemonset",
            "timeoutSeconds": 600});
        let step = Step { id: "a".into(), kind: "k8s.wait/v1".into(), spec, after: vec![] };
        let outcome = execute(&cluster(&server).await, &[step], &mut BTreeSet::new(), &manner).await;
        assert!(matches!(outcome, StepProgress::Waiting(_)), "{outcome:?}");
        server.requests().iter().any(|it| it.contains("/pods?"))
    }

    #[tokio::test]
    async fn pods_that_are_just_starting_are_not_asked_why_they_do_not_run() {
        assert!(!are_pods_asked(false).await);
        assert!(are_pods_asked(true).await, "what ran and does not any more has a reason");
    }

    #[test]
    fn what_is_late_is_told_once_among_the_rest() {
        let late = Awaited { what: "DaemonSet a is not there, for more than 60 s".into(), late: true };
        let all = Awaited::from("b is not ready").and(late).and("b is not ready".into());
        let what = "b is not ready; DaemonSet a is not there, for more than 60 s".to_owned();
        assert_eq!(all, Awaited { what, late: true });
    }
}
