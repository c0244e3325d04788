//! What the plan of a cluster is made from.

use super::Input;
use crate::{PersistedState, PlanInput, plan, proven_from, trusted_from};
use model::{Desired, Observed, Plan, Timestamp};

/// The plan for what is desired, given what is observed. `stopped`: since when nothing is made any more.
pub(super) fn make_plan(
    input: &Input<'_>,
    desired: &Desired,
    observed: &Observed,
    record: &PersistedState,
    stopped: Option<Timestamp>,
) -> Plan {
    plan(&plan_input(input, desired, observed, record, stopped))
}

pub(super) fn plan_input<'a>(
    input: &'a Input<'_>,
    desired: &'a Desired,
    observed: &'a Observed,
    record: &'a PersistedState,
    stopped: Option<Timestamp>,
) -> PlanInput<'a> {
    let (snapshot, of_input) = (input.snapshot, input.record);
    PlanInput {
        stopped,
        // What this reconciliation adds to the record is none of an earlier process.
        trusted_from: trusted_from(snapshot, of_input),
        proven_from: proven_from(snapshot, of_input),
        ..PlanInput::new(snapshot, (desired, observed), record, input.now, input.random)
    }
}
