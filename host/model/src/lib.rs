//! What is in AWS and what is to be done there, as plain values: the keys that resources have in a cluster,
//! what each is and what it comes after, what a read of a region showed, and the calls that change it.
//! Nothing here decides, and nothing does I/O.

#![deny(missing_docs)]

mod action;
mod applied;
pub mod condition;
mod consistency;
mod file_system;
pub mod finding;
mod key;
mod lookup;
mod ownership;
mod resource;
mod shared;
mod snapshot;
mod text;

pub use action::{
    Action, ActionNeeded, Desired, DesiredResource, FoundInstanceType, Ids, Image, ImageQuery, InstanceType,
    Intent, Interest, Invalid, Observed, ObservedResource, Outcome, Owner, Part, Plan, Problem, State,
};
pub use applied::{APPLIED_GROUPS_ANNOTATION, APPLIED_TAGS_ANNOTATION, Applied};
pub use consistency::{FIRST_SEEN, READ_LAG};
pub use file_system::{FileSystem, ListedFileSystem, MountTarget, is_going};
pub use key::{Key, NoKey};
pub use lookup::{Answers, Filter, Lookup};
pub use ownership::{is_marked, owner};
pub use resource::{
    AddOnRule, FoundListener, FoundLoadBalancer, FoundNetworkInterface, FoundRule, FoundSource, Guard,
    HealthCheck, InstanceStatus, Kind, Launch, Listener, LoadBalancerAttributes, LoadBalancerKind,
    MetadataOptions, Resource, ResourceKind, Rule, Sensitive, Source, StateReason, Volume, has_ports,
};
pub use shared::Shared;
pub use snapshot::{Read, Snapshot, Tags, Timestamp};

macro_rules! kinds {
    ($(
        $(#[$doc:meta])* $Kind:ident $word:literal $event:literal
            $(=> $Found:ident $field:ident $read:ident)?,
    )*) => {
        pub use resource::{$($Kind,)* $($($Found,)?)*};
    };
}

for_each_kind!(kinds);
