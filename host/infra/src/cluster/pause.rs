//! A paused cluster: what has to be read before it is known what became of each attempt to make something.
//! Nothing is made, changed or removed.

use super::interest::interest;
use super::plan_input::plan_input;
use super::{Input, Layout};
use crate::decide::outcomes;
use crate::observe;
use model::{Desired, Interest, Plan, Timestamp};

/// What has to be read before the outcome of each attempt is known, now that nothing is made any more since
/// `stopped`; `None`: all are.
pub(crate) fn open_outcomes(input: &Input<'_>, stopped: Timestamp) -> Option<Interest> {
    let unread = input.unread();
    if !unread.is_empty() {
        return Some(Interest { unread, ..interest(input, &Plan::default()) });
    }
    let mut record = input.record.clone();
    let layout = Layout::of(input.cluster, input.aws_cluster, &mut record, input.snapshot, input.random)
        .unwrap_or_default();
    let observed = observe::cluster(input.snapshot, &layout.scope(input.cluster, input.aws_cluster, &record));
    let plan = outcomes(&plan_input(input, &Desired::new(), &observed, &record, Some(stopped)));
    (!plan.waiting.is_empty()).then(|| interest(input, &plan))
}
