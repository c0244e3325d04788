//! Route tables, with their default route and the subnets associated with them.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::join;
use crate::{Guard, Key, Read, ResourceKind, Subnet, Tags, Vpc};

/// The route table of one subnet, named like it.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteTable {
    /// Its role: that of the subnet.
    pub name: String,
    /// Role of its VPC.
    pub vpc: String,
    /// Subnets associated with it.
    pub subnets: BTreeSet<String>,
    /// Where 0.0.0.0/0 goes: an internet gateway or a NAT gateway; `None` as seen when the route is not there
    /// yet.
    pub default_route: Option<Key>,
}

/// A route table.
/// A snapshot holds those with a cluster's tag, and those of
/// [`route_tables_read`](crate::Snapshot::route_tables_read).
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRouteTable {
    /// `rtb-...`
    pub id: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// Whether it is the one that subnets without an association of their own use. AWS makes it with the VPC.
    pub main: bool,
    /// Association id by subnet id.
    pub associations: BTreeMap<String, String>,
    /// Gateway id (`igw-`, `nat-`, ...) of 0.0.0.0/0.
    pub default_route: Option<String>,
    /// Internet gateways that its other routes lead to.
    pub internet_gateways: BTreeSet<String>,
    /// All of its tags.
    pub tags: Tags,
}

impl FoundRouteTable {
    /// Whether any of its routes leads to an internet gateway.
    pub fn leads_to_internet_gateway(&self) -> bool {
        !self.internet_gateways.is_empty()
            || self.default_route.as_ref().is_some_and(|it| it.starts_with("igw-"))
    }
}

impl ResourceKind for RouteTable {
    const GUARD: Guard = Guard::Token;
    const READS: &'static [Read] = &[Read::RouteTables];
    const EVIDENCE: &'static [Read] = &[Read::Vpcs, Read::Subnets];

    /// It is made empty; its route and its subnets come to it once they are there.
    fn made_after(&self) -> Vec<Key> {
        vec![Vpc::key(&self.vpc)]
    }

    fn after(&self) -> Vec<Key> {
        let mut res = vec![Vpc::key(&self.vpc)];
        res.extend(self.default_route.clone());
        res.extend(self.subnets.iter().map(Subnet::key));
        res
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self.default_route == observed.default_route && self.subnets.is_subset(&observed.subnets)
    }

    fn details(&self) -> String {
        let to = |key: &Key| format!(", 0.0.0.0/0 to {key}");
        format!(" for {}{}", join(&self.subnets), self.default_route.as_ref().map(to).unwrap_or_default())
    }
}
