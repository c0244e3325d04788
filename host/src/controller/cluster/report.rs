//! Reports how an AWSCluster stands: in its status, and by its finalizer when it may go. What to report is
//! decided in `infra::status`.

use std::sync::Arc;
use std::time::Duration;

use crds::conditions::reason;
use crds::{AWSCluster, names};
use infra::cluster::Decision;
use model::finding::Finding;
use tokio::time::Instant;

use super::read::ClusterScope;
use super::{ClusterMemory, Clusters, Reconciliation};
use crate::controller::conditions::report_not_ready;
use crate::controller::infrastructure::Infrastructure;
use crate::controller::issuer::Unpublished;
use crate::controller::reconcile::{ReconcileResult, ended};
use crate::controller::{gc, issuer};
use crate::management::{Cached, Error, Event};

/// How long a reconciliation waits for the answer of a name server.
const LOOKUP: Duration = Duration::from_secs(5);
/// How soon a name that does not resolve is looked up again.
const LOOKUP_AGAIN: Duration = Duration::from_secs(3);

impl Clusters {
    pub(super) async fn report_decision(
        &self,
        scope: &ClusterScope,
        reconciliation: &Reconciliation,
        memory: &mut ClusterMemory,
    ) -> Result<ReconcileResult, Error> {
        let decision = &reconciliation.decision;
        if scope.object.is_deleting() && decision.finished {
            return self.end(scope, reconciliation, memory).await;
        }
        if let Some(rules) = scope.rules.as_deref() {
            self.context.rules.set_done(
                &scope.name,
                scope.requested.as_ref(),
                infra::cluster::groups_have_rules(decision, rules),
            );
        }
        let issuer = issuer::reconcile(self.issuer_scope(scope), &mut memory.issuer).await?;
        let input = reconciliation.input(scope, "");
        let unresolved = match infra::cluster::must_resolve(&input, decision) {
            Some(name) if !resolves(name).await => Some(name),
            _ => None,
        };
        self.patch_status(scope, reconciliation, decision, unresolved, issuer.as_ref(), memory).await?;
        let settled = decision.plan.is_settled()
            && decision.invalid.is_none()
            && unresolved.is_none()
            && reconciliation.problem.is_none();
        if unresolved.is_some() && decision.plan.is_settled() {
            return Ok(ReconcileResult::Waiting { until: Some(Instant::now() + LOOKUP_AGAIN) });
        }
        match (ended(settled, &memory.refusals), memory.issuer.next()) {
            (ended, _) if scope.is_swept() => Ok(gc::requeue_for_sweep(ended, &memory.sweep)),
            (ReconcileResult::Settled, Some(next)) => Ok(ReconcileResult::Waiting { until: Some(next) }),
            (ended, _) => Ok(ended),
        }
    }

    /// The network is gone. The object goes once what was published for it has, unless whoever forces it does
    /// not wait for that.
    async fn end(
        &self,
        scope: &ClusterScope,
        reconciliation: &Reconciliation,
        memory: &mut ClusterMemory,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        match issuer::unpublish(self.issuer_scope(scope), &mut memory.issuer, scope.is_forced()).await {
            Unpublished::Waits(found, until) => {
                let decision = Decision { finished: false, ..reconciliation.decision.clone() };
                self.patch_status(scope, reconciliation, &decision, None, Some(&found), memory).await?;
                return Ok(ReconcileResult::Waiting { until: Some(until) });
            }
            Unpublished::Done(event) => {
                event.into_iter().for_each(|it| management.publish_event(&scope.object, it))
            }
        }
        management.remove_finalizer(&scope.object, names::CLUSTER_FINALIZER).await?;
        self.evict(&scope.object.object_name());
        self.context.rules.remove(&scope.name);
        Ok(ReconcileResult::Settled)
    }

    fn issuer_scope<'a>(&'a self, scope: &'a ClusterScope) -> issuer::IssuerScope<'a> {
        issuer::IssuerScope {
            context: &self.context,
            object: &scope.object,
            cluster: &scope.name,
            region: &scope.region,
        }
    }

    async fn patch_status(
        &self,
        scope: &ClusterScope,
        reconciliation: &Reconciliation,
        decision: &Decision,
        unresolved: Option<&str>,
        issuer: Option<&Finding>,
        memory: &ClusterMemory,
    ) -> Result<(), Error> {
        let (input, outcomes) = (reconciliation.input(scope, ""), memory.refusals.outcomes());
        let problem = reconciliation.problem.as_ref();
        let status = infra::status::Cluster {
            input: &input,
            decision,
            outcomes: &outcomes,
            problem,
            unresolved,
            issuer,
        };
        self.context.management.patch_status(&scope.object, &infra::status::cluster(&status)).await.map(drop)
    }

    pub(super) async fn report_not_owned(&self, object: &Arc<Cached<AWSCluster>>) -> Result<(), Error> {
        let message = "no Cluster owns this AWSCluster yet: create one whose spec.infrastructureRef names it";
        report_not_ready(&self.context.management, object, reason::WAITING_FOR_CLUSTER, message).await
    }

    /// Reports that an AWSCluster is a copy of another one. Nothing in AWS is its own: it may go once its
    /// machines have.
    pub(super) async fn report_copied(
        &self,
        scope: &ClusterScope,
        original: &str,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        if let Some(patch) =
            infra::cluster::dropped(&scope.object, original).filter(|_| !scope.object.is_deleting())
        {
            let message = infra::cluster::dropped_message(original);
            let (warning, reason, action) =
                (true, reason::NOT_OWNED.to_owned(), "Leave what is another's".to_owned());
            management.publish_event(&scope.object, Event { warning, reason, action, message });
            management.patch_unchanged(&scope.object, patch).await?;
            return Ok(ReconcileResult::Unfinished);
        }
        let invalid = infra::cluster::copied(original);
        let (warning, reason, action) =
            (true, reason::NOT_OWNED.to_owned(), "Leave what is another's".to_owned());
        management
            .publish_event(&scope.object, Event { warning, reason, action, message: invalid.to_string() });
        if !scope.object.is_deleting() || !scope.machines.is_empty() {
            return self.report_invalid(scope, &invalid).await;
        }
        management.remove_finalizer(&scope.object, names::CLUSTER_FINALIZER).await?;
        self.evict(&scope.object.object_name());
        self.context.rules.remove(&scope.name);
        Ok(ReconcileResult::Settled)
    }
}

/// Whether a name resolves here.
async fn resolves(name: &str) -> bool {
    let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((name, 0))).await;
    found.is_ok_and(|it| it.is_ok_and(|mut it| it.next().is_some()))
}
