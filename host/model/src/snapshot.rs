//! What the reads of one AWS account and region found, as AWS shows it: with ids. Crate `infra` turns it into
//! what one cluster or machine observes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{FoundLoadBalancer, FoundNetworkInterface, Part, Shared, for_each_kind};

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// Seconds since 1970, UTC.
pub type Timestamp = f64;

macro_rules! snapshot {
    ($(
        $(#[$doc:meta])* $Kind:ident $word:literal $event:literal
            $(=> $Found:ident $field:ident $read:ident)?,
    )*) => {
        reads! {
            $($(
                #[doc = concat!("The Describe of each [`", stringify!($Kind), "`](crate::",
                    stringify!($Kind), ").")]
                $read,
            )?)*
            /// DescribeLoadBalancers of Elastic Load Balancing's first version.
            ClassicLoadBalancers,
            /// DescribeLoadBalancers of the second version: network, application and gateway load balancers.
            LoadBalancers,
            /// DescribeTargetGroups, and DescribeTargetHealth of those that load balancers forward to.
            TargetGroups,
        }

        /// Everything known of one region, shared by all clusters and machines in it. Cheap to clone.
        #[derive(Clone, Debug, Default)]
        pub struct Snapshot {
            /// Such as `eu-west-1`.
            pub region: String,
            /// When this process began to act. What an earlier one made shortly before may be missing from
            /// reads for a while, and is not in this one's memory of its own writes. 0 when that does not
            /// matter.
            pub since: Timestamp,
            /// When the latest successful read of each kind *began*. Kinds never read are absent: nothing may
            /// be concluded from their emptiness.
            pub read_at: BTreeMap<Read, Timestamp>,
            /// Available zones that need no opt-in, sorted. Empty until they were read.
            pub zones: Vec<String>,
            $($(
                #[doc = concat!("See [`", stringify!($Found), "`](crate::", stringify!($Found), ").")]
                pub $field: Shared<crate::$Found>,
            )?)*
            /// VPCs of which the latest read of NAT gateways showed all, also those without a cluster's tag.
            pub nat_gateways_read: BTreeSet<String>,
            /// VPCs of which the latest read of route tables showed all, also those without a cluster's tag.
            pub route_tables_read: BTreeSet<String>,
            /// All of the region, of all kinds: a describe call does not show their tags.
            pub load_balancers: Shared<FoundLoadBalancer>,
            /// Only of VPCs that are being deleted.
            pub network_interfaces: Shared<FoundNetworkInterface>,
            /// VPCs whose interfaces and groups (also untagged ones) and whose load balancers' tags were
            /// read, and when that began.
            pub deleting_vpcs_read: BTreeMap<String, Timestamp>,
            /// Ids that were read one by one and were not found, and when. Reads lag: it takes a while until
            /// that proves anything.
            pub absent: BTreeMap<String, Timestamp>,
        }
    };
}

macro_rules! reads {
    ($($(#[$doc:meta])* $read:ident,)*) => {
        /// What one Describe call (with its pages) reads. What a snapshot shows of a kind is all of its
        /// pages, or an earlier read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Read {
            $($(#[$doc])* $read,)*
        }

        impl Read {
            /// All of them.
            pub const ALL: [Read; [$(Read::$read,)*].len()] = [$(Read::$read,)*];
        }
    };
}

for_each_kind!(snapshot);

impl Snapshot {
    /// Which of these kinds were never read.
    pub fn lacks(&self, reads: impl IntoIterator<Item = Read>) -> BTreeSet<Part> {
        reads.into_iter().filter(|it| !self.read_at.contains_key(it)).map(Part::Kind).collect()
    }
}
