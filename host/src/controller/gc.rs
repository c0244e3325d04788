//! Collects what a cluster's own controllers left in AWS, as a part of the cluster's deletion: searches when
//! it is time, removes, publishes events, and holds back what has to wait. When to search and what is left is
//! decided in `infra::gc`; AWS is touched only through `aws`.

use std::sync::Arc;
use std::time::Duration;

use aws::Region;
use crds::AWSCluster;
use futures::future::join_all;
use infra::cluster::Decision;
use infra::gc::{ClusterIdentity, Collected, Leftover, Leftovers, Sweep, serves_another};
use infra::{PersistedState, observe};
use model::{Action, ActionNeeded, Key, Outcome, Problem, Read, Snapshot, Vpc};
use tokio::time::Instant;

use super::reconcile::ReconcileResult;
use crate::management::{Cached, Event, Management};
use crate::system::now;

/// Searches, if it is time, and removes what can be removed.
pub async fn collect(
    management: &Management,
    region: &Region,
    object: &Arc<Cached<AWSCluster>>,
    cluster: &str,
    sweep: &mut Sweep,
) {
    // What does not say what to remove removes nothing; the decision names it.
    let Ok(collected) = Collected::of(object.metadata.annotations.as_ref()) else { return };
    sweep.collect(collected, now());
    if !sweep.is_due(now()) {
        return;
    }
    match vpc(object, region, cluster) {
        Place::Unknown => return sweep.put_off(now()),
        Place::Nowhere => return sweep.found(Leftovers::default(), now()),
        Place::In(vpc_id, whose, another) => {
            let mut look = region.leftovers(&whose, &vpc_id).await;
            look.sign = look.sign.or(another.filter(|_| !look.left.is_empty()));
            sweep.found(look, now());
        }
    }
    if let Some(problem) = sweep.unread() {
        tracing::warn!(
            cluster,
            code = problem.code,
            "not all leftovers can be looked for: {}",
            problem.message
        );
        if problem.is_forbidden() {
            let message = sweep.text().unwrap_or_default();
            management.publish_event(
                object,
                Event { warning: true, reason: "SweepSkipped".into(), action: "Sweep".into(), message },
            );
        }
    }
    if let Some(message) = sweep.doubt_text() {
        tracing::warn!(cluster, "{message}");
        management.publish_event(
            object,
            Event { warning: true, reason: "SweepHeld".into(), action: "Sweep".into(), message },
        );
    }
    if let Some(message) = sweep.stays_text() {
        tracing::info!(cluster, "{message}");
        management.publish_event(
            object,
            Event { warning: false, reason: "SweepSkipped".into(), action: "Sweep".into(), message },
        );
    }
    loop {
        let removable = sweep.removable();
        if removable.is_empty() {
            break;
        }
        let results = join_all(removable.iter().map(|it| region.delete_leftover(it))).await;
        for (leftover, result) in removable.iter().zip(results) {
            publish_removal(management, object, leftover, &result);
            sweep.removed(leftover, result, now());
        }
    }
    sweep.done(now());
}

/// What shows whose a VPC is.
const NEEDED: [Read; 3] = [Read::Vpcs, Read::Subnets, Read::SecurityGroups];

/// Where leftovers may be.
enum Place {
    /// In this VPC, of this cluster, and what shows that another one is there too.
    In(String, ClusterIdentity, Option<String>),
    /// There is no network that they could be in.
    Nowhere,
    Unknown,
}

/// The VPC that the cluster is in, as far as it is written down.
pub fn vpc_id(object: &AWSCluster) -> Option<String> {
    let recorded =
        PersistedState::of_cluster(object).ok().and_then(|mut it| it.ids.remove(&Vpc::key(observe::MAIN)));
    recorded.or_else(|| Some(object.spec.network.vpc.id.clone()).filter(|it| !it.is_empty()))
}

fn vpc(object: &AWSCluster, region: &Region, cluster: &str) -> Place {
    let is_read = |snapshot: &Arc<Snapshot>| NEEDED.iter().all(|read| snapshot.read_at.contains_key(read));
    let Some(snapshot) = region.view().borrow().snapshot.clone().filter(is_read) else {
        return Place::Unknown;
    };
    let Ok(record) = PersistedState::of_cluster(object) else { return Place::Unknown };
    let recorded = record.ids.get(&Vpc::key(observe::MAIN));
    let given = Some(&object.spec.network.vpc.id).filter(|it| !it.is_empty());
    match recorded.or(given) {
        None => Place::Nowhere,
        Some(id) if snapshot.vpcs.iter().any(|it| it.id == *id) => {
            let owner = infra::cluster::owner(object);
            let whose = ClusterIdentity::of(&snapshot, id, cluster, &record.id, &owner);
            Place::In(id.clone(), whose, serves_another(&snapshot, id, cluster, &record.id, &owner))
        }
        // What was never recorded was never used.
        Some(id) if recorded.is_none() || infra::is_gone(&snapshot, &record, id) => Place::Nowhere,
        Some(_) => Place::Unknown,
    }
}

