//! Which zones and subnets a cluster has: those that its spec lists, or one public and one private subnet in
//! each of the first zones, with the address ranges that Cluster API Provider AWS gives them. It never looks
//! at which of them exist.

use std::collections::{BTreeMap, BTreeSet};

use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::load_balancer::LoadBalancerType;
use crds::network::{AvailabilityZoneSelection, SubnetSpec};
use ipnet::Ipv4Net;

use super::adopted::{self, adopted_from};
use super::unlisted::{self, Present, Unlisted};
use super::{name, unmanaged};
use crate::PersistedState;
use crate::gc::Collected;
use crate::observe::{Claims, MAIN, Scope, SubnetRole, kept_for_pods, listed_as};
use crate::token::derive;
use model::{
    FoundSubnet, FoundVpc, InternetGateway, Invalid, Key, Kind, LoadBalancerKind, NatGateway, Snapshot,
    Subnet, Vpc,
};

/// Addresses of a VPC whose spec names none.
const DEFAULT_RANGE: &str = "10.0.0.0/16";
const SUBNETS: &str = "spec.network.subnets";
const LIMIT: &str = "spec.network.vpc.availabilityZoneUsageLimit";

/// The network of a cluster on paper.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Whether the network is ours to make. Otherwise the user brought the VPC, and nothing in it but groups
    /// and a load balancer is ours.
    pub owned: bool,
    /// IPv4 range of the VPC; empty for a user's that was not seen yet.
    pub cidr: String,
    pub subnets: Vec<SubnetRole>,
    /// What of the spec is not carried out, because something that lives would lose what it uses: of which
    /// kind, why, and what to do.
    pub(super) held: Vec<(Kind, String)>,
    /// The VPC that the spec names is another provider's, and nobody said that it is to be taken over:
    /// nothing is done.
    pub(super) not_adopted: bool,
    /// What cannot be made or changed, and why.
    pub(super) blocked: Vec<(Key, String)>,
    /// Names of subnets that the load balancer is to be taken off.
    pub(super) leaving: BTreeSet<String>,
    /// By zone, the subnet that its NAT gateway is in.
    pub(super) gateways: BTreeMap<String, String>,
    /// Something is to be taken out of the VPC or changed, as far as nothing uses it.
    pub(super) looks_inside: bool,
    /// What is in the VPC has to be read before.
    pub(super) unread: bool,
    /// Subnets that are to become public or private once it is certain that nothing is in them.
    pub(super) examined: Vec<Key>,
}

