//! What the pretend AWS removes, and what it refuses to because something still uses it.

use model::*;

use super::{SLOW, World};

const IN_USE: &str = "DependencyViolation";

impl World {
    pub(super) fn delete(&mut self, id: &str, is: &Resource, ids: &Ids) -> Result<String, &'static str> {
        match is {
            Resource::Vpc(_) => self.delete_vpc(id)?,
            Resource::Subnet(_) => self.delete_subnet(id)?,
            Resource::InternetGateway(_) => self.delete_internet_gateway(id)?,
            Resource::ElasticIp(_) => {
                if self.truth.addresses.iter().any(|it| it.id == id && it.association_id.is_some()) {
                    return Err("InvalidIPAddress.InUse");
                }
                self.truth.addresses.retain(|it| it.id != id);
            }
            Resource::NatGateway(_) => {
                let gateway =
                    self.truth.nat_gateways.iter_mut().find(|it| it.id == id).ok_or("NatGatewayNotFound")?;
                gateway.state = State::Deleting;
                self.pending.insert(id.to_owned(), SLOW);
            }
            Resource::RouteTable(_) => self.truth.route_tables.retain(|it| it.id != id),
            Resource::SecurityGroup(_) => self.delete_group(id)?,
            Resource::SecurityGroupRules(it) => {
                let group = ids.get(&SecurityGroup::key(&it.name)).map(String::as_str).unwrap_or(id);
                let group = self
                    .truth
                    .security_groups
                    .iter_mut()
                    .find(|it| it.id == group)
                    .ok_or("InvalidGroup.NotFound")?;
                group.rules.clear();
            }
            Resource::LoadBalancer(_) => self.delete_load_balancer(id),
            Resource::NetworkInterface(_) => {
                if self.truth.network_interfaces.iter().any(|it| it.id == id && it.status == "in-use") {
                    return Err("InvalidParameterValue");
                }
                self.truth.network_interfaces.retain(|it| it.id != id);
            }
            Resource::Secret(it) => {
                for n in 0..it.count {
                    self.secrets.remove(&format!("{}-{n}", it.prefix));
                }
            }
            Resource::Instance(_) => {
                let instance = self
                    .truth
                    .instances
                    .iter_mut()
                    .find(|it| it.id == id)
                    .ok_or("InvalidInstanceID.NotFound")?;
                instance.status.state = "shutting-down".into();
                self.pending.insert(id.to_owned(), SLOW);
            }
            Resource::Target(target) => return self.deregister(id, target, ids),
        }
        Ok(id.to_owned())
    }

    fn delete_subnet(&mut self, id: &str) -> Result<(), &'static str> {
        let used = self.truth.network_interfaces.iter().any(|it| it.subnet_id == id);
        if used || self.truth.nat_gateways.iter().any(|it| it.subnet_id == id && it.state != State::Failed) {
            return Err(IN_USE);
        }
        self.truth.subnets.retain(|it| it.id != id);
        self.truth.route_tables.iter_mut().for_each(|it| it.associations.retain(|subnet, _| subnet != id));
        Ok(())
    }

    fn delete_load_balancer(&mut self, id: &str) {
        // As the real leaf does: its target group first, which may be all that is left.
        self.target_groups.remove(id);
        let Some(at) = self.truth.load_balancers.iter().position(|it| it.id == id) else {
            return;
        };
        let balancer = self.truth.load_balancers.remove(at);
        let description = format!("ELB {}", balancer.name);
        let left = self.truth.network_interfaces.iter().filter(|it| it.description == description);
        self.fading.extend(left.map(|it| (it.id.clone(), 2)));
    }

    fn deregister(&mut self, id: &str, target: &Target, ids: &Ids) -> Result<String, &'static str> {
        let balancer = ids.get(&LoadBalancer::key(&target.load_balancer)).ok_or("MissingParameter")?;
        let balancer = self
            .truth
            .load_balancers
            .iter_mut()
            .find(|it| it.id == *balancer)
            .ok_or("LoadBalancerNotFound")?;
        balancer.targets.remove(id);
        Ok(balancer.id.clone())
    }

    fn delete_vpc(&mut self, id: &str) -> Result<(), &'static str> {
        let truth = &self.truth;
        let used = truth.subnets.iter().any(|it| it.vpc_id == id)
            || truth.internet_gateways.iter().any(|it| it.vpc_id.as_deref() == Some(id))
            || truth.nat_gateways.iter().any(|it| it.vpc_id == id && it.state != State::Failed)
            || truth.route_tables.iter().any(|it| it.vpc_id == id && !it.main)
            || truth.security_groups.iter().any(|it| it.vpc_id == id && it.group_name != "default")
            || truth.network_interfaces.iter().any(|it| it.vpc_id == id);
        if used {
            return Err(IN_USE);
        }
        self.truth.vpcs.retain(|it| it.id != id);
        self.truth.security_groups.retain(|it| it.vpc_id != id);
        self.truth.nat_gateways.retain(|it| it.vpc_id != id);
        Ok(())
    }

    fn delete_internet_gateway(&mut self, id: &str) -> Result<(), &'static str> {
        let vpc = self
            .truth
            .internet_gateways
            .iter()
            .find(|it| it.id == id)
            .ok_or("InvalidInternetGatewayID.NotFound")?
            .vpc_id
            .clone();
        let mapped = self
            .truth
            .nat_gateways
            .iter()
            .any(|it| Some(&it.vpc_id) == vpc.as_ref() && it.state != State::Failed)
            || self.truth.load_balancers.iter().any(|it| Some(&it.vpc_id) == vpc.as_ref() && !it.internal);
        if mapped {
            return Err(IN_USE);
        }
        self.truth.internet_gateways.retain(|it| it.id != id);
        Ok(())
    }

    fn delete_group(&mut self, id: &str) -> Result<(), &'static str> {
        let named = |rule: &FoundRule| rule.source == FoundSource::GroupId(id.to_owned());
        let by_rule = self.truth.security_groups.iter().any(|it| it.id != id && it.rules.iter().any(named));
        let by_interface = self.truth.network_interfaces.iter().any(|it| it.groups.contains(id));
        if by_rule || by_interface {
            return Err(IN_USE);
        }
        self.truth.security_groups.retain(|it| it.id != id);
        Ok(())
    }
}
