//! A stack in AWS: load balancer, target groups, listeners, rules, and the TargetGroupBindings that tell who
//! the targets are.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use serde_json::json;

use super::bindings;
use super::model::{Backend, Name, Stack};
use super::{LoadBalancers, gone};
use crate::cloud::addons::aws::query::Query;
use crate::cloud::addons::aws::xml::Element;
use crate::cloud::addons::aws::{self, LOAD_BALANCERS};

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
        let arn = balancer.text("LoadBalancerArn");
        let query = Query::new("DescribeListeners").with("LoadBalancerArn", arn);
        let listeners = self.aws.list(LOAD_BALANCERS, query, "Listeners").await?;
        for (port, protocol, backend) in &stack.listeners {
            let group = target_groups.get(*backend).context("a listener has no target group")?;
            let same = |listener: &&Element| listener.text("Port") == port.to_string();
            let listener = match listeners.iter().find(same) {
                Some(listener) => listener.text("ListenerArn").to_owned(),
                None => self.listener(stack, arn, *port, protocol, group).await?,
            };
            self.rules(stack, &listener, &target_groups).await?;
        }
        self.prune(stack, &target_groups).await?;
        Ok(balancer.text("DNSName").to_owned())
    }

    /// Deletes the stack: the load balancer with its listeners, then bindings, target groups and security
    /// groups.
    pub async fn destroy(&self, name: &Name) -> Result<()> {
        if let Some(balancer) = self.find_balancer(name).await? {
            let query =
                Query::new("DeleteLoadBalancer").with("LoadBalancerArn", balancer.text("LoadBalancerArn"));
            self.aws.call(LOAD_BALANCERS, query).await.context("deleting the load balancer")?;
            self.stand_in.log(&format!("deleted load balancer {}", balancer.text("LoadBalancerName")));
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

    async fn find_balancer(&self, name: &Name) -> Result<Option<Element>> {
        let query =
            Query::new("DescribeLoadBalancers").list("Names.member", [name.balancer(&self.site.cluster)]);
        match self.aws.list(LOAD_BALANCERS, query, "LoadBalancers").await {
            Err(error) if aws::code(&error) == Some("LoadBalancerNotFound") => Ok(None),
            result => Ok(result?.into_iter().next()),
        }
    }

    async fn balancer(&self, stack: &Stack, subnets: &[String], groups: &[&str]) -> Result<Element> {
        if let Some(found) = self.find_balancer(&stack.name).await? {
            return Ok(found);
        }
        let name = stack.name.balancer(&self.site.cluster);
        let query = Query::new("CreateLoadBalancer")
            .with("Name", &name)
            .with("Type", stack.name.kind.balancer())
            .with("Scheme", &stack.scheme)
            .with("IpAddressType", "ipv4")
            .list("Subnets.member", subnets)
            .list("SecurityGroups.member", groups)
            .tags("Tags.member", &self.tags(&stack.name, "LoadBalancer"));
        let answer = self
            .aws
            .call(LOAD_BALANCERS, query)
            .await
            .with_context(|| format!("creating load balancer {name}"))?;
        self.stand_in.log(&format!("made load balancer {name}"));
        answer.entries("LoadBalancers").first().cloned().context("the answer has no load balancer")
    }

    async fn target_group(&self, stack: &Stack, backend: &Backend) -> Result<String> {
        let name = stack.name.target_group(&self.site.cluster, backend);
        let query = Query::new("DescribeTargetGroups").list("Names.member", [&name]);
        match self.aws.list(LOAD_BALANCERS, query, "TargetGroups").await {
            Err(error) if aws::code(&error) == Some("TargetGroupNotFound") => {}
            result => {
                if let Some(found) = result?.first() {
                    return Ok(found.text("TargetGroupArn").to_owned());
                }
            }
        }
        let resource = format!("{}-{}:{}", stack.name.tag(), backend.service, backend.number);
        let query = Query::new("CreateTargetGroup")
            .with("Name", &name)
            .with("Port", backend.node_port)
            .with("Protocol", backend.protocol)
            .with("TargetType", "instance")
            .with("VpcId", &self.site.vpc)
            .with("HealthCheckPort", "traffic-port")
            .with("HealthCheckProtocol", backend.protocol)
            .tags("Tags.member", &self.tags(&stack.name, &resource));
        let answer = self
            .aws
            .call(LOAD_BALANCERS, query)
            .await
            .with_context(|| format!("creating target group {name}"))?;
        let found = answer.entries("TargetGroups").first().context("the answer has no target group")?;
        Ok(found.text("TargetGroupArn").to_owned())
    }

    async fn listener(
        &self,
        stack: &Stack,
        balancer: &str,
        port: u16,
        protocol: &str,
        group: &str,
    ) -> Result<String> {
        let query = Query::new("CreateListener")
            .with("LoadBalancerArn", balancer)
            .with("Port", port)
            .with("Protocol", protocol)
            .with("DefaultActions.member.1.Type", "forward")
            .with("DefaultActions.member.1.TargetGroupArn", group)
            .tags("Tags.member", &self.tags(&stack.name, &port.to_string()));
        let answer = self
            .aws
            .call(LOAD_BALANCERS, query)
            .await
            .with_context(|| format!("creating the listener of port {port}"))?;
        let found = answer.entries("Listeners").first().context("the answer has no listener")?;
        Ok(found.text("ListenerArn").to_owned())
    }

    async fn rules(&self, stack: &Stack, listener: &str, target_groups: &[String]) -> Result<()> {
        if stack.rules.is_empty() {
            return Ok(());
        }
        let query = Query::new("DescribeRules").with("ListenerArn", listener);
        let found = self.aws.list(LOAD_BALANCERS, query, "Rules").await?;
        for ((path, backend), priority) in stack.rules.iter().zip(1_u32..) {
            if found.iter().any(|rule| rule.text("Priority") == priority.to_string()) {
                continue;
            }
            let group = target_groups.get(*backend).context("a rule has no target group")?;
            let query = Query::new("CreateRule")
                .with("ListenerArn", listener)
                .with("Priority", priority)
                .with("Conditions.member.1.Field", "path-pattern")
                .with("Conditions.member.1.Values.member.1", format!("{}*", path.trim_end_matches('*')))
                .with("Actions.member.1.Type", "forward")
                .with("Actions.member.1.TargetGroupArn", group)
                .tags("Tags.member", &self.tags(&stack.name, &format!("80:{priority}")));
            self.aws
                .call(LOAD_BALANCERS, query)
                .await
                .with_context(|| format!("creating the rule of {path}"))?;
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
            self.release(&of, &name.namespace).await?;
            self.delete_target_group(&arn(binding)).await?;
        }
        Ok(())
    }

    async fn delete_target_group(&self, arn: &str) -> Result<()> {
        for _ in 0..20 {
            match self
                .aws
                .call(LOAD_BALANCERS, Query::new("DeleteTargetGroup").with("TargetGroupArn", arn))
                .await
            {
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
