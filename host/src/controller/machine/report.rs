//! Reports how an AWSMachine stands: in its status, and by its finalizer when it may go. What to report is
//! decided in `infra::status`.

use std::sync::Arc;

use crds::conditions::reason;
use crds::{AWSMachine, names};
use infra::PersistedState;

use super::{MachineScope, Machines, Reconciliation};
use crate::controller::conditions::report_not_ready;
use crate::controller::infrastructure::Infrastructure;
use crate::controller::reconcile::{ReconcileResult, ended};
use crate::controller::refusals::Refusals;
use crate::management::{Cached, Error, Event};

impl Machines {
    pub(super) async fn report_decision(
        &self,
        scope: &MachineScope,
        reconciliation: &Reconciliation,
        refusals: &Refusals,
    ) -> Result<ReconcileResult, Error> {
        let management = &self.context.management;
        let decision = &reconciliation.decision;
        if scope.object.is_deleting() && decision.finished {
            if let Some(message) = &decision.foreign {
                let message = format!("{message}; it stays, and nothing was done with it");
                let reason = reason::NOT_OWNED.to_owned();
                management.publish_event(
                    &scope.object,
                    Event { warning: true, reason, action: "Leave instance".to_owned(), message },
                );
            }
            management.remove_finalizer(&scope.object, names::MACHINE_FINALIZER).await?;
            self.evict(&scope.object.object_name());
            return Ok(ReconcileResult::Settled);
        }
        let outcomes = refusals.outcomes();
        let input = reconciliation.input(scope, "");
        let problem = reconciliation
            .view
            .problem(&decision.interest)
            .or(refusals.lookup_problem().filter(|_| decision.asks()));
        let status = infra::status::machine(&infra::status::Machine {
            input: &input,
            decision,
            outcomes: &outcomes,
            problem,
        });
        management.patch_status(&scope.object, &status).await?;
        let knows = !decision.needs_bootstrap && !decision.asks();
        let settled =
            decision.plan.is_settled() && decision.waits.is_none() && decision.invalid.is_none() && knows;
        Ok(ended(settled && problem.is_none(), refusals))
    }

    /// Nobody knows any more in which region its instance is: a machine of which nothing was made may go,
    /// another has to wait for the AWSCluster.
    pub(super) async fn report_no_region(&self, object: &Arc<Cached<AWSMachine>>) -> Result<(), Error> {
        let management = &self.context.management;
        let is_made = |state: &PersistedState| {
            *state
                != PersistedState {
                    id: state.id.clone(),
                    applied: state.applied.clone(),
                    ..PersistedState::default()
                }
        };
        if object.is_deleting() && PersistedState::of_machine(object).is_ok_and(|it| !is_made(&it)) {
            return management.remove_finalizer(object, names::MACHINE_FINALIZER).await.map(drop);
        }
        let message = "there is no AWSCluster that says in which region its things are: create it again, or, \
                       once they are deleted, remove the finalizer of this object";
        report_not_ready(management, object, reason::WAITING_FOR_CLUSTER_INFRASTRUCTURE, message).await
    }

    pub(super) async fn report_not_owned(
        &self,
        object: &Arc<Cached<AWSMachine>>,
        has_machine: bool,
    ) -> Result<(), Error> {
        let (reason, message) = if has_machine {
            (reason::WAITING_FOR_CLUSTER, "the Cluster of its Machine is not there yet")
        } else {
            (
                reason::WAITING_FOR_MACHINE,
                "no Machine owns this AWSMachine yet: create one whose spec.infrastructureRef names it",
            )
        };
        report_not_ready(&self.context.management, object, reason, message).await
    }
}
