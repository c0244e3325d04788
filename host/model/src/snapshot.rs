//! What a sweep of one AWS account and region found, as AWS shows it: ids, not roles. Crate `infra` turns it
//! into what one cluster or machine sees. Nothing here talks to AWS.

use std::collections::{BTreeMap, BTreeSet};

use crate::{HealthCheck, InstanceStatus, LoadBalancerAttributes, LoadBalancerKind, Part, Shared, State};

/// Tags of a resource.
pub type Tags = BTreeMap<String, String>;

/// Seconds since 1970, UTC.
pub type Timestamp = f64;

/// What one Describe call (with its pages) reads. What a snapshot shows of a kind is all of its pages, or an
/// earlier read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// DescribeVpcs.
    Vpcs,
    /// DescribeSubnets.
    Subnets,
    /// DescribeInternetGateways.
    InternetGateways,
    /// DescribeNatGateways.
    NatGateways,
    /// DescribeAddresses: Elastic IP addresses.
    Addresses,
    /// DescribeRouteTables.
    RouteTables,
    /// DescribeSecurityGroups, with the rules of each.
    SecurityGroups,
    /// DescribeInstances.
    Instances,
    /// DescribeLoadBalancers of Elastic Load Balancing's first version.
    ClassicLoadBalancers,
    /// DescribeLoadBalancers of the second version: network, application and gateway load balancers.
    LoadBalancers,
    /// DescribeTargetGroups, and DescribeTargetHealth of those that load balancers forward to.
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
    /// Such as `eu-west-1`.
    pub region: String,
    /// When this process began to act. What an earlier one made shortly before may be missing from reads for
    /// a while, and is not in this one's memory of its own writes. 0 when that does not matter.
    pub since: Timestamp,
    /// When the latest successful read of each kind *began*. Kinds never read are absent: nothing may be
    /// concluded from their emptiness.
    pub read_at: BTreeMap<Read, Timestamp>,
    /// Available zones that need no opt-in, sorted. Empty until they were read.
    pub zones: Vec<String>,
    /// Those with a cluster's tag, and those that users brought.
    pub vpcs: Shared<FoundVpc>,
    /// Those with a cluster's tag, and those that users brought.
    pub subnets: Shared<FoundSubnet>,
    /// Those with a cluster's tag, and those that users brought.
    pub internet_gateways: Shared<FoundInternetGateway>,
    /// Those with a cluster's tag, and those of [`nat_gateways_read`](Self::nat_gateways_read).
    pub nat_gateways: Shared<FoundNatGateway>,
    /// VPCs of which the latest read of NAT gateways showed all, also those without a cluster's tag.
    pub nat_gateways_read: BTreeSet<String>,
    /// Those with a cluster's tag.
    pub addresses: Shared<FoundAddress>,
    /// Those with a cluster's tag, and those of [`route_tables_read`](Self::route_tables_read).
    pub route_tables: Shared<FoundRouteTable>,
    /// VPCs of which the latest read of route tables showed all, also those without a cluster's tag.
    pub route_tables_read: BTreeSet<String>,
    /// Those with a cluster's tag, those that users brought, and all of VPCs that are being deleted.
    pub security_groups: Shared<FoundSecurityGroup>,
    /// Those with a cluster's tag.
    pub instances: Shared<FoundInstance>,
    /// All of the region, of all kinds: a describe call does not show their tags.
    pub load_balancers: Shared<FoundLoadBalancer>,
    /// Only of VPCs that are being deleted.
    pub network_interfaces: Shared<FoundNetworkInterface>,
    /// VPCs whose interfaces and groups (also untagged ones) and whose load balancers' tags were read, and
    /// when that began.
    pub deleting_vpcs_read: BTreeMap<String, Timestamp>,
    /// Ids that were read one by one and were not found, and when. Reads lag: it takes a while until that
    /// proves anything.
    pub absent: BTreeMap<String, Timestamp>,
}

impl Snapshot {
    /// Which of these kinds were never read.
    pub fn lacks(&self, reads: impl IntoIterator<Item = Read>) -> BTreeSet<Part> {
        reads.into_iter().filter(|it| !self.read_at.contains_key(it)).map(Part::Kind).collect()
    }
}

/// A VPC.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundVpc {
    /// `vpc-...`
    pub id: String,
    /// Primary IPv4 range, such as `10.0.0.0/16`.
    pub cidr: String,
    /// `Creating` or `Ready`.
    pub state: State,
    /// Describe does not show it: `Some(true)` once this process set it.
    pub dns_hostnames: Option<bool>,
    /// All of its tags.
    pub tags: Tags,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSubnet {
    /// `subnet-...`
    pub id: String,
    /// The VPC that it is a part of.
    pub vpc_id: String,
    /// Availability zone, such as `us-east-1a`.
    pub zone: String,
    /// IPv4 range, such as `10.0.0.0/20`.
    pub cidr: String,
    /// `MapPublicIpOnLaunch`. Whether the internet reaches it, its routes say.
    pub public: bool,
    /// `Creating`, `Ready` or `Failed`.
    pub state: State,
    /// All of its tags.
    pub tags: Tags,
}

