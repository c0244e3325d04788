//! The subnets of a network that is ours to make: those that the spec lists, or one public and one private
//! subnet in each of the first zones, with the address ranges that Cluster API Provider AWS gives them.

use std::collections::{BTreeMap, BTreeSet};

use crds::AWSCluster;
use crds::network::{AvailabilityZoneSelection, SubnetSpec};
use ipnet::Ipv4Net;

use super::{DEFAULT_RANGE, Layout, SUBNETS};
use crate::PersistedState;
use crate::cluster::aws_id::aws_ids;
use crate::cluster::unlisted::{self, Present};
use crate::observe::{SubnetRole, kept_for_pods, listed_as};
use crate::token::derive;
use model::{FoundSubnet, Invalid, Kind, Snapshot, Subnet};

const LIMIT: &str = "spec.network.vpc.availabilityZoneUsageLimit";
impl Layout {
    /// The subnets that the spec lists: to be made, made, or made by another provider and taken over.
    pub(super) fn take_listed(
        &mut self,
        specs: &[SubnetSpec],
        vpc: Ipv4Net,
        present: &Present<'_>,
    ) -> Result<(), Invalid> {
        let mut roles = listed(specs, vpc, present)?;
        let is_new = present.subnets().next().is_none();
        let mut wrong =
            roles.iter().enumerate().filter_map(|(n, it)| Some((n, unavailable(it, present.snapshot)?)));
        if let Some((n, why)) = wrong.next().filter(|_| is_new) {
            return Err(Invalid::new(format!("{SUBNETS}[{n}].availabilityZone"), why));
        }
        ways_out(&roles)?;
        let (mut changed, mut examined) = (Vec::new(), Vec::new());
        for (n, role) in roles.iter_mut().enumerate() {
            let Some(found) = present.subnets().find(|it| present.is(role, &it.id)) else { continue };
            if role.zone != found.zone {
                role.zone.clone_from(&found.zone);
                changed.push((
                    n,
                    format!(
                        "availabilityZone of {} cannot be changed; set it back to {}",
                        found.id, found.zone
                    ),
                ));
            }
            if role.cidr.as_ref() != Some(&found.cidr) {
                role.cidr = Some(found.cidr.clone());
                changed.push((
                    n,
                    format!("cidrBlock of {} cannot be changed; set it back to {}", found.id, found.cidr),
                ));
            }
            let was = unlisted::is_public(found);
            if was == role.public {
                continue;
            }
            self.looks_inside = true;
            if let Some(user) = present.anything_in(found) {
                let message = format!(
                    "{SUBNETS}: isPublic of {} is {was} as long as it is used by {user}; remove that, or set it back",
                    found.id
                );
                self.held.push((Kind::Subnet, message));
                role.public = was;
            } else if !present.is_certain() {
                examined.push(n);
                role.public = was;
            }
        }
        name_all(&mut roles);
        self.examined = examined.into_iter().map(|n| Subnet::key(&roles[n].name)).collect();
        self.blocked.extend(changed.into_iter().map(|(n, message)| (Subnet::key(&roles[n].name), message)));
        self.put(roles, present);
        Ok(())
    }

