//! Executes one wave of a plan: what is to outlast this process is written on the object first, then AWS
//! is called, then what came of it is written down.

use std::sync::Arc;

use infra::PersistedState;
use model::{Action, Key, Outcome, Plan};
use serde_json::Value;
use tokio::time::Instant;

use super::events::events;
use super::refusals::Refusals;
use crate::management::{Cached, Error, Management, Watched};

/// What was decided of one object.
pub(super) struct Wave<'a> {
    /// ClusterIdentity wave it is, as the region knows it.
    pub who: &'a str,
    pub region: &'a aws::Region,
    pub plan: &'a Plan,
    pub record: &'a PersistedState,
    /// The actions that may be tried now.
    pub due: &'a [Action],
}

/// What came of a wave.
pub(super) struct WaveResult {
    /// There is more to decide.
    pub more: bool,
    pub outcomes: Vec<(Key, Outcome)>,
}

impl Wave<'_> {
    /// Writes down what was decided, then carries it out. `patch` returns what of a state is not on the
    /// object yet.
    pub async fn execute<K: Watched>(
        &self,
        management: &Management,
        object: &mut Arc<Cached<K>>,
        refusals: &mut Refusals,
        patch: impl Fn(&PersistedState, &K) -> Option<Value>,
    ) -> Result<WaveResult, Error> {
        let before = patch(self.record, object);
        let written = before.is_some();
        if let Some(before) = before {
            *object = management.patch(object, before).await?;
        }
        if self.due.is_empty() {
            return Ok(WaveResult { more: written, outcomes: Vec::new() });
        }
        let outcomes = self.region.act(self.who, self.due.to_vec()).await;
        for note in events(self.due, &outcomes, refusals) {
            tracing::info!(object = %object.object_name(), reason = note.reason, "{}", note.message);
            management.publish_event(object, note);
        }
        refusals.record(self.due, &outcomes, Instant::now());
        if let Some(after) = patch(&self.record.after(self.plan, &outcomes), object) {
            *object = management.patch(object, after).await?;
        }
        Ok(WaveResult { more: true, outcomes })
    }
}
