//! Finds what controllers inside a cluster left in its VPC, and removes it. Crate `infra` decides what counts
//! as left, and in which order it goes.

use std::collections::{BTreeMap, BTreeSet};

use infra::gc::{
    ClusterIdentity, Found, FoundTargetGroup, Leftover, LeftoverKind, Leftovers, Neighbours, leftovers,
};
use model::{FoundLoadBalancer, FoundNetworkInterface, Instance, Problem, Subnet, Tags};

use crate::api::Api;
use crate::ec2::filter;
use crate::errors::{Failure, gone_is_done};
use crate::kind::AwsKind;
use crate::kinds::load_balancer::{classic, network, target_group};
use crate::kinds::{network_interface, security_group, security_group_rules};
use crate::region::Region;
use crate::tagged;

/// What stands before the name in the ARN of a classic load balancer; others have a kind after it.
const LOAD_BALANCER: &str = ":loadbalancer/";

impl Region {
    /// What controllers inside the cluster left in this VPC, read anew, and why that may not be all of it. It
    /// takes four calls and their pages where nothing is left, and one more for each of classic load
    /// balancers, other load balancers and target groups where there are some, and for signs of another
    /// cluster among instances and subnets.
    pub async fn leftovers(&self, whose: &ClusterIdentity, vpc_id: &str) -> Leftovers {
        let (api, cluster) = (&self.context.api, whose.cluster.as_str());
        let vpcs = BTreeSet::from([vpc_id.to_owned()]);
        let mut problems = Vec::new();
        let (balancing, security_groups, network_interfaces) = futures::join!(
            balancing(api, cluster),
            security_group::describe_in(api, &vpcs),
            network_interface::describe(api, &vpcs),
        );
        let (load_balancers, target_groups) = read(balancing, &mut problems);
        let security_groups = read(security_groups, &mut problems);
        let network_interfaces = read(network_interfaces, &mut problems);
        let found = Found { load_balancers, target_groups, security_groups, network_interfaces };
        // What may go better without being permitted comes first: then it is looked again before anything is
        // concluded.
        problems.sort_by_key(Problem::is_forbidden);
        let left = leftovers(cluster, vpc_id, &found);
        if left.is_empty() {
            return Leftovers { left, sign: None, unread: problems.into_iter().next() };
        }
        match sign(api, whose, vpc_id, found.network_interfaces).await {
            Ok(sign) => Leftovers { left, sign, unread: problems.into_iter().next() },
            Err(failure) => Leftovers { unread: Some(failure.problem()), ..Leftovers::default() },
        }
    }

    /// Ids of load balancers in this VPC that controllers of the cluster made, by their tags, and that are
    /// still there: tags are shown for some time after what carried them. It takes two calls where there are
    /// none.
    ///
    /// # Errors
    /// AWS does not say: nothing may be concluded. Only where it [forbids](Problem::is_forbidden) the
    /// question does it stay so.
    pub async fn load_balancers_of(&self, cluster: &str, vpc_id: &str) -> Result<Vec<String>, Problem> {
        let (load_balancers, _) = balancing(&self.context.api, cluster).await.map_err(Failure::problem)?;
        let left = leftovers(cluster, vpc_id, &Found { load_balancers, ..Found::default() });
        Ok(left.into_iter().map(|it| it.id).collect())
    }

    /// Removes one of them. What is gone is done.
    ///
    /// # Errors
    /// AWS refused it. While something else still uses it, that is nobody's fault (`ActionNeeded::None`), and
    /// it is to be tried again later.
    pub async fn delete_leftover(&self, leftover: &Leftover) -> Result<(), Problem> {
        let region = &self.context;
        let result = match leftover.kind {
            LeftoverKind::ClassicLoadBalancer => classic::delete(region, &leftover.id).await,
            LeftoverKind::LoadBalancer => network::delete_alone(region, &leftover.id).await,
            LeftoverKind::TargetGroup => target_group::delete(&region.api, &leftover.id).await,
            LeftoverKind::SecurityGroupRules => {
                gone_is_done(security_group_rules::revoke(region, &leftover.id, leftover.rules.clone()).await)
            }
            LeftoverKind::SecurityGroup => security_group::delete(region, &leftover.id).await,
            LeftoverKind::NetworkInterface => network_interface::delete(region, &leftover.id).await,
        };
        let result = match result {
            // What a policy allows by its tags may be forbidden once it is gone: then it has none.
            Err(failure) if failure.is_forbidden() && is_gone(&region.api, leftover).await => Ok(()),
            other => other,
        };
        self.context.publish();
        self.context.wake.notify_one();
        result.map_err(Failure::problem)
    }
}

