//! Reads attributes of load balancers, which no poll shows.

use model::LoadBalancerAttributes;
use model::finding::Reading;

use crate::errors::{Failure, reading};
use crate::region::Region;

const DESCRIBE: &str = "elasticloadbalancing:DescribeLoadBalancerAttributes";
const CROSS_ZONE: &str = "load_balancing.cross_zone.enabled";

impl Region {
    /// The attributes of a load balancer, by its ARN or, of a classic one, by its name.
    pub async fn load_balancer_attributes(&self, id: &str) -> Reading<LoadBalancerAttributes> {
        reading(if id.starts_with("arn:") {
            self.of_second_version(id).await
        } else {
            self.of_first(id).await
        })
    }

    async fn of_first(&self, name: &str) -> Result<LoadBalancerAttributes, Failure> {
        let api = &self.context.api;
        let call = api.classic.describe_load_balancer_attributes().load_balancer_name(name);
        let answer = api.read(DESCRIBE, call.send()).await?;
        let found = answer.load_balancer_attributes.ok_or_else(|| Failure::incomplete(DESCRIBE))?;
        Ok(LoadBalancerAttributes {
            cross_zone: found.cross_zone_load_balancing.is_some_and(|it| it.enabled),
            idle_timeout_seconds: found.connection_settings.map(|it| it.idle_timeout),
        })
    }

    async fn of_second_version(&self, arn: &str) -> Result<LoadBalancerAttributes, Failure> {
        let api = &self.context.api;
        let call = api.elb.describe_load_balancer_attributes().load_balancer_arn(arn);
        let answer = api.read(DESCRIBE, call.send()).await?;
        let mut all = answer.attributes.unwrap_or_default().into_iter();
        let cross_zone = all.find(|it| it.key.as_deref() == Some(CROSS_ZONE));
        let cross_zone = cross_zone.is_some_and(|it| it.value.as_deref() == Some("true"));
        Ok(LoadBalancerAttributes { cross_zone, idle_timeout_seconds: None })
    }
}
