//! The network that a cluster should have, as resources. It is only asked for when the network is ours to
//! make.

use std::collections::BTreeSet;

use crds::names::{NAME_TAG, cloud_provider_tag};

use super::desired::Builder;
use super::tag;
use crate::observe::{KEY_TAG, MAIN, SubnetRole};
use model::{ElasticIp, InternetGateway, NatGateway, Resource, RouteTable, Subnet, Tags, Vpc};

impl Builder<'_> {
    pub(super) fn network(&mut self) {
        let cluster = self.cluster.clone();
        let mut tags = self.tags("common", &format!("{cluster}-vpc"));
        tags.extend(tag::given(&self.aws_cluster.spec.network.vpc.tags));
        self.add(Vpc { name: MAIN.into(), cidr: self.layout.cidr.clone(), dns_hostnames: true }, tags);
        let tags = self.tags("common", &format!("{cluster}-igw"));
        self.add(InternetGateway { name: MAIN.into(), vpc: MAIN.into(), attached: true }, tags);
        for subnet in &self.layout.subnets {
            let tags = self.subnet_tags(subnet);
            let cidr = subnet.cidr.clone().unwrap_or_default();
            let is = Subnet {
                name: subnet.name.clone(),
                vpc: MAIN.into(),
                zone: subnet.zone.clone(),
                cidr,
                public: subnet.public,
            };
            self.add_as_is(subnet, is, tags);
        }
        for (zone, subnet) in self.layout.nat_gateways() {
            let tags = self.tags("common", &format!("{cluster}-eip-common"));
            self.add(ElasticIp { name: zone.clone() }, tags);
            let tags = self.tags("common", &format!("{cluster}-nat"));
            let name = zone.clone();
            self.add(NatGateway { name, subnet, elastic_ip: zone, internet_gateway: MAIN.into() }, tags);
        }
        for subnet in &self.layout.subnets {
            let default_route = self.layout.default_route(subnet);
            let mut tags = self.tags(word(subnet), &format!("{cluster}-rt-{}-{}", word(subnet), subnet.zone));
            tags.insert(cloud_provider_tag(&cluster), crds::names::OWNED.into());
            tags.insert(KEY_TAG.into(), subnet.name.clone());
            let subnets = BTreeSet::from([subnet.name.clone()]);
            self.add_as_is(
                subnet,
                RouteTable { name: subnet.name.clone(), vpc: MAIN.into(), subnets, default_route },
                tags,
            );
        }
    }

    /// What belongs to a subnet that is not listed any more keeps the tags that it has.
    fn add_as_is(&mut self, subnet: &SubnetRole, is: impl Into<Resource>, tags: Tags) {
        let is = is.into();
        let is_there = self.observed.contains_key(&is.key());
        self.add(is, if subnet.unlisted && is_there { Tags::new() } else { tags });
    }

    fn subnet_tags(&self, subnet: &SubnetRole) -> Tags {
        let mut res =
            self.tags(word(subnet), &format!("{}-subnet-{}-{}", self.cluster, word(subnet), subnet.zone));
        res.extend(tag::subnet(&self.cluster, subnet.public));
        let spec = self.aws_cluster.spec.network.subnets.iter().find(|it| {
            subnet.id.as_ref().is_some_and(|id| [&it.id, &it.resource_id].contains(&id))
                || subnet.cidr.as_ref() == Some(&it.cidr_block)
        });
        if let Some(spec) = spec {
            // As in Cluster API Provider AWS, also where it is no id of AWS's.
            if !spec.id.starts_with("subnet-") {
                res.insert(NAME_TAG.into(), spec.id.clone());
            }
            res.extend(tag::given(&spec.tags));
        }
        res
    }
}

fn word(subnet: &SubnetRole) -> &'static str {
    if subnet.public { "public" } else { "private" }
}
