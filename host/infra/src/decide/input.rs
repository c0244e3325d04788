//! What a plan is made of, and from when on reads can be trusted.

use std::collections::BTreeMap;

use crate::PersistedState;
use model::{Desired, FIRST_SEEN, Kind, Observed, READ_LAG, Read, Snapshot, Timestamp};

/// What a plan is made of.
pub struct PlanInput<'a> {
    pub desired: &'a Desired,
    pub observed: &'a Observed,
    pub record: &'a PersistedState,
    /// Ids that were read one by one and were not found, and when.
    pub absent: &'a BTreeMap<String, Timestamp>,
    /// When the latest read of each kind began.
    pub read_at: &'a BTreeMap<Read, Timestamp>,
    pub now: Timestamp,
    /// Since when nothing is created any more, if that is so.
    pub stopped: Option<Timestamp>,
    /// When this process began to act: what an earlier one did shortly before may be missing from reads.
    pub since: Timestamp,
    /// Reads that began before may lack what an earlier process made; see `trusted_from`.
    pub trusted_from: Timestamp,
    /// What was looked for by its id before may be there all the same; see `proven_from`.
    pub proven_from: Timestamp,
    /// New for every reconciliation.
    pub random: &'a str,
}

impl<'a> PlanInput<'a> {
    /// What follows from a snapshot and what is recorded.
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        (desired, observed): (&'a Desired, &'a Observed),
        record: &'a PersistedState,
        now: Timestamp,
        random: &'a str,
    ) -> PlanInput<'a> {
        PlanInput {
            desired,
            observed,
            record,
            absent: &snapshot.absent,
            read_at: &snapshot.read_at,
            now,
            stopped: None,
            since: snapshot.since,
            trusted_from: trusted_from(snapshot, record),
            proven_from: proven_from(snapshot, record),
            random,
        }
    }
}

/// From when on reads show everything that was made by an earlier process, whose memory of its own writes is
/// lost. What is not settled yet is written down, so only the latest that was settled counts.
pub(crate) fn trusted_from(snapshot: &Snapshot, record: &PersistedState) -> Timestamp {
    record.created.map_or(0.0, |it| it.trusted_from(snapshot.since))
}

/// From when on a read by its id that does not find it proves that something recorded is no more: reads lack
/// for a while what was made, and that was before it was recorded. Where nobody wrote down when that was, it
/// was before this process began.
pub(crate) fn proven_from(snapshot: &Snapshot, record: &PersistedState) -> Timestamp {
    let is_of_machine = record.ids.keys().any(|it| it.kind == Kind::Instance);
    match record.created {
        None => snapshot.since + READ_LAG,
        Some(it) if is_of_machine && !it.is_by(snapshot.since) => it.at + FIRST_SEEN,
        Some(it) => it.at + READ_LAG,
    }
}
