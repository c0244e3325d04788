//! The four security groups of a cluster and their rules: those of Cluster API Provider AWS, what the user
//! adds, and what add-ons asked for. This is the one place that rules come from.

use std::collections::BTreeSet;

use crds::ingress::{IngressRule, SecurityGroupRole};
use crds::load_balancer::{LoadBalancerScheme, LoadBalancerType};
use ipnet::IpNet;

use super::desired::Builder;
use super::{Decision, Input, egress, endpoint, name, tag};
use crate::observe::{GROUP_ROLES, MAIN};
use model::{Kind, Resource, Rule, SecurityGroup, SecurityGroupRules, Source, Vpc};

const ANYWHERE: &str = "0.0.0.0/0";
/// The group of the load balancer in front of the API servers.
const API_GROUP: &str = "apiserver-lb";
/// Whether one of the ranges that the user lets in is that of the nodes, nobody but the user knows.
const NODES_FROM_ELSEWHERE: &str = "there is no NAT gateway whose address could be let in: the cluster's own nodes reach its API only if a \
     rule of spec.controlPlaneLoadBalancer.ingressRules lets in the range that they come from; add it unless it is there";

impl Decision {
    /// What is to be known of the rules although they are as the user wants them: that they may keep the
    /// cluster's own nodes from its API, when it is reached from the internet and not by everybody.
    pub(crate) fn remark_on_rules(&self, input: &Input<'_>) -> Option<&'static str> {
        let spec = &input.aws_cluster.spec.control_plane_load_balancer;
        if spec.scheme != LoadBalancerScheme::InternetFacing
            || spec.load_balancer_type == LoadBalancerType::Disabled
        {
            return None;
        }
        let gateways = self.desired.keys().any(|it| it.kind == Kind::NatGateway);
        let is_known =
            self.interest.nat_gateways_of.iter().all(|id| input.snapshot.nat_gateways_read.contains(id));
        if gateways || !is_known || !egress::addresses(input.snapshot, &self.observed).is_empty() {
            return None;
        }
        let Resource::SecurityGroupRules(wanted) = &self.desired.get(&SecurityGroupRules::key(API_GROUP))?.is
        else {
            return None;
        };
        let Resource::Vpc(vpc) = &self.observed.get(&Vpc::key(MAIN))?.is else { return None };
        let vpc: IpNet = vpc.cidr.parse().ok()?;
        let port = endpoint::port(input, &self.observed);
        let is_open = wanted.rules.iter().any(|it| is_of_api(it, port) && has_range(&it.source, &vpc));
        (!is_open).then_some(NODES_FROM_ELSEWHERE)
    }
}

/// Whether a rule is about the port of the API.
fn is_of_api(rule: &Rule, port: i32) -> bool {
    rule.protocol == "-1" || rule.protocol == "tcp" && (rule.from_port..=rule.to_port).contains(&port)
}

/// Whether a source has the whole range in it.
fn has_range(source: &Source, range: &IpNet) -> bool {
    match source {
        Source::Cidr(text) => text.parse::<IpNet>().is_ok_and(|it| it.contains(range)),
        _ => false,
    }
}

impl Builder<'_> {
    pub(super) fn groups(&mut self) {
        for role in GROUP_ROLES {
            let group_name = name::group(&self.cluster, role);
            let tags = tag::group(&self.cluster, role, self.tags(role, &group_name));
            let description = format!("Kubernetes cluster {}: {role}", self.cluster);
            self.add(SecurityGroup { name: role.into(), vpc: MAIN.into(), group_name, description }, tags);
            // The cloud provider and load balancer controllers add rules to `lb`, and remove them.
            let unknown_port = role == API_GROUP && !self.knows_port;
            let keep_unknown =
                role == "lb" || self.rules.is_none() || !self.knows_nat_addresses || unknown_port;
            let rules = self.group_rules(role);
            self.add(SecurityGroupRules { name: role.into(), rules, keep_unknown }, Default::default());
        }
    }

    fn group_rules(&self, role: &str) -> BTreeSet<Rule> {
        let network = &self.aws_cluster.spec.network;
        let mut res: Vec<Rule> = match role {
            "controlplane" => self.control_plane_rules(),
            "node" => self.node_rules(),
            API_GROUP => self.load_balancer_rules(),
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
        for source in [API_GROUP, "controlplane", "node"] {
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
        let port = self.port;
        let api = |range: String| tcp(port, port, Source::Cidr(range), "Kubernetes API");
        if spec.ingress_rules.is_empty() {
            return vec![api(ANYWHERE.into())];
        }
        let mut res = self.expand(&spec.ingress_rules);
        match spec.scheme {
            LoadBalancerScheme::Internal if !self.layout.cidr.is_empty() => {
                res.push(api(self.layout.cidr.clone()))
            }
            LoadBalancerScheme::Internal => (),
            LoadBalancerScheme::InternetFacing => {
                res.extend(self.nat_addresses.iter().map(|ip| api(format!("{ip}/32"))))
            }
        }
        res
    }

    /// A network load balancer forwards from its own addresses in the VPC.
    fn cloud_provider_rules(&self) -> Vec<Rule> {
        let port = i32::from(name::API_SERVER_PORT);
        match self.aws_cluster.spec.control_plane_load_balancer.load_balancer_type {
            LoadBalancerType::Nlb if !self.layout.cidr.is_empty() => {
                vec![tcp(
                    port,
                    port,
                    Source::Cidr(self.layout.cidr.clone()),
                    "Kubernetes API from the load balancer",
                )]
            }
            _ => Vec::new(),
        }
    }

    /// One rule for each source. Without any, machines of the control plane are the source, as in Cluster API
    /// Provider AWS.
    fn expand(&self, rules: &[IngressRule]) -> Vec<Rule> {
        let mut res = Vec::new();
        for it in rules {
            let mut sources: Vec<Source> =
                it.cidr_blocks.iter().chain(&it.ipv6_cidr_blocks).map(|it| Source::range(it)).collect();
            sources.extend(it.source_security_group_ids.iter().cloned().map(Source::GroupId));
            sources.extend(
                it.source_security_group_roles.iter().copied().map(SecurityGroupRole::as_str).map(group),
            );
            if it.nat_gateways_ips_source {
                sources.extend(self.nat_addresses.iter().map(|ip| Source::Cidr(format!("{ip}/32"))));
            } else if sources.is_empty() {
                sources.push(group("controlplane"));
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
