//! A paused machine: what has to be read before it is known what became of each attempt to make something.
//! Nothing is made, changed or removed.

use super::decide::{id, identity};
use super::plan_input::{absent, plan_input};
use super::{Input, name};
use crate::decide::outcomes;
use crate::observe;
use crate::observe::Named;
use model::{Desired, Interest, Timestamp};

/// What has to be read before the outcome of each attempt is known, now that nothing is made any more since
/// `stopped`; `None`: all are.
pub(crate) fn open_outcomes(input: &Input<'_>, stopped: Timestamp) -> Option<Interest> {
    let unread = input.unread();
    if !unread.is_empty() {
        return Some(Interest { unread, ..Interest::default() });
    }
    let (name, mut record) = (name(input.aws_machine), input.record.clone());
    record.id = id(input);
    let cluster = input.observe_cluster().observed;
    let found = match identity(input).instance(input.snapshot, &record) {
        Named::Mine(found) => Some(found),
        Named::Nothing | Named::Foreign(..) => None,
    };
    let observed = observe::machine(input.snapshot, &cluster, &record, &name, found, false);
    let (desired, absent) = (Desired::new(), absent(input, found));
    let plan = outcomes(&plan_input(input, &desired, &observed, &record, &absent, Some(stopped)));
    (!plan.waiting.is_empty()).then(|| Interest { reads: plan.awaits, ..Interest::default() })
}
