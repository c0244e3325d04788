//! Says how an AWSCluster stands: in its status, and by its finalizer when it may go. What to say is decided
//! in `infra::status`.

use std::sync::Arc;
use std::time::Duration;

use crds::conditions::reason;
use crds::{AWSCluster, names};
use infra::cluster::Decision;
use model::finding::Finding;
use tokio::time::Instant;

use super::read::Seen;
use super::{Clusters, Reconciliation, Remembered};
use crate::controller::issuer::Retracted;
use crate::controller::reconcile::{ReconcileResult, ended};
use crate::controller::{gc, issuer};
use crate::management::{Cached, Error, Note};
use crate::system::now;

/// How long a look waits for the answer of a name server.
const LOOKUP: Duration = Duration::from_secs(5);
/// How soon a name that does not resolve is looked up again.
const LOOKUP_AGAIN: Duration = Duration::from_secs(3);

impl Clusters {
    pub(super) async fn say(
        &self,
        seen: &Seen,
        pass: &Reconciliation,
        memory: &mut Remembered,
    ) -> Result<ReconcileResult, Error> {
        let decision = &pass.decision;
        if seen.object.is_deleting() && decision.finished {
            return self.end(seen, pass, memory).await;
        }
        if let Some(rules) = seen.rules.as_deref() {
            self.context.rules.set_done(
                &seen.name,
                seen.requested.as_ref(),
                infra::cluster::groups_have_rules(decision, rules),
            );
        }
        let issuer = issuer::look(self.site(seen), &mut memory.issuer).await?;
        let input = pass.input(seen, "");
        let unresolved = match infra::cluster::must_resolve(&input, decision) {
            Some(name) if !resolves(name).await => Some(name),
            _ => None,
        };
        self.say_status(seen, pass, decision, unresolved, issuer.as_ref(), memory).await?;
        let settled = decision.plan.is_settled()
            && decision.invalid.is_none()
            && unresolved.is_none()
            && pass.problem.is_none();
        if unresolved.is_some() && decision.plan.is_settled() {
            return Ok(ReconcileResult::Waiting { until: Some(Instant::now() + LOOKUP_AGAIN) });
        }
        match (ended(settled, &memory.refusals), memory.issuer.next()) {
            (ended, _) if seen.is_swept() => Ok(gc::sooner(ended, &memory.sweep)),
            (ReconcileResult::Settled, Some(next)) => Ok(ReconcileResult::Waiting { until: Some(next) }),
            (ended, _) => Ok(ended),
        }
    }

    /// The network is gone. The object goes once what was published for it has, unless whoever forces it does
    /// not wait for that.
    async fn end(
        &self,
        seen: &Seen,
        pass: &Reconciliation,
        memory: &mut Remembered,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        match issuer::retract(self.site(seen), &mut memory.issuer, seen.is_forced()).await {
            Retracted::Waits(found, until) => {
                let decision = Decision { finished: false, ..pass.decision.clone() };
                self.say_status(seen, pass, &decision, None, Some(&found), memory).await?;
                return Ok(ReconcileResult::Waiting { until: Some(until) });
            }
            Retracted::Done(note) => note.into_iter().for_each(|it| management.note(&seen.object, it)),
        }
        management.remove_finalizer(&seen.object, names::CLUSTER_FINALIZER).await?;
        self.forget(&seen.object.object_name());
        self.context.rules.forget(&seen.name);
        Ok(ReconcileResult::Settled)
    }

    fn site<'a>(&'a self, seen: &'a Seen) -> issuer::Site<'a> {
        issuer::Site {
            context: &self.context,
            object: &seen.object,
            cluster: &seen.name,
            region: &seen.region,
        }
    }

    async fn say_status(
        &self,
        seen: &Seen,
        pass: &Reconciliation,
        decision: &Decision,
        unresolved: Option<&str>,
        issuer: Option<&Finding>,
        memory: &Remembered,
    ) -> Result<(), Error> {
        let (input, outcomes) = (pass.input(seen, ""), memory.refusals.outcomes());
        let problem = pass.problem.as_ref();
        let said = infra::status::Cluster {
            input: &input,
            decision,
            outcomes: &outcomes,
            problem,
            unresolved,
            issuer,
        };
        self.context.management.say(&seen.object, &infra::status::cluster(&said)).await.map(drop)
    }

    pub(super) async fn say_paused(&self, object: &Arc<Cached<AWSCluster>>) -> Result<(), Error> {
        let mut status = object.status.clone().unwrap_or_default();
        status.conditions =
            infra::status::paused(&status.conditions, true, now(), object.metadata.generation);
        self.context.management.say(object, &status).await.map(|_| ())
    }

    pub(super) async fn say_not_owned(&self, object: &Arc<Cached<AWSCluster>>) -> Result<(), Error> {
        let message = "no Cluster owns this AWSCluster yet: create one whose spec.infrastructureRef names it";
        let mut status = object.status.clone().unwrap_or_default();
        let reason = crds::conditions::reason::WAITING_FOR_CLUSTER;
        status.conditions =
            infra::status::not_ready(&status.conditions, reason, message, now(), object.metadata.generation);
        self.context.management.say(object, &status).await.map(|_| ())
    }

    /// What a copy of another AWSCluster is told. Nothing in AWS is its own: it may go once its machines
    /// have.
    pub(super) async fn say_copied(&self, seen: &Seen, original: &str) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        if let Some(patch) =
            infra::cluster::dropped(&seen.object, original).filter(|_| !seen.object.is_deleting())
        {
            let message = infra::cluster::dropped_message(original);
            let (warning, reason, action) =
                (true, reason::NOT_OWNED.to_owned(), "Leave what is another's".to_owned());
            management.note(&seen.object, Note { warning, reason, action, message });
            management.patch_unchanged(&seen.object, patch).await?;
            return Ok(ReconcileResult::Unfinished);
        }
        let invalid = infra::cluster::copied(original);
        let (warning, reason, action) =
            (true, reason::NOT_OWNED.to_owned(), "Leave what is another's".to_owned());
        management.note(&seen.object, Note { warning, reason, action, message: invalid.to_string() });
        if !seen.object.is_deleting() || !seen.machines.is_empty() {
            return self.say_invalid(seen, &invalid).await;
        }
        management.remove_finalizer(&seen.object, names::CLUSTER_FINALIZER).await?;
        self.forget(&seen.object.object_name());
        self.context.rules.forget(&seen.name);
        Ok(ReconcileResult::Settled)
    }

    pub(super) async fn say_invalid(
        &self,
        seen: &Seen,
        invalid: &model::Invalid,
    ) -> Result<ReconcileResult, Error> {
        let object = &seen.object;
        let mut status = object.status.clone().unwrap_or_default();
        let reason = crds::conditions::reason::INVALID_SPEC;
        status.conditions = infra::status::not_ready(
            &status.conditions,
            reason,
            &invalid.to_string(),
            now(),
            object.metadata.generation,
        );
        self.context.management.say(object, &status).await?;
        Ok(ReconcileResult::Settled)
    }
}

/// Whether a name resolves here.
async fn resolves(name: &str) -> bool {
    let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((name, 0))).await;
    found.is_ok_and(|it| it.is_ok_and(|mut it| it.next().is_some()))
}
