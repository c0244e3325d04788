//! One AWS region, as one identity sees it: the view that controllers watch, their interests, and the way to
//! act. It does not say what should be done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::finding::Reading;
use model::{
    Action, ActionNeeded, Filter, FoundInstanceType, Image, ImageQuery, InstanceType, Interest, Key, Outcome,
    Part, Problem, Read, Snapshot, Timestamp,
};
use tokio::sync::{Notify, Semaphore, watch};

use crate::api::Api;
use crate::batch::Batches;
use crate::errors::{Failure, gone_is_done, reading};
use crate::lookup::Lookups;
use crate::pending_writes::Amendment;
use crate::region_state::RegionState;
use crate::schedule::{Awaited, Schedule, Task};
use crate::{lookup, now, poll};

/// How many actions run at once.
const ACTIONS: usize = 16;
/// How many more creations run at once that may be sent for a short time only: in a queue with all others
/// they would often come too late.
const URGENT: usize = 4;

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
        needed.map(|(_, it)| it).min_by_key(|it| it.who == ActionNeeded::None)
    }
}

/// A region. Cheap to clone.
#[derive(Clone)]
pub struct Region(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub api: Api,
    pub state: Mutex<State>,
    pub view: watch::Sender<Arc<View>>,
    /// Tells the sweeper that what is due may have changed.
    pub wake: Arc<Notify>,
    pub actions: Semaphore,
    /// The same, for creations that may be sent for a short time only.
    pub urgent: Semaphore,
    pub batches: Batches,
    pub lookups: Lookups,
}

/// How old what was read of a VPC may be that nothing is deleted of in a hurry, in seconds: less than from
/// one slow sweep to the next.
const SELDOM: f64 = 200.0;

#[derive(Default)]
pub(crate) struct State {
    pub world: RegionState,
    pub schedule: Schedule,
    pub interests: BTreeMap<String, Interest>,
    pub problems: BTreeMap<Part, Problem>,
    pub sweeping: bool,
}

impl State {
    pub fn awaited(&self) -> Awaited {
        let mut tasks: BTreeSet<Task> =
            self.interests.values().flat_map(|it| it.reads.iter().map(|it| Task::Kind(*it))).collect();
        let now = now();
        let is_old =
            |vpc: &String| self.world.base().deleting.get(vpc).is_none_or(|it| now - it.began >= SELDOM);
        if self
            .interests
            .values()
            .any(|it| !it.deleting_vpcs.is_empty() || it.interfaces_of.iter().any(is_old))
        {
            tasks.insert(Task::DeletingVpcs);
        }
        Awaited { used: !self.interests.is_empty(), tasks }
    }

