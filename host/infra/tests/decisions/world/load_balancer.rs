//! Load balancers of the pretend AWS.

use std::collections::BTreeSet;

use model::*;

use super::{SLOW, World};

impl World {
    pub(super) fn create_load_balancer(
        &mut self,
        balancer: &LoadBalancer,
        tags: Tags,
        ids: &Ids,
    ) -> Result<String, &'static str> {
        let classic = balancer.kind == LoadBalancerKind::Classic;
        let subnets = balancer
            .subnets
            .iter()
            .map(|name| self.id_of(ids, &Subnet::key(name)).cloned())
            .collect::<Result<_, _>>()?;
        let groups = balancer
            .groups
            .iter()
            .map(|name| self.id_of(ids, &SecurityGroup::key(name)).cloned())
            .collect::<Result<_, _>>()?;
        let vpc_id = self.vpc_of(&subnets)?;
        if !balancer.internal && !self.attached(&vpc_id) {
            return Err("InvalidSubnet");
        }
        if let Some(other) = self.truth.load_balancers.iter().find(|other| other.name == balancer.aws_name) {
            // As the real leaf does: one of the same name is taken when it lies where it should.
            return if other.vpc_id == vpc_id {
                Ok(other.id.clone())
            } else {
                Err("DuplicateLoadBalancerName")
            };
        }
        let id = if classic {
            balancer.aws_name.clone()
        } else {
            format!("arn:aws:elasticloadbalancing:{}", balancer.aws_name)
        };
        let port = balancer.listener.as_ref().map(|it| (it.port, it.target_port)).ok_or("ValidationError")?;
        let listeners = vec![FoundListener { port: port.0, target_port: port.1, health_check: None }];
        self.interfaces_of(&balancer.aws_name, &subnets, &groups, &vpc_id, "load balancer");
        self.attributes.insert(id.clone(), LoadBalancerAttributes::untouched(balancer.kind));
        self.truth.load_balancers.push(FoundLoadBalancer {
            id: id.clone(),
            name: balancer.aws_name.clone(),
            kind: balancer.kind,
            dns_name: format!("{}.elb.example", balancer.aws_name),
            vpc_id,
            internal: balancer.internal,
            state: if classic { State::Ready } else { State::Creating },
            subnets,
            groups,
            listeners: if classic { listeners } else { Vec::new() },
            targets: Default::default(),
            attributes: None,
            target_groups: Vec::new(),
            tags: Some(tags),
        });
        if !classic {
            self.pending.insert(id.clone(), SLOW);
        }
        Ok(id)
    }

    pub(super) fn vpc_of(
        &self,
        subnets: &std::collections::BTreeSet<String>,
    ) -> Result<String, &'static str> {
        let first = subnets.first().ok_or("ValidationError")?;
        Ok(self.truth.subnets.iter().find(|it| it.id == *first).ok_or("SubnetNotFound")?.vpc_id.clone())
    }

    /// Interfaces that AWS makes in each subnet for a load balancer.
    pub fn interfaces_of(
        &mut self,
        name: &str,
        subnets: &std::collections::BTreeSet<String>,
        groups: &std::collections::BTreeSet<String>,
        vpc_id: &str,
        what: &str,
    ) {
        for subnet_id in subnets {
            let id = self.id("eni");
            self.truth.network_interfaces.push(FoundNetworkInterface {
                id,
                vpc_id: vpc_id.to_owned(),
                subnet_id: subnet_id.clone(),
                groups: groups.clone(),
                status: "in-use".into(),
                description: if what == "load balancer" { format!("ELB {name}") } else { what.to_owned() },
                interface_type: "interface".into(),
                requester_managed: what == "load balancer",
                attached_instance: None,
                tags: Tags::new(),
            });
        }
    }

    /// A load balancer has at most one subnet of each zone, and at least one.
    fn set_subnets(&mut self, id: &str, spec: &LoadBalancer, ids: &Ids) -> Result<(), &'static str> {
        let balancer =
            self.truth.load_balancers.iter().find(|it| it.id == id).ok_or("LoadBalancerNotFound")?;
        let (name, groups, vpc_id, before) = (
            balancer.name.clone(),
            balancer.groups.clone(),
            balancer.vpc_id.clone(),
            balancer.subnets.clone(),
        );
        let wanted = spec
            .subnets
            .iter()
            .map(|name| self.id_of(ids, &Subnet::key(name)).cloned())
            .collect::<Result<BTreeSet<_>, _>>()?;
        let off: BTreeSet<String> =
            spec.leaving.iter().filter_map(|name| ids.get(&Subnet::key(name)).cloned()).collect();
        let after: BTreeSet<String> =
            before.union(&wanted).filter(|it| !off.contains(*it)).cloned().collect();
        let zones: BTreeSet<&String> =
            self.truth.subnets.iter().filter(|it| after.contains(&it.id)).map(|it| &it.zone).collect();
        if after.is_empty() || zones.len() != after.len() {
            return Err("InvalidConfigurationRequest");
        }
        let new: BTreeSet<String> = after.difference(&before).cloned().collect();
        self.interfaces_of(&name, &new, &groups, &vpc_id, "load balancer");
        let description = format!("ELB {name}");
        self.truth
            .network_interfaces
            .retain(|it| it.description != description || after.contains(&it.subnet_id));
        let balancer =
            self.truth.load_balancers.iter_mut().find(|it| it.id == id).ok_or("LoadBalancerNotFound")?;
        balancer.subnets = after;
        Ok(())
    }

    pub(super) fn configure(&mut self, id: &str, spec: &LoadBalancer, ids: &Ids) -> Result<(), &'static str> {
        self.set_subnets(id, spec, ids)?;
        let balancer =
            self.truth.load_balancers.iter_mut().find(|it| it.id == id).ok_or("LoadBalancerNotFound")?;
        let listener = spec.listener.clone().ok_or("ValidationError")?;
        let health_check = Some(listener.health_check);
        balancer.listeners =
            vec![FoundListener { port: listener.port, target_port: listener.target_port, health_check }];
        balancer.attributes = spec.attributes.clone();
        self.attributes.extend(spec.attributes.clone().map(|it| (id.to_owned(), it)));
        if spec.kind != LoadBalancerKind::Classic {
            self.target_groups.insert(id.to_owned());
        }
        Ok(())
    }
}