fn publish_removal(
    management: &Management,
    object: &Arc<Cached<AWSCluster>>,
    leftover: &Leftover,
    result: &Result<(), Problem>,
) {
    let action = format!("Sweep {leftover}").chars().take(128).collect();
    match result {
        Ok(()) => {
            tracing::info!(%leftover, id = leftover.id, "removed what a controller inside the cluster left");
            let message = format!("{leftover}: deleted; a controller inside the cluster had left it");
            management.publish_event(
                object,
                Event { warning: false, reason: "SuccessfulSweep".into(), action, message },
            );
        }
        Err(problem) if problem.who == ActionNeeded::None => {
            tracing::debug!(%leftover, code = problem.code, "cannot be removed yet")
        }
        Err(problem) => {
            let message = format!("{leftover}: {}: {}", problem.code, problem.message);
            tracing::warn!(%leftover, id = leftover.id, "{message}");
            management.publish_event(
                object,
                Event { warning: true, reason: "FailedSweep".into(), action, message },
            );
        }
    }
}

/// Adds what is awaited to the plan, and holds back everything but reads as long as nobody knows what was
/// left. What is `forced` waits for nothing.
pub fn hold(sweep: &Sweep, forced: bool, decision: &mut Decision, due: &mut Vec<Action>) {
    // The same tags show what the deletion of the network takes along.
    due.retain(|it| !matches!(it, Action::Delete { id, .. } if sweep.is_doubtful(id)));
    if forced {
        return;
    }
    if sweep.is_unknown() || sweep.doubt_text().is_some() {
        due.retain(|it| matches!(it, Action::Confirm { .. }));
    }
    if let Some(text) = sweep.text() {
        decision.plan.waiting.push((Vpc::key(observe::MAIN), text));
    }
    decision.finished &= sweep.is_over();
}

/// Whether something that was not seen uses what was to be deleted.
pub fn has_dependency(outcomes: &[(Key, Outcome)]) -> bool {
    outcomes
        .iter()
        .any(|(_, it)| matches!(it, Outcome::Refused { code, .. } if code == "DependencyViolation"))
}

/// A settled cluster is reconciled again when the next search is due.
pub fn requeue_for_sweep(ended: ReconcileResult, sweep: &Sweep) -> ReconcileResult {
    let next = sweep.next().map(|at| Instant::now() + Duration::from_secs_f64((at - now()).max(0.0)));
    match (ended, next) {
        (ReconcileResult::Waiting { until: Some(until) }, Some(next)) => {
            ReconcileResult::Waiting { until: Some(until.min(next)) }
        }
        (ReconcileResult::Waiting { until: None } | ReconcileResult::Settled, Some(next)) => {
            ReconcileResult::Waiting { until: Some(next) }
        }
        (ended, _) => ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Vec<(Key, Outcome)> {
        let outcome = Outcome::Refused {
            code: code.into(),
            message: String::new(),
            retry: true,
            who: ActionNeeded::None,
        };
        vec![(Vpc::key(observe::MAIN), outcome)]
    }

    #[test]
    fn only_an_unknown_dependency_asks_for_another_search() {
        assert!(has_dependency(&refused("DependencyViolation")));
        assert!(!has_dependency(&refused("RequestLimitExceeded")));
        assert!(!has_dependency(&[(Vpc::key(observe::MAIN), Outcome::Done)]));
    }

    #[test]
    fn nothing_is_deleted_before_it_is_known_what_was_left() {
        let confirm = Action::Confirm { key: Vpc::key(observe::MAIN), id: "vpc-1".into() };
        let delete = Action::Delete {
            id: "vpc-1".into(),
            is: Vpc { name: observe::MAIN.into(), cidr: String::new(), dns_hostnames: true }.into(),
            ids: Default::default(),
        };
        let mut decision = Decision { finished: true, ..Decision::default() };
        let (mut due, mut sweep) = (vec![confirm.clone(), delete.clone()], Sweep::default());
        hold(&sweep, true, &mut decision, &mut due);
        assert!(decision.finished && due.len() == 2);
        hold(&sweep, false, &mut decision, &mut due);
        assert!(!decision.finished && due == [confirm] && decision.plan.waiting.len() == 1);
        sweep.found(Leftovers::default(), 0.0);
        let (mut decision, mut due) =
            (Decision { finished: true, ..Decision::default() }, vec![delete.clone()]);
        hold(&sweep, false, &mut decision, &mut due);
        assert!(decision.finished && due == [delete] && decision.plan.waiting.is_empty());
    }

    #[test]
    fn the_next_search_is_not_missed() {
        let mut sweep = Sweep::default();
        assert_eq!(requeue_for_sweep(ReconcileResult::Settled, &sweep), ReconcileResult::Settled);
        sweep.asked_for(now());
        assert!(matches!(
            requeue_for_sweep(ReconcileResult::Waiting { until: None }, &sweep),
            ReconcileResult::Waiting { until: Some(_) }
        ));
        let soon = Instant::now();
        assert_eq!(
            requeue_for_sweep(ReconcileResult::Waiting { until: Some(soon) }, &sweep),
            ReconcileResult::Waiting { until: Some(soon) }
        );
    }
}
