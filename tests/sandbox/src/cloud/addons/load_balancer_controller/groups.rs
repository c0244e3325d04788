//! The controller's security groups: one in front of each load balancer, and one behind all of them, which
//! the nodes' group admits.

use std::time::Duration;

use anyhow::{Context, Result};

use super::LoadBalancers;
use super::model::{Name, Stack, hash};
use crate::cloud::addons::aws::query::{Query, Tags};
use crate::cloud::addons::aws::xml::Element;
use crate::cloud::addons::aws::{self, EC2};

/// Tag with the cluster's name that all that the controller makes has.
pub const CLUSTER: &str = "elbv2.k8s.aws/cluster";
/// How often a group is tried to be deleted while a load balancer's interfaces go.
const ATTEMPTS: usize = 20;

impl LoadBalancers<'_> {
    /// Tags of a resource of a stack.
    pub fn tags(&self, name: &Name, resource: &str) -> Tags {
        let mut tags = self.site.tags.clone();
        let prefix = name.kind.prefix();
        tags.insert(CLUSTER.to_owned(), self.site.cluster.clone());
        tags.insert(format!("{prefix}/stack"), name.tag());
        tags.insert(format!("{prefix}/resource"), resource.to_owned());
        tags
    }

    /// The group in front of the stack's load balancer, which admits everybody to its listeners.
    pub async fn front(&self, stack: &Stack) -> Result<String> {
        let name = stack.name.balancer(&self.site.cluster);
        let tags = self.tags(&stack.name, "ManagedLBSecurityGroup");
        let description = "[k8s] Managed SecurityGroup for LoadBalancer";
        let (id, group) = self.group(&name, description, &tags).await?;
        for (port, ..) in &stack.listeners {
            let port = port.to_string();
            let admitted = group.iter().flat_map(|group| group.entries("ipPermissions")).any(|rule| {
                rule.text("fromPort") == port
                    && rule.entries("ipRanges").iter().any(|range| range.text("cidrIp") == "0.0.0.0/0")
            });
            if !admitted {
                self.authorize(&id, &port, ("IpRanges.1.CidrIp", "0.0.0.0/0"), "").await?;
            }
        }
        Ok(id)
    }

    /// The group that all load balancers have in common.
    pub async fn back(&self) -> Result<String> {
        let mut tags = self.site.tags.clone();
        tags.insert(CLUSTER.to_owned(), self.site.cluster.clone());
        tags.insert("elbv2.k8s.aws/resource".to_owned(), "backend-sg".to_owned());
        let description = "[k8s] Shared Backend SecurityGroup for LoadBalancer";
        Ok(self.group(&self.back_name(), description, &tags).await?.0)
    }

    fn back_name(&self) -> String {
        let letters: String = self.site.cluster.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("k8s-traffic-{letters}-{}", hash(&[&self.site.cluster, &self.site.vpc]))
    }

    /// Deletes the common group.
    pub async fn delete_back(&self) -> Result<()> {
        self.delete_group(&self.back_name()).await
    }

    /// Deletes the group in front of a stack's load balancer.
    pub async fn delete_front(&self, name: &Name) -> Result<()> {
        self.delete_group(&name.balancer(&self.site.cluster)).await
    }

    async fn delete_group(&self, name: &str) -> Result<()> {
        let Some(group) = self.find_group(name).await? else { return Ok(()) };
        let id = group.text("groupId");
        for attempt in 1.. {
            match self.aws.call(EC2, Query::new("DeleteSecurityGroup").with("GroupId", id)).await {
                Err(error) if aws::code(&error) == Some("DependencyViolation") && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) if aws::code(&error) == Some("InvalidGroup.NotFound") => return Ok(()),
                result => return result.map(drop).with_context(|| format!("deleting security group {name}")),
            }
        }
        Ok(())
    }

    async fn find_group(&self, name: &str) -> Result<Option<Element>> {
        let query = Query::new("DescribeSecurityGroups")
            .filter("vpc-id", [&self.site.vpc])
            .filter("group-name", [name]);
        Ok(self.aws.list(EC2, query, "securityGroupInfo").await?.into_iter().next())
    }

    async fn group(&self, name: &str, description: &str, tags: &Tags) -> Result<(String, Option<Element>)> {
        if let Some(group) = self.find_group(name).await? {
            return Ok((group.text("groupId").to_owned(), Some(group)));
        }
        let query = Query::new("CreateSecurityGroup")
            .with("GroupName", name)
            .with("GroupDescription", description)
            .with("VpcId", &self.site.vpc)
            .tagged("security-group", tags);
        let answer =
            self.aws.call(EC2, query).await.with_context(|| format!("creating security group {name}"))?;
        let id = answer.text("groupId").to_owned();
        self.stand_in.log(&format!("made security group {name} ({id})"));
        Ok((id, None))
    }

    /// Admits TCP to a port of a group; `source` is the parameter that says whom, and whom.
    pub async fn authorize(
        &self,
        group: &str,
        port: &str,
        source: (&str, &str),
        description: &str,
    ) -> Result<()> {
        let query = self.permission("AuthorizeSecurityGroupIngress", group, port, source, description);
        match self.aws.call(EC2, query).await {
            Err(error) if aws::code(&error) == Some("InvalidPermission.Duplicate") => Ok(()),
            result => result.map(drop).with_context(|| format!("admitting port {port} to {group}")),
        }
    }

    /// Takes such a permission back.
    pub async fn revoke(
        &self,
        group: &str,
        port: &str,
        source: (&str, &str),
        description: &str,
    ) -> Result<()> {
        let query = self.permission("RevokeSecurityGroupIngress", group, port, source, description);
        match self.aws.call(EC2, query).await {
            Err(error)
                if matches!(
                    aws::code(&error),
                    Some("InvalidPermission.NotFound" | "InvalidGroup.NotFound")
                ) =>
            {
                Ok(())
            }
            result => result.map(drop).with_context(|| format!("revoking port {port} of {group}")),
        }
    }

    fn permission(
        &self,
        action: &str,
        group: &str,
        port: &str,
        (name, value): (&str, &str),
        description: &str,
    ) -> Query {
        let permission = |field: &str| format!("IpPermissions.1.{field}");
        let query = Query::new(action)
            .with("GroupId", group)
            .with(permission("IpProtocol"), "tcp")
            .with(permission("FromPort"), port)
            .with(permission("ToPort"), port)
            .with(permission(name), value);
        match (description, name.rsplit_once('.')) {
            ("", _) | (_, None) => query,
            (description, Some((source, _))) => {
                query.with(permission(&format!("{source}.Description")), description)
            }
        }
    }
}
