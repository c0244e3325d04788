//! Carries out one action: finds the kind it is about, and says how it ended.

use model::{Action, Key, Kind, LoadBalancerKind, Outcome, Read, Resource};
use tokio::sync::Semaphore;

use crate::context::Context;
use crate::errors::Failure;
use crate::kind::{Change, Creation, Tagging};
use crate::kinds;
use crate::schedule::Task;

/// How many actions run at once.
const ACTIONS: usize = 16;
/// How many more creations run at once that may be sent for a short time only: in a queue with all others
/// they would often come too late.
const URGENT: usize = 4;

/// Where actions wait for their turn.
pub(crate) struct Queues {
    actions: Semaphore,
    /// Of creations that may be sent for a short time only.
    urgent: Semaphore,
}

impl Default for Queues {
    fn default() -> Self {
        Queues { actions: Semaphore::new(ACTIONS), urgent: Semaphore::new(URGENT) }
    }
}

impl Queues {
    fn of(&self, key: &Key, action: &Action) -> Option<&Semaphore> {
        match action {
            // What is put together with others waits for them: it must not keep others out meanwhile.
            _ if key.kind == Kind::Target => None,
            Action::Delete { is: Resource::Instance(_), .. } => None,
            Action::Create { client_token: None, until: Some(_), .. } => Some(&self.urgent),
            _ => Some(&self.actions),
        }
    }
}

pub(crate) async fn act(region: &Context, queues: &Queues, who: &str, action: &Action) -> (Key, Outcome) {
    let key = action.key();
    let permit = match queues.of(&key, action) {
        Some(queue) => queue.acquire().await.ok(),
        None => None,
    };
    let result = match send(region, &key, action).await {
        Err(failure) if failure.is_forbidden() => unless_gone(region, &key, action, failure).await,
        other => other,
    };
    drop(permit);
    let outcome = match result {
        Ok(()) => {
            if matches!(action, Action::Delete { .. }) {
                region.follow(Task::DeletingVpcs);
            }
            Outcome::Done
        }
        Err(failure) => {
            tracing::info!(who, %key, code = failure.code, error = %failure, "action failed");
            failure.outcome()
        }
    };
    if let (Outcome::Unknown { .. }, Some(read)) = (&outcome, shown_by(&key, action)) {
        region.doubt(read);
    }
    (key, outcome)
}

async fn send(region: &Context, key: &Key, action: &Action) -> Result<(), Failure> {
    match action {
        Action::Create { is, tags, ids, client_token, until } => {
            let with = Creation { key, tags, ids, client_token: client_token.as_deref(), until: *until };
            kinds::create(region, is, with).await
        }
        Action::Update { id, is, observed, tags, ids } => {
            kinds::update(region, is, observed, Change { key, id, tags, ids }).await
        }
        Action::Tag { id, parts, tags, untag, .. } => {
            kinds::tag(region, key.kind, Tagging { id, parts, tags, untag }).await
        }
        Action::Delete { id, is, ids } => kinds::delete(region, is, id, ids).await,
        Action::Confirm { id, .. } => kinds::confirm(region, key, id).await,
    }
}

/// What a policy allows by its tags may be forbidden once it is gone: then it has none. Whoever may see it
/// may also see that.
async fn unless_gone(region: &Context, key: &Key, action: &Action, failure: Failure) -> Result<(), Failure> {
    let Action::Delete { id, .. } = action else { return Err(failure) };
    if region.is_young(id) || kinds::confirm(region, key, id).await.is_err() {
        return Err(failure);
    }
    let is_gone = region.state().known.base().snapshot.absent.contains_key(id);
    if !is_gone {
        return Err(failure);
    }
    if let Some(read) = shown_by(key, action) {
        region.doubt(read);
    }
    Ok(())
}

/// What shows how an action ended. Nothing does for a secret.
fn shown_by(key: &Key, action: &Action) -> Option<Read> {
    let has_arn = match action {
        Action::Create { is: Resource::LoadBalancer(balancer), .. } => {
            balancer.kind != LoadBalancerKind::Classic
        }
        Action::Update { id, .. } | Action::Delete { id, .. } | Action::Tag { id, .. } => {
            id.starts_with("arn:")
        }
        _ => false,
    };
    kinds::shown_by(key.kind, has_arn)
}
