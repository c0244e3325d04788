//! Network interfaces that others left or still use in the VPC of a cluster that is being deleted. Those that
//! the pods' network made and nobody uses any more are ours to remove; those of load balancers, terminating
//! instances and our own NAT gateways go by themselves; the rest stands in the way and is named.

use super::Observer;
use model::{FoundNatGateway, FoundNetworkInterface, NetworkInterface, Owner, State};

/// Tag keys by which the Amazon VPC CNI marks interfaces that it made.
const CNI_TAGS: [&str; 3] = [
    "node.k8s.amazonaws.com/instance_id",
    "node.k8s.amazonaws.com/createdAt",
    "cluster.k8s.amazonaws.com/name",
];
/// Interface types that go with the thing they were made for.
const GO_BY_THEMSELVES: [&str; 4] =
    [NAT_GATEWAY, "network_load_balancer", "gateway_load_balancer", "load_balancer"];
const NAT_GATEWAY: &str = "nat_gateway";

impl Observer<'_> {
    pub(super) fn interfaces(&mut self) {
        let ours = |it: &&FoundNetworkInterface| {
            self.in_vpc(&it.vpc_id)
                && (self.owns_network() || it.groups.iter().any(|id| self.names.contains_key(id)))
        };
        let found: Vec<&FoundNetworkInterface> =
            self.snapshot.network_interfaces.iter().filter(ours).collect();
        for it in found {
            let (owner, state) = self.interface_owner(it);
            let groups = it.groups.iter().map(|id| self.name(id)).collect();
            let is = NetworkInterface { name: it.id.clone(), subnet: Some(self.name(&it.subnet_id)), groups };
            let attached = it.attached_instance.as_ref().map(|id| format!("attached to instance {id}"));
            let gateway = || {
                self.others_nat_gateway(it).map(|it| format!("goes with NAT gateway {}; delete that", it.id))
            };
            let note = attached
                .or_else(gateway)
                .or_else(|| (!it.description.is_empty()).then(|| it.description.clone()));
            self.put(&it.id, owner, state, is.into(), Some(&it.tags), note);
        }
    }

    fn interface_owner(&self, found: &FoundNetworkInterface) -> (Owner, State) {
        let by_cni = CNI_TAGS.iter().any(|tag| found.tags.contains_key(*tag))
            || found.description.starts_with("aws-K8S-");
        if found.status == "available" && by_cni && self.owns_network() {
            return (Owner::Mine, State::Ready);
        }
        let dying = |id: &String| {
            let states = ["shutting-down", "terminated"];
            self.snapshot
                .instances
                .iter()
                .any(|instance| instance.id == *id && states.contains(&instance.status.state.as_str()))
        };
        let of_load_balancer = found.description.starts_with("ELB ");
        let of_kind = GO_BY_THEMSELVES.contains(&found.interface_type.as_str())
            && self.others_nat_gateway(found).is_none();
        let goes = of_kind || of_load_balancer || found.attached_instance.as_ref().is_some_and(dying);
        (Owner::User, if goes { State::Deleting } else { State::Ready })
    }

    /// The NAT gateway of somebody else that an interface is there for, which its description names. All that
    /// lie in a VPC are read while it is deleted: the interface of one that is not shown any more is about to
    /// go.
    fn others_nat_gateway(&self, found: &FoundNetworkInterface) -> Option<&FoundNatGateway> {
        let lives = |gateway: &&FoundNatGateway| matches!(gateway.state, State::Creating | State::Ready);
        let is_its = |gateway: &&FoundNatGateway| {
            found.interface_type == NAT_GATEWAY && found.description.contains(&gateway.id)
        };
        let mut its = self.snapshot.nat_gateways.iter().filter(lives).filter(is_its);
        its.find(|gateway| self.owner(&gateway.tags) != Owner::Mine)
    }
}