    /// The subnets of a spec that lists none: a public and a private one in each zone that was chosen.
    pub(super) fn divide_among_zones(
        &mut self,
        aws_cluster: &AWSCluster,
        record: &mut PersistedState,
        range: Ipv4Net,
        present: &Present<'_>,
        random: &str,
    ) -> Result<(), Invalid> {
        let zones = zones(aws_cluster, record, present.snapshot, random)?;
        let roles = defaults(&zones, range)?;
        let fits = |it: &FoundSubnet| {
            listed_as(&roles, it, present.snapshot).is_some_and(|role| role.zone == it.zone)
        };
        if !present.subnets().all(fits) {
            // Nobody said that they are to go.
            let mut roles: Vec<SubnetRole> = present
                .subnets()
                .map(unlisted::role_of)
                .map(|it| SubnetRole { unlisted: false, ..it })
                .collect();
            name_all(&mut roles);
            let message = format!(
                "{SUBNETS} is empty: the subnets that are there stay; list those that the cluster is to have"
            );
            self.held.push((Kind::Subnet, message));
            self.put(roles, present);
            return Ok(());
        }
        let limit =
            usize::try_from(aws_cluster.spec.network.vpc.availability_zone_usage_limit).unwrap_or(1).max(1);
        let more = present.snapshot.zones.len() > zones.len() && limit > zones.len();
        if !record.zones.is_empty() && (more || limit < zones.len()) {
            let message = format!(
                "{LIMIT} is {limit}, and the network was divided among {}: it stays so; to add or remove zones, list the subnets in {SUBNETS}",
                zones.join(", ")
            );
            self.held.push((Kind::Subnet, message));
        }
        record.zones = zones;
        self.put(roles, present);
        Ok(())
    }

    /// Takes in what is to be there, but what cannot be made now.
    fn put(&mut self, roles: Vec<SubnetRole>, present: &Present<'_>) {
        for role in roles {
            let is_there = present.subnets().any(|it| present.is(&role, &it.id));
            match unavailable(&role, present.snapshot).filter(|_| !is_there) {
                None => self.subnets.push(role),
                Some(why) => {
                    let message = format!("{why}, which are available now; it is made when its zone is");
                    self.blocked.push((Subnet::key(&role.name), message));
                }
            }
        }
    }
}

/// The IPv4 range that a field of the spec says.
pub(super) fn parse_range(field: &str, text: &str) -> Result<Ipv4Net, Invalid> {
    let range: Ipv4Net = text
        .parse()
        .map_err(|_| Invalid::new(field, format!("{text:?} is no IPv4 range such as {DEFAULT_RANGE}")))?;
    if range.trunc() != range {
        let message = format!("{text} is not the beginning of its range; write {}", range.trunc());
        return Err(Invalid::new(field, message));
    }
    Ok(range)
}

fn zones(
    aws_cluster: &AWSCluster,
    record: &PersistedState,
    snapshot: &Snapshot,
    random: &str,
) -> Result<Vec<String>, Invalid> {
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
    if zones.is_empty() {
        let message = format!("{} has no availability zone that can be used", aws_cluster.spec.region);
        return Err(Invalid::new("spec.region", message));
    }
    Ok(zones)
}

/// The range is split into blocks, one more than there are zones: the private subnets get all but the first,
/// which the public ones share.
fn defaults(zones: &[String], range: Ipv4Net) -> Result<Vec<SubnetRole>, Invalid> {
    let small = |()| {
        let message = format!(
            "{range} is too small for public and private subnets in {} zones; AWS takes none below /28",
            zones.len()
        );
        Invalid::new("spec.network.vpc.cidrBlock", message)
    };
    let split = |range: Ipv4Net, parts: usize| -> Result<Vec<Ipv4Net>, ()> {
        let bits = parts.next_power_of_two().trailing_zeros();
        let prefix =
            u8::try_from(u32::from(range.prefix_len()) + bits).ok().filter(|it| *it <= 28).ok_or(())?;
        Ok(range.subnets(prefix).map_err(|_| ())?.take(parts).collect())
    };
    let blocks = split(range, zones.len() + 1).map_err(small)?;
    let public = split(blocks[0], zones.len()).map_err(small)?;
    let role = |zone: &String, is_public: bool, cidr: &Ipv4Net| SubnetRole {
        name: unlisted::name(is_public, zone, None),
        id: None,
        cidr: Some(cidr.to_string()),
        zone: zone.clone(),
        public: is_public,
        for_pods: false,
        unlisted: false,
    };
    let public = zones.iter().zip(&public).map(|(zone, cidr)| role(zone, true, cidr));
    Ok(public.chain(zones.iter().zip(&blocks[1..]).map(|(zone, cidr)| role(zone, false, cidr))).collect())
}

