//! The controller's security groups: one in front of each load balancer, and one behind all of them, which
//! the nodes' group admits.

use std::time::Duration;

use anyhow::{Context, Result};
use aws_sdk_ec2::types::{IpPermission, IpRange, ResourceType, SecurityGroup, UserIdGroupPair};

use super::LoadBalancers;
use super::model::{Name, Stack, hash};
use crate::cloud::addons::aws::{self, Answer, Tags};

/// Tag with the cluster's name that all that the controller makes has.
pub const CLUSTER: &str = "elbv2.k8s.aws/cluster";
/// How often a group is tried to be deleted while a load balancer's interfaces go.
const ATTEMPTS: usize = 20;
const EVERYBODY: &str = "0.0.0.0/0";
/// Description of the rules that the controller adds to the nodes' group.
const SHARED: &str = "elbv2.k8s.aws/targetGroupBinding=shared";

/// Whom a rule admits.
#[derive(Clone, Copy, Debug)]
pub enum Peer<'a> {
    Everybody,
    /// The members of a security group.
    Group(&'a str),
}

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
            let port = i32::from(*port);
            let admitted = group.iter().flat_map(SecurityGroup::ip_permissions).any(|rule| {
                rule.from_port() == Some(port)
                    && rule.ip_ranges().iter().any(|range| range.cidr_ip() == Some(EVERYBODY))
            });
            if !admitted {
                self.authorize(&id, port, Peer::Everybody).await?;
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
        let id = group.group_id().unwrap_or_default();
        for attempt in 1.. {
            match self.aws.ec2.delete_security_group().group_id(id).send().await.answer() {
                Err(error) if aws::code(&error) == Some("DependencyViolation") && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Err(error) if aws::code(&error) == Some("InvalidGroup.NotFound") => return Ok(()),
                result => return result.map(drop).with_context(|| format!("deleting security group {name}")),
            }
        }
        Ok(())
    }

    async fn find_group(&self, name: &str) -> Result<Option<SecurityGroup>> {
        let call = self.aws.ec2.describe_security_groups();
        let call =
            call.filters(aws::filter("vpc-id", [&self.site.vpc])).filters(aws::filter("group-name", [name]));
        let found: Vec<SecurityGroup> =
            call.into_paginator().items().send().try_collect().await.answer().context("reading groups")?;
        Ok(found.into_iter().next())
    }

    async fn group(
        &self,
        name: &str,
        description: &str,
        tags: &Tags,
    ) -> Result<(String, Option<SecurityGroup>)> {
        if let Some(group) = self.find_group(name).await? {
            return Ok((group.group_id().unwrap_or_default().to_owned(), Some(group)));
        }
        let call = self.aws.ec2.create_security_group().group_name(name).description(description);
        let call =
            call.vpc_id(&self.site.vpc).tag_specifications(aws::tagged(ResourceType::SecurityGroup, tags));
        let made = call.send().await.answer().with_context(|| format!("creating security group {name}"))?;
        let id = made.group_id().unwrap_or_default().to_owned();
        self.stand_in.log(&format!("made security group {name} ({id})"));
        Ok((id, None))
    }

    /// Admits TCP to a port of a group.
    pub async fn authorize(&self, group: &str, port: i32, peer: Peer<'_>) -> Result<()> {
        let call = self.aws.ec2.authorize_security_group_ingress().group_id(group);
        match call.ip_permissions(permission(port, peer)).send().await.answer() {
            Err(error) if aws::code(&error) == Some("InvalidPermission.Duplicate") => Ok(()),
            result => result.map(drop).with_context(|| format!("admitting port {port} to {group}")),
        }
    }

    /// Takes such a permission back.
    pub async fn revoke(&self, group: &str, port: i32, peer: Peer<'_>) -> Result<()> {
        const GONE: [&str; 2] = ["InvalidPermission.NotFound", "InvalidGroup.NotFound"];
        let call = self.aws.ec2.revoke_security_group_ingress().group_id(group);
        match call.ip_permissions(permission(port, peer)).send().await.answer() {
            Err(error) if aws::code(&error).is_some_and(|code| GONE.contains(&code)) => Ok(()),
            result => result.map(drop).with_context(|| format!("revoking port {port} of {group}")),
        }
    }
}

fn permission(port: i32, peer: Peer<'_>) -> IpPermission {
    let rule = IpPermission::builder().ip_protocol("tcp").from_port(port).to_port(port);
    match peer {
        Peer::Everybody => rule.ip_ranges(IpRange::builder().cidr_ip(EVERYBODY).build()).build(),
        Peer::Group(id) => {
            let pair = UserIdGroupPair::builder().group_id(id).description(SHARED).build();
            rule.user_id_group_pairs(pair).build()
        }
    }
}
