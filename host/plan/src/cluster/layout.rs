//! Which zones and subnets a cluster has: those that its spec lists, or one public and one private subnet in each of the first zones, with
//! the address ranges that Cluster API Provider AWS gives them. It never looks at which of them exist.

use std::collections::BTreeSet;

use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::load_balancer::LoadBalancerType;
use crds::names::{ID_TAG, OWNED, cluster_tag};
use crds::network::{AvailabilityZoneSelection, SubnetSpec};
use ipnet::Ipv4Net;

use super::{brought, name, tag};
use crate::leftover::Collected;
use crate::see::{Scope, SubnetRole, is_marked, kept_for_pods};
use crate::token::derive;
use crate::{FoundSubnet, FoundVpc, Invalid, LoadBalancerKind, Record, Snapshot, Subnet, Vpc};

/// Addresses of a VPC whose spec names none.
const DEFAULT_RANGE: &str = "10.0.0.0/16";

/// The network of a cluster on paper.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Whether the network is ours to make. Otherwise the user brought the VPC, and nothing in it but groups and a load balancer is ours.
    pub owned: bool,
    /// IPv4 range of the VPC; empty for a user's that was not seen yet.
    pub cidr: String,
    pub subnets: Vec<SubnetRole>,
}

impl Layout {
    /// Lays out the network. Zones are chosen once and written into the record.
    ///
    /// # Errors
    /// The field that cannot be carried out.
    pub(crate) fn of(
        cluster: &Cluster,
        aws_cluster: &AWSCluster,
        record: &mut Record,
        snapshot: &Snapshot,
        random: &str,
    ) -> Result<Layout, Invalid> {
        let network = &aws_cluster.spec.network;
        let given = snapshot.vpcs.iter().find(|it| it.id == network.vpc.id);
        let owned = network.vpc.id.is_empty() || given.is_some_and(|it| is_owned(it, cluster, aws_cluster, record));
        let spec = Some(network.vpc.cidr_block.clone()).filter(|it| !it.is_empty());
        if !owned {
            let cidr = given.map(|it| it.cidr.clone()).or(spec).unwrap_or_default();
            return Ok(Layout { owned, cidr, subnets: brought::subnets(&network.subnets, &network.vpc.id, snapshot)? });
        }
        let cidr = spec.or_else(|| given.map(|it| it.cidr.clone())).unwrap_or_else(|| DEFAULT_RANGE.into());
        let range = parse("spec.network.vpc.cidrBlock", &cidr)?;
        if !(16..=28).contains(&range.prefix_len()) {
            return Err(Invalid::new("spec.network.vpc.cidrBlock", format!("{cidr}: AWS takes networks of /16 to /28")));
        }
        let subnets = match network.subnets.is_empty() {
            false => listed(&network.subnets, range, snapshot)?,
            true => {
                let zones = zones(aws_cluster, record, snapshot, random)?;
                record.zones = zones.clone();
                defaults(&zones, range)?
            }
        };
        Ok(Layout { owned, cidr, subnets })
    }

    /// How to see the cluster.
    pub(crate) fn scope(&self, cluster: &Cluster, aws_cluster: &AWSCluster, record: &Record) -> Scope {
        let given = &aws_cluster.spec.network.vpc.id;
        let cluster_name = name::cluster_name(cluster);
        Scope {
            id: record.id.clone(),
            owner: tag::owner(aws_cluster),
            vpc_id: (!given.is_empty()).then(|| given.clone()).or_else(|| record.ids.get(&Vpc::key(crate::see::MAIN)).cloned()),
            vpc_given: !given.is_empty(),
            subnets: self.subnets.clone(),
            nat_gateways: self.nat_gateways().into_iter().map(|(zone, _)| zone).collect(),
            load_balancer: load_balancer_kind(aws_cluster).map(|kind| (name::load_balancer(&cluster_name, aws_cluster, kind), kind)),
            intents: record.intents.clone(),
            deleting: super::deleting(aws_cluster),
            collected: Collected::of(aws_cluster.metadata.annotations.as_ref()).unwrap_or(Collected::NOTHING),
            cluster: cluster_name,
        }
    }

    /// Subnets that machines and load balancers are put in.
    pub(crate) fn for_nodes(&self) -> impl Iterator<Item = &SubnetRole> {
        self.subnets.iter().filter(|it| !it.for_pods)
    }