/// Subnets as the spec lists them, not named yet.
fn listed(specs: &[SubnetSpec], vpc: Ipv4Net, present: &Present<'_>) -> Result<Vec<SubnetRole>, Invalid> {
    let mut res: Vec<SubnetRole> = Vec::new();
    let mut taken: Vec<(usize, Ipv4Net)> = Vec::new();
    for (n, spec) in specs.iter().enumerate() {
        let field = |name: &str| format!("{SUBNETS}[{n}].{name}");
        let id = aws_ids(spec).next().cloned();
        let found = id.as_ref().and_then(|id| present.snapshot.subnets.iter().find(|it| it.id == *id));
        let filled = |text: &str, observed: fn(&FoundSubnet) -> &String| {
            if text.is_empty() {
                found.map(|subnet| observed(subnet).clone()).unwrap_or_default()
            } else {
                text.to_owned()
            }
        };
        let (cidr, zone) =
            (filled(&spec.cidr_block, |it| &it.cidr), filled(&spec.availability_zone, |it| &it.zone));
        if zone.is_empty() {
            return Err(Invalid::new(field("availabilityZone"), "is needed for a subnet that is to be made"));
        }
        let range = parse_range(&field("cidrBlock"), &cidr)?;
        if !vpc.contains(&range) {
            return Err(Invalid::new(
                field("cidrBlock"),
                format!("{cidr} does not lie in the VPC's range {vpc}"),
            ));
        }
        if let Some((other, _)) = taken.iter().find(|(_, it)| it.contains(&range) || range.contains(it)) {
            return Err(Invalid::new(
                field("cidrBlock"),
                format!("{cidr} overlaps that of {SUBNETS}[{other}]"),
            ));
        }
        taken.push((n, range));
        let for_pods = kept_for_pods(&spec.tags) || found.is_some_and(|it| kept_for_pods(&it.tags));
        res.push(SubnetRole {
            name: String::new(),
            id,
            cidr: Some(cidr),
            zone,
            public: spec.is_public,
            for_pods,
            unlisted: false,
        });
    }
    Ok(res)
}

/// Why a subnet cannot be made now.
fn unavailable(role: &SubnetRole, snapshot: &Snapshot) -> Option<String> {
    let zones = &snapshot.zones;
    let is_available = zones.is_empty() || zones.contains(&role.zone);
    (!is_available).then(|| format!("{:?} is none of {}", role.zone, zones.join(", ")))
}

/// Names subnets by what they are for and their zone; where several of a zone are alike, by their ranges too.
fn name_all(roles: &mut [SubnetRole]) {
    let mut count: BTreeMap<(bool, String), usize> = BTreeMap::new();
    roles.iter().for_each(|it| *count.entry((it.public, it.zone.clone())).or_default() += 1);
    for it in roles {
        let several = count.get(&(it.public, it.zone.clone())).is_some_and(|count| *count > 1);
        it.name = unlisted::name(it.public, &it.zone, it.cidr.as_deref().filter(|_| several));
    }
}

/// Whether machines in listed subnets, in the order of the spec, will reach what they boot from.
fn ways_out(listed: &[SubnetRole]) -> Result<(), Invalid> {
    let public: BTreeSet<&String> =
        listed.iter().filter(|it| it.public && !it.for_pods).map(|it| &it.zone).collect();
    if public.is_empty() {
        let message = "at least one public subnet is needed, for NAT gateways and load balancers";
        return Err(Invalid::new("spec.network.subnets", message));
    }
    match listed.iter().enumerate().find(|(_, it)| !it.public && !public.contains(&it.zone)) {
        Some((n, it)) => {
            let zone = &it.zone;
            let message = format!(
                "{zone} has no public subnet for the NAT gateway of this private one; add one, or leave the zone out"
            );
            Err(Invalid::new(format!("spec.network.subnets[{n}]"), message))
        }
        None => Ok(()),
    }
}