/// What says that another cluster of this name is in the VPC.
async fn sign(
    api: &Api,
    whose: &ClusterIdentity,
    vpc_id: &str,
    network_interfaces: Vec<FoundNetworkInterface>,
) -> Result<Option<String>, Failure> {
    let filters = || vec![vec![filter("vpc-id", [vpc_id]), filter("tag-key", whose.sign_tags())]];
    let (instances, subnets) =
        futures::try_join!(Instance::describe(api, filters()), Subnet::describe(api, filters()))?;
    Ok(whose.sign(vpc_id, &Neighbours { instances, subnets, network_interfaces }))
}

/// Whether AWS shows it no more.
async fn is_gone(api: &Api, leftover: &Leftover) -> bool {
    let vpcs = BTreeSet::from([leftover.vpc_id.clone()]);
    let is_there = match leftover.kind {
        LeftoverKind::ClassicLoadBalancer => {
            classic::describe_one(api, &leftover.id).await.map(|it| it.is_some())
        }
        LeftoverKind::LoadBalancer => network::describe_one(api, &leftover.id).await.map(|it| it.is_some()),
        LeftoverKind::TargetGroup => target_group::describe_named(api, std::slice::from_ref(&leftover.id))
            .await
            .map(|it| !it.is_empty()),
        LeftoverKind::SecurityGroupRules | LeftoverKind::SecurityGroup => {
            security_group::describe_in(api, &vpcs)
                .await
                .map(|all| all.iter().any(|found| found.id == leftover.id))
        }
        LeftoverKind::NetworkInterface => network_interface::describe(api, &vpcs)
            .await
            .map(|all| all.iter().any(|found| found.id == leftover.id)),
    };
    is_there.is_ok_and(|it| !it)
}

/// What was read, or nothing and why.
fn read<T: Default>(result: Result<T, Failure>, problems: &mut Vec<Problem>) -> T {
    result.unwrap_or_else(|failure| {
        problems.push(failure.problem());
        T::default()
    })
}

/// What carries the tags, as AWS describes it: that says where it is, and whether it is still there, which
/// the tags do not.
async fn balancing(
    api: &Api,
    cluster: &str,
) -> Result<(Vec<FoundLoadBalancer>, Vec<FoundTargetGroup>), Failure> {
    let tagged = tagged::balancers_and_target_groups(api, cluster).await?;
    let arns = |of: fn(&str) -> bool| -> Vec<String> { tagged.keys().filter(|it| of(it)).cloned().collect() };
    let (target_group_arns, other_arns) =
        (arns(|it| it.contains(":targetgroup/")), arns(is_of_second_version));
    let names: BTreeMap<&str, &Tags> =
        tagged.iter().filter_map(|(arn, tags)| Some((classic_name(arn)?, tags))).collect();
    let classic = async { if names.is_empty() { Ok(Vec::new()) } else { classic::describe(api).await } };
    let others = async { if other_arns.is_empty() { Ok(Vec::new()) } else { network::describe(api).await } };
    let (mut classic, mut others, mut target_groups) =
        futures::try_join!(classic, others, target_group::describe_named(api, &target_group_arns))?;
    classic.iter_mut().for_each(|it| it.tags = names.get(it.id.as_str()).map(|it| (*it).clone()));
    others.iter_mut().for_each(|it| it.tags = tagged.get(&it.id).cloned());
    target_groups.iter_mut().for_each(|it| it.tags = tagged.get(&it.arn).cloned().unwrap_or_default());
    classic.append(&mut others);
    Ok((classic, target_groups))
}

fn is_of_second_version(arn: &str) -> bool {
    arn.contains(LOAD_BALANCER) && classic_name(arn).is_none()
}

/// `...:loadbalancer/<name>`; of the second version it is `...:loadbalancer/<kind>/<name>/<id>`.
fn classic_name(arn: &str) -> Option<&str> {
    let (_, name) = arn.split_once(LOAD_BALANCER)?;
    (!name.contains('/')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_says_of_which_version_a_load_balancer_is() {
        let of = |name: &str| format!("arn:aws:elasticloadbalancing:us-east-1:123456789012:{name}");
        assert_eq!(classic_name(&of("loadbalancer/a0123")), Some("a0123"));
        for other in [
            "loadbalancer/app/k8s-shop/50dc6c495c0c9188",
            "loadbalancer/net/a0123/50dc6c495c0c9188",
            "targetgroup/k8s-shop/50dc6c",
        ] {
            assert_eq!(classic_name(&of(other)), None, "{other}");
        }
        assert!(is_of_second_version(&of("loadbalancer/app/k8s-shop/50dc6c495c0c9188")));
        assert!(!is_of_second_version(&of("targetgroup/k8s-shop/50dc6c495c0c9188")));
    }
}
