//! NAT gateways.

use crate::{ElasticIp, Guard, Ids, Intent, InternetGateway, Key, Read, ResourceKind, State, Subnet, Tags};

/// Of the inputs: the id of the address that it was given.
const ADDRESS: &str = "address";

/// A NAT gateway, named after its zone.
#[derive(Clone, Debug, PartialEq)]
pub struct NatGateway {
    /// Its role: the zone, such as `us-east-1a`.
    pub name: String,
    /// The public subnet that it lies in, by role. Cannot be changed.
    pub subnet: String,
    /// Role of its address.
    pub elastic_ip: String,
    /// The internet gateway without which it cannot reach anything.
    pub internet_gateway: String,
}

/// A NAT gateway.
/// A snapshot holds those with a cluster's tag, and those of
/// [`nat_gateways_read`](crate::Snapshot::nat_gateways_read).
#[derive(Clone, Debug, PartialEq)]
pub struct FoundNatGateway {
    /// `nat-...`
    pub id: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// The subnet that it is in.
    pub subnet_id: String,
    /// `eipalloc-...` of its first Elastic IP address; `None` for one that leads to private networks alone.
    pub allocation_id: Option<String>,
    /// None for one that leads to private networks alone, and maybe none before it is ready.
    pub public_ips: Vec<String>,
    /// `Deleting` until it is deleted; then it is not shown any more.
    pub state: State,
    /// AWS's reason when it failed.
    pub failure: Option<String>,
    /// All of its tags.
    pub tags: Tags,
}

impl NatGateway {
    /// The address that an attempt to make one was given.
    pub fn address_of(attempt: &Intent) -> Option<&str> {
        attempt.inputs.as_ref()?.get(ADDRESS)?.as_str()
    }
}

impl ResourceKind for NatGateway {
    const GUARD: Guard = Guard::Token;
    const READS: &'static [Read] = &[Read::NatGateways];
    const EVIDENCE: &'static [Read] = &[Read::Vpcs, Read::Subnets];

    fn after(&self) -> Vec<Key> {
        vec![
            Subnet::key(&self.subnet),
            ElasticIp::key(&self.elastic_ip),
            InternetGateway::key(&self.internet_gateway),
        ]
    }

    fn satisfied_by(&self, observed: &Self) -> bool {
        self.subnet == observed.subnet
    }

    fn immutable(&self, observed: &Self) -> Option<&'static str> {
        (self.subnet != observed.subnet).then_some("subnet")
    }

    /// An address in use shows whose it is before the gateway itself is shown.
    fn inputs(&self, ids: &Ids) -> Option<serde_json::Value> {
        Some(serde_json::json!({ADDRESS: ids.get(&ElasticIp::key(&self.elastic_ip))?}))
    }

    fn details(&self) -> String {
        format!(" in {}", self.subnet)
    }
}
