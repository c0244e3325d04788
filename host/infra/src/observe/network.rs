//! VPC, subnets, gateways, addresses and route tables as one cluster sees them. Network kinds are ours only
//! where the VPC is.

use std::collections::BTreeSet;

use super::group::DEFAULT;
use super::{Claim, KEY_TAG, MAIN, ObservedVpc, Observer, is_public, listed_as, role_of};
use crate::cluster::{adopted, subnet_name};
use model::{
    ElasticIp, FoundAddress, FoundNatGateway, FoundRouteTable, FoundSubnet, FoundVpc, InternetGateway, Key,
    Kind, NatGateway, Owner, Read, RouteTable, State, Subnet, Vpc,
};

/// What shows a cluster's network.
pub(crate) const NETWORK: [Read; 7] = [
    Read::Vpcs,
    Read::Subnets,
    Read::InternetGateways,
    Read::NatGateways,
    Read::Addresses,
    Read::RouteTables,
    Read::SecurityGroups,
];

impl<'a> Observer<'a> {
    /// Each kind after those whose roles it refers to.
    pub(super) fn network(&mut self) {
        self.vpc();
        self.subnets();
        self.groups();
        self.internet_gateways();
        self.nat_gateways();
        self.addresses();
        self.route_tables();
    }

    fn vpc(&mut self) {
        for (found, owner) in self.vpc_candidates() {
            self.takes_unmarked |=
                self.vpc.is_none() && owner == Owner::Mine && self.scope.claims().marked(&found.tags);
            let set = found.dns_hostnames.unwrap_or(!self.scope.intents.contains_key(&Vpc::key(MAIN)));
            // The first is the one that is used. Of a second, AWS refuses the deletion unless it is empty.
            let is_spare = self.vpc.as_ref().is_some_and(|it| it.owned)
                && matches!(self.claim(&found.tags), Claim::Ours)
                && self.is_bare(&found.id);
            let name = if is_spare { found.id.as_str() } else { MAIN };
            let is = Vpc { name: name.into(), cidr: found.cidr.clone(), dns_hostnames: set };
            if self.vpc.is_none() && !matches!(owner, Owner::OtherDriver(_)) {
                self.vpc = Some(ObservedVpc { id: found.id.clone(), owned: owner == Owner::Mine });
            }
            self.put(&found.id, owner, found.state, is.into(), Some(&found.tags), None);
        }
    }

    /// Whether nothing is seen in a VPC but what AWS makes with each.
    fn is_bare(&self, vpc_id: &str) -> bool {
        let it = self.snapshot;
        let in_other = |id: &str| id != vpc_id;
        it.subnets.iter().all(|it| in_other(&it.vpc_id))
            && it.internet_gateways.iter().all(|it| it.vpc_id.as_deref().is_none_or(in_other))
            && it.nat_gateways.iter().all(|it| in_other(&it.vpc_id))
            && it.route_tables.iter().all(|it| it.main || in_other(&it.vpc_id))
            && it.security_groups.iter().all(|it| it.group_name == DEFAULT || in_other(&it.vpc_id))
            && it.load_balancers.iter().all(|it| in_other(&it.vpc_id))
            && it.instances.iter().all(|it| it.vpc_id.as_deref().is_none_or(in_other))
    }

