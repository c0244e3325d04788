//! What controllers inside a cluster left in AWS when they went with it: load balancers, target groups,
//! security groups and network interfaces. Says which of what was found that is, and what can be removed now.
//! Volumes, what carries no tag of such a controller, what this operator or Cluster API Provider AWS made,
//! and what lies outside the cluster's VPC are never among them. Nothing here asks AWS.

mod collected;
mod sign;
mod sweep;

use std::collections::BTreeSet;
use std::fmt;

use crds::names::{CLUSTER_TAG_PREFIX, ID_TAG, OWNED, OWNER_TAG, cloud_provider_tag, cluster_tag};

use model::{
    FoundLoadBalancer, FoundNetworkInterface, FoundRule, FoundSecurityGroup, FoundSource, LoadBalancerKind,
    Problem, Snapshot, Tags,
};

pub use collected::Collected;
pub use sign::{ClusterIdentity, Neighbours};
pub use sweep::Sweep;

/// Tag key by which the AWS Load Balancer Controller marks what it makes; the value is the cluster's name.
pub const CONTROLLER_TAG: &str = "elbv2.k8s.aws/cluster";
/// Tag key by which the Amazon VPC CNI names the cluster of an interface, where it was told that.
const CNI_CLUSTER_TAG: &str = "cluster.k8s.amazonaws.com/name";
/// Tag keys that the Amazon VPC CNI puts on every interface it makes.
const CNI_TAGS: [&str; 2] = ["node.k8s.amazonaws.com/instance_id", "node.k8s.amazonaws.com/createdAt"];
/// Descriptions of its interfaces begin so.
const CNI_DESCRIPTION: &str = "aws-K8S-";
/// Names of groups that the cloud provider (`k8s-elb-`) and the AWS Load Balancer Controller make begin so. A
/// group that a user brought for them carries the same tag, and another name.
const GROUP_PREFIX: &str = "k8s-";

/// What a thing that was left is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftoverKind {
    /// Of Elastic Load Balancing's first version. Its id is its name.
    ClassicLoadBalancer,
    /// An application, network or gateway load balancer. Its id is its ARN.
    LoadBalancer,
    /// Its id is its ARN.
    TargetGroup,
    /// Rules of a group that stays, or goes later, which name a group that was left. The id is that of the
    /// group that has them.
    SecurityGroupRules,
    SecurityGroup,
    NetworkInterface,
}

impl LeftoverKind {
    /// The word for it in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            LeftoverKind::ClassicLoadBalancer | LeftoverKind::LoadBalancer => "load-balancer",
            LeftoverKind::TargetGroup => "target-group",
            LeftoverKind::SecurityGroupRules => "security-group-rules",
            LeftoverKind::SecurityGroup => "security-group",
            LeftoverKind::NetworkInterface => "network-interface",
        }
    }

    fn is_load_balancer(self) -> bool {
        matches!(self, LeftoverKind::ClassicLoadBalancer | LeftoverKind::LoadBalancer)
    }
}

/// One thing that was left.
#[derive(Clone, Debug, PartialEq)]
pub struct Leftover {
    pub kind: LeftoverKind,
    /// What AWS's calls take.
    pub id: String,
    /// What people know it by.
    pub name: String,
    pub tags: Tags,
    pub vpc_id: String,
    /// Ids of the security groups that it carries.
    pub groups: BTreeSet<String>,
    /// The ingress rules that are to be revoked, where it is rules.
    pub rules: Vec<FoundRule>,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.as_str(), self.name)
    }
}

/// A target group as AWS shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundTargetGroup {
    pub arn: String,
    pub name: String,
    /// Empty for what forwards to a function.
    pub vpc_id: String,
    pub tags: Tags,
}

/// What one look brought.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leftovers {
    /// As far as it could be read.
    pub left: Vec<Leftover>,
    /// What says that some of it may be of another cluster of the same name; see [`ClusterIdentity::sign`].
    pub sign: Option<String>,
    /// Why that may not be all of it.
    pub unread: Option<Problem>,
}

