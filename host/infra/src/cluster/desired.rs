//! Everything a cluster should consist of, put together from its parts.

use std::collections::BTreeSet;

use crds::AWSCluster;

use super::{Input, Layout, egress, endpoint, name, tag};
use crate::observe::{API_SERVER, MAIN};
use model::{
    AddOnRule, Desired, DesiredResource, Invalid, LoadBalancer, Observed, Owner, Resource, Subnet, Tags, Vpc,
};

/// What should exist, from the spec and, for addresses that are only known once they are there, from what was
/// seen.
///
/// # Errors
/// The field that cannot be carried out.
pub fn desired(
    input: &Input<'_>,
    layout: &Layout,
    id: &str,
    observed: &Observed,
) -> Result<Desired, Invalid> {
    let mut builder = Builder {
        cluster: name::cluster_name(input.cluster),
        id: id.to_owned(),
        port: endpoint::port(input, observed),
        knows_port: endpoint::is_port_known(input, observed),
        aws_cluster: input.aws_cluster,
        layout,
        rules: input.rules,
        nat_addresses: egress::addresses(input.snapshot, observed),
        knows_nat_addresses: egress::is_known(input.aws_cluster, layout, input.snapshot),
        observed,
        res: Desired::new(),
    };
    if layout.owned {
        builder.network();
    } else {
        builder.unmanaged_network(observed);
    }
    builder.groups();
    builder.load_balancer()?;
    Ok(builder.res)
}

/// Puts together what a cluster consists of.
pub(super) struct Builder<'a> {
    pub cluster: String,
    pub id: String,
    /// At which the API is reached.
    pub port: i32,
    /// Otherwise nothing is revoked of what lets it be reached.
    pub knows_port: bool,
    pub aws_cluster: &'a AWSCluster,
    pub layout: &'a Layout,
    pub rules: Option<&'a [AddOnRule]>,
    /// Public addresses of the NAT gateways, once they are known.
    pub nat_addresses: Vec<String>,
    /// Otherwise nothing is revoked: what lets them in would look like too much.
    pub knows_nat_addresses: bool,
    pub observed: &'a Observed,
    pub res: Desired,
}

impl Builder<'_> {
    pub(super) fn tags(&self, role: &str, name: &str) -> Tags {
        tag::common(&self.cluster, &self.id, self.aws_cluster, role, name)
    }

    /// Names of the subnets that the load balancer is in already.
    pub(super) fn balanced(&self) -> BTreeSet<String> {
        match self
            .observed
            .get(&LoadBalancer::key(API_SERVER))
            .filter(|it| it.owner == Owner::Mine)
            .map(|it| &it.is)
        {
            Some(Resource::LoadBalancer(it)) => it.subnets.clone(),
            _ => BTreeSet::new(),
        }
    }

    pub(super) fn add(&mut self, is: impl Into<Resource>, tags: Tags) {
        let is = is.into();
        self.res.insert(is.key(), DesiredResource { is, tags, untag: Default::default() });
    }

    /// A network that the user brought is wanted as it is: it has to be there, and is never changed.
    fn unmanaged_network(&mut self, observed: &Observed) {
        let mut desired: Vec<Resource> =
            vec![Vpc { name: MAIN.into(), cidr: self.layout.cidr.clone(), dns_hostnames: true }.into()];
        desired.extend(self.layout.subnets.iter().map(|it| {
            let (zone, cidr) = (it.zone.clone(), it.cidr.clone().unwrap_or_default());
            Resource::from(Subnet { name: it.name.clone(), vpc: MAIN.into(), zone, cidr, public: it.public })
        }));
        for is in desired {
            let is = observed.get(&is.key()).map(|resource| resource.is.clone()).unwrap_or(is);
            self.add(is, Tags::new());
        }
    }
}