    /// Best first.
    fn vpc_candidates(&self) -> Vec<(&'a FoundVpc, Owner)> {
        let vpcs: &'a [FoundVpc] = &self.snapshot.vpcs;
        let known = |it: &FoundVpc| self.scope.vpc_id.as_ref() == Some(&it.id);
        if self.scope.vpc_given {
            return vpcs.iter().filter(|it| known(it)).map(|it| (it, self.owner(&it.tags))).collect();
        }
        let mut res: Vec<(&'a FoundVpc, Owner)> = vpcs
            .iter()
            .filter_map(|it| match self.claim(&it.tags) {
                Claim::Ours => Some((it, Owner::Mine)),
                // It lost the id that it had.
                Claim::Unmarked if known(it) && self.takes_unmarked => Some((it, Owner::Mine)),
                Claim::Unmarked if known(it) => Some((it, Owner::User)),
                Claim::Unmarked => {
                    let whose = format!(
                        "a cluster named {:?} of another provider (to take it over, \
                         name it in spec.network.vpc.id, and {})",
                        self.scope.cluster,
                        adopted::how()
                    );
                    Some((it, Owner::OtherDriver(whose)))
                }
                Claim::Other(whose) => Some((it, Owner::OtherDriver(whose))),
                Claim::None if known(it) => Some((it, Owner::User)),
                Claim::None => None,
            })
            .collect();
        res.sort_by_key(|(it, owner)| (!known(it), *owner != Owner::Mine, it.id.clone()));
        res
    }

    fn subnets(&mut self) {
        let mut found: Vec<&FoundSubnet> =
            self.snapshot.subnets.iter().filter(|it| self.in_vpc(&it.vpc_id)).collect();
        found.sort_by_key(|it| (self.listed(it).is_none(), it.id.clone()));
        for it in found {
            let owner = if self.owns_network() { self.owner(&it.tags) } else { Owner::User };
            let by_tag = || {
                (owner == Owner::Mine)
                    .then(|| subnet_name(role_of(&it.tags) == Some("public"), &it.zone, Some(&it.cidr)))
            };
            let name = self.listed(it).or_else(by_tag).unwrap_or_else(|| it.id.clone());
            let public = if self.owns_network() { it.public } else { is_public(self.snapshot, it) };
            let is = Subnet { name, vpc: MAIN.into(), zone: it.zone.clone(), cidr: it.cidr.clone(), public };
            self.put(&it.id, owner, it.state, is.into(), Some(&it.tags), None);
        }
    }

    fn listed(&self, found: &FoundSubnet) -> Option<String> {
        listed_as(&self.scope.subnets, found, self.snapshot).map(|it| it.name.clone())
    }

    fn internet_gateways(&mut self) {
        let snapshot = self.snapshot;
        let attached =
            |it: &&model::FoundInternetGateway| it.vpc_id.as_ref().is_some_and(|id| self.in_vpc(id));
        let free = |it: &&model::FoundInternetGateway| {
            it.vpc_id.is_none() && matches!(self.claim(&it.tags), Claim::Ours)
        };
        let mut found: Vec<_> = snapshot.internet_gateways.iter().filter(attached).collect();
        found.extend(snapshot.internet_gateways.iter().filter(free));
        for it in found {
            let attached = it.vpc_id.is_some();
            let owner = if self.owns_network() || !attached { self.owner(&it.tags) } else { Owner::User };
            // One is enough: a second that is attached to nothing is nobody's to use.
            let is_spare = !attached
                && self.observed.get(&InternetGateway::key(MAIN)).is_some_and(|it| it.owner == Owner::Mine);
            let name = if is_spare { it.id.as_str() } else { MAIN };
            let is = InternetGateway { name: name.into(), vpc: MAIN.into(), attached };
            self.put(&it.id, owner, State::Ready, is.into(), Some(&it.tags), None);
        }
    }

    fn nat_gateways(&mut self) {
        if !self.owns_network() {
            return;
        }
        let mut found: Vec<&FoundNatGateway> =
            self.snapshot.nat_gateways.iter().filter(|it| self.in_vpc(&it.vpc_id)).collect();
        let dead = |it: &FoundNatGateway| matches!(it.state, State::Failed | State::Deleting);
        found.sort_by_key(|it| (dead(it), it.id.clone()));
        // Given by attempts: of these the role is known though the gateway itself may not be seen yet. What a
        // user wrote there proves nothing.
        let (scope, snapshot) = (self.scope, self.snapshot);
        let ours: BTreeSet<&str> = snapshot
            .addresses
            .iter()
            .filter(|it| matches!(self.claim(&it.tags), Claim::Ours))
            .map(|it| it.id.as_str())
            .collect();
        let given = |name: &str| {
            scope
                .intents
                .get(&NatGateway::key(name))
                .and_then(NatGateway::address_of)
                .filter(|id| ours.contains(id))
        };
        for it in found {
            let owner = self.owner(&it.tags);
            let zone = self
                .snapshot
                .subnets
                .iter()
                .find(|subnet| subnet.id == it.subnet_id)
                .map(|subnet| subnet.zone.clone());
            let name =
                if owner == Owner::User { it.id.clone() } else { zone.unwrap_or_else(|| it.id.clone()) };
            let replaced =
                self.observed.get(&NatGateway::key(&name)).is_some_and(|other| other.owner == Owner::Mine);
            // A failed one stays visible for an hour and is in nobody's way.
            if dead(it) && replaced && !self.scope.deleting {
                continue;
            }
            let elastic_ip = match &it.allocation_id {
                None => name.clone(),
                // Its successor was given another.
                Some(id) if dead(it) && given(&name).is_some_and(|other| other != id) => self.name(id),
                Some(id) => {
                    self.names.entry(id.clone()).or_insert_with(|| name.clone());
                    self.name(id)
                }
            };
            let is = NatGateway {
                name,
                subnet: self.name(&it.subnet_id),
                elastic_ip,
                internet_gateway: MAIN.into(),
            };
            self.put(&it.id, owner, it.state, is.into(), Some(&it.tags), it.failure.clone());
        }
        for name in &scope.nat_gateways {
            let lives = self
                .observed
                .get(&NatGateway::key(name))
                .is_some_and(|it| !matches!(it.state, State::Failed | State::Deleting));
            if let Some(id) = given(name).filter(|_| !lives) {
                self.names.entry(id.to_owned()).or_insert_with(|| name.clone());
            }
        }
    }

    fn addresses(&mut self) {
        let mut found: Vec<&FoundAddress> = self.snapshot.addresses.iter().collect();
        found.sort_by_key(|it| it.id.clone());
        let free: Vec<&FoundAddress> = found
            .iter()
            .copied()
            .filter(|it| !self.names.contains_key(&it.id) && matches!(self.claim(&it.tags), Claim::Ours))
            .collect();
        let used: Vec<&FoundAddress> =
            found.into_iter().filter(|it| self.names.contains_key(&it.id)).collect();
        for it in used {
            let owner = self.owner(&it.tags);
            let is = ElasticIp { name: self.name(&it.id) };
            self.put(&it.id, owner, State::Ready, is.into(), Some(&it.tags), Some(it.public_ip.clone()));
        }
        let taken: BTreeSet<Key> =
            self.observed.keys().filter(|key| key.kind == Kind::ElasticIp).cloned().collect();
        let mut open =
            self.scope.nat_gateways.clone().into_iter().filter(|name| !taken.contains(&ElasticIp::key(name)));
        for it in free {
            let in_use = it.association_id.is_some();
            let name = if in_use { None } else { open.next() };
            // Somebody uses it for something else: that is asked of AWS only when it is to go.
            let owner = if in_use && !self.scope.deleting { Owner::User } else { Owner::Mine };
            let is = ElasticIp { name: name.unwrap_or_else(|| it.id.clone()) };
            self.put(&it.id, owner, State::Ready, is.into(), Some(&it.tags), Some(it.public_ip.clone()));
        }
    }

    fn route_tables(&mut self) {
        if !self.owns_network() {
            return;
        }
        let mut found: Vec<_> =
            self.snapshot.route_tables.iter().filter(|it| self.in_vpc(&it.vpc_id) && !it.main).collect();
        found.sort_by_key(|it| (it.associations.is_empty(), it.id.clone()));
        for it in found {
            let subnets: BTreeSet<String> = it.associations.keys().map(|id| self.name(id)).collect();
            let name = self.route_table_name(it, &subnets);
            // No subnet uses it, and another table does what it was made for.
            let is_spare = subnets.is_empty()
                && matches!(self.claim(&it.tags), Claim::Ours)
                && self.observed.get(&RouteTable::key(&name)).is_some_and(|it| it.owner == Owner::Mine);
            let name = if is_spare { it.id.clone() } else { name };
            let default_route = it.default_route.as_ref().map(|id| {
                let name = self.name(id);
                if id.starts_with("nat-") { NatGateway::key(name) } else { InternetGateway::key(name) }
            });
            let is = RouteTable { name, vpc: MAIN.into(), subnets, default_route };
            self.put(&it.id, self.owner(&it.tags), State::Ready, is.into(), Some(&it.tags), None);
        }
    }

    /// The subnet that it is of: what it is associated with says so, and before that its tag, which was
    /// written when it was made.
    fn route_table_name(&self, found: &FoundRouteTable, subnets: &BTreeSet<String>) -> String {
        let tagged = found.tags.get(KEY_TAG);
        let own = |name: &&String| {
            self.observed.get(&Subnet::key(*name)).is_some_and(|observed| observed.owner == Owner::Mine)
        };
        let associated = tagged
            .filter(|name| subnets.contains(*name))
            .or_else(|| subnets.iter().find(own))
            .or(subnets.first());
        associated.or(tagged).cloned().unwrap_or_else(|| found.id.clone())
    }
}