/// What was read to find leftovers in. More than there are does no harm.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// With their tags; without, they count as untagged.
    pub load_balancers: Vec<FoundLoadBalancer>,
    pub target_groups: Vec<FoundTargetGroup>,
    /// All groups of the VPC: rules of any of them may name one that was left.
    pub security_groups: Vec<FoundSecurityGroup>,
    pub network_interfaces: Vec<FoundNetworkInterface>,
}

/// Whether tags say that a controller inside the cluster made something, and not this operator or Cluster API
/// Provider AWS.
pub fn is_left(tags: &Tags, cluster: &str) -> bool {
    let value = |key: &str| tags.get(key).map(String::as_str);
    let by_controller = value(CONTROLLER_TAG) == Some(cluster);
    let by_cloud_provider = value(&cloud_provider_tag(cluster)) == Some(OWNED);
    (by_controller || by_cloud_provider) && !is_ours(tags)
}

/// Whether the normal deletion of some cluster takes care of it.
fn is_ours(tags: &Tags) -> bool {
    tags.keys().any(|it| it.starts_with(CLUSTER_TAG_PREFIX))
}

/// What says that another cluster of the same name, whose random id or AWSCluster is another one, is in the
/// VPC too. What controllers left there does not say which of the two it is of.
pub fn serves_another(
    snapshot: &Snapshot,
    vpc_id: &str,
    cluster: &str,
    id: &str,
    owner: &str,
) -> Option<String> {
    let another_owner = |tags: &Tags| tags.get(OWNER_TAG).is_some_and(|it| it != owner);
    let another = |tags: &Tags| {
        is_of(tags, cluster) && tags.get(ID_TAG).is_some_and(|it| it != id || another_owner(tags))
    };
    let vpcs = snapshot.vpcs.iter().filter(|it| it.id == vpc_id).map(|it| (&it.id, &it.tags));
    let subnets = snapshot.subnets.iter().filter(|it| it.vpc_id == vpc_id).map(|it| (&it.id, &it.tags));
    let groups =
        snapshot.security_groups.iter().filter(|it| it.vpc_id == vpc_id).map(|it| (&it.id, &it.tags));
    let (found, tags) = vpcs.chain(subnets).chain(groups).find(|(_, tags)| another(tags))?;
    let whose =
        tags.get(OWNER_TAG).map(|it| format!("{OWNER_TAG}={it}")).unwrap_or_else(|| ID_TAG.to_owned());
    Some(format!("{found} has the tag {whose}, of another AWSCluster"))
}

/// What controllers inside the cluster left in its VPC.
pub fn leftovers(cluster: &str, vpc_id: &str, found: &Found) -> Vec<Leftover> {
    let here = |it: &str| !vpc_id.is_empty() && it == vpc_id;
    let mut res = Vec::new();
    for it in found.load_balancers.iter().filter(|it| here(&it.vpc_id)) {
        let kind = if it.kind == LoadBalancerKind::Classic {
            LeftoverKind::ClassicLoadBalancer
        } else {
            LeftoverKind::LoadBalancer
        };
        let tags = it.tags.clone().unwrap_or_default();
        let left = is_left(&tags, cluster);
        res.extend(left.then(|| Leftover {
            groups: it.groups.clone(),
            ..Leftover::new(kind, &it.id, &it.name, &tags, vpc_id)
        }));
    }
    for it in found.target_groups.iter().filter(|it| here(&it.vpc_id) && is_left(&it.tags, cluster)) {
        res.push(Leftover::new(LeftoverKind::TargetGroup, &it.arn, &it.name, &it.tags, vpc_id));
    }
    let groups: Vec<&FoundSecurityGroup> =
        found.security_groups.iter().filter(|it| here(&it.vpc_id)).collect();
    let is_left_group =
        |it: &FoundSecurityGroup| it.group_name.starts_with(GROUP_PREFIX) && is_left(&it.tags, cluster);
    let left: BTreeSet<&str> =
        groups.iter().filter(|it| is_left_group(it)).map(|it| it.id.as_str()).collect();
    for it in &groups {
        let names_one = |rule: &&FoundRule| matches!(&rule.source, FoundSource::GroupId(id) if *id != it.id && left.contains(id.as_str()));
        let rules: Vec<FoundRule> = it.rules.iter().filter(names_one).cloned().collect();
        if !rules.is_empty() {
            res.push(Leftover {
                rules,
                ..Leftover::new(LeftoverKind::SecurityGroupRules, &it.id, &it.group_name, &it.tags, vpc_id)
            });
        }
    }
    for it in groups.iter().filter(|it| left.contains(it.id.as_str())) {
        res.push(Leftover::new(LeftoverKind::SecurityGroup, &it.id, &it.group_name, &it.tags, vpc_id));
    }
    let own: BTreeSet<&str> =
        groups.iter().filter(|it| is_of(&it.tags, cluster)).map(|it| it.id.as_str()).collect();
    for it in
        found.network_interfaces.iter().filter(|it| here(&it.vpc_id) && is_left_interface(it, cluster, &own))
    {
        let leftover = Leftover::new(LeftoverKind::NetworkInterface, &it.id, &it.id, &it.tags, vpc_id);
        res.push(Leftover { groups: it.groups.clone(), ..leftover });
    }
    res
}

