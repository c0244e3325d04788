//! What the plan of a machine is made from.

use std::collections::BTreeMap;

use super::Input;
use crate::{PersistedState, PlanInput, plan, proven_from, trusted_from};
use model::{Desired, FoundInstance, Observed, Plan, Timestamp};

/// The plan for what is desired, given what is observed. `stopped`: since when nothing is made any more.
pub(super) fn make_plan(
    input: &Input<'_>,
    desired: &Desired,
    observed: &Observed,
    record: &PersistedState,
    found: Option<&FoundInstance>,
    stopped: Option<Timestamp>,
) -> Plan {
    let absent = absent(input, found);
    plan(&plan_input(input, desired, observed, record, &absent, stopped))
}

/// Ids that were read one by one and were not found.
pub(super) fn absent(input: &Input<'_>, found: Option<&FoundInstance>) -> BTreeMap<String, Timestamp> {
    let mut absent = input.snapshot.absent.clone();
    // It is still shown for an hour, and there is nothing left to ask about it.
    absent
        .extend(found.filter(|it| it.status.state == "terminated").map(|it| (it.id.clone(), f64::INFINITY)));
    absent
}

pub(super) fn plan_input<'a>(
    input: &'a Input<'_>,
    desired: &'a Desired,
    observed: &'a Observed,
    record: &'a PersistedState,
    absent: &'a BTreeMap<String, Timestamp>,
    stopped: Option<Timestamp>,
) -> PlanInput<'a> {
    let read_at = &input.snapshot.read_at;
    let (trusted_from, proven_from) =
        (trusted_from(input.snapshot, record), proven_from(input.snapshot, record));
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
