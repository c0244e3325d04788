//! Subnets of a cluster's own network that its spec does not list any more. What lives in one keeps it, with
//! its way out: an edit cuts off nothing that is in use. Who uses what follows from a snapshot; nothing is
//! asked of AWS.

use std::collections::{BTreeMap, BTreeSet};

use crds::names::MACHINE_NAME_TAG;

use crate::claims::Claims;
use crate::observe::{self, SubnetRole, kept_for_pods, listed_as};
use model::READ_LAG;
use model::{
    FoundLoadBalancer, FoundNatGateway, FoundNetworkInterface, FoundSubnet, Read, Snapshot, State, Tags,
};

/// Kind of the interface that AWS makes for a NAT gateway.
const NAT_GATEWAY: &str = "nat_gateway";
/// The word for public subnets in the tag that says what a subnet is for.
const PUBLIC: &str = "public";

/// The cluster's network as it is.
pub(super) struct Present<'a> {
    pub snapshot: &'a Snapshot,
    pub vpc_id: &'a str,
    /// Tags of the VPC.
    pub vpc_tags: Option<&'a Tags>,
    pub claims: Claims<'a>,
    /// The load balancer of the API servers, where it is there.
    pub balancer: Option<&'a FoundLoadBalancer>,
}

/// What is kept of a network though the spec does not list it.
#[derive(Clone, Debug, Default)]
pub(super) struct Unlisted {
    pub roles: Vec<SubnetRole>,
    /// What uses each of them, by the role's name. Those that are missing go as soon as the load balancer is
    /// off them.
    pub users: BTreeMap<String, String>,
    /// Names of those that the load balancer is to be taken off.
    pub leaving: BTreeSet<String>,
    /// Whether there are any, those that go at once among them.
    pub any: bool,
    /// What is in them has to be read before anything is removed.
    pub unread: bool,
}