/// An internet gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundInternetGateway {
    /// `igw-...`
    pub id: String,
    /// The VPC it is attached to; `None` when to none.
    pub vpc_id: Option<String>,
    /// All of its tags.
    pub tags: Tags,
}

/// A NAT gateway.
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

/// An Elastic IP address.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundAddress {
    /// `eipalloc-...`
    pub id: String,
    /// IPv4 address.
    pub public_ip: String,
    /// `eipassoc-...`; `None` when nothing uses it.
    pub association_id: Option<String>,
    /// `eni-...` of the network interface that uses it; `None` when none does.
    pub network_interface_id: Option<String>,
    /// All of its tags.
    pub tags: Tags,
}

/// A route table.
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

/// A security group.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundSecurityGroup {
    /// `sg-...`
    pub id: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// Unique within the VPC. `default` is the one that AWS makes with it.
    pub group_name: String,
    /// What its maker wrote; AWS never changes it.
    pub description: String,
    /// Ingress, one entry for each protocol, range and source. `source` names groups by id.
    pub rules: Vec<FoundRule>,
    /// All of its tags.
    pub tags: Tags,
}

/// An ingress rule of a security group.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundRule {
    /// AWS's word or number: `tcp`, `-1` (all), `4`.
    pub protocol: String,
    /// First port, of ICMP the type; -1 where AWS names none.
    pub from_port: i32,
    /// Last port, of ICMP the code; -1 where AWS names none.
    pub to_port: i32,
    /// Where it lets traffic come from.
    pub source: FoundSource,
    /// Empty when AWS shows none.
    pub description: String,
}

/// Where a rule lets traffic come from, as AWS names it.
#[derive(Clone, Debug, PartialEq)]
pub enum FoundSource {
    /// IPv4 or IPv6 range.
    Cidr(String),
    /// `sg-...`
    GroupId(String),
    /// `pl-...`, a managed prefix list.
    PrefixList(String),
}

/// An EC2 instance.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundInstance {
    /// `i-...`
    pub id: String,
    /// `None` once terminated.
    pub vpc_id: Option<String>,
    /// Of its first network interface; `None` once terminated.
    pub subnet_id: Option<String>,
    /// Token of the RunInstances call that made it; `None` when it had none.
    pub client_token: Option<String>,
    /// Such as `t3.large`.
    pub instance_type: String,
    /// AMI id.
    pub image: String,
    /// ARN of its instance profile.
    pub profile: Option<String>,
    /// Groups of its first network interface, by id.
    pub groups: BTreeSet<String>,
    /// Its state and addresses.
    pub status: InstanceStatus,
    /// All of its tags.
    pub tags: Tags,
}

impl FoundInstance {
    /// For people: that it is in its state, and why.
    pub fn stands(&self) -> String {
        let why = self.status.reason.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
        format!("{} is {}{why}", self.id, self.status.state)
    }
}

/// A load balancer of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundLoadBalancer {
    /// The ARN; a classic load balancer's name.
    pub id: String,
    /// Unique in the region among those of its version of Elastic Load Balancing.
    pub name: String,
    /// Which of the kinds.
    pub kind: LoadBalancerKind,
    /// Such as `c1-apiserver-123.us-east-1.elb.amazonaws.com`; empty while AWS does not say.
    pub dns_name: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// Scheme `internal`, else `internet-facing`.
    pub internal: bool,
    /// `Creating`, `Ready` or `Failed`. A network load balancer whose listeners were not read yet counts as
    /// being made.
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

/// A listener and what is behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundListener {
    /// Where clients reach it.
    pub port: u16,
    /// Port of the instances, or of the target group.
    pub target_port: u16,
    /// `None`: just made and not set yet, or in a form that cannot be read.
    pub health_check: Option<HealthCheck>,
}

/// A network interface in a VPC that is being deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundNetworkInterface {
    /// `eni-...`
    pub id: String,
    /// The VPC that it is in.
    pub vpc_id: String,
    /// The subnet that it is in.
    pub subnet_id: String,
    /// By id.
    pub groups: BTreeSet<String>,
    /// `available` or `in-use`.
    pub status: String,
    /// What its maker wrote, such as `ELB NAME`; empty when nothing.
    pub description: String,
    /// `interface`, `nat_gateway`, `network_load_balancer`, ...
    pub interface_type: String,
    /// Whether a service of AWS made it and looks after it.
    pub requester_managed: bool,
    /// `i-...`; `None` when it is attached to none.
    pub attached_instance: Option<String>,
    /// All of its tags.
    pub tags: Tags,
}