    /// Zones that have a private subnet, each with the public subnet of the zone that its NAT gateway is put in.
    pub(super) fn nat_gateways(&self) -> Vec<(String, String)> {
        if !self.owned {
            return Vec::new();
        }
        let zones: BTreeSet<&String> = self.subnets.iter().filter(|it| !it.public).map(|it| &it.zone).collect();
        let public = |zone: &String| self.for_nodes().find(|it| it.public && it.zone == *zone).map(|it| it.name.clone());
        zones.into_iter().filter_map(|zone| Some((zone.clone(), public(zone)?))).collect()
    }

    /// Ids of subnets that the user brought.
    pub(super) fn given(&self) -> impl Iterator<Item = (crate::Key, String)> {
        self.subnets.iter().filter(|_| !self.owned).filter_map(|it| Some((Subnet::key(&it.name), it.id.clone()?)))
    }
}

/// Whether a VPC that the spec names was made for the cluster, by this operator or by Cluster API Provider AWS.
pub(super) fn is_owned(vpc: &FoundVpc, cluster: &Cluster, aws_cluster: &AWSCluster, record: &Record) -> bool {
    let tagged = vpc.tags.get(&cluster_tag(&name::cluster_name(cluster))).map(String::as_str) == Some(OWNED);
    is_marked(&vpc.tags, &record.id, &tag::owner(aws_cluster)) || tagged && !vpc.tags.contains_key(ID_TAG)
}

/// The kind of load balancer in front of the API servers, if there is to be one.
pub(crate) fn load_balancer_kind(aws_cluster: &AWSCluster) -> Option<LoadBalancerKind> {
    match aws_cluster.spec.control_plane_load_balancer.load_balancer_type {
        LoadBalancerType::Classic | LoadBalancerType::Elb => Some(LoadBalancerKind::Classic),
        LoadBalancerType::Nlb => Some(LoadBalancerKind::Network),
        LoadBalancerType::Alb => Some(LoadBalancerKind::Application),
        LoadBalancerType::Disabled => None,
    }
}

fn parse(field: &str, text: &str) -> Result<Ipv4Net, Invalid> {
    let range: Ipv4Net = text.parse().map_err(|_| Invalid::new(field, format!("{text:?} is no IPv4 range such as {DEFAULT_RANGE}")))?;
    match range.trunc() == range {
        true => Ok(range),
        false => Err(Invalid::new(field, format!("{text} is not the beginning of its range; write {}", range.trunc()))),
    }
}

fn zones(aws_cluster: &AWSCluster, record: &Record, snapshot: &Snapshot, random: &str) -> Result<Vec<String>, Invalid> {
    if !record.zones.is_empty() {
        return Ok(record.zones.clone());
    }
    let vpc = &aws_cluster.spec.network.vpc;
    let mut zones = snapshot.zones.clone();
    if vpc.availability_zone_selection == AvailabilityZoneSelection::Random {
        zones.sort_by_cached_key(|zone| derive(random, zone));
    }
    zones.truncate(usize::try_from(vpc.availability_zone_usage_limit).unwrap_or(1).max(1));
    zones.sort();
    match zones.is_empty() {
        true => Err(Invalid::new("spec.region", format!("{} has no availability zone that can be used", aws_cluster.spec.region))),
        false => Ok(zones),
    }
}

/// The range is split into blocks, one more than there are zones: the private subnets get all but the first, which the public ones share.
fn defaults(zones: &[String], range: Ipv4Net) -> Result<Vec<SubnetRole>, Invalid> {
    let small = |()| {
        let message = format!("{range} is too small for public and private subnets in {} zones; AWS takes none below /28", zones.len());
        Invalid::new("spec.network.vpc.cidrBlock", message)
    };
    let split = |range: Ipv4Net, parts: usize| -> Result<Vec<Ipv4Net>, ()> {
        let bits = parts.next_power_of_two().trailing_zeros();
        let prefix = u8::try_from(u32::from(range.prefix_len()) + bits).ok().filter(|it| *it <= 28).ok_or(())?;
        Ok(range.subnets(prefix).map_err(|_| ())?.take(parts).collect())
    };
    let blocks = split(range, zones.len() + 1).map_err(small)?;
    let public = split(blocks[0], zones.len()).map_err(small)?;
    let role = |zone: &String, is_public: bool, cidr: &Ipv4Net| SubnetRole {
        name: format!("{}-{zone}", if is_public { "public" } else { "private" }),
        id: None,
        cidr: Some(cidr.to_string()),
        zone: zone.clone(),
        public: is_public,
        for_pods: false,
    };
    let public = zones.iter().zip(&public).map(|(zone, cidr)| role(zone, true, cidr));
    Ok(public.chain(zones.iter().zip(&blocks[1..]).map(|(zone, cidr)| role(zone, false, cidr))).collect())
}

