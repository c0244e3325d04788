//! A stack in AWS: load balancer, target groups, listeners, rules, and the TargetGroupBindings that tell who
//! the targets are.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use aws_sdk_elasticloadbalancingv2::types::{
    Action, ActionTypeEnum, IpAddressType, Listener, LoadBalancer, Rule, RuleCondition, Tag, TargetGroup,
    TargetTypeEnum,
};
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::json;

use super::bindings;
use super::model::{Backend, Name, Stack};
use super::{LoadBalancers, gone};
use crate::cloud::addons::aws::{self, Answer, Tags};

impl LoadBalancers<'_> {
    /// Makes what the stack lacks; returns the load balancer's DNS name.
    pub async fn deploy(&self, stack: &Stack, subnets: &[String]) -> Result<String> {
        let (front, back) = (self.front(stack).await?, self.back().await?);
        let balancer = self.balancer(stack, subnets, &[&front, &back]).await?;
        let mut target_groups = Vec::new();
        for backend in &stack.backends {
            let arn = self.target_group(stack, backend).await?;
            self.binding(stack, backend, &arn, &back).await?;
            target_groups.push(arn);
        }
        let arn = balancer.load_balancer_arn().context("the load balancer has no ARN")?;
        let call = self.aws.load_balancers.describe_listeners().load_balancer_arn(arn);
        let listeners = call.into_paginator().items().send().try_collect().await;
        let listeners: Vec<Listener> = listeners.answer().context("reading listeners")?;
        for (port, protocol, backend) in &stack.listeners {
            let group = target_groups.get(*backend).context("a listener has no target group")?;
            let same = |listener: &&Listener| listener.port() == Some(i32::from(*port));
            let listener = match listeners.iter().find(same).and_then(Listener::listener_arn) {
                Some(listener) => listener.to_owned(),
                None => self.listener(stack, arn, *port, protocol, group).await?,
            };
            self.rules(stack, &listener, &target_groups).await?;
        }
        self.prune(stack, &target_groups).await?;
        Ok(balancer.dns_name().unwrap_or_default().to_owned())
    }

    /// Deletes the stack: the load balancer with its listeners, then bindings, target groups and security
    /// groups.
    pub async fn destroy(&self, name: &Name) -> Result<()> {
        if let Some(balancer) = self.find_balancer(name).await? {
            let arn = balancer.load_balancer_arn().unwrap_or_default();
            let call = self.aws.load_balancers.delete_load_balancer().load_balancer_arn(arn);
            call.send().await.answer().context("deleting the load balancer")?;
            let name = balancer.load_balancer_name().unwrap_or_default();
            self.stand_in.log(&format!("deleted load balancer {name}"));
        }
        self.unbind(name, &[]).await?;
        self.delete_front(name).await?;
        let left = bindings(&self.stand_in.client, None)
            .list(&ListParams::default())
            .await
            .context("listing TargetGroupBindings")?;
        if left.items.is_empty() {
            self.delete_back().await?;
        }
        Ok(())
    }

    async fn find_balancer(&self, name: &Name) -> Result<Option<LoadBalancer>> {
        let name = name.balancer(&self.site.cluster);
        let call = self.aws.load_balancers.describe_load_balancers().names(name);
        match call.send().await.answer() {
            Err(error) if aws::code(&error) == Some("LoadBalancerNotFound") => Ok(None),
            result => {
                let found = result.context("reading the load balancer")?;
                Ok(found.load_balancers.into_iter().flatten().next())
            }
        }
    }

    async fn balancer(&self, stack: &Stack, subnets: &[String], groups: &[&str]) -> Result<LoadBalancer> {
        if let Some(found) = self.find_balancer(&stack.name).await? {
            return Ok(found);
        }
        let name = stack.name.balancer(&self.site.cluster);
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let call = self.aws.load_balancers.create_load_balancer().name(&name);
        let call = call.r#type(stack.name.kind.balancer().into()).scheme(stack.scheme.as_str().into());
        let call = call.ip_address_type(IpAddressType::Ipv4);
        let call = call.set_subnets(Some(subnets.to_vec())).set_security_groups(Some(groups));
        let call = call.set_tags(Some(tag_list(&self.tags(&stack.name, "LoadBalancer"))));
        let made = call.send().await.answer().with_context(|| format!("creating load balancer {name}"))?;
        self.stand_in.log(&format!("made load balancer {name}"));
        made.load_balancers.into_iter().flatten().next().context("the answer has no load balancer")
    }

    async fn find_target_group(&self, name: &str) -> Result<Option<TargetGroup>> {
        let call = self.aws.load_balancers.describe_target_groups().names(name);
        match call.send().await.answer() {
            Err(error) if aws::code(&error) == Some("TargetGroupNotFound") => Ok(None),
            result => {
                let found = result.context("reading the target group")?;
                Ok(found.target_groups.into_iter().flatten().next())
            }
        }
    }

    async fn target_group(&self, stack: &Stack, backend: &Backend) -> Result<String> {
        let name = stack.name.target_group(&self.site.cluster, backend);
        if let Some(found) = self.find_target_group(&name).await? {
            return Ok(found.target_group_arn.unwrap_or_default());
        }
        let resource = format!("{}-{}:{}", stack.name.tag(), backend.service, backend.number);
        let call = self.aws.load_balancers.create_target_group().name(&name);
        let call = call.port(backend.node_port).protocol(backend.protocol.into());
        let call = call.target_type(TargetTypeEnum::Instance).vpc_id(&self.site.vpc);
        let call = call.health_check_port("traffic-port").health_check_protocol(backend.protocol.into());
        let call = call.set_tags(Some(tag_list(&self.tags(&stack.name, &resource))));
        let made = call.send().await.answer().with_context(|| format!("creating target group {name}"))?;
        let found = made.target_groups.into_iter().flatten().next();
        found.and_then(|group| group.target_group_arn).context("the answer has no target group")
    }

    async fn listener(
        &self,
        stack: &Stack,
        balancer: &str,
        port: u16,
        protocol: &str,
        group: &str,
    ) -> Result<String> {
        let call = self.aws.load_balancers.create_listener().load_balancer_arn(balancer);
        let call = call.port(port.into()).protocol(protocol.into()).default_actions(forward(group));
        let call = call.set_tags(Some(tag_list(&self.tags(&stack.name, &port.to_string()))));
        let made =
            call.send().await.answer().with_context(|| format!("creating the listener of port {port}"))?;
        let found = made.listeners.into_iter().flatten().next();
        found.and_then(|listener| listener.listener_arn).context("the answer has no listener")
    }

    async fn rules(&self, stack: &Stack, listener: &str, target_groups: &[String]) -> Result<()> {
        if stack.rules.is_empty() {
            return Ok(());
        }
        let call = self.aws.load_balancers.describe_rules().listener_arn(listener);
        let found = call.into_paginator().items().send().try_collect().await;
        let found: Vec<Rule> = found.answer().context("reading rules")?;
        for ((path, backend), priority) in stack.rules.iter().zip(1_i32..) {
            if found.iter().any(|rule| rule.priority() == Some(priority.to_string().as_str())) {
                continue;
            }
            let group = target_groups.get(*backend).context("a rule has no target group")?;
            let pattern = format!("{}*", path.trim_end_matches('*'));
            let condition = RuleCondition::builder().field("path-pattern").values(pattern).build();
            let call = self.aws.load_balancers.create_rule().listener_arn(listener).priority(priority);
            let call = call.conditions(condition).actions(forward(group));
            let call = call.set_tags(Some(tag_list(&self.tags(&stack.name, &format!("80:{priority}")))));
            call.send().await.answer().with_context(|| format!("creating the rule of {path}"))?;
        }
        Ok(())
    }

    /// Makes the object that says which Service's nodes are the targets of a target group.
    async fn binding(&self, stack: &Stack, backend: &Backend, arn: &str, back: &str) -> Result<()> {
        let api = bindings(&self.stand_in.client, Some(&stack.name.namespace));
        let name = stack.name.target_group(&self.site.cluster, backend);
        let prefix = stack.name.kind.prefix();
        let object = json!({
            "apiVersion": "elbv2.k8s.aws/v1beta1", "kind": "TargetGroupBinding",
            "metadata": {
                "name": name, "namespace": stack.name.namespace, "finalizers": [super::targets::FINALIZER],
                "labels": {
                    format!("{prefix}/stack-name"): stack.name.object, format!("{prefix}/stack-namespace"): stack.name.namespace,
                },
            },
            "spec": {
                "targetGroupARN": arn, "targetType": "instance", "ipAddressType": "ipv4", "vpcID": self.site.vpc,
                "targetGroupProtocol": backend.protocol,
                "serviceRef": {"name": backend.service, "port": backend.port},
                "networking": {"ingress": [{
                    "from": [{"securityGroup": {"groupID": back}}],
                    "ports": [{"protocol": "TCP", "port": backend.node_port}],
                }]},
            },
        });
        let object: DynamicObject = serde_json::from_value(object).context("making a TargetGroupBinding")?;
        if api.get_opt(&name).await.with_context(|| format!("reading TargetGroupBinding {name}"))?.is_some() {
            return Ok(());
        }
        match api.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            result => result.map(drop).with_context(|| format!("creating TargetGroupBinding {name}")),
        }
    }

    /// Deletes target groups of the stack that no backend needs any more.
    async fn prune(&self, stack: &Stack, kept: &[String]) -> Result<()> {
        self.unbind(&stack.name, kept).await
    }

    /// Deletes the stack's bindings and their target groups, except those of the given ARNs.
    async fn unbind(&self, name: &Name, kept: &[String]) -> Result<()> {
        let api = bindings(&self.stand_in.client, Some(&name.namespace));
        let prefix = name.kind.prefix();
        let labels =
            format!("{prefix}/stack-name={},{prefix}/stack-namespace={}", name.object, name.namespace);
        let found =
            api.list(&ListParams::default().labels(&labels)).await.context("listing TargetGroupBindings")?;
        let arn = |binding: &DynamicObject| {
            binding.data["spec"]["targetGroupARN"].as_str().unwrap_or_default().to_owned()
        };
        for binding in found.items.iter().filter(|binding| !kept.contains(&arn(binding))) {
            let of = binding.name_any();
            gone(api.delete(&of, &DeleteParams::default()).await.map(drop))
                .with_context(|| format!("deleting {of}"))?;
            // Its finalizer goes when the targets are deregistered and the rules of the nodes' group are
            // gone.
            self.detach(&of, &name.namespace).await?;
            self.delete_target_group(&arn(binding)).await?;
        }
        Ok(())
    }

    async fn delete_target_group(&self, arn: &str) -> Result<()> {
        for _ in 0..20 {
            let call = self.aws.load_balancers.delete_target_group().target_group_arn(arn);
            match call.send().await.answer() {
                Err(error) if aws::code(&error) == Some("ResourceInUse") => {
                    tokio::time::sleep(Duration::from_secs(1)).await
                }
                Err(error) if aws::code(&error) == Some("TargetGroupNotFound") => return Ok(()),
                result => return result.map(drop).with_context(|| format!("deleting target group {arn}")),
            }
        }
        bail!("target group {arn} is still in use")
    }
}

fn forward(group: &str) -> Action {
    Action::builder().r#type(ActionTypeEnum::Forward).target_group_arn(group).build()
}

fn tag_list(tags: &Tags) -> Vec<Tag> {
    tags.iter().map(|(key, value)| Tag::builder().key(key).value(value).build()).collect()
}
