//! Load balancers as one cluster sees them: its own by name, and while deleting all that lie in its VPC.

use super::{API_SERVER, MAIN, Observer};
use crate::gc::LeftoverKind;
use model::{
    FoundLoadBalancer, Key, Kind, Listener, LoadBalancer, LoadBalancerAttributes, Owner, SecurityGroup,
};

impl Observer<'_> {
    pub(super) fn load_balancers(&mut self) {
        let wanted = self.scope.load_balancer.clone();
        let named = |it: &&FoundLoadBalancer| {
            wanted.as_ref().is_some_and(|(name, kind)| it.name == *name && it.kind == *kind)
        };
        for it in self.snapshot.load_balancers.iter().filter(named) {
            let owner = self.load_balancer_owner(it);
            let is = self.load_balancer(it, API_SERVER);
            self.put(&it.id, owner, it.state, is.into(), it.tags.as_ref(), None);
        }
        if !self.scope.deleting || !self.owns_network() {
            return;
        }
        let others: Vec<&FoundLoadBalancer> =
            self.snapshot.load_balancers.iter().filter(|it| !named(it) && self.in_vpc(&it.vpc_id)).collect();
        for it in others {
            let left_over =
                it.tags.as_ref().is_some_and(|tags| self.left_over(LeftoverKind::LoadBalancer, tags));
            let owner = if left_over { Owner::Mine } else { Owner::User };
            let is = self.load_balancer(it, &it.name);
            self.put(&it.id, owner, it.state, is.into(), it.tags.as_ref(), None);
        }
    }

    /// Its name is not enough: another cluster may have the same one. Ours carries our security group, or
    /// lies in a VPC of ours.
    fn load_balancer_owner(&self, found: &FoundLoadBalancer) -> Owner {
        let group = self
            .observed
            .get(&SecurityGroup::key("apiserver-lb"))
            .filter(|it| it.owner == Owner::Mine)
            .map(|it| it.id.as_str());
        // What was recorded is ours also while reads do not show it; but a copied record names what is
        // another's.
        let shown = || self.snapshot.vpcs.iter().any(|vpc| vpc.id == found.vpc_id);
        let recorded = self.vpc.is_none()
            && !self.scope.vpc_given
            && self.scope.vpc_id.as_ref() == Some(&found.vpc_id)
            && !shown();
        let ours = recorded
            || self.in_vpc(&found.vpc_id)
                && (self.owns_network() || group.is_some_and(|id| found.groups.contains(id)));
        match found.tags.as_ref().map(|tags| self.owner(tags)) {
            Some(Owner::OtherDriver(whose)) => Owner::OtherDriver(whose),
            _ if ours => Owner::Mine,
            _ => Owner::OtherDriver(format!(
                "somebody else (a load balancer named {:?} in {})",
                found.name, found.vpc_id
            )),
        }
    }

    fn load_balancer(&self, found: &FoundLoadBalancer, name: &str) -> LoadBalancer {
        let listener = found.listeners.first().and_then(|listener| {
            let health_check = listener.health_check.clone()?;
            Some(Listener { port: listener.port, target_port: listener.target_port, health_check })
        });
        // What AWS starts with counts as seen until the attempt to make it is settled.
        let untouched = || LoadBalancerAttributes::untouched(found.kind);
        let unsettled = self.scope.intents.contains_key(&Key::new(Kind::LoadBalancer, name));
        LoadBalancer {
            name: name.to_owned(),
            aws_name: found.name.clone(),
            kind: found.kind,
            internet_gateway: (!found.internal && self.owns_network()).then(|| MAIN.to_owned()),
            internal: found.internal,
            subnets: found.subnets.iter().map(|id| self.name(id)).collect(),
            leaving: Default::default(),
            groups: found.groups.iter().map(|id| self.name(id)).collect(),
            listener,
            attributes: found.attributes.clone().or_else(|| unsettled.then(untouched)),
        }
    }
}
