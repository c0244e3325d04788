//! The load balancer in front of the API servers, with the health check and attributes that Cluster API
//! Provider AWS gives it.

use std::collections::BTreeSet;

use crds::load_balancer::{HealthCheckProtocol, LoadBalancerScheme};

use super::desired::Builder;
use super::{layout, name};
use crate::observe::{API_SERVER, MAIN, SubnetRole};
use model::{
    HealthCheck, Invalid, Listener, LoadBalancer, LoadBalancerAttributes, LoadBalancerKind, Resource, Subnet,
};

impl Builder<'_> {
    pub(super) fn load_balancer(&mut self) -> Result<(), Invalid> {
        let Some(kind) = layout::load_balancer_kind(self.aws_cluster) else { return Ok(()) };
        let spec = &self.aws_cluster.spec.control_plane_load_balancer;
        if !matches!(kind, LoadBalancerKind::Classic | LoadBalancerKind::Network) {
            let field = "spec.controlPlaneLoadBalancer.loadBalancerType";
            return Err(Invalid::new(
                field,
                "alb is not supported by cluster-operator: it does not forward TCP; use nlb or classic",
            ));
        }
        let internal = spec.scheme == LoadBalancerScheme::Internal;
        let port = u16::try_from(self.port).map_err(|_| {
            Invalid::new("Cluster spec.clusterNetwork.apiServerPort", format!("{} is no port", self.port))
        })?;
        let listener = Listener {
            port,
            target_port: name::API_SERVER_PORT,
            health_check: health_check(spec.health_check_protocol, kind)?,
        };
        let aws_name = name::load_balancer(&self.cluster, self.aws_cluster, kind);
        let tags = self.tags(API_SERVER, &aws_name);
        let is = LoadBalancer {
            name: API_SERVER.into(),
            aws_name,
            kind,
            internet_gateway: (!internal && self.layout.owned).then(|| MAIN.into()),
            internal,
            subnets: self.load_balancer_subnets(internal)?,
            leaving: self.layout.leaving.clone(),
            groups: BTreeSet::from(["apiserver-lb".into()]),
            listener: Some(listener),
            attributes: Some(LoadBalancerAttributes {
                cross_zone: spec.cross_zone_load_balancing,
                idle_timeout_seconds: (kind == LoadBalancerKind::Classic).then_some(600),
            }),
        };
        self.add(is, tags);
        Ok(())
    }

    /// A public one in each zone for the internet, else a private one; where there is no private one at all,
    /// public ones too. Of a zone that it is in already, it has that one: AWS takes no second one there.
    fn load_balancer_subnets(&self, internal: bool) -> Result<BTreeSet<String>, Invalid> {
        let public = !internal || self.layout.for_nodes().all(|it| it.public);
        let balanced = self.balanced();
        // Of a network that a user brought it may have some that are not listed any more.
        let mut zones: BTreeSet<&String> =
            balanced.iter().filter_map(|it| self.zone_of_unlisted(it)).collect();
        let has = |it: &&SubnetRole| balanced.contains(&it.name) && !self.layout.leaving.contains(&it.name);
        let fits = |it: &&SubnetRole| it.public == public;
        let had = self.layout.subnets.iter().filter(has);
        let fitting = had
            .chain(self.layout.for_nodes().filter(fits))
            .filter(|it| it.zone.is_empty() || zones.insert(&it.zone));
        let res: BTreeSet<String> = fitting.map(|it| it.name.clone()).collect();
        if res.is_empty() && zones.is_empty() {
            let message = "none is public, as an internet-facing load balancer needs it: give the route table of one a route to an \
                           internet gateway, or set spec.controlPlaneLoadBalancer.scheme to internal";
            return Err(Invalid::new("spec.network.subnets", message));
        }
        Ok(res)
    }

    /// The zone of a subnet that is seen and has no place in the layout.
    fn zone_of_unlisted(&self, name: &str) -> Option<&String> {
        let is_listed = self.layout.subnets.iter().any(|it| it.name == name);
        match self.observed.get(&Subnet::key(name)).filter(|_| !is_listed).map(|it| &it.is) {
            Some(Resource::Subnet(it)) => Some(&it.zone),
            _ => None,
        }
    }
}

fn health_check(
    protocol: Option<HealthCheckProtocol>,
    kind: LoadBalancerKind,
) -> Result<HealthCheck, Invalid> {
    let protocol = protocol.unwrap_or(HealthCheckProtocol::Tcp);
    let allowed = match kind {
        LoadBalancerKind::Classic => !matches!(protocol, HealthCheckProtocol::Tls | HealthCheckProtocol::Udp),
        _ => matches!(
            protocol,
            HealthCheckProtocol::Tcp | HealthCheckProtocol::Http | HealthCheckProtocol::Https
        ),
    };
    if !allowed {
        let message = format!("{} is no health check of a load balancer of this type", protocol.as_str());
        return Err(Invalid::new("spec.controlPlaneLoadBalancer.healthCheckProtocol", message));
    }
    let path = matches!(protocol, HealthCheckProtocol::Http | HealthCheckProtocol::Https)
        .then(|| "/readyz".to_owned());
    Ok(HealthCheck {
        protocol: protocol.as_str().into(),
        port: name::API_SERVER_PORT,
        path,
        interval_seconds: 5,
        timeout_seconds: 4,
        healthy_threshold: 2,
        unhealthy_threshold: 6,
    })
}
