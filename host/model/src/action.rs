//! What a plan asks to be done, complete: whoever carries it out has no choice to make and nothing to look
//! up.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Key, Read, Resource, Tags, Timestamp};

/// Whose a resource is, from the view of the driver that plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This driver made it, and may change and delete it.
    Mine,
    /// Another driver of this provider or of another installation: read, waited for, never changed. Says
    /// whose.
    OtherDriver(String),
    /// The user brought it, or something in the cluster made it: read and waited for, never changed.
    User,
}

/// Where a resource is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// AWS is making it, such as a VPC that is `pending`: waited for.
    Creating,
    /// It can be used, and changed.
    Ready,
    /// AWS gave it up. One of ours is deleted, then made again.
    Failed,
    /// AWS is taking it down: waited for.
    Deleting,
}

/// One resource as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedResource {
    /// AWS's name for it: an id, an ARN, or a classic load balancer's name.
    pub id: String,
    /// Whose it is, by its tags and by what it lies in.
    pub owner: Owner,
    /// Where it is in its life, as AWS says.
    pub state: State,
    /// The resource as it is, with roles in place of ids.
    pub is: Resource,
    /// `None`: the describe call does not show them.
    pub tags: Option<Tags>,
    /// Ids of further things found with the same key. Nothing is done about any of them: it would be a guess.
    pub others: Vec<String>,
    /// What a person needs to know of it: why it failed, what it belongs to.
    pub note: Option<String>,
}

/// One resource as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredResource {
    /// The resource as it should be, in its role.
    pub is: Resource,
    /// All of these; others that it carries stay.
    pub tags: Tags,
    /// Keys of tags that are to be taken away.
    pub untag: BTreeSet<String>,
}

impl DesiredResource {
    /// What makes that which was `observed` carry the right tags; `None` when it does, or when they are not
    /// shown.
    pub fn retag(&self, key: &Key, observed: &ObservedResource) -> Option<Action> {
        let have = observed.tags.as_ref()?;
        let missing = self.tags.iter().filter(|(name, value)| have.get(*name) != Some(value));
        let tags: Tags = missing.map(|(name, value)| (name.clone(), value.clone())).collect();
        // What is to be taken away may be there though no read shows it yet.
        let untag = self.untag.clone();
        let differs = !tags.is_empty() || !untag.is_empty();
        differs.then(|| Action::Tag {
            key: key.clone(),
            id: observed.id.clone(),
            parts: observed.is.parts(),
            tags,
            untag,
        })
    }
}

/// What should exist, by key. Empty for a cluster that is being deleted.
pub type Desired = BTreeMap<Key, DesiredResource>;
/// What was found, by key.
pub type Observed = BTreeMap<Key, ObservedResource>;
/// AWS ids of what a resource refers to, by key.
pub type Ids = BTreeMap<Key, String>;

/// A creation that was decided, written down on the object before the call is sent.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// Makes client tokens and the intent tag unique.
    pub nonce: String,
    /// When it was written down.
    pub at: Timestamp,
    /// Inputs resolved for the call, which may not change for one client token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<serde_json::Value>,
}

/// One thing to do. All actions of a plan may run at once.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Make it.
    Create {
        /// What is wanted.
        is: Resource,
        /// Given in the call that makes it.
        tags: Tags,
        /// Of what it refers to.
        ids: Ids,
        /// Where AWS takes one. Without one the call is sent exactly once.
        client_token: Option<String>,
        /// When it is not sent any more: what reads show later would be taken for its outcome. `None`: it may
        /// always be sent.
        until: Option<Timestamp>,
    },
    /// Make what is `observed` as `is`: the differing parts only.
    Update {
        /// AWS's name for it.
        id: String,
        /// What is wanted.
        is: Resource,
        /// What it is now.
        observed: Resource,
        /// For parts that are made anew, such as a target group.
        tags: Tags,
        /// Of what it refers to, as observed and as desired.
        ids: Ids,
    },
    /// Add tags, and take others away.
    Tag {
        /// Its kind and role.
        key: Key,
        /// AWS's name for it.
        id: String,
        /// Ids of what gets the same tags.
        parts: BTreeSet<String>,
        /// To be added, or set to these values.
        tags: Tags,
        /// Keys of those to be taken away.
        untag: BTreeSet<String>,
    },
    /// Remove it.
    Delete {
        /// AWS's name for it.
        id: String,
        /// What it is now.
        is: Resource,
        /// Of what it refers to.
        ids: Ids,
    },
    /// Read one thing by its id: something recorded that the sweep does not show, or what the sweep does not
    /// show of it.
    Confirm {
        /// Its kind and role.
        key: Key,
        /// AWS's name for it.
        id: String,
    },
}

impl Action {
    /// The key of the resource that it is about.
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
    /// AWS refused and nothing was done.
    Refused {
        /// AWS's error code, such as `UnauthorizedOperation`, or a word of ours.
        code: String,
        /// What AWS said.
        message: String,
        /// Whether it may succeed unchanged: throttled, a dependency not yet gone or not yet visible.
        retry: bool,
        /// Who has to act on it.
        who: ActionNeeded,
    },
    /// Nobody knows: a timeout, a lost reply, a server error. It may have been done.
    Unknown {
        /// What went wrong.
        message: String,
    },
}

