//! Which zones and subnets a cluster has on paper, whichever of them exist.

mod subnets;

use std::collections::{BTreeMap, BTreeSet};

use crds::AWSCluster;
use crds::cluster_api::Cluster;
use crds::load_balancer::LoadBalancerType;
use ipnet::Ipv4Net;

use super::adopted::{self, adopted_from};
use super::unlisted::{Present, Unlisted};
use super::{name, unmanaged};
use crate::PersistedState;
use crate::claims::Claims;
use crate::gc::Collected;
use crate::observe::{MAIN, Scope, SubnetRole};
use model::{
    FoundVpc, InternetGateway, Invalid, Key, Kind, LoadBalancerKind, NatGateway, Snapshot, Subnet, Vpc,
};

/// Addresses of a VPC whose spec names none.
const DEFAULT_RANGE: &str = "10.0.0.0/16";
const SUBNETS: &str = "spec.network.subnets";
const CIDR_BLOCK: &str = "spec.network.vpc.cidrBlock";

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
        let (cidr, range) = address_range(spec.as_deref(), vpc)?;
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
        if network.subnets.is_empty() {
            res.divide_among_zones(aws_cluster, record, range, &present, random)?;
        } else {
            res.take_listed(&network.subnets, range, &present)?;
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
        if subnet.public {
            return Some(InternetGateway::key(MAIN));
        }
        let gateways = self.nat_gateways();
        gateways.iter().find(|(zone, _)| *zone == subnet.zone).map(|(zone, _)| NatGateway::key(zone))
    }

    /// Ids of subnets that the user brought.
    pub(super) fn given(&self) -> impl Iterator<Item = (model::Key, String)> {
        self.subnets
            .iter()
            .filter(|_| !self.owned)
            .filter_map(|it| Some((Subnet::key(&it.name), it.id.clone()?)))
    }
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

/// The range of a network as text, and the one that its subnets lie in.
fn address_range(spec: Option<&str>, vpc: Option<&FoundVpc>) -> Result<(String, Ipv4Net), Invalid> {
    let of_vpc = vpc.map(|it| it.cidr.as_str());
    let cidr = spec.or(of_vpc).unwrap_or(DEFAULT_RANGE);
    // A VPC has the range that it was made with, whatever the spec says now.
    let range = subnets::parse_range(CIDR_BLOCK, of_vpc.unwrap_or(cidr))?;
    if !(16..=28).contains(&range.prefix_len()) {
        return Err(Invalid::new(CIDR_BLOCK, format!("{cidr}: AWS takes networks of /16 to /28")));
    }
    Ok((cidr.to_owned(), range))
}