/// Whether this cluster's own groups carry the tags.
fn is_of(tags: &Tags, cluster: &str) -> bool {
    tags.get(&cluster_tag(cluster)).map(String::as_str) == Some(OWNED)
}

/// An interface that the Amazon VPC CNI made and nobody uses. Where it does not say for which cluster, the
/// groups that it carries do: it has those of the node that it was made for.
fn is_left_interface(interface: &FoundNetworkInterface, cluster: &str, own_groups: &BTreeSet<&str>) -> bool {
    let by_cni = CNI_TAGS.iter().any(|key| interface.tags.contains_key(*key))
        || interface.description.starts_with(CNI_DESCRIPTION);
    let for_us = match interface.tags.get(CNI_CLUSTER_TAG) {
        Some(name) => name == cluster,
        None => interface.groups.iter().any(|id| own_groups.contains(id.as_str())),
    };
    let free = interface.status == "available"
        && interface.attached_instance.is_none()
        && !interface.requester_managed;
    free && for_us && (by_cni || interface.tags.contains_key(CNI_CLUSTER_TAG)) && !is_ours(&interface.tags)
}

impl Leftover {
    fn new(kind: LeftoverKind, id: &str, name: &str, tags: &Tags, vpc_id: &str) -> Self {
        let (id, name, vpc_id) = (id.to_owned(), name.to_owned(), vpc_id.to_owned());
        Leftover { kind, id, name, tags: tags.clone(), vpc_id, groups: BTreeSet::new(), rules: Vec::new() }
    }

    /// Whether another look found it too, perhaps with other rules.
    fn is_same(&self, other: &Leftover) -> bool {
        (self.kind, &self.id) == (other.kind, &other.id)
    }

    /// Whether it has to go before `other` can.
    fn holds(&self, other: &Leftover) -> bool {
        match other.kind {
            LeftoverKind::ClassicLoadBalancer
            | LeftoverKind::LoadBalancer
            | LeftoverKind::NetworkInterface => false,
            // Which load balancer forwards to which group is not read.
            LeftoverKind::TargetGroup => self.kind == LeftoverKind::LoadBalancer,
            // As long as a load balancer is there, its traffic is let in.
            LeftoverKind::SecurityGroupRules => self.kind.is_load_balancer(),
            LeftoverKind::SecurityGroup => match self.kind {
                LeftoverKind::SecurityGroupRules => self
                    .rules
                    .iter()
                    .any(|it| matches!(&it.source, FoundSource::GroupId(id) if *id == other.id)),
                LeftoverKind::NetworkInterface => self.groups.contains(&other.id),
                kind => kind.is_load_balancer(),
            },
        }
    }
}

/// Those that can be removed now: load balancers, then target groups and the rules that name a group which
/// was left, then the groups. Interfaces wait for nothing, and groups for the interfaces that carry them.
pub fn order(left: &[Leftover]) -> Vec<Leftover> {
    left.iter().filter(|it| !left.iter().any(|other| other.holds(it))).cloned().collect()
}

#[cfg(test)]
mod tests;
