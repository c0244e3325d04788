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
    let (absent, read_at) = (&input.snapshot.absent, &input.snapshot.read_at);
    let (trusted_from, proven_from) =
        (trusted_from(input.snapshot, input.record), proven_from(input.snapshot, input.record));
    let (now, since, random) = (input.now, input.snapshot.since, input.random);
    PlanInput {
        desired,
        observed,
        record,
        absent,
        read_at,
        now,
        stopped,
        since,
        trusted_from,
        proven_from,
        random,
    }
}
