//! Names for what a cluster is made of: `subnet/private-us-east-1a`. A key comes from the role that a resource plays for its
//! cluster, never from an AWS id or from a `Name` tag. Nothing here knows AWS ids.

use std::fmt;

/// The kinds of AWS resources that this provider makes, named by AWS's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Vpc,
    Subnet,
    InternetGateway,
    ElasticIp,
    NatGateway,
    RouteTable,
    SecurityGroup,
    SecurityGroupRules,
    LoadBalancer,
    NetworkInterface,
    Secret,
    Instance,
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
    pub kind: Kind,
    pub name: String,
}

impl Key {
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