impl Present<'_> {
    fn mine(&self, tags: &Tags) -> bool {
        self.claims.mine(tags, self.vpc_tags)
    }

    /// The cluster's own subnets, those that another provider made for it among them.
    pub fn subnets(&self) -> impl Iterator<Item = &FoundSubnet> {
        self.snapshot.subnets.iter().filter(|it| it.vpc_id == self.vpc_id && self.mine(&it.tags))
    }

    /// The cluster's own NAT gateways that work, or will.
    pub fn nat_gateways(&self) -> impl Iterator<Item = &FoundNatGateway> {
        let lives = |it: &&FoundNatGateway| matches!(it.state, State::Creating | State::Ready);
        self.snapshot
            .nat_gateways
            .iter()
            .filter(|it| it.vpc_id == self.vpc_id && self.mine(&it.tags))
            .filter(lives)
    }

    /// Those that are not among the listed, as far as something uses them.
    pub fn unlisted(&self, listed: &[SubnetRole]) -> Unlisted {
        let mut res = Unlisted::default();
        let subnets: Vec<&FoundSubnet> =
            self.subnets().filter(|it| listed_as(listed, it, self.snapshot).is_none()).collect();
        if subnets.is_empty() {
            return res;
        }
        res.any = true;
        res.unread = !self.snapshot.deleting_vpcs_read.contains_key(self.vpc_id);
        // Also of a user's own, which no sweep shows.
        let stays = |id: &str| !subnets.iter().any(|it| it.id == id);
        let mut users: BTreeMap<&str, String> = BTreeMap::new();
        for it in &subnets {
            users.extend(
                self.user(&it.id)
                    .or_else(|| self.shared_routes(&it.id, &stays))
                    .map(|user| (it.id.as_str(), user)),
            );
        }
        // What stays may need what else is in its zone.
        loop {
            let known = users.len();
            for it in &subnets {
                let beside: Vec<&FoundSubnet> = subnets
                    .iter()
                    .copied()
                    .filter(|other| other.zone == it.zone && users.contains_key(other.id.as_str()))
                    .collect();
                let needed =
                    || self.way_out(it, listed, &beside).or_else(|| self.balanced(it, listed, &beside));
                if !users.contains_key(it.id.as_str())
                    && let Some(user) = needed()
                {
                    users.insert(&it.id, user);
                }
            }
            if users.len() == known {
                break;
            }
        }
        let attached =
            |it: &FoundSubnet| self.balancer.is_some_and(|balancer| balancer.subnets.contains(&it.id));
        for it in &subnets {
            let role = role_of(it);
            let goes_later = subnets.iter().any(|other| {
                other.zone == it.zone && attached(other) && !users.contains_key(other.id.as_str())
            });
            match users.get(it.id.as_str()) {
                Some(user) => drop(res.users.insert(role.name.clone(), user.clone())),
                None if res.unread => {}
                // What is in the zone goes when no traffic comes any more.
                None if goes_later => {
                    res.leaving.extend(attached(it).then(|| role.name.clone()));
                }
                None => continue,
            }
            res.roles.push(role);
        }
        res
    }

    /// What a subnet that is not listed any more is needed for: the NAT gateway in it, or the one that is to
    /// be made there again, is the way out of another subnet of its zone. `beside`: what stays there besides
    /// what is listed.
    fn way_out(
        &self,
        subnet: &FoundSubnet,
        listed: &[SubnetRole],
        beside: &[&FoundSubnet],
    ) -> Option<String> {
        let in_zone = |role: &&SubnetRole| role.zone == subnet.zone;
        let of_zone =
            |id: &str| self.snapshot.subnets.iter().any(|other| other.id == id && other.zone == subnet.zone);
        let mut gateways = self.nat_gateways().filter(|gateway| of_zone(&gateway.subnet_id)).peekable();
        let has_place = is_public(subnet) && !listed.iter().filter(in_zone).any(|role| role.public);
        let gateway = match gateways.peek() {
            Some(_) => gateways.find(|gateway| gateway.subnet_id == subnet.id)?.id.as_str(),
            None if has_place => "to be made there",
            None => return None,
        };
        let private = listed.iter().filter(in_zone).find(|role| !role.public).map(|role| role.name.as_str());
        let private = private
            .or_else(|| beside.iter().find(|other| !is_public(other)).map(|other| other.id.as_str()))?;
        Some(format!("NAT gateway {gateway}, through which {private} reaches the internet"))
    }

    /// The same of the load balancer of the API servers: it is in the zone for what is there.
    fn balanced(
        &self,
        subnet: &FoundSubnet,
        listed: &[SubnetRole],
        beside: &[&FoundSubnet],
    ) -> Option<String> {
        let balancer = self.balancer.filter(|balancer| balancer.subnets.contains(&subnet.id))?;
        let needed =
            listed.iter().any(|role| role.zone == subnet.zone && !role.for_pods) || !beside.is_empty();
        needed.then(|| format!("load balancer {}, which has one subnet of each zone", balancer.name))
    }

    /// Whether a role is that of this subnet.
    pub fn is(&self, role: &SubnetRole, subnet_id: &str) -> bool {
        let found = self.snapshot.subnets.iter().find(|it| it.id == subnet_id && it.vpc_id == self.vpc_id);
        found.is_some_and(|it| listed_as(std::slice::from_ref(role), it, self.snapshot).is_some())
    }

    /// Whether what is in the VPC was read so late that it shows what an earlier process made before it
    /// ended.
    pub fn is_certain(&self) -> bool {
        let from = self.snapshot.since + READ_LAG;
        let reads =
            [self.snapshot.read_at.get(&Read::Instances), self.snapshot.deleting_vpcs_read.get(self.vpc_id)];
        reads.into_iter().all(|began| began.is_some_and(|began| *began >= from))
    }

    /// What is in a subnet, what this operator made there among it.
    pub fn anything_in(&self, subnet: &FoundSubnet) -> Option<String> {
        let gateway = || {
            self.nat_gateways()
                .find(|gateway| gateway.subnet_id == subnet.id)
                .map(|it| format!("NAT gateway {}", it.id))
        };
        let balancer = || {
            self.balancer
                .filter(|own| own.subnets.contains(&subnet.id))
                .map(|it| format!("load balancer {}", it.name))
        };
        self.user(&subnet.id).or_else(gateway).or_else(balancer)
    }

    /// What lives in a subnet, besides what this operator makes there for the network itself.
    pub fn user(&self, subnet_id: &str) -> Option<String> {
        let mut instances =
            self.snapshot.instances.iter().filter(|it| it.subnet_id.as_deref() == Some(subnet_id));
        if let Some(it) = instances.find(|it| it.status.state != "terminated") {
            let machine =
                it.tags.get(MACHINE_NAME_TAG).map(|name| format!(" (AWSMachine {name})")).unwrap_or_default();
            return Some(format!("instance {}{machine}", it.id));
        }
        let is_own = |it: &FoundLoadBalancer| self.balancer.is_some_and(|own| own.id == it.id);
        let mut balancers =
            self.snapshot.load_balancers.iter().filter(|it| it.subnets.contains(subnet_id) && !is_own(it));
        if let Some(it) = balancers.next() {
            return Some(format!("load balancer {}", it.name));
        }
        let mut gateways =
            self.snapshot.nat_gateways.iter().filter(|it| it.subnet_id == subnet_id && !self.mine(&it.tags));
        if let Some(it) = gateways.find(|it| it.state != State::Failed) {
            return Some(format!("NAT gateway {}", it.id));
        }
        let mut interfaces = self
            .snapshot
            .network_interfaces
            .iter()
            .filter(|it| it.subnet_id == subnet_id && !self.goes_along(it));
        let interface = interfaces.next()?;
        let described = Some(&interface.description).filter(|text| !text.is_empty());
        let described = described.map(|text| format!(" ({text})")).unwrap_or_default();
        Some(format!("network interface {}{described}", interface.id))
    }

    /// Whether an interface is there for what this operator made, or for an instance that is gone.
    fn goes_along(&self, interface: &FoundNetworkInterface) -> bool {
        let gateways = || self.snapshot.nat_gateways.iter().filter(|gateway| !self.mine(&gateway.tags));
        let of_gateway = interface.interface_type == NAT_GATEWAY
            && !gateways().any(|gateway| interface.description.contains(&gateway.id));
        let of_balancer = self.balancer.is_some_and(|own| {
            interface.description == format!("ELB {}", own.name)
                || interface.description.starts_with(&format!("ELB net/{}/", own.name))
        });
        let ended = |id: &String| {
            self.snapshot.instances.iter().any(|it| it.id == *id && it.status.state == "terminated")
        };
        of_gateway || of_balancer || interface.attached_instance.as_ref().is_some_and(ended)
    }

    /// A subnet that stays and has the routes of this one.
    fn shared_routes(&self, subnet_id: &str, stays: &dyn Fn(&str) -> bool) -> Option<String> {
        let table = self.snapshot.route_tables.iter().find(|it| it.associations.contains_key(subnet_id))?;
        let other = table.associations.keys().find(|it| *it != subnet_id && stays(it))?;
        Some(format!("subnet {other}, which has the same route table {}", table.id))
    }
}

/// Whether a subnet of the cluster was made public.
pub(super) fn is_public(subnet: &FoundSubnet) -> bool {
    observe::role_of(&subnet.tags).map_or(subnet.public, |role| role == PUBLIC)
}

/// The role of a subnet that is there and that no spec lists.
pub(super) fn role_of(subnet: &FoundSubnet) -> SubnetRole {
    let public = is_public(subnet);
    SubnetRole {
        name: name(public, &subnet.zone, Some(&subnet.cidr)),
        id: Some(subnet.id.clone()),
        cidr: Some(subnet.cidr.clone()),
        zone: subnet.zone.clone(),
        public,
        for_pods: kept_for_pods(&subnet.tags),
        unlisted: true,
    }
}

/// The role name of a subnet: what it is for and its zone, and its range where that does not tell it from
/// others.
pub(crate) fn name(public: bool, zone: &str, cidr: Option<&str>) -> String {
    let role = if public { PUBLIC } else { "private" };
    match cidr {
        Some(cidr) => format!("{role}-{zone}-{}", cidr.replace('/', "-")),
        None => format!("{role}-{zone}"),
    }
}
