//! What a sweep of one AWS account and region found, as AWS shows it: ids, not roles. [`see`](crate::see) turns it into what one
//! cluster or machine sees. Nothing here talks to AWS.

use std::collections::{BTreeMap, BTreeSet};

use crate::{HealthCheck, InstanceStatus, LoadBalancerAttributes, LoadBalancerKind, Part, Shared, State};

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// Seconds since 1970, UTC.
pub type Timestamp = f64;

/// What one Describe call (with its pages) reads. What a snapshot shows of a kind is all of its pages, or an earlier read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    Vpcs,
    Subnets,
    InternetGateways,
    NatGateways,
    Addresses,
    RouteTables,
    SecurityGroups,
    Instances,
    ClassicLoadBalancers,
    LoadBalancers,
    TargetGroups,
}

impl Read {
    /// Every kind.
    pub const ALL: [Read; 11] = [
        Read::Vpcs,
        Read::Subnets,
        Read::InternetGateways,
        Read::NatGateways,
        Read::Addresses,
        Read::RouteTables,
        Read::SecurityGroups,
        Read::Instances,
        Read::ClassicLoadBalancers,
        Read::LoadBalancers,
        Read::TargetGroups,
    ];
}

/// Everything known of one region, shared by all clusters and machines in it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub region: String,
    /// When this process began to act. What an earlier one made shortly before may be missing from reads for a while, and is not in
    /// this one's memory of its own writes. 0 when that does not matter.
    pub since: Timestamp,
    /// When the latest successful read of each kind *began*. Kinds never read are absent: nothing may be concluded from their emptiness.
    pub read_at: BTreeMap<Read, Timestamp>,
    /// Available zones that need no opt-in, sorted. Empty until they were read.
    pub zones: Vec<String>,
    pub vpcs: Shared<FoundVpc>,
    pub subnets: Shared<FoundSubnet>,
    pub internet_gateways: Shared<FoundInternetGateway>,
    pub nat_gateways: Shared<FoundNatGateway>,
    /// VPCs of which the latest read of NAT gateways showed all, also those without a cluster's tag.
    pub nat_gateways_read: BTreeSet<String>,
    pub addresses: Shared<FoundAddress>,
    pub route_tables: Shared<FoundRouteTable>,
    /// VPCs of which the latest read of route tables showed all, also those without a cluster's tag.
    pub route_tables_read: BTreeSet<String>,
    pub security_groups: Shared<FoundSecurityGroup>,
    pub instances: Shared<FoundInstance>,
    pub load_balancers: Shared<FoundLoadBalancer>,
    /// Only of VPCs that are being deleted.
    pub network_interfaces: Shared<FoundNetworkInterface>,
    /// VPCs whose interfaces and groups (also untagged ones) and whose load balancers' tags were read, and when that began.
    pub deleting_vpcs_read: BTreeMap<String, Timestamp>,
    /// Ids that were read one by one and were not found, and when. Reads lag: it takes a while until that proves anything.
    pub absent: BTreeMap<String, Timestamp>,
}

impl Snapshot {
    /// Which of these kinds were never read.
    pub fn lacks(&self, reads: impl IntoIterator<Item = Read>) -> BTreeSet<Part> {
        reads.into_iter().filter(|it| !self.read_at.contains_key(it)).map(Part::Kind).collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundVpc {
    pub id: String,
    pub cidr: String,
    pub state: State,
    /// Describe does not show it: `Some(true)` once this process set it.
    pub dns_hostnames: Option<bool>,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundSubnet {
    pub id: String,
    pub vpc_id: String,
    pub zone: String,
    pub cidr: String,
    /// `MapPublicIpOnLaunch`. Whether the internet reaches it, its routes say.
    pub public: bool,
    pub state: State,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundInternetGateway {
    pub id: String,
    /// The VPC it is attached to.
    pub vpc_id: Option<String>,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundNatGateway {
    pub id: String,
    pub vpc_id: String,
    pub subnet_id: String,
    pub allocation_id: Option<String>,
    /// None for one that leads to private networks alone, and maybe none before it is ready.
    pub public_ips: Vec<String>,
    pub state: State,
    /// AWS's reason when it failed.
    pub failure: Option<String>,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundAddress {
    /// `eipalloc-...`
    pub id: String,
    pub public_ip: String,
    pub association_id: Option<String>,
    pub network_interface_id: Option<String>,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundRouteTable {
    pub id: String,
    pub vpc_id: String,
    pub main: bool,
    /// Association id by subnet id.
    pub associations: BTreeMap<String, String>,
    /// Gateway id (`igw-`, `nat-`, ...) of 0.0.0.0/0.
    pub default_route: Option<String>,
    /// Internet gateways that its other routes lead to.
    pub internet_gateways: BTreeSet<String>,
    pub tags: Tags,
}

impl FoundRouteTable {
    /// Whether any of its routes leads to an internet gateway.
    pub fn leads_to_internet_gateway(&self) -> bool {
        !self.internet_gateways.is_empty() || self.default_route.as_ref().is_some_and(|it| it.starts_with("igw-"))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundSecurityGroup {
    pub id: String,
    pub vpc_id: String,
    pub group_name: String,
    pub description: String,
    /// Ingress, one entry for each protocol, range and source. `source` names groups by id.
    pub rules: Vec<FoundRule>,
    pub tags: Tags,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundRule {
    pub protocol: String,
    pub from_port: i32,
    pub to_port: i32,
    pub source: FoundSource,
    pub description: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum FoundSource {
    Cidr(String),
    GroupId(String),
    PrefixList(String),
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundInstance {
    pub id: String,
    pub vpc_id: Option<String>,
    pub subnet_id: Option<String>,
    pub client_token: Option<String>,
    pub instance_type: String,
    pub image: String,
    /// ARN of its instance profile.
    pub profile: Option<String>,
    /// Groups of its first network interface, by id.
    pub groups: BTreeSet<String>,
    pub status: InstanceStatus,
    pub tags: Tags,
}

impl FoundInstance {
    /// For people: that it is in its state, and why.
    pub fn stands(&self) -> String {
        let why = self.status.reason.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{} is {}{why}", self.id, self.status.state)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundLoadBalancer {
    /// The ARN; a classic load balancer's name.
    pub id: String,
    pub name: String,
    pub kind: LoadBalancerKind,
    pub dns_name: String,
    pub vpc_id: String,
    pub internal: bool,
    pub state: State,
    /// By id.
    pub subnets: BTreeSet<String>,
    /// By id.
    pub groups: BTreeSet<String>,
    /// What its listeners forward to; of a network load balancer whose target group is attached, that one.
    pub listeners: Vec<FoundListener>,
    /// Instance ids behind it.
    pub targets: BTreeSet<String>,
    /// Not shown by a describe call: set once this process set or read them.
    pub attributes: Option<LoadBalancerAttributes>,
    /// Target groups attached to it, by ARN.
    pub target_groups: Vec<String>,
    /// Only read for VPCs that are being deleted.
    pub tags: Option<Tags>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundListener {
    pub port: u16,
    pub target_port: u16,
    pub health_check: Option<HealthCheck>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundNetworkInterface {
    pub id: String,
    pub vpc_id: String,
    pub subnet_id: String,
    /// By id.
    pub groups: BTreeSet<String>,
    /// `available` or `in-use`.
    pub status: String,
    pub description: String,
    /// `interface`, `nat_gateway`, `network_load_balancer`, ...
    pub interface_type: String,
    pub requester_managed: bool,
    pub attached_instance: Option<String>,
    pub tags: Tags,
}