    /// Every kind counts as never read: what was read says nothing of the time when somebody asks again.
    fn forget_reads(&mut self) {
        let base = self.world.base_mut();
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

impl Inner {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows what is known now. Before the first sweep, what was written alone would look like the whole
    /// world.
    pub fn publish(&self) {
        let mut state = self.state();
        let swept = !state.world.base().snapshot.read_at.is_empty();
        let snapshot = swept.then(|| Arc::new(state.world.snapshot()));
        // Still under the lock, so that an older view never replaces a newer one.
        let problems = state.problems.clone();
        self.view.send_replace(Arc::new(View { snapshot, problems }));
    }

    /// What is known now, also before the first sweep.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let view = self.view.borrow().clone();
        view.snapshot.clone().unwrap_or_default()
    }

    pub fn record(&self, read: Read, amendment: Amendment) {
        self.state().world.record(read, now(), amendment);
    }

    /// Whether it came so lately that AWS may say of it still that it does not exist.
    pub fn is_young(&self, id: &str) -> bool {
        self.state().world.is_young(id, now())
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

impl Region {
    /// Of what was written before `since`, nothing is remembered.
    pub(crate) fn new(name: &str, api: Api, since: Timestamp) -> Region {
        let mut state = State::default();
        let base = state.world.base_mut();
        base.snapshot.region = name.to_owned();
        base.snapshot.since = since;
        Region(Arc::new(Inner {
            api,
            state: Mutex::new(state),
            view: watch::Sender::new(Arc::default()),
            wake: Arc::default(),
            actions: Semaphore::new(ACTIONS),
            urgent: Semaphore::new(URGENT),
            batches: Batches::default(),
            lookups: Lookups::default(),
        }))
    }

    pub(crate) fn name(&self) -> String {
        self.0.state().world.base().snapshot.region.clone()
    }

    /// What is known, and whenever it changes.
    pub fn view(&self) -> watch::Receiver<Arc<View>> {
        self.0.view.subscribe()
    }

    /// Says what `who` awaits from now on, in place of what he awaited before. The first interest of all
    /// starts a sweep at once.
    pub fn interest(&self, who: &str, interest: Interest) {
        let mut state = self.0.state();
        let known = state.ids();
        let mut wanted: BTreeSet<Read> =
            interest.ids.difference(&known).filter_map(|id| poll::reads(id)).collect();
        wanted.extend(
            (!interest.nat_gateways_of.is_subset(&state.nat_gateways_of())).then_some(Read::NatGateways),
        );
        wanted.extend(
            (!interest.route_tables_of.is_subset(&state.route_tables_of())).then_some(Read::RouteTables),
        );
        for read in wanted {
            state.schedule.want(Task::Kind(read), now());
        }
        if state.interests.get(who) == Some(&interest) {
            return;
        }
        state.interests.insert(who.to_owned(), interest);
        let starts = !std::mem::replace(&mut state.sweeping, true);
        drop(state);
        if starts {
            tokio::spawn(poll::run(Arc::downgrade(&self.0), self.0.wake.clone()));
        }
        self.0.wake.notify_one();
    }

    /// `who` does not use this region any more. Nothing is read for nobody.
    pub fn forget(&self, who: &str) {
        let mut state = self.0.state();
        let was_last = state.interests.remove(who).is_some() && state.interests.is_empty();
        if was_last {
            state.forget_reads();
        }
        drop(state);
        if was_last {
            self.0.publish();
        }
        self.0.wake.notify_one();
    }

    /// Carries out all `actions` at once and says how each ended. When this returns, the view shows what was
    /// done.
    pub async fn act(&self, who: &str, actions: Vec<Action>) -> Vec<(Key, Outcome)> {
        let all = actions.iter().map(|it| crate::act::act(&self.0, who, it));
        let res = futures::future::join_all(all).await;
        self.0.publish();
        self.0.wake.notify_one();
        res
    }

    /// The newest image that `query` matches.
    ///
    /// # Errors
    /// When there is none, or AWS does not say.
    pub async fn image(&self, query: &ImageQuery) -> Result<Image, Problem> {
        lookup::image(&self.0, query).await
    }

    /// What instance types have room for, in the order of their names; those that the region does not know
    /// are left out. What is found once is remembered for as long as this process lives.
    pub async fn instance_types(&self, names: &BTreeSet<String>) -> Reading<Vec<InstanceType>> {
        reading(lookup::instance_types(&self.0, names).await)
    }

    /// What a type of instances has. It is asked for once.
    ///
    /// # Errors
    /// When there is none that can run Kubernetes, or AWS does not say.
    pub async fn instance_type(&self, name: &str) -> Result<FoundInstanceType, Problem> {
        lookup::instance_type(&self.0, name).await
    }

    /// Subnets that match filters which a user wrote. What is found is remembered for some minutes.
    ///
    /// # Errors
    /// When AWS does not say.
    pub async fn subnets(&self, filters: &[Filter]) -> Result<Vec<model::FoundSubnet>, Problem> {
        lookup::subnets(&self.0, filters).await
    }

    /// Security groups that match filters which a user wrote. What is found is remembered for some minutes.
    ///
    /// # Errors
    /// When AWS does not say.
    pub async fn security_groups(
        &self,
        filters: &[Filter],
    ) -> Result<Vec<model::FoundSecurityGroup>, Problem> {
        lookup::security_groups(&self.0, filters).await
    }
}