/// Subnets to be made as listed, or made by another provider and taken over.
fn listed(specs: &[SubnetSpec], vpc: Ipv4Net, snapshot: &Snapshot) -> Result<Vec<SubnetRole>, Invalid> {
    let mut res: Vec<SubnetRole> = Vec::new();
    let mut taken: Vec<(usize, Ipv4Net)> = Vec::new();
    for (n, spec) in specs.iter().enumerate() {
        let field = |name: &str| format!("spec.network.subnets[{n}].{name}");
        let id = aws_ids(spec).next().cloned();
        let found = id.as_ref().and_then(|id| snapshot.subnets.iter().find(|it| it.id == *id));
        let filled = |text: &str, seen: fn(&FoundSubnet) -> &String| match text.is_empty() {
            true => found.map(|it| seen(it).clone()).unwrap_or_default(),
            false => text.to_owned(),
        };
        let (cidr, zone) = (filled(&spec.cidr_block, |it| &it.cidr), filled(&spec.availability_zone, |it| &it.zone));
        if zone.is_empty() {
            return Err(Invalid::new(field("availabilityZone"), "is needed for a subnet that is to be made"));
        }
        if !snapshot.zones.is_empty() && !snapshot.zones.contains(&zone) {
            return Err(Invalid::new(field("availabilityZone"), format!("{zone:?} is none of {}", snapshot.zones.join(", "))));
        }
        let range = parse(&field("cidrBlock"), &cidr)?;
        if !vpc.contains(&range) {
            return Err(Invalid::new(field("cidrBlock"), format!("{cidr} does not lie in the VPC's range {vpc}")));
        }
        if let Some((other, _)) = taken.iter().find(|(_, it)| it.contains(&range) || range.contains(it)) {
            return Err(Invalid::new(field("cidrBlock"), format!("{cidr} overlaps that of spec.network.subnets[{other}]")));
        }
        taken.push((n, range));
        let role = format!("{}-{zone}", if spec.is_public { "public" } else { "private" });
        let same = res.iter().filter(|it| it.zone == zone && it.public == spec.is_public).count();
        let name = if same == 0 { role } else { format!("{role}-{}", same + 1) };
        let for_pods = kept_for_pods(&spec.tags) || found.is_some_and(|it| kept_for_pods(&it.tags));
        res.push(SubnetRole { name, id, cidr: Some(cidr), zone, public: spec.is_public, for_pods });
    }
    ways_out(&res)?;
    Ok(res)
}

/// Whether machines in listed subnets, in the order of the spec, will reach what they boot from.
fn ways_out(listed: &[SubnetRole]) -> Result<(), Invalid> {
    let public: BTreeSet<&String> = listed.iter().filter(|it| it.public && !it.for_pods).map(|it| &it.zone).collect();
    if public.is_empty() {
        let message = "at least one public subnet is needed, for NAT gateways and load balancers";
        return Err(Invalid::new("spec.network.subnets", message));
    }
    match listed.iter().enumerate().find(|(_, it)| !it.public && !public.contains(&it.zone)) {
        Some((n, it)) => {
            let zone = &it.zone;
            let message = format!("{zone} has no public subnet for the NAT gateway of this private one; add one, or leave the zone out");
            Err(Invalid::new(format!("spec.network.subnets[{n}]"), message))
        }
        None => Ok(()),
    }
}

/// What of the names that a listed subnet has is an id that AWS gave. Names of subnets that are to be made may begin alike.
pub(super) fn aws_ids(spec: &SubnetSpec) -> impl Iterator<Item = &String> {
    [&spec.resource_id, &spec.id].into_iter().filter(|it| is_aws_id(it))
}

fn is_aws_id(text: &str) -> bool {
    let number = text.strip_prefix("subnet-").unwrap_or_default();
    (8..=17).contains(&number.len()) && number.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_aws_gave_is_an_id() {
        for id in ["subnet-0a1b2c3d", "subnet-0123456789abcdef0"] {
            assert!(is_aws_id(id), "{id}");
        }
        for name in ["subnet-zone-1-private", "subnet-a", "subnet-0A1B2C3D", "subnet-", "private-a", "subnet-0123456789abcdef01"] {
            assert!(!is_aws_id(name), "{name}");
        }
    }
}
