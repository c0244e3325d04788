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
pub use key::{Key, Kind, NoKey};
pub use lookup::{Answers, Filter, Lookup};
pub use ownership::{is_marked, owner};
pub use resource::{
    AddOnRule, ElasticIp, HealthCheck, Instance, InstanceStatus, InternetGateway, Launch, Listener,
    LoadBalancer, LoadBalancerAttributes, LoadBalancerKind, MetadataOptions, NatGateway, NetworkInterface,
    Resource, RouteTable, Rule, Secret, SecurityGroup, SecurityGroupRules, Sensitive, Source, StateReason,
    Subnet, Target, Volume, Vpc, has_ports,
};
pub use shared::Shared;
pub use snapshot::{
    FoundAddress, FoundInstance, FoundInternetGateway, FoundListener, FoundLoadBalancer, FoundNatGateway,
    FoundNetworkInterface, FoundRouteTable, FoundRule, FoundSecurityGroup, FoundSource, FoundSubnet,
    FoundVpc, Read, Snapshot, Tags, Timestamp,
};
