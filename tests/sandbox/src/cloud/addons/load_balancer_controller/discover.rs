//! Which subnets a load balancer is put into, by the tags that the real controller looks for.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use aws_sdk_ec2::types::Subnet;

use super::LoadBalancers;
use super::model::{Kind, Stack};
use crate::cloud::addons::aws::{self, Answer};

const CLUSTER: &str = "kubernetes.io/cluster/";

impl LoadBalancers<'_> {
    /// One subnet per zone.
    ///
    /// # Errors
    /// When there are too few: an application load balancer needs two zones.
    pub async fn discover(&self, stack: &Stack) -> Result<Vec<String>> {
        let role = if stack.scheme == "internet-facing" {
            "kubernetes.io/role/elb"
        } else {
            "kubernetes.io/role/internal-elb"
        };
        let call = self.aws.ec2.describe_subnets();
        let call =
            call.filters(aws::filter("vpc-id", [&self.site.vpc])).filters(aws::filter("tag-key", [role]));
        let found = call.into_paginator().items().send().try_collect().await;
        let found: Vec<Subnet> = found.answer().context("couldn't auto-discover subnets")?;
        let chosen = choose(&found, &self.site.cluster, role);
        let needed = if stack.name.kind == Kind::Ingress { 2 } else { 1 };
        if chosen.len() < needed {
            bail!(
                "couldn't auto-discover subnets: unable to resolve at least {needed} subnet(s) in different zones: {} of VPC {} match tag {role}",
                chosen.len(),
                self.site.vpc
            );
        }
        Ok(chosen)
    }
}

/// Picks one subnet of each zone: the cluster's own, else the first by id; none that only other clusters
/// claim.
fn choose(subnets: &[Subnet], cluster: &str, role: &str) -> Vec<String> {
    let own = format!("{CLUSTER}{cluster}");
    let mut zones: BTreeMap<&str, (bool, &str)> = BTreeMap::new();
    for subnet in subnets {
        if !matches!(aws::tag(subnet.tags(), role), Some("" | "1")) {
            continue;
        }
        let claimed = subnet.tags().iter().filter_map(|tag| tag.key()).any(|key| key.starts_with(CLUSTER));
        let ours = aws::tag(subnet.tags(), &own).is_some();
        if claimed && !ours {
            continue;
        }
        let candidate = (!ours, subnet.subnet_id().unwrap_or_default());
        let best = zones.entry(subnet.availability_zone().unwrap_or_default()).or_insert(candidate);
        *best = candidate.min(*best);
    }
    zones.values().map(|(_, id)| (*id).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use aws_sdk_ec2::types::Tag;

    use super::*;

    fn subnet(id: &str, zone: &str, tags: &[(&str, &str)]) -> Subnet {
        let tags = tags.iter().map(|(key, value)| Tag::builder().key(*key).value(*value).build());
        Subnet::builder().subnet_id(id).availability_zone(zone).set_tags(Some(tags.collect())).build()
    }

    #[test]
    fn each_zone_gives_one_subnet_and_none_of_another_cluster() {
        const ROLE: &str = "kubernetes.io/role/elb";
        let set = [
            subnet("subnet-1", "a", &[(ROLE, "1")]),
            subnet("subnet-2", "a", &[(ROLE, "1"), ("kubernetes.io/cluster/c", "owned")]),
            subnet("subnet-3", "b", &[(ROLE, "1"), ("kubernetes.io/cluster/other", "owned")]),
            subnet("subnet-4", "c", &[(ROLE, "")]),
            subnet("subnet-5", "d", &[(ROLE, "no")]),
        ];
        assert_eq!(choose(&set, "c", ROLE), ["subnet-2", "subnet-4"]);
    }
}