impl Layout {
    /// Lays out the network. Zones are chosen once and written into the record.
    ///
    /// # Errors
    /// The field that cannot be carried out.
    pub(crate) fn of(
        cluster: &Cluster,
        aws_cluster: &AWSCluster,
        record: &mut PersistedState,
        snapshot: &Snapshot,
        random: &str,
    ) -> Result<Layout, Invalid> {
        let network = &aws_cluster.spec.network;
        let given_id = unmanaged::given(aws_cluster, record).unwrap_or_default();
        let given = snapshot.vpcs.iter().find(|it| it.id == given_id);
        let cluster_name = name::cluster_name(cluster);
        let (id, owner) = (record.id.clone(), model::owner(aws_cluster));
        let claims =
            Claims { cluster: &cluster_name, id: &id, owner: &owner, adopts: adopted_from(aws_cluster) };
        if let Some(vpc) = given.filter(|it| claims.unmarked(&it.tags) && !claims.takes_unmarked(None)) {
            let blocked = vec![(Vpc::key(MAIN), adopted::not_adopted(vpc))];
            return Ok(Layout { not_adopted: true, blocked, cidr: vpc.cidr.clone(), ..Layout::default() });
        }
        let owned = given_id.is_empty() || given.is_some_and(|it| claims.mine(&it.tags, None));
        let spec = Some(network.vpc.cidr_block.clone()).filter(|it| !it.is_empty());
        if !owned {
            let cidr = given.map(|it| it.cidr.clone()).or(spec).unwrap_or_default();
            let subnets = unmanaged::subnets(&network.subnets, given_id, snapshot)?;
            return Ok(Layout { owned, cidr, subnets, ..Layout::default() });
        }
        let recorded =
            record.ids.get(&Vpc::key(MAIN)).and_then(|id| snapshot.vpcs.iter().find(|it| it.id == *id));
        let mut vpcs = snapshot.vpcs.iter().filter(|it| claims.marked(&it.tags));
        let vpc = given.or(recorded).or_else(|| vpcs.next());
        // A VPC has the range that it was made with, whatever the spec says now.
        let cidr =
            spec.clone().or_else(|| vpc.map(|it| it.cidr.clone())).unwrap_or_else(|| DEFAULT_RANGE.into());
        let range = match vpc {
            Some(vpc) => parse("spec.network.vpc.cidrBlock", &vpc.cidr)?,
            None => parse("spec.network.vpc.cidrBlock", &cidr)?,
        };
        if !(16..=28).contains(&range.prefix_len()) {
            return Err(Invalid::new(
                "spec.network.vpc.cidrBlock",
                format!("{cidr}: AWS takes networks of /16 to /28"),
            ));
        }
        let balancer = load_balancer_kind(aws_cluster)
            .map(|kind| (name::load_balancer(&cluster_name, aws_cluster, kind), kind));
        let vpc_id = vpc.map(|it| it.id.as_str()).unwrap_or_default();
        let is_own = |it: &&model::FoundLoadBalancer| {
            it.vpc_id == vpc_id
                && balancer.as_ref().is_some_and(|(name, kind)| it.name == *name && it.kind == *kind)
        };
        let vpc_tags = vpc.map(|it| &it.tags);
        let present = Present {
            snapshot,
            vpc_id,
            vpc_tags,
            claims,
            balancer: snapshot.load_balancers.iter().find(is_own),
        };
        let mut res = Layout { owned, cidr, ..Layout::default() };
        if !network.vpc.id.is_empty() && given_id.is_empty() {
            let lives_in = record.ids.get(&Vpc::key(MAIN)).cloned().unwrap_or_default();
            let message = format!(
                "spec.network.vpc.id is {}, and the cluster lives in {lives_in}: it stays there; set it back",
                network.vpc.id
            );
            res.held.push((Kind::Vpc, message));
        }
        match network.subnets.is_empty() {
            false => res.listed(&network.subnets, range, &present)?,
            true => res.by_zones(aws_cluster, record, range, &present, random)?,
        }
        if !super::deleting(aws_cluster) {
            res.keep(present.unlisted(&res.subnets));
        }
        let subnets = &res.subnets;
        let of_gateway = |id: &str| subnets.iter().find(|role| present.is(role, id));
        let gateways = present.nat_gateways().filter_map(|it| of_gateway(&it.subnet_id));
        res.gateways = gateways.map(|it| (it.zone.clone(), it.name.clone())).collect();
        Ok(res)
    }

    /// How to see the cluster.
    pub(crate) fn scope(
        &self,
        cluster: &Cluster,
        aws_cluster: &AWSCluster,
        record: &PersistedState,
    ) -> Scope {
        let given = unmanaged::given(aws_cluster, record).unwrap_or_default();
        let cluster_name = name::cluster_name(cluster);
        Scope {
            id: record.id.clone(),
            owner: model::owner(aws_cluster),
            adopts: adopted_from(aws_cluster).map(str::to_owned),
            vpc_id: (!given.is_empty())
                .then(|| given.to_owned())
                .or_else(|| record.ids.get(&Vpc::key(crate::observe::MAIN)).cloned()),
            vpc_given: !given.is_empty(),
            subnets: self.subnets.clone(),
            nat_gateways: self.nat_gateways().into_iter().map(|(zone, _)| zone).collect(),
            load_balancer: load_balancer_kind(aws_cluster)
                .map(|kind| (name::load_balancer(&cluster_name, aws_cluster, kind), kind)),
            intents: record.intents.clone(),
            deleting: super::deleting(aws_cluster),
            collected: Collected::of(aws_cluster.metadata.annotations.as_ref()).unwrap_or(Collected::NOTHING),
            cluster: cluster_name,
        }
    }

    /// Subnets that machines and load balancers are put in.
    pub(crate) fn for_nodes(&self) -> impl Iterator<Item = &SubnetRole> {
        self.subnets.iter().filter(|it| !it.for_pods && !it.unlisted)
    }

    /// Takes in what is not listed any more and still in use.
    fn keep(&mut self, unlisted: Unlisted) {
        let Unlisted { roles, users, leaving, any, unread } = unlisted;
        for role in roles {
            let id = role.id.clone().unwrap_or_default();
            if let Some(user) = users.get(&role.name) {
                let message = format!(
                    "{id} is not in {SUBNETS} any more, and stays with its routes as long as it is used by {user}; remove that, or list the \
                     subnet again"
                );
                self.held.push((Kind::Subnet, message));
            }
            self.subnets.push(role);
        }
        (self.leaving, self.unread) = (leaving, unread);
        self.looks_inside |= any;
    }

