//! Attributes of load balancers: what describes load balancers does not show them, and creation takes none.

use aws_sdk_elasticloadbalancing::types::{
    ConnectionSettings, CrossZoneLoadBalancing, LoadBalancerAttributes as AwsAttributes,
};
use aws_sdk_elasticloadbalancingv2::types::LoadBalancerAttribute;
use model::finding::Reading;
use model::{FoundLoadBalancer, LoadBalancerAttributes, LoadBalancerKind};

use crate::api::Api;
use crate::context::Context;
use crate::errors::{Failure, reading};
use crate::region::Region;

const DESCRIBE: &str = "elasticloadbalancing:DescribeLoadBalancerAttributes";
const MODIFY: &str = "elasticloadbalancing:ModifyLoadBalancerAttributes";
const CROSS_ZONE: &str = "load_balancing.cross_zone.enabled";

/// Those of one load balancer. Where this operator may not read them they are to be set, as if nobody had.
pub(super) async fn read(api: &Api, found: &FoundLoadBalancer) -> Result<LoadBalancerAttributes, Failure> {
    let read = if found.kind == LoadBalancerKind::Classic {
        of_classic(api, &found.id).await
    } else {
        of_network(api, &found.id).await
    };
    match read {
        Err(failure) if failure.is_forbidden() => {
            tracing::warn!(code = failure.code, error = %failure, "attributes cannot be read, so they are set");
            Ok(LoadBalancerAttributes::untouched(found.kind))
        }
        other => other,
    }
}

impl Region {
    /// The attributes of a load balancer, by its ARN or, of a classic one, by its name: no poll shows them.
    pub async fn load_balancer_attributes(&self, id: &str) -> Reading<LoadBalancerAttributes> {
        let api = &self.context.api;
        reading(if super::is_arn(id) { of_network(api, id).await } else { of_classic(api, id).await })
    }
}

async fn of_classic(api: &Api, name: &str) -> Result<LoadBalancerAttributes, Failure> {
    let call = api.classic.describe_load_balancer_attributes().load_balancer_name(name);
    let read = api.read(DESCRIBE, call.send()).await?.load_balancer_attributes;
    Ok(LoadBalancerAttributes {
        cross_zone: read
            .as_ref()
            .and_then(|it| it.cross_zone_load_balancing())
            .is_some_and(|it| it.enabled()),
        idle_timeout_seconds: read.and_then(|it| it.connection_settings).map(|it| it.idle_timeout()),
    })
}

async fn of_network(api: &Api, arn: &str) -> Result<LoadBalancerAttributes, Failure> {
    let call = api.elb.describe_load_balancer_attributes().load_balancer_arn(arn);
    let read = api.read(DESCRIBE, call.send()).await?.attributes.unwrap_or_default();
    let cross_zone = read.iter().find(|it| it.key() == Some(CROSS_ZONE)).and_then(|it| it.value());
    Ok(LoadBalancerAttributes { cross_zone: cross_zone == Some("true"), idle_timeout_seconds: None })
}

pub(super) async fn set_classic(
    region: &Context,
    name: &str,
    attributes: &LoadBalancerAttributes,
) -> Result<(), Failure> {
    let cross_zone = CrossZoneLoadBalancing::builder().enabled(attributes.cross_zone).build();
    let idle = attributes
        .idle_timeout_seconds
        .and_then(|it| ConnectionSettings::builder().idle_timeout(it).build().ok());
    let all =
        AwsAttributes::builder().cross_zone_load_balancing(cross_zone).set_connection_settings(idle).build();
    let call = region
        .api
        .classic
        .modify_load_balancer_attributes()
        .load_balancer_name(name)
        .load_balancer_attributes(all);
    region.api.write(MODIFY, call.send()).await?;
    region.state().known.memory_mut().attributes.insert(name.to_owned(), attributes.clone());
    Ok(())
}

pub(super) async fn set_network(
    region: &Context,
    arn: &str,
    attributes: &LoadBalancerAttributes,
) -> Result<(), Failure> {
    let cross_zone =
        LoadBalancerAttribute::builder().key(CROSS_ZONE).value(attributes.cross_zone.to_string()).build();
    let call = region.api.elb.modify_load_balancer_attributes().load_balancer_arn(arn).attributes(cross_zone);
    region.api.write(MODIFY, call.send()).await?;
    region.state().known.memory_mut().attributes.insert(arn.to_owned(), attributes.clone());
    Ok(())
}
