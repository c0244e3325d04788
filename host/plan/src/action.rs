//! What a plan asks to be done, complete: whoever carries it out has no choice to make and nothing to look up.

use std::collections::BTreeMap;

use crate::{Key, Resource, Tags};

/// Whose a resource is, from the view of the driver that plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This driver made it, and may change and delete it.
    Mine,
    /// Another driver of this provider or of another installation: read, waited for, never changed. Says whose.
    OtherDriver(String),
    /// The user brought it, or something in the cluster made it: read and waited for, never changed.
    User,
}

/// Where a resource is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Creating,
    Ready,
    Failed,
    Deleting,
}

/// One resource as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// AWS's name for it: an id, an ARN, or a classic load balancer's name.
    pub id: String,
    pub owner: Owner,
    pub state: State,
    pub is: Resource,
    /// `None`: the describe call does not show them.
    pub tags: Option<Tags>,
}

/// One resource as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Want {
    pub is: Resource,
    /// All of these; others that it carries stay.
    pub tags: Tags,
}

/// What should exist, by key. Empty for a cluster that is being deleted.
pub type Desired = BTreeMap<Key, Want>;
/// What was found, by key.
pub type Observed = BTreeMap<Key, Seen>;
/// AWS ids of what a resource refers to, by key.
pub type Ids = BTreeMap<Key, String>;

/// A creation that was decided, written down on the object before the call is sent.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Makes client tokens and the intent tag unique.
    pub nonce: String,
    /// When it was written down.
    pub at: f64,
    /// Inputs resolved for the call, which may not change for one client token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<serde_json::Value>,
}

/// One thing to do. All actions of a plan may run at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make it, with these tags in the call. `client_token` where AWS takes one; without one the call is sent exactly once.
    Create { is: Resource, tags: Tags, ids: Ids, client_token: Option<String> },
    /// Make what is `seen` as `is`: the differing parts only.
    Update { id: String, is: Resource, seen: Resource, tags: Tags, ids: Ids },
    /// Add these tags.
    Tag { key: Key, id: String, tags: Tags },
    /// Remove it; `ids` of what it refers to, and of its parts.
    Delete { id: String, is: Resource, ids: Ids },
    /// Read one recorded thing by its id, because the sweep does not show it.
    Confirm { key: Key, id: String },
}

impl Action {
    pub fn key(&self) -> Key {
        match self {
            Action::Create { is, .. } | Action::Update { is, .. } | Action::Delete { is, .. } => is.key(),
            Action::Tag { key, .. } | Action::Confirm { key, .. } => key.clone(),
        }
    }
}

/// How carrying out one action ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Done; the snapshot already shows it.
    Done,
    /// AWS refused and nothing was done. `retry`: it may succeed unchanged (throttled, a dependency not yet gone or not yet visible).
    Refused { code: String, message: String, retry: bool, who: Who },
    /// Nobody knows: a timeout, a lost reply, a server error. It may have been done.
    Unknown { message: String },
}

/// Who has to act on a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Nobody: it is retried.
    Nobody,
    /// Whoever wrote the object: a field is wrong.
    Author,
    /// Whoever administers the AWS account: a permission or a quota.
    Administrator,
}

/// What can be done now, and why the rest cannot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub actions: Vec<Action>,
    /// Nobody has to do anything about these: key and reason (`creating`, `after nat-gateway/a`).
    pub waiting: Vec<(Key, String)>,
    /// Somebody has to act: key and reason.
    pub blocked: Vec<(Key, String)>,
    /// Creations of this plan whose intent has to be on the object before anything is sent.
    pub open: BTreeMap<Key, Intent>,
    /// Intents whose outcome is known, to be taken off the object.
    pub close: Vec<Key>,
}

impl Plan {
    pub fn is_settled(&self) -> bool {
        self.actions.is_empty() && self.waiting.is_empty() && self.blocked.is_empty()
    }
}
