//! One module for each kind of resource. A kind is a value that is both what is wanted and what was seen: it
//! holds role names, never AWS ids, and answers what it comes [`after`](Resource::after), whether what was
//! seen [satisfies](Resource::satisfied_by) what is wanted, and what about it can [never
//! change](Resource::immutable).

mod instance;
mod load_balancer;
mod network;
mod security_group;

pub use instance::{
    Instance, InstanceStatus, Launch, MetadataOptions, Secret, Sensitive, StateReason, Volume,
};
pub use load_balancer::{
    HealthCheck, Listener, LoadBalancer, LoadBalancerAttributes, LoadBalancerKind, Target,
};
pub use network::{ElasticIp, InternetGateway, NatGateway, NetworkInterface, RouteTable, Subnet, Vpc};
pub use security_group::{AddOnRule, Rule, SecurityGroup, SecurityGroupRules, Source, has_ports};

use std::collections::BTreeSet;

use crate::{Key, Kind};

macro_rules! resources {
    ($($Kind:ident,)*) => {
        /// A resource of any kind.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Resource {
            $(
                #[doc = concat!("See [`", stringify!($Kind), "`].")]
                $Kind($Kind),
            )*
        }

        impl Resource {
            /// Its kind and role.
            pub fn key(&self) -> Key {
                match self { $(Resource::$Kind(it) => Key::new(Kind::$Kind, it.name.clone()),)* }
            }
            /// The same in another role.
            pub fn renamed(mut self, name: String) -> Self {
                match &mut self { $(Resource::$Kind(it) => it.name = name,)* }
                self
            }
            /// What has to be ready before this is created, and has to stay until this is deleted.
            pub fn after(&self) -> Vec<Key> {
                match self { $(Resource::$Kind(it) => it.after(),)* }
            }
            /// What has to be ready before this is created: most often all that it comes
            /// [`after`](Self::after).
            pub fn made_after(&self) -> Vec<Key> {
                match self {
                    Resource::RouteTable(it) => it.made_after(),
                    _ => self.after(),
                }
            }
            /// Ids of what was seen of it that carries the same tags.
            pub fn parts(&self) -> BTreeSet<String> {
                match self {
                    Resource::Instance(it) => it.status.as_ref().map(|it| it.parts.clone()).unwrap_or_default(),
                    _ => BTreeSet::new(),
                }
            }
            /// Whether what was seen is as wanted.
            pub fn satisfied_by(&self, seen: &Resource) -> bool {
                match (self, seen) {
                    $((Resource::$Kind(want), Resource::$Kind(seen)) => want.satisfied_by(seen),)*
                    _ => false,
                }
            }
            /// The first field that differs from `seen` and that AWS cannot change in place.
            pub fn immutable(&self, seen: &Resource) -> Option<&'static str> {
                match (self, seen) {
                    $((Resource::$Kind(want), Resource::$Kind(seen)) => want.immutable(seen),)*
                    _ => None,
                }
            }
        }
        $(impl $Kind {
            /// The key of the one in this role.
            pub fn key(name: impl Into<String>) -> Key { Key::new(Kind::$Kind, name) }
        }
        impl From<$Kind> for Resource {
            fn from(it: $Kind) -> Self { Resource::$Kind(it) }
        })*
    };
}

resources! {
    Vpc, Subnet, InternetGateway, ElasticIp, NatGateway, RouteTable, SecurityGroup, SecurityGroupRules,
    LoadBalancer, NetworkInterface, Secret, Instance, Target,
}
