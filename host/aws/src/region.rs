//! One AWS region, as one identity sees it: the view that controllers watch, their interests, and the way to
//! act.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::finding::Reading;
use model::{
    Action, Filter, FoundInstanceType, FoundSecurityGroup, FoundSubnet, Image, ImageQuery, InstanceType,
    Interest, Key, Outcome, Problem, Read, Timestamp,
};
use tokio::sync::watch;

use crate::act::{Queues, act};
use crate::api::Api;
use crate::context::{Context, View};
use crate::errors::reading;
use crate::lookup::Lookups;
use crate::schedule::Task;
use crate::{kinds, now, poll};

/// A region. Cheap to clone.
#[derive(Clone)]
pub struct Region {
    pub(crate) context: Arc<Context>,
    queues: Arc<Queues>,
    lookups: Arc<Lookups>,
}

impl Region {
    /// Of what was written before `since`, nothing is remembered.
    pub(crate) fn new(name: &str, api: Api, since: Timestamp) -> Region {
        Region {
            context: Arc::new(Context::new(name, api, since)),
            queues: Arc::default(),
            lookups: Arc::default(),
        }
    }

    pub(crate) fn name(&self) -> String {
        self.context.state().known.base().snapshot.region.clone()
    }

    /// What is known, and whenever it changes.
    pub fn view(&self) -> watch::Receiver<Arc<View>> {
        self.context.view.subscribe()
    }

    /// Says what `who` awaits from now on, in place of what he awaited before. The first interest of all
    /// starts a poll at once.
    pub fn interest(&self, who: &str, interest: Interest) {
        let mut state = self.context.state();
        let known = state.ids();
        let mut due: BTreeSet<Read> =
            interest.ids.difference(&known).filter_map(|id| kinds::read_of(id)).collect();
        due.extend(
            (!interest.nat_gateways_of.is_subset(&state.nat_gateways_of())).then_some(Read::NatGateways),
        );
        due.extend(
            (!interest.route_tables_of.is_subset(&state.route_tables_of())).then_some(Read::RouteTables),
        );
        for read in due {
            state.schedule.request(Task::Kind(read), now());
        }
        if state.interests.get(who) == Some(&interest) {
            return;
        }
        state.interests.insert(who.to_owned(), interest);
        let starts = !std::mem::replace(&mut state.polling, true);
        drop(state);
        if starts {
            tokio::spawn(poll::run(Arc::downgrade(&self.context), self.context.wake.clone()));
        }
        self.context.wake.notify_one();
    }

    /// `who` does not use this region any more. Nothing is read for nobody.
    pub fn forget(&self, who: &str) {
        let mut state = self.context.state();
        let was_last = state.interests.remove(who).is_some() && state.interests.is_empty();
        if was_last {
            state.evict_reads();
        }
        drop(state);
        if was_last {
            self.context.publish();
        }
        self.context.wake.notify_one();
    }

    /// Carries out all `actions` at once and says how each ended. When this returns, the view shows what was
    /// done.
    pub async fn act(&self, who: &str, actions: Vec<Action>) -> Vec<(Key, Outcome)> {
        let all = actions.iter().map(|it| act(&self.context, &self.queues, who, it));
        let res = futures::future::join_all(all).await;
        self.context.publish();
        self.context.wake.notify_one();
        res
    }

    /// The newest image that `query` matches.
    ///
    /// # Errors
    /// When there is none, or AWS does not say.
    pub async fn image(&self, query: &ImageQuery) -> Result<Image, Problem> {
        self.lookups.image(&self.context.api, query).await
    }

    /// What instance types have room for, in the order of their names; those that the region does not know
    /// are left out. What is found once is remembered for as long as this process lives.
    pub async fn instance_types(&self, names: &BTreeSet<String>) -> Reading<Vec<InstanceType>> {
        reading(self.lookups.instance_types(&self.context.api, names).await)
    }

    /// What a type of instances has. It is asked for once.
    ///
    /// # Errors
    /// When there is none that can run Kubernetes, or AWS does not say.
    pub async fn instance_type(&self, name: &str) -> Result<FoundInstanceType, Problem> {
        self.lookups.instance_type(&self.context.api, name).await
    }

    /// Subnets that match filters which a user wrote. What is found is remembered for some minutes.
    ///
    /// # Errors
    /// When AWS does not say.
    pub async fn subnets(&self, filters: &[Filter]) -> Result<Vec<FoundSubnet>, Problem> {
        self.lookups.subnets(&self.context.api, filters).await
    }

    /// Security groups that match filters which a user wrote. What is found is remembered for some minutes.
    ///
    /// # Errors
    /// When AWS does not say.
    pub async fn security_groups(&self, filters: &[Filter]) -> Result<Vec<FoundSecurityGroup>, Problem> {
        self.lookups.security_groups(&self.context.api, filters).await
    }
}
