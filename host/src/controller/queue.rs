//! The work queue of one controller: an object is reconciled at once when it is enqueued, later when it asked
//! for that, and by one task at a time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::object_name::ObjectName;

/// How many objects of one kind are reconciled at the same time.
const AT_ONCE: usize = 64;
const FIRST_DELAY: Duration = Duration::from_millis(200);
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// When to reconcile an object again. A trigger comes first in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Only when it is triggered.
    OnChange,
    After(Duration),
    /// It could not be finished: soon, then less and less often.
    Failed,
}

/// Triggers the reconciliation of objects of one controller; cheap to clone.
#[derive(Clone)]
pub struct Trigger(mpsc::UnboundedSender<ObjectName>);

impl Trigger {
    /// Has the object reconciled.
    pub fn enqueue(&self, name: ObjectName) {
        // The other end is only gone when the process is ending.
        let _ = self.0.send(name);
    }
}

/// A trigger, and what [`run`] takes.
pub fn channel() -> (Trigger, mpsc::UnboundedReceiver<ObjectName>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Trigger(sender), receiver)
}

/// Runs `reconcile` for every object that is enqueued, until `stop` is true; then waits for those that run.
pub async fn run<F, R>(
    mut requests: mpsc::UnboundedReceiver<ObjectName>,
    mut stop: watch::Receiver<bool>,
    reconcile: F,
) where
    F: Fn(ObjectName) -> R,
    R: Future<Output = Requeue> + Send + 'static,
{
    let mut queue = Queue::default();
    let mut running = JoinSet::new();
    let mut names = HashMap::new();
    while !*stop.borrow() {
        while running.len() < AT_ONCE
            && let Some(name) = queue.pop(Instant::now())
        {
            let handle = running.spawn(reconcile(name.clone()));
            names.insert(handle.id(), name);
        }
        let due = queue.next_due();
        let sleep = tokio::time::sleep_until(due.unwrap_or_else(Instant::now));
        tokio::select! {
            Some(name) = requests.recv() => queue.add(name, Instant::now()),
            Some(ended) = running.join_next_with_id() => {
                // A panic in one reconciliation must not end the others.
                let (id, requeue) = ended.unwrap_or_else(|error| (error.id(), Requeue::Failed));
                if let Some(name) = names.remove(&id) {
                    queue.done(name, requeue, Instant::now());
                }
            }
            () = sleep, if due.is_some() && running.len() < AT_ONCE => {}
            changed = stop.changed() => if changed.is_err() { break },
        }
    }
    while running.join_next().await.is_some() {}
}

#[derive(Default)]
struct Queue {
    /// When each is to be reconciled; those that run are not in it.
    due: BTreeMap<ObjectName, Instant>,
    running: BTreeSet<ObjectName>,
    /// Enqueued while they ran.
    requeue: BTreeSet<ObjectName>,
    failures: HashMap<ObjectName, u32>,
}

impl Queue {
    fn add(&mut self, name: ObjectName, now: Instant) {
        if self.running.contains(&name) {
            self.requeue.insert(name);
        } else {
            self.due.insert(name, now);
        }
    }

    fn pop(&mut self, now: Instant) -> Option<ObjectName> {
        let (name, due) = self.due.iter().min_by_key(|(_, due)| **due)?;
        if *due > now {
            return None;
        }
        let name = name.clone();
        self.due.remove(&name);
        self.running.insert(name.clone());
        Some(name)
    }

    fn done(&mut self, name: ObjectName, requeue: Requeue, now: Instant) {
        self.running.remove(&name);
        let delay = match requeue {
            Requeue::Failed => {
                let failures = self.failures.entry(name.clone()).or_default();
                *failures += 1;
                Some(backoff(*failures, FIRST_DELAY, LONGEST_DELAY))
            }
            Requeue::After(delay) => {
                self.failures.remove(&name);
                Some(delay)
            }
            Requeue::OnChange => {
                self.failures.remove(&name);
                None
            }
        };
        if self.requeue.remove(&name) {
            // What triggered it must not outrun a failure's delay, or a busy object would be tried in a tight
            // loop.
            self.due.insert(name, if requeue == Requeue::Failed { now + FIRST_DELAY } else { now });
        } else if let Some(delay) = delay {
            self.due.insert(name, now + delay);
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.due.values().min().copied()
    }
}

/// The delay after that many failures in a row: doubled each time, from `first` to `longest`.
pub fn backoff(failures: u32, first: Duration, longest: Duration) -> Duration {
    first.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName::new("default", name)
    }

    #[test]
    fn an_object_enqueued_while_it_runs_runs_once_more_afterwards() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.add(name("a"), now);
        assert_eq!(queue.pop(now), Some(name("a")));
        queue.add(name("a"), now);
        queue.add(name("a"), now);
        assert_eq!(queue.pop(now), None);
        queue.done(name("a"), Requeue::OnChange, now);
        assert_eq!(queue.pop(now), Some(name("a")));
        queue.done(name("a"), Requeue::OnChange, now);
        assert_eq!(queue.pop(now), None);
    }

    #[test]
    fn failures_are_tried_less_often_until_one_run_succeeds() {
        let now = Instant::now();
        let mut queue = Queue::default();
        let mut delays = Vec::new();
        for requeue in [Requeue::Failed, Requeue::Failed, Requeue::Failed, Requeue::OnChange, Requeue::Failed]
        {
            queue.add(name("a"), now);
            queue.pop(now);
            queue.done(name("a"), requeue, now);
            delays.push(queue.next_due().map(|it| (it - now).as_millis()));
        }
        assert_eq!(delays, [Some(200), Some(400), Some(800), None, Some(200)]);
        assert_eq!(backoff(40, FIRST_DELAY, LONGEST_DELAY), LONGEST_DELAY);
    }

    #[test]
    fn what_is_due_later_waits_and_a_trigger_comes_first() {
        let now = Instant::now();
        let mut queue = Queue::default();
        queue.add(name("a"), now);
        queue.pop(now);
        queue.done(name("a"), Requeue::After(Duration::from_secs(9)), now);
        assert_eq!(queue.pop(now + Duration::from_secs(8)), None);
        queue.add(name("a"), now);
        assert_eq!(queue.pop(now), Some(name("a")));
    }

    #[tokio::test]
    async fn a_panic_ends_one_reconciliation_and_nothing_else() {
        let (trigger, requests) = channel();
        let (stop, stopped) = watch::channel(false);
        let (sender, mut reconciled) = mpsc::unbounded_channel();
        let runs = tokio::spawn(run(requests, stopped, move |name: ObjectName| {
            let sender = sender.clone();
            async move {
                sender.send(name.name.clone()).ok();
                assert!(name.name != "bad", "a defect");
                Requeue::OnChange
            }
        }));
        trigger.enqueue(name("bad"));
        trigger.enqueue(name("good"));
        let mut names = vec![reconciled.recv().await, reconciled.recv().await, reconciled.recv().await];
        names.sort();
        assert_eq!(names, [Some("bad".into()), Some("bad".into()), Some("good".into())]);
        stop.send(true).ok();
        runs.await.expect("the queue ends");
    }
}
