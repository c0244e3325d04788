//! What the plan of a machine is made from.

use std::collections::BTreeMap;

use super::Input;
use crate::{PersistedState, PlanInput, plan};
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
    let new = PlanInput::new(input.snapshot, (desired, observed), record, input.now, input.random);
    PlanInput { absent, stopped, ..new }
}
