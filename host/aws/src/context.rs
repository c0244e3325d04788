//! What everything that is done in one AWS region has in common, as one identity sees it: the calls, what is
//! known, and who awaits what. Kinds, polls and actions stand on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{ActionNeeded, Interest, Part, Problem, Read, Snapshot, Timestamp};
use tokio::sync::{Notify, watch};

use crate::api::Api;
use crate::batch::Batches;
use crate::errors::{Failure, gone_is_done};
use crate::now;
use crate::pending_writes::{Amendment, Found, answered};
use crate::region_state::RegionState;
use crate::schedule::{Awaited, Schedule, Task};

/// How old what was read of a VPC may be that nothing is deleted of in a hurry: less than from one slow poll
/// to the next.
const SELDOM: Duration = Duration::from_secs(200);

/// What is known of a region.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// `None` until something was read. It says what that is.
    pub snapshot: Option<Arc<Snapshot>>,
    /// What could not be read when that was last tried, and why. The snapshot shows what was read of it
    /// before.
    pub problems: BTreeMap<Part, Problem>,
}

impl View {
    /// Why something that `interest` needs cannot be read. What somebody has to act on comes first.
    pub fn problem(&self, interest: &Interest) -> Option<&Problem> {
        let needed = self.problems.iter().filter(|(part, _)| interest.needs(part));
        needed.map(|(_, problem)| problem).min_by_key(|it| it.who == ActionNeeded::None)
    }
}

pub(crate) struct Context {
    pub api: Api,
    pub state: Mutex<State>,
    pub view: watch::Sender<Arc<View>>,
    /// Tells the poller that what is due may have changed.
    pub wake: Arc<Notify>,
    pub batches: Batches,
}

#[derive(Default)]
pub(crate) struct State {
    pub known: RegionState,
    pub schedule: Schedule,
    pub interests: BTreeMap<String, Interest>,
    pub problems: BTreeMap<Part, Problem>,
    pub polling: bool,
}

impl State {
    pub fn awaited(&self) -> Awaited {
        let mut tasks: BTreeSet<Task> =
            self.interests.values().flat_map(|it| &it.reads).copied().map(Task::Kind).collect();
        let now = now();
        let is_old = |vpc: &String| {
            let read = self.known.base().deleting.get(vpc);
            read.is_none_or(|it| now - it.began >= SELDOM.as_secs_f64())
        };
        let needs_vpcs = |it: &Interest| !it.deleting_vpcs.is_empty() || it.interfaces_of.iter().any(is_old);
        if self.interests.values().any(needs_vpcs) {
            tasks.insert(Task::DeletingVpcs);
        }
        Awaited { used: !self.interests.is_empty(), tasks }
    }

    /// Every kind counts as never read: what was read says nothing of the time when somebody asks again.
    pub fn evict_reads(&mut self) {
        let base = self.known.base_mut();
        base.snapshot.read_at.clear();
        base.deleting.clear();
        self.schedule.begin_anew();
    }

    pub fn deleting_vpcs(&self) -> BTreeSet<String> {
        self.interests
            .values()
            .flat_map(|it| it.deleting_vpcs.iter().chain(&it.interfaces_of).cloned())
            .collect()
    }

    pub fn nat_gateways_of(&self) -> BTreeSet<String> {
        self.interests.values().flat_map(|it| it.nat_gateways_of.iter().cloned()).collect()
    }

    pub fn route_tables_of(&self) -> BTreeSet<String> {
        self.interests.values().flat_map(|it| it.route_tables_of.iter().cloned()).collect()
    }

    pub fn ids(&self) -> BTreeSet<String> {
        self.interests.values().flat_map(|it| it.ids.iter().cloned()).collect()
    }
}

impl Context {
    /// Of what was written before `since`, nothing is remembered.
    pub fn new(region: &str, api: Api, since: Timestamp) -> Self {
        let mut state = State::default();
        let base = state.known.base_mut();
        base.snapshot.region = region.to_owned();
        base.snapshot.since = since;
        Context {
            api,
            state: Mutex::new(state),
            view: watch::Sender::new(Arc::default()),
            wake: Arc::default(),
            batches: Batches::default(),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what is known now. Before the first poll, what was written alone would look like the whole
    /// region.
    pub fn publish(&self) {
        let mut state = self.state();
        let polled = !state.known.base().snapshot.read_at.is_empty();
        let snapshot = polled.then(|| Arc::new(state.known.snapshot()));
        // Still under the lock, so that an older view never replaces a newer one.
        let problems = state.problems.clone();
        self.view.send_replace(Arc::new(View { snapshot, problems }));
    }

    /// What is known now, also before the first poll.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let view = self.view.borrow().clone();
        view.snapshot.clone().unwrap_or_default()
    }

    pub fn record(&self, read: Read, amendment: Amendment) {
        self.state().known.record(read, now(), amendment);
    }

    /// From now on the snapshot shows what was found of an id, or that it is absent.
    pub fn show<T: Found>(&self, read: Read, id: &str, found: Option<T>) {
        match found {
            Some(found) => {
                self.state().known.base_mut().snapshot.absent.remove(id);
                self.record(read, answered(found));
            }
            None => {
                self.state().known.base_mut().snapshot.absent.insert(id.to_owned(), now());
            }
        }
    }

    /// Whether it came so lately that AWS may say of it still that it does not exist.
    pub fn is_young(&self, id: &str) -> bool {
        self.state().known.is_young(id, now())
    }

    /// How a removal of `id` ended: well also when it was not there, unless it came lately. Then AWS does not
    /// know of it yet, and it is to be removed again.
    pub fn gone_is_done(&self, id: &str, result: Result<(), Failure>) -> Result<(), Failure> {
        match result {
            Err(failure) if failure.is_gone() && self.is_young(id) => Err(failure),
            other => gone_is_done(other),
        }
    }

    /// Something follows from a write that was just answered.
    pub fn follow(&self, task: Task) {
        self.state().schedule.wrote(task, now(), false);
    }

    /// Nobody knows what a write did: what reads it is owed.
    pub fn doubt(&self, read: Read) {
        self.state().schedule.wrote(Task::Kind(read), now(), true);
        self.wake.notify_one();
    }
}
