//! When leftovers are looked for again, and what is reported of them: once when the machines are gone, then
//! only after something was removed or refused, each time later. It neither reads nor removes anything
//! itself.

use std::collections::BTreeMap;
use std::time::Duration;

use crds::names::{
    EXTERNAL_RESOURCE_GC_ANNOTATION, EXTERNAL_RESOURCE_TASKS_GC_ANNOTATION, FORCE_DELETE_ANNOTATION,
};

use super::{Collected, Leftover, LeftoverKind, Leftovers, order};
use model::{Problem, Timestamp};

/// How soon to read again after something was removed: what it used is free a little later.
const SHORTEST: Duration = Duration::from_secs(5);
/// The longest time between two reads.
const LONGEST: Duration = Duration::from_secs(300);
/// After so many looks in a row that nobody answered, about a quarter of an hour, what is known counts as all
/// there is.
const UNANSWERED: u32 = 8;
/// How many are named in a message.
const NAMED: usize = 5;

/// The sweep of one cluster's leftovers. What it knows need not outlast the process: another one looks again.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Somebody answered, if only that it may not be read.
    known: bool,
    collected: Collected,
    left: Vec<Leftover>,
    /// What says that some of it may be another cluster's: then none of it is removed.
    sign: Option<String>,
    /// What is left and does not go with the cluster.
    stays: Vec<Leftover>,
    /// Why things could not be removed, by id.
    refused: BTreeMap<String, Problem>,
    unread: Option<Problem>,
    /// Looks in a row of which not even the refusal is known.
    unanswered: u32,
    /// Looks in a row that brought nothing.
    idle: u32,
    /// When to look next. None: when something asks for it.
    next: Option<Timestamp>,
}

impl Sweep {
    /// Learns which kinds of leftovers go. What stayed until now may have to go.
    pub fn collect(&mut self, collected: Collected, now: Timestamp) {
        if self.collected != collected && self.known {
            self.next = Some(now);
        }
        self.collected = collected;
    }

    /// Whether to look now.
    pub fn is_due(&self, now: Timestamp) -> bool {
        match self.next {
            Some(at) => at <= now,
            None => !self.known,
        }
    }

    /// When to look next, if at all.
    pub fn next(&self) -> Option<Timestamp> {
        self.next
    }

    /// Learns what a look found. Where somebody would have to permit it before all of it can be read, and
    /// perhaps nobody will, what was read counts as all there is, but for what was known before: that may lie
    /// in what was not read.
    pub fn found(&mut self, look: Leftovers, now: Timestamp) {
        self.refused.clear();
        self.sign = look.sign;
        self.next = None;
        let is_unanswered = look.unread.as_ref().is_some_and(|it| !it.is_forbidden());
        self.unanswered = if is_unanswered { self.unanswered + 1 } else { 0 };
        if self.unanswered.is_multiple_of(UNANSWERED) {
            let collected = self.collected;
            self.known = true;
            let mut left = look.left;
            if look.unread.is_some() {
                let known = self.left.drain(..).chain(self.stays.drain(..));
                let unseen: Vec<Leftover> =
                    known.filter(|it| !left.iter().any(|other| it.is_same(other))).collect();
                left.extend(unseen);
            }
            (self.left, self.stays) = left.into_iter().partition(|it| collected.has(it.kind));
            self.stays.retain(|it| it.kind != LeftoverKind::SecurityGroupRules);
        }
        if look.unread.is_some() {
            self.later(now);
        }
        self.unread = look.unread;
    }

    /// What can be removed now.
    pub fn removable(&self) -> Vec<Leftover> {
        if self.sign.is_some() {
            return Vec::new();
        }
        order(&self.left).into_iter().filter(|it| !self.refused.contains_key(&it.id)).collect()
    }

    /// Learns how the removal of one thing ended.
    pub fn removed(&mut self, leftover: &Leftover, result: Result<(), Problem>, now: Timestamp) {
        match result {
            Ok(()) => {
                self.left.retain(|other| !leftover.is_same(other));
                self.idle = 0;
                self.next = Some(now + SHORTEST.as_secs_f64());
            }
            Err(problem) => {
                self.refused.insert(leftover.id.clone(), problem);
            }
        }
    }

