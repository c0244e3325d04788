//! Looks up in AWS what a decision about a machine needs: which image it boots, and which subnets and groups
//! its user means. `infra` decides what is asked; `aws` keeps answers for all machines.

use infra::machine::Decision;
use model::Lookup;
use tokio::time::Instant;

use super::MachineScope;
use crate::controller::refusals::Refusals;

/// Answers what the decision asks for, for the rest of this reconciliation. What was refused a moment ago is
/// not asked for again.
pub(super) async fn look_up(scope: &mut MachineScope, decision: &Decision, refusals: &mut Refusals) {
    if !refusals.may_look_up(Instant::now()) {
        return;
    }
    let mut learned = Ok(());
    if let Some(query) = &decision.needs_image {
        match scope.region.image(query).await {
            Ok(image) => scope.image = Some(image),
            Err(problem) => learned = Err(problem),
        }
    }
    for lookup in &decision.lookups {
        let answered = match lookup {
            Lookup::Subnets(filters) => scope
                .region
                .subnets(filters)
                .await
                .map(|it| drop(scope.answers.subnets.insert(filters.clone(), it))),
            Lookup::SecurityGroups(filters) => scope
                .region
                .security_groups(filters)
                .await
                .map(|it| drop(scope.answers.security_groups.insert(filters.clone(), it))),
        };
        learned = learned.and(answered);
    }
    refusals.record_lookup(learned, Instant::now());
}
