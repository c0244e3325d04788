//! The four security groups of a cluster and their rules: those of Cluster API Provider AWS, what the user adds, and what add-ons asked
//! for. This is the one place that rules come from.

use std::collections::BTreeSet;

use crds::ingress::{IngressRule, SecurityGroupRole};
use crds::load_balancer::{LoadBalancerScheme, LoadBalancerType};
use crds::names::cloud_provider_tag;

use super::desired::Builder;
use super::name;
use crate::see::{GROUP_ROLES, MAIN};
use crate::{Rule, SecurityGroup, SecurityGroupRules, Source};

const ANYWHERE: &str = "0.0.0.0/0";

impl Builder<'_> {
    pub(super) fn groups(&mut self) {
        for role in GROUP_ROLES {
            let group_name = name::group(&self.cluster, role);
            let mut tags = self.tags(role, &group_name);
            if role == "lb" {
                tags.insert(cloud_provider_tag(&self.cluster), crds::names::OWNED.into());
            }
            let description = format!("Kubernetes cluster {}: {role}", self.cluster);
            self.add(SecurityGroup { name: role.into(), vpc: MAIN.into(), group_name, description }, tags);
            // The cloud provider and load balancer controllers add rules to `lb`, and remove them.
            let keep_unknown = role == "lb" || self.rules.is_none() || !self.knows_nat_addresses;
            let rules = self.group_rules(role);
            self.add(SecurityGroupRules { name: role.into(), rules, keep_unknown }, Default::default());
        }
    }

    fn group_rules(&self, role: &str) -> BTreeSet<Rule> {
        let network = &self.aws_cluster.spec.network;
        let mut res: Vec<Rule> = match role {
            "controlplane" => self.control_plane_rules(),
            "node" => self.node_rules(),
            "apiserver-lb" => self.load_balancer_rules(),
            _ => self.cloud_provider_rules(),
        };
        match role {
            "controlplane" => res.extend(self.expand(&network.additional_control_plane_ingress_rules)),
            "node" => res.extend(self.expand(&network.additional_node_ingress_rules)),
            _ => (),
        }
        res.extend(self.rules.into_iter().flatten().filter(|it| it.group == role).map(|it| it.rule.clone()));
        let mut unique: Vec<Rule> = Vec::new();
        for rule in res {
            if !unique.iter().any(|it| it.same_traffic(&rule)) {
                unique.push(rule);
            }
        }
        unique.into_iter().collect()
    }

    fn control_plane_rules(&self) -> Vec<Rule> {
        let port = i32::from(name::API_SERVER_PORT);
        let mut res = self.cni_rules();
        for source in ["apiserver-lb", "controlplane", "node"] {
            res.push(tcp(port, port, group(source), "Kubernetes API"));
        }
        res.push(tcp(2379, 2379, group("controlplane"), "etcd"));
        res.push(tcp(2380, 2380, group("controlplane"), "etcd peer"));
        res
    }

    fn node_rules(&self) -> Vec<Rule> {
        let given = &self.aws_cluster.spec.network.node_port_ingress_rule_cidr_blocks;
        let ranges = if given.is_empty() { vec![ANYWHERE.to_owned()] } else { given.clone() };
        let mut res = self.cni_rules();
        res.extend(ranges.iter().map(|range| tcp(30000, 32767, Source::range(range), "Node Port Services")));
        res.extend(["controlplane", "node"].map(|source| tcp(10250, 10250, group(source), "Kubelet API")));
        res
    }

    fn cni_rules(&self) -> Vec<Rule> {
        let rules = &self.aws_cluster.spec.network.cni.cni_ingress_rules;
        let with_source = |source: &str| {
            let source = group(source);
            rules.iter().map(move |it| Rule {
                protocol: it.protocol.as_str().into(),
                from_port: it.from_port,
                to_port: it.to_port,
                source: source.clone(),
                description: it.description.clone(),
            })
        };
        with_source("controlplane").chain(with_source("node")).collect()
    }

    /// Who may reach the API: whom the user lets in, or everybody; and the cluster's own nodes always.
    fn load_balancer_rules(&self) -> Vec<Rule> {
        let spec = &self.aws_cluster.spec.control_plane_load_balancer;
        if spec.load_balancer_type == LoadBalancerType::Disabled {
            return Vec::new();
        }
        let port = name::api_server_port(self.input_cluster);
        let api = |range: String| tcp(port, port, Source::Cidr(range), "Kubernetes API");
        if spec.ingress_rules.is_empty() {
            return vec![api(ANYWHERE.into())];
        }
        let mut res = self.expand(&spec.ingress_rules);
        match spec.scheme {
            LoadBalancerScheme::Internal if !self.layout.cidr.is_empty() => res.push(api(self.layout.cidr.clone())),
            LoadBalancerScheme::Internal => (),
            LoadBalancerScheme::InternetFacing => res.extend(self.nat_addresses.iter().map(|ip| api(format!("{ip}/32")))),
        }
        res
    }

    /// A network load balancer forwards from its own addresses in the VPC.
    fn cloud_provider_rules(&self) -> Vec<Rule> {
        let port = i32::from(name::API_SERVER_PORT);
        match self.aws_cluster.spec.control_plane_load_balancer.load_balancer_type {
            LoadBalancerType::Nlb if !self.layout.cidr.is_empty() => {
                vec![tcp(port, port, Source::Cidr(self.layout.cidr.clone()), "Kubernetes API from the load balancer")]
            }
            _ => Vec::new(),
        }
    }

    /// One rule for each source. Without any, machines of the control plane are the source, as in Cluster API Provider AWS.
    fn expand(&self, rules: &[IngressRule]) -> Vec<Rule> {
        let mut res = Vec::new();
        for it in rules {
            let mut sources: Vec<Source> = it.cidr_blocks.iter().chain(&it.ipv6_cidr_blocks).map(|it| Source::range(it)).collect();
            sources.extend(it.source_security_group_ids.iter().cloned().map(Source::GroupId));
            sources.extend(it.source_security_group_roles.iter().copied().map(SecurityGroupRole::as_str).map(group));
            match it.nat_gateways_ips_source {
                true => sources.extend(self.nat_addresses.iter().map(|ip| Source::Cidr(format!("{ip}/32")))),
                false if sources.is_empty() => sources.push(group("controlplane")),
                false => (),
            }
            res.extend(sources.into_iter().map(|source| Rule {
                protocol: it.protocol.as_str().into(),
                from_port: it.from_port,
                to_port: it.to_port,
                source,
                description: it.description.clone(),
            }));
        }
        res
    }
}

fn tcp(from_port: i32, to_port: i32, source: Source, description: &str) -> Rule {
    Rule { protocol: "tcp".into(), from_port, to_port, source, description: description.into() }
}

fn group(role: &str) -> Source {
    Source::Group(role.into())
}
