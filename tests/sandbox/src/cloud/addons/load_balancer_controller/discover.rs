//! Which subnets a load balancer is put into, by the tags that the real controller looks for.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

use super::LoadBalancers;
use super::model::{Kind, Stack};
use crate::cloud::addons::aws::EC2;
use crate::cloud::addons::aws::query::Query;
use crate::cloud::addons::aws::xml::Element;

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
        let query =
            Query::new("DescribeSubnets").filter("vpc-id", [&self.site.vpc]).filter("tag-key", [role]);
        let found = self.aws.list(EC2, query, "subnetSet").await.context("couldn't auto-discover subnets")?;
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

/// Of each zone the cluster's own subnet, else the first by id; none that only other clusters claim.
fn choose(subnets: &[Element], cluster: &str, role: &str) -> Vec<String> {
    let own = format!("{CLUSTER}{cluster}");
    let mut zones: BTreeMap<&str, (bool, &str)> = BTreeMap::new();
    for subnet in subnets {
        if !matches!(subnet.tag(role), Some("" | "1")) {
            continue;
        }
        let claimed = subnet.entries("tagSet").iter().any(|tag| tag.text("key").starts_with(CLUSTER));
        let ours = subnet.tag(&own).is_some();
        if claimed && !ours {
            continue;
        }
        let candidate = (!ours, subnet.text("subnetId"));
        let best = zones.entry(subnet.text("availabilityZone")).or_insert(candidate);
        *best = candidate.min(*best);
    }
    zones.values().map(|(_, id)| (*id).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::addons::aws::xml::parse;

    fn subnet(id: &str, zone: &str, tags: &[(&str, &str)]) -> String {
        let tags: String = tags
            .iter()
            .map(|(key, value)| format!("<item><key>{key}</key><value>{value}</value></item>"))
            .collect();
        format!(
            "<item><subnetId>{id}</subnetId><availabilityZone>{zone}</availabilityZone><tagSet>{tags}</tagSet></item>"
        )
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
        let set = parse(&format!("<set>{}</set>", set.concat())).expect("well-formed");
        assert_eq!(choose(&set.children, "c", ROLE), ["subnet-2", "subnet-4"]);
    }
}
