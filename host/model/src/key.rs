//! Names for what a cluster is made of: `subnet/private-us-east-1a`. A key comes from the role that a
//! resource plays for its cluster, never from an AWS id or from a `Name` tag. Nothing here knows AWS ids.

use std::fmt;

/// The kinds of AWS resources that this provider makes, named by AWS's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A VPC, `main`.
    Vpc,
    /// A subnet, by its role and zone; one that the user brought, by its id.
    Subnet,
    /// An internet gateway, with its attachment.
    InternetGateway,
    /// An Elastic IP address of a NAT gateway.
    ElasticIp,
    /// A public NAT gateway.
    NatGateway,
    /// A route table, with its default route and the subnets associated with it.
    RouteTable,
    /// A security group without its rules.
    SecurityGroup,
    /// Ingress rules of a security group.
    SecurityGroupRules,
    /// A classic or network load balancer with its listener, and the target group behind it.
    LoadBalancer,
    /// A network interface that others made; only ever deleted.
    NetworkInterface,
    /// Secrets of Secrets Manager that hold the bootstrap data of one machine.
    Secret,
    /// An EC2 instance.
    Instance,
    /// The registration of an instance at a load balancer.
    Target,
}

impl Kind {
    /// The word for it in keys, logs and conditions.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Vpc => "vpc",
            Kind::Subnet => "subnet",
            Kind::InternetGateway => "internet-gateway",
            Kind::ElasticIp => "elastic-ip",
            Kind::NatGateway => "nat-gateway",
            Kind::RouteTable => "route-table",
            Kind::SecurityGroup => "security-group",
            Kind::SecurityGroupRules => "security-group-rules",
            Kind::LoadBalancer => "load-balancer",
            Kind::NetworkInterface => "network-interface",
            Kind::Secret => "secret",
            Kind::Instance => "instance",
            Kind::Target => "target",
        }
    }
}

impl Kind {
    /// All of them, in the order in which they are made.
    pub const ALL: [Kind; 13] = [
        Kind::Vpc,
        Kind::Subnet,
        Kind::InternetGateway,
        Kind::ElasticIp,
        Kind::NatGateway,
        Kind::RouteTable,
        Kind::SecurityGroup,
        Kind::SecurityGroupRules,
        Kind::LoadBalancer,
        Kind::NetworkInterface,
        Kind::Secret,
        Kind::Instance,
        Kind::Target,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A resource's kind and the name of its role in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Which kind of resource.
    pub kind: Kind,
    /// Role, such as `private-us-east-1a`; AWS's id or name for what has no role. Unique within the kind.
    pub name: String,
}

impl Key {
    /// A key of this kind and name.
    pub fn new(kind: Kind, name: impl Into<String>) -> Self {
        Key { kind, name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// What is no key: it has no `/`, or what stands before it is no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key such as \"vpc/main\"")]
pub struct NoKey(pub String);

impl std::str::FromStr for Key {
    type Err = NoKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, name) = text.split_once('/').ok_or_else(|| NoKey(text.into()))?;
        let kind = Kind::ALL.into_iter().find(|it| it.as_str() == kind).ok_or_else(|| NoKey(text.into()))?;
        Ok(Key::new(kind, name))
    }
}