    /// A look and what followed from it is over. Where something is left, there is another one: what stays
    /// may be removed by others.
    pub fn done(&mut self, now: Timestamp) {
        if self.next.is_none() && !(self.left.is_empty() && self.stays.is_empty()) {
            self.later(now);
        }
    }

    /// The normal deletion was refused because something else uses what it deletes: that may have come to
    /// light since.
    pub fn asked_for(&mut self, now: Timestamp) {
        if self.next.is_none() {
            self.later(now);
        }
    }

    /// It cannot be looked now.
    pub fn put_off(&mut self, now: Timestamp) {
        if self.next.is_some() {
            self.later(now);
        }
    }

    fn later(&mut self, now: Timestamp) {
        let delay = LONGEST.min(SHORTEST * 2u32.pow(self.idle.min(10)));
        self.next = Some(now + delay.as_secs_f64());
        self.idle += 1;
    }

    /// Whether what is left is not known yet: then nothing is deleted that it may be in.
    pub fn is_unknown(&self) -> bool {
        !self.known
    }

    /// What is left and does not go with the cluster; None when there is nothing of that.
    pub fn stays_text(&self) -> Option<String> {
        let named = named(&self.stays, ToString::to_string)?;
        let annotations =
            format!("{EXTERNAL_RESOURCE_GC_ANNOTATION} or {EXTERNAL_RESOURCE_TASKS_GC_ANNOTATION}");
        Some(format!("left in AWS, as annotation {annotations} says: {named}"))
    }

    /// Whether this is one of those that may be another cluster's.
    pub fn is_doubtful(&self, id: &str) -> bool {
        self.sign.is_some() && self.left.iter().chain(&self.stays).any(|it| it.id == id)
    }

    /// Why nothing is removed of what is left, as it may be another cluster's; None when it is not so.
    pub fn doubt_text(&self) -> Option<String> {
        let (sign, named) = (self.sign.as_ref()?, named(&self.left, ToString::to_string)?);
        Some(format!(
            "another cluster of this name is in the VPC ({sign}), and nobody can tell whose these are: {named}. Remove those that are this \
             cluster's, and annotate the AWSCluster with {FORCE_DELETE_ANNOTATION}, which leaves the others"
        ))
    }

    /// Whether nothing is left that goes with the cluster, as far as anybody may know.
    pub fn is_over(&self) -> bool {
        self.known && self.left.is_empty()
    }

    /// Why the latest look did not show all that is left.
    pub fn unread(&self) -> Option<&Problem> {
        self.unread.as_ref()
    }

    /// What is awaited, and what was not looked at; None when there is nothing to say.
    pub fn text(&self) -> Option<String> {
        let parts: Vec<String> =
            [self.unread_text(), self.left_text(), self.stays_text()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn unread_text(&self) -> Option<String> {
        let what = "what the cluster's own controllers left in AWS cannot be looked for";
        match &self.unread {
            Some(it) if it.is_forbidden() => Some(format!(
                "{what}, and may stay: grant what is missing, or look yourself ({})",
                it.message
            )),
            Some(it) => Some(format!("{what} yet: {}", it.message)),
            None if !self.known => {
                Some("looking for what the cluster's own controllers left in AWS".to_owned())
            }
            None => None,
        }
    }

    fn left_text(&self) -> Option<String> {
        if self.sign.is_some() {
            return self.doubt_text();
        }
        let named = named(&self.left, |it| self.one(it))?;
        Some(format!("after what the cluster's own controllers left: {named}"))
    }

    fn one(&self, leftover: &Leftover) -> String {
        match self.refused.get(&leftover.id) {
            Some(problem) => format!("{leftover} ({})", problem.message),
            None => leftover.to_string(),
        }
    }
}

/// The first of them, and how many more there are.
fn named(all: &[Leftover], one: impl Fn(&Leftover) -> String) -> Option<String> {
    let mut named: Vec<String> = all.iter().take(NAMED).map(one).collect();
    match all.len().saturating_sub(NAMED) {
        _ if named.is_empty() => return None,
        0 => {}
        more => named.push(format!("{more} more")),
    }
    Some(named.join(", "))
}
