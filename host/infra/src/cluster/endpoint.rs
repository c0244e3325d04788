//! Where the API of a cluster is reached: the port, and the name that has to resolve.

use crds::load_balancer::DnsResolutionCheck;

use super::{Decision, Input, layout, name};
use crate::observe::API_SERVER;
use model::{Kind, LoadBalancer, Observed, Owner};

/// The port at which the API is reached: that of the endpoint, where it was taken from the load balancer,
/// whatever the Cluster says since. Kubeconfigs and nodes know no other.
pub(super) fn port(input: &Input<'_>, observed: &Observed) -> i32 {
    let asked = name::api_server_port(input.cluster);
    let balancer = observed.get(&LoadBalancer::key(API_SERVER)).filter(|it| it.owner == Owner::Mine);
    let found = balancer.and_then(|own| input.snapshot.load_balancers.iter().find(|it| it.id == own.id));
    let endpoint =
        input.record.endpoint.as_ref().filter(|(host, _)| found.is_some_and(|it| it.dns_name == *host));
    endpoint.map_or(asked, |(_, port)| *port)
}

/// Whether that port is known: the load balancer may only not be shown just now.
pub(super) fn is_port_known(input: &Input<'_>, observed: &Observed) -> bool {
    let has_balancer = layout::load_balancer_kind(input.aws_cluster).is_some();
    !has_balancer || input.record.endpoint.is_none() || observed.contains_key(&LoadBalancer::key(API_SERVER))
}

/// Why the API is not reached at the port that the Cluster names.
pub(super) fn held(input: &Input<'_>, observed: &Observed) -> Option<(Kind, String)> {
    let (asked, port) = (name::api_server_port(input.cluster), port(input, observed));
    let message = || {
        format!(
            "Cluster spec.clusterNetwork.apiServerPort is {asked}, and the API is reached at {port}: it stays there; set it back"
        )
    };
    (asked != port).then(|| (Kind::LoadBalancer, message()))
}

/// The name of the load balancer, where it has to resolve before the cluster counts as provisioned, as
/// Cluster API Provider AWS asks for.
pub fn must_resolve<'a>(input: &'a Input<'_>, decision: &Decision) -> Option<&'a str> {
    let object = input.aws_cluster;
    let provisioned =
        object.status.as_ref().and_then(|it| it.initialization.as_ref()).and_then(|it| it.provisioned)
            == Some(true);
    let unasked =
        object.spec.control_plane_load_balancer.dns_resolution_check == Some(DnsResolutionCheck::None);
    if provisioned || unasked || super::deleting(object) {
        return None;
    }
    let balancer =
        decision.observed.get(&LoadBalancer::key(API_SERVER)).filter(|it| it.owner == Owner::Mine)?;
    let found = input.snapshot.load_balancers.iter().find(|it| it.id == balancer.id)?;
    Some(found.dns_name.as_str()).filter(|it| !it.is_empty())
}