    /// The subnets that the spec lists: to be made, made, or made by another provider and taken over.
    fn listed(&mut self, specs: &[SubnetSpec], vpc: Ipv4Net, present: &Present<'_>) -> Result<(), Invalid> {
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
    fn by_zones(
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

    /// Zones that have a private subnet, each with the public subnet that its NAT gateway is in or is put in.
    pub(super) fn nat_gateways(&self) -> Vec<(String, String)> {
        if !self.owned {
            return Vec::new();
        }
        let zones: BTreeSet<&String> =
            self.subnets.iter().filter(|it| !it.public).map(|it| &it.zone).collect();
        let public = |zone: &String| {
            self.for_nodes().find(|it| it.public && it.zone == *zone).map(|it| it.name.clone())
        };
        let kept = |zone: &String| {
            self.subnets
                .iter()
                .find(|it| it.public && it.unlisted && it.zone == *zone)
                .map(|it| it.name.clone())
        };
        let subnet =
            |zone: &String| self.gateways.get(zone).cloned().or_else(|| public(zone)).or_else(|| kept(zone));
        zones.into_iter().filter_map(|zone| Some((zone.clone(), subnet(zone)?))).collect()
    }

    /// Where 0.0.0.0/0 of a subnet is to go; `None`: its zone has no NAT gateway.
    pub(crate) fn default_route(&self, subnet: &SubnetRole) -> Option<Key> {
        match subnet.public {
            true => Some(InternetGateway::key(MAIN)),
            false => self
                .nat_gateways()
                .iter()
                .find(|(zone, _)| *zone == subnet.zone)
                .map(|(zone, _)| NatGateway::key(zone)),
        }
    }

    /// Ids of subnets that the user brought.
    pub(super) fn given(&self) -> impl Iterator<Item = (model::Key, String)> {
        self.subnets
            .iter()
            .filter(|_| !self.owned)
            .filter_map(|it| Some((Subnet::key(&it.name), it.id.clone()?)))
    }
}

/// Whether a VPC that the spec names was made for the cluster, by this operator or by Cluster API Provider
/// AWS.
pub(super) fn is_owned(
    vpc: &FoundVpc,
    cluster: &Cluster,
    aws_cluster: &AWSCluster,
    record: &PersistedState,
) -> bool {
    let (cluster, owner) = (name::cluster_name(cluster), model::owner(aws_cluster));
    Claims { cluster: &cluster, id: &record.id, owner: &owner, adopts: adopted_from(aws_cluster) }
        .mine(&vpc.tags, None)
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
    let range: Ipv4Net = text
        .parse()
        .map_err(|_| Invalid::new(field, format!("{text:?} is no IPv4 range such as {DEFAULT_RANGE}")))?;
    match range.trunc() == range {
        true => Ok(range),
        false => Err(Invalid::new(
            field,
            format!("{text} is not the beginning of its range; write {}", range.trunc()),
        )),
    }
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
    match zones.is_empty() {
        true => Err(Invalid::new(
            "spec.region",
            format!("{} has no availability zone that can be used", aws_cluster.spec.region),
        )),
        false => Ok(zones),
    }
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
        let filled = |text: &str, seen: fn(&FoundSubnet) -> &String| match text.is_empty() {
            true => found.map(|it| seen(it).clone()).unwrap_or_default(),
            false => text.to_owned(),
        };
        let (cidr, zone) =
            (filled(&spec.cidr_block, |it| &it.cidr), filled(&spec.availability_zone, |it| &it.zone));
        if zone.is_empty() {
            return Err(Invalid::new(field("availabilityZone"), "is needed for a subnet that is to be made"));
        }
        let range = parse(&field("cidrBlock"), &cidr)?;
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

/// What of the names that a listed subnet has is an id that AWS gave. Names of subnets that are to be made
/// may begin alike.
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
        for name in [
            "subnet-zone-1-private",
            "subnet-a",
            "subnet-0A1B2C3D",
            "subnet-",
            "private-a",
            "subnet-0123456789abcdef01",
        ] {
            assert!(!is_aws_id(name), "{name}");
        }
    }
}
