//! The table of kinds, and what is the same of all. Each kind has a module: what it is with roles in place of
//! AWS's ids, desired and observed alike; what AWS shows of it, with ids (`Found...`); and the answers of a
//! [`ResourceKind`].

mod elastic_ip;
mod instance;
mod internet_gateway;
mod load_balancer;
mod nat_gateway;
mod network_interface;
mod route_table;
mod secret;
mod security_group;
mod security_group_rules;
mod subnet;
mod target;
mod vpc;

pub use elastic_ip::{ElasticIp, FoundAddress};
pub use instance::{FoundInstance, Instance, InstanceStatus, Launch, MetadataOptions, StateReason, Volume};
pub use internet_gateway::{FoundInternetGateway, InternetGateway};
pub use load_balancer::{
    FoundListener, FoundLoadBalancer, HealthCheck, Listener, LoadBalancer, LoadBalancerAttributes,
    LoadBalancerKind,
};
pub use nat_gateway::{FoundNatGateway, NatGateway};
pub use network_interface::{FoundNetworkInterface, NetworkInterface};
pub use route_table::{FoundRouteTable, RouteTable};
pub use secret::{Secret, Sensitive};
pub use security_group::{FoundSecurityGroup, SecurityGroup};
pub use security_group_rules::{
    AddOnRule, FoundRule, FoundSource, Rule, SecurityGroupRules, Source, has_ports,
};
pub use subnet::{FoundSubnet, Subnet};
pub use target::Target;
pub use vpc::{FoundVpc, Vpc};

use std::collections::BTreeSet;

use crate::{Ids, Key, Read};

/// Calls the macro `$callback` with the table of kinds, in the order in which they are made. A row is the
/// resource's type, its word in keys, logs and conditions, and its word in the reasons of events; then, of
/// what one Describe of EC2 shows of all clusters, what AWS shows of each, the field of a
/// [`Snapshot`](crate::Snapshot) that holds them, and the [`Read`].
#[macro_export]
macro_rules! for_each_kind {
    ($callback:ident) => {
        $callback! {
            /// A VPC, `main`.
            Vpc "vpc" "VPC" => FoundVpc vpcs Vpcs,
            /// A subnet, by its role and zone; one that the user brought, by its id.
            Subnet "subnet" "Subnet" => FoundSubnet subnets Subnets,
            /// An internet gateway, with its attachment.
            InternetGateway "internet-gateway" "InternetGateway"
                => FoundInternetGateway internet_gateways InternetGateways,
            /// An Elastic IP address of a NAT gateway.
            ElasticIp "elastic-ip" "EIP" => FoundAddress addresses Addresses,
            /// A public NAT gateway.
            NatGateway "nat-gateway" "NATGateway" => FoundNatGateway nat_gateways NatGateways,
            /// A route table, with its default route and the subnets associated with it.
            RouteTable "route-table" "RouteTable" => FoundRouteTable route_tables RouteTables,
            /// A security group without its rules.
            SecurityGroup "security-group" "SecurityGroup"
                => FoundSecurityGroup security_groups SecurityGroups,
            /// Ingress rules of a security group.
            SecurityGroupRules "security-group-rules" "SecurityGroupIngressRules",
            /// A classic or network load balancer with its listener, and the target group behind it.
            LoadBalancer "load-balancer" "LoadBalancer",
            /// A network interface that others made; only ever deleted.
            NetworkInterface "network-interface" "NetworkInterface",
            /// Secrets of Secrets Manager that hold the bootstrap data of one machine.
            Secret "secret" "EncryptedBootstrapDataSecrets",
            /// An EC2 instance.
            Instance "instance" "Instance" => FoundInstance instances Instances,
            /// The registration of an instance at a load balancer.
            Target "target" "Target",
        }
    };
}

/// What is particular of each kind when it is decided what to do.
pub trait ResourceKind: Sized {
    /// What keeps a creation from being done twice.
    const GUARD: Guard = Guard::Name;
    /// The calls that show one of which nothing but its key is known.
    const READS: &'static [Read] = &[];
    /// Further calls that show what its role is and whose it is. Nothing is made anew, given up or taken away
    /// before all of them show what was made.
    const EVIDENCE: &'static [Read] = &[];

    /// What has to be ready before this is created, and has to stay until this is deleted.
    fn after(&self) -> Vec<Key>;

    /// What has to be ready before this is created: most often all that it comes [`after`](Self::after).
    fn made_after(&self) -> Vec<Key> {
        self.after()
    }

    /// Whether what was observed is known in full: what the reads of its kind leave out is read by its id.
    fn is_known(&self) -> bool {
        true
    }

    /// Whether what was observed is as desired.
    fn satisfied_by(&self, observed: &Self) -> bool;