/// Who has to act on a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionNeeded {
    /// Nobody: it is retried.
    None,
    /// Whoever wrote the object: a field is wrong.
    SpecAuthor,
    /// Whoever administers the AWS account: a permission or a quota.
    CloudAdmin,
}

/// What can be done now, and why the rest cannot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In no order: none of them has to wait for another.
    pub actions: Vec<Action>,
    /// Nobody has to do anything about these: key and reason (`creating`, `after nat-gateway/a`).
    pub waiting: Vec<(Key, String)>,
    /// Somebody has to act: key and reason.
    pub blocked: Vec<(Key, String)>,
    /// Creations of this plan whose intent has to be on the object before anything is sent.
    pub open: BTreeMap<Key, Intent>,
    /// Intents whose outcome is known, to be taken off the object.
    pub close: Vec<Key>,
    /// What has to be read again soon, because something of it is on its way.
    pub awaits: BTreeSet<Read>,
}

impl Plan {
    /// Whether everything is as it should be: there is nothing to do, to wait for or to be moved by somebody.
    pub fn is_settled(&self) -> bool {
        self.actions.is_empty() && self.waiting.is_empty() && self.blocked.is_empty()
    }
}

/// Why AWS could not be asked, or what it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// AWS's error code, or a word of ours such as `Unreachable`.
    pub code: String,
    /// AWS's message, or why no answer came.
    pub message: String,
    /// Who has to act on it.
    pub who: ActionNeeded,
}

impl Problem {
    /// Whether AWS says that this identity may not ask: that stays so until somebody grants it. Wrong or
    /// expired credentials, which somebody has to act on too, say nothing about what may be asked.
    pub fn is_forbidden(&self) -> bool {
        ["AccessDenied", "AccessDeniedException", "UnauthorizedOperation"].contains(&self.code.as_str())
    }
}

/// What one object needs to have read, besides everything every few minutes. Empty when it is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Read again soon.
    pub reads: BTreeSet<Read>,
    /// VPCs of which everything that stands in the way of their deletion is read.
    pub deleting_vpcs: BTreeSet<String>,
    /// VPCs of which the same is read, but seldom: something of them is to be taken out when nothing uses it
    /// any more.
    pub interfaces_of: BTreeSet<String>,
    /// Ids of VPCs, subnets, internet gateways and security groups that carry no tag of ours, because the
    /// user brought them.
    pub ids: BTreeSet<String>,
    /// VPCs of which all NAT gateways are read: of those that users brought, since a rule lets their
    /// addresses in, and of those that are being deleted, since a user's may lie there.
    pub nat_gateways_of: BTreeSet<String>,
    /// VPCs that users brought and whose route tables are read: which of their subnets are public follows
    /// from them.
    pub route_tables_of: BTreeSet<String>,
    /// What was never read and has to be before anything can be said of the object. It is read without being
    /// asked for.
    pub unread: BTreeSet<Part>,
}

/// What of a region is read by itself, so that it fails by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// What one Describe call reads, for all clusters and machines.
    Kind(Read),
    /// Availability zones of the region.
    Zones,
    /// What stands in the way of the deletion of this VPC.
    DeletingVpc(String),
}

impl Interest {
    /// Whether the object waits for this.
    pub fn needs(&self, part: &Part) -> bool {
        let awaited = match part {
            Part::Kind(read) => self.reads.contains(read),
            Part::Zones => false,
            Part::DeletingVpc(id) => self.deleting_vpcs.contains(id) || self.interfaces_of.contains(id),
        };
        awaited || self.unread.contains(part)
    }
}

/// Which image a machine boots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageQuery {
    /// The image itself; then the rest does not count.
    pub id: Option<String>,
    /// The AWS account that owns it.
    pub owner: String,
    /// DescribeImages' filter `name`, with `*` and `?`. The newest that matches is taken.
    pub name: String,
    /// The image has the architecture of this instance type.
    pub instance_type: String,
}

/// An image as AWS describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Such as `ami-0123456789abcdef0`.
    pub id: String,
    /// Such as `/dev/sda1`.
    pub root_device: String,
    /// Size of the root volume's snapshot in GiB.
    pub root_size: i32,
}

/// What an instance type has room for, as AWS describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceType {
    /// Such as `t3.large`.
    pub name: String,
    /// Most network interfaces of its default network card.
    pub interfaces: u32,
    /// Most IPv4 addresses of one network interface, the interface's own among them.
    pub addresses_per_interface: u32,
    /// Whether it is of the Nitro system.
    pub nitro: bool,
}

/// A type of instances as AWS describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundInstanceType {
    /// `x86_64` or `arm64`.
    pub architecture: String,
    /// Virtual processors; 0 where AWS does not say.
    pub cpus: i32,
    /// Memory in MiB; 0 where AWS does not say.
    pub memory_mib: i64,
}

/// A field that cannot be carried out; whoever wrote the object has to act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Invalid {
    /// Path of the field, such as `spec.network.vpc.cidrBlock`.
    pub field: String,
    /// What is wrong with it, and what to do.
    pub message: String,
}

impl Invalid {
    /// A field by its path, and what is wrong with it.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Invalid { field: field.into(), message: message.into() }
    }
}