    /// The first field that differs from what was observed and that AWS cannot change in place.
    fn immutable(&self, _observed: &Self) -> Option<&'static str> {
        None
    }

    /// Ids of what was observed of it that carries the same tags.
    fn parts(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// The calls that show it.
    fn reads(&self) -> &'static [Read] {
        Self::READS
    }

    /// What may not change while one client token is retried.
    fn inputs(&self, _ids: &Ids) -> Option<serde_json::Value> {
        None
    }

    /// For people: what is to be made, after its key.
    fn details(&self) -> String {
        String::new()
    }

    /// For people: what is to be changed, after its key.
    fn changes(&self, _observed: &Self) -> String {
        self.details()
    }
}

/// What keeps a creation from being done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// AWS refuses a second one (a CIDR block, a name), or making it again is the same.
    Name,
    /// Likewise, and parts of it that no read shows are made after it.
    NameAndIntent,
    /// A client token.
    Token,
    /// Nothing but that it was written down: sent once, and again only when reads have shown that nothing
    /// came of it.
    Intent,
}

macro_rules! resources {
    ($(
        $(#[$doc:meta])* $Kind:ident $word:literal $event:literal
            $(=> $Found:ident $field:ident $read:ident)?,
    )*) => {
        /// The kinds of AWS resources that this provider makes, named by AWS's own words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $Kind,)*
        }

        impl Kind {
            /// All of them, in the order in which they are made.
            pub const ALL: &'static [Kind] = &[$(Kind::$Kind,)*];

            /// The word for it in keys, logs and conditions.
            pub fn as_str(self) -> &'static str {
                match self { $(Kind::$Kind => $word,)* }
            }

            /// One word in CamelCase for the reasons of events, as in CAPA's where it has one.
            pub fn event_word(self) -> &'static str {
                match self { $(Kind::$Kind => $event,)* }
            }

            /// What keeps a creation from being done twice.
            pub fn guard(self) -> Guard {
                match self { $(Kind::$Kind => <$Kind as ResourceKind>::GUARD,)* }
            }

            /// The calls that show one of which nothing but its key is known.
            pub fn reads(self) -> &'static [Read] {
                match self { $(Kind::$Kind => <$Kind as ResourceKind>::READS,)* }
            }

            /// Further calls that show what its role is and whose it is.
            pub fn evidence(self) -> &'static [Read] {
                match self { $(Kind::$Kind => <$Kind as ResourceKind>::EVIDENCE,)* }
            }
        }

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

            /// What has to be ready before this is created.
            pub fn made_after(&self) -> Vec<Key> {
                match self { $(Resource::$Kind(it) => it.made_after(),)* }
            }

            /// Ids of what was observed of it that carries the same tags.
            pub fn parts(&self) -> BTreeSet<String> {
                match self { $(Resource::$Kind(it) => it.parts(),)* }
            }

            /// The calls that show it.
            pub fn reads(&self) -> &'static [Read] {
                match self { $(Resource::$Kind(it) => it.reads(),)* }
            }

            /// What may not change while one client token is retried.
            pub fn inputs(&self, ids: &Ids) -> Option<serde_json::Value> {
                match self { $(Resource::$Kind(it) => it.inputs(ids),)* }
            }

            /// Whether what was observed is known in full.
            pub fn is_known(&self) -> bool {
                match self { $(Resource::$Kind(it) => it.is_known(),)* }
            }

            /// Whether what was observed is as desired.
            pub fn satisfied_by(&self, observed: &Resource) -> bool {
                match (self, observed) {
                    $((Resource::$Kind(desired), Resource::$Kind(observed)) => {
                        desired.satisfied_by(observed)
                    })*
                    _ => false,
                }
            }

            /// The first field that differs from `observed` and that AWS cannot change in place.
            pub fn immutable(&self, observed: &Resource) -> Option<&'static str> {
                match (self, observed) {
                    $((Resource::$Kind(desired), Resource::$Kind(observed)) => desired.immutable(observed),)*
                    _ => None,
                }
            }

            /// For people: what is to be made, after its key.
            pub(crate) fn details(&self) -> String {
                match self { $(Resource::$Kind(it) => it.details(),)* }
            }

            /// For people: what is to be changed, after its key.
            pub(crate) fn changes(&self, observed: &Resource) -> String {
                match (self, observed) {
                    $((Resource::$Kind(desired), Resource::$Kind(observed)) => desired.changes(observed),)*
                    _ => self.details(),
                }
            }
        }

        $(impl $Kind {
            /// The key of the one in this role.
            pub fn key(name: impl Into<String>) -> Key { Key::new(Kind::$Kind, name) }
        }
        impl From<$Kind> for Resource {
            fn from(resource: $Kind) -> Self { Resource::$Kind(resource) }
        })*
    };
}

for_each_kind!(resources);
