//! TargetGroupBindings: which instances are registered, and that the nodes' security group admits the load
//! balancers.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use aws_sdk_ec2::types::{Instance, SecurityGroup};
use aws_sdk_elasticloadbalancingv2::types::{TargetDescription, TargetHealthStateEnum};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::groups::Peer;
use super::{LoadBalancers, bindings, gone};
use crate::cloud::addons::aws::{self, Answer};

/// Keeps a TargetGroupBinding until its targets and rules are gone.
pub const FINALIZER: &str = "elbv2.k8s.aws/resources";
impl LoadBalancers<'_> {
    /// Brings every binding up to date.
    pub async fn bind(&self) -> Result<()> {
        let all = bindings(&self.stand_in.client, None)
            .list(&ListParams::default())
            .await
            .context("listing TargetGroupBindings")?;
        if all.items.is_empty() {
            return Ok(());
        }
        let running = self.instances().await?;
        let instances: BTreeSet<String> =
            running.iter().filter_map(Instance::instance_id).map(str::to_owned).collect();
        let Some(group) = self.node_group(&running).await? else { return Ok(()) };
        for binding in all.items.iter().filter(|binding| binding.metadata.deletion_timestamp.is_none()) {
            for (source, port) in admitted(binding) {
                self.authorize(&group, port, Peer::Group(&source)).await?;
            }
            self.register(binding, &instances).await?;
            self.observe(binding).await?;
        }
        Ok(())
    }

    async fn register(&self, binding: &DynamicObject, instances: &BTreeSet<String>) -> Result<()> {
        let arn =
            binding.data["spec"]["targetGroupARN"].as_str().context("the binding has no target group")?;
        let about = || format!("the targets of {}", binding.name_any());
        let call = self.aws.load_balancers.describe_target_health().target_group_arn(arn);
        let health = call.send().await.answer().with_context(about)?;
        let draining = Some(&TargetHealthStateEnum::Draining);
        let found: BTreeSet<String> = health
            .target_health_descriptions()
            .iter()
            .filter(|target| target.target_health().and_then(|health| health.state()) != draining)
            .filter_map(|target| target.target()?.id().map(str::to_owned))
            .collect();
        if let Some(missing) = targets(instances.difference(&found)) {
            let call = self.aws.load_balancers.register_targets().target_group_arn(arn);
            call.set_targets(Some(missing)).send().await.answer().with_context(about)?;
        }
        if let Some(gone) = targets(found.difference(instances)) {
            let call = self.aws.load_balancers.deregister_targets().target_group_arn(arn);
            call.set_targets(Some(gone)).send().await.answer().with_context(about)?;
        }
        Ok(())
    }

    async fn observe(&self, binding: &DynamicObject) -> Result<()> {
        let generation = binding.metadata.generation;
        if binding.data["status"]["observedGeneration"].as_i64() == generation {
            return Ok(());
        }
        let api = bindings(&self.stand_in.client, Some(&binding.namespace().unwrap_or_default()));
        let patch = Patch::Merge(json!({"status": {"observedGeneration": generation}}));
        let result = api.patch_status(&binding.name_any(), &PatchParams::default(), &patch).await;
        Ok(gone(result.map(drop))?)
    }

    /// Deregisters the targets of a binding that is being deleted, revokes the rules that no other needs, and
    /// takes its finalizer off.
    pub async fn detach(&self, name: &str, namespace: &str) -> Result<()> {
        let api = bindings(&self.stand_in.client, Some(namespace));
        let Some(binding) = api.get_opt(name).await.with_context(|| format!("reading {name}"))? else {
            return Ok(());
        };
        match self.register(&binding, &BTreeSet::new()).await {
            Err(error) if aws::code(&error) == Some("TargetGroupNotFound") => {}
            result => result?,
        }
        let all = bindings(&self.stand_in.client, None)
            .list(&ListParams::default())
            .await
            .context("listing TargetGroupBindings")?;
        let others: BTreeSet<(String, i32)> = all
            .items
            .iter()
            .filter(|other| other.metadata.deletion_timestamp.is_none())
            .flat_map(admitted)
            .collect();
        if let Some(group) = self.node_group(&self.instances().await?).await? {
            for (source, port) in admitted(&binding).into_iter().filter(|rule| !others.contains(rule)) {
                self.revoke(&group, port, Peer::Group(&source)).await?;
            }
        }
        let patch = Patch::Merge(json!({"metadata": {"finalizers": []}}));
        gone(api.patch(name, &PatchParams::default(), &patch).await.map(drop))
            .with_context(|| format!("letting {name} go"))
    }

    /// The instances of the nodes that take traffic, as far as they run.
    async fn instances(&self) -> Result<Vec<Instance>> {
        let nodes: Api<Node> = Api::all(self.stand_in.client.clone());
        let nodes = nodes.list(&ListParams::default()).await.context("listing nodes")?;
        let ids: Vec<String> = nodes.iter().filter_map(target).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        // A filter passes over those that are gone.
        let call = self.aws.ec2.describe_instances();
        let call = call.filters(aws::filter("instance-id", ids));
        let call = call.filters(aws::filter("instance-state-name", ["running"]));
        let mut pages = call.into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.answer().context("reading the nodes' instances")?;
            found.extend(page.reservations().iter().flat_map(|held| held.instances().to_vec()));
        }
        Ok(found)
    }

    /// The one group of the instances that is tagged as the cluster's; none when there is no instance.
    async fn node_group(&self, instances: &[Instance]) -> Result<Option<String>> {
        if instances.is_empty() {
            return Ok(None);
        }
        let tag = format!("kubernetes.io/cluster/{}", self.site.cluster);
        let groups = instances.iter().flat_map(Instance::security_groups);
        let ids: BTreeSet<String> = groups.filter_map(|group| group.group_id().map(str::to_owned)).collect();
        let call = self.aws.ec2.describe_security_groups().set_group_ids(Some(ids.into_iter().collect()));
        let groups = call.into_paginator().items().send().try_collect().await;
        let groups: Vec<SecurityGroup> = groups.answer().context("reading the nodes' security groups")?;
        let tagged: Vec<&str> = groups
            .iter()
            .filter(|group| aws::tag(group.tags(), &tag).is_some())
            .filter_map(SecurityGroup::group_id)
            .collect();
        for instance in instances {
            let held = instance.security_groups().iter().filter_map(|group| group.group_id());
            let held = held.filter(|group| tagged.contains(group)).count();
            if held != 1 {
                bail!(
                    "expected exactly one securityGroup tagged with {tag} for instance {}, got {held}",
                    instance.instance_id().unwrap_or_default()
                );
            }
        }
        match tagged.as_slice() {
            [group] => Ok(Some((*group).to_owned())),
            several => bail!("expected exactly one securityGroup tagged with {tag}, got: {several:?}"),
        }
    }
}

/// Instances as targets; none when there are none.
fn targets<'a>(ids: impl Iterator<Item = &'a String>) -> Option<Vec<TargetDescription>> {
    let targets: Vec<_> = ids.map(|id| TargetDescription::builder().id(id).build()).collect();
    Some(targets).filter(|targets| !targets.is_empty())
}

/// Source group and port of what a binding wants admitted.
fn admitted(binding: &DynamicObject) -> Vec<(String, i32)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut admitted = Vec::new();
    for ingress in list(&binding.data["spec"]["networking"]["ingress"]) {
        for from in list(&ingress["from"]) {
            let Some(group) = from["securityGroup"]["groupID"].as_str() else { continue };
            let ports = list(&ingress["ports"]).into_iter().filter_map(|port| port["port"].as_i64());
            let ports = ports.filter_map(|port| i32::try_from(port).ok());
            admitted.extend(ports.map(|port| (group.to_owned(), port)));
        }
    }
    admitted
}

/// The instance of a node that takes traffic of load balancers.
fn target(node: &Node) -> Option<String> {
    let excluded =
        ["node.kubernetes.io/exclude-from-external-load-balancers", "node-role.kubernetes.io/control-plane"];
    if excluded.iter().any(|label| node.labels().contains_key(*label))
        || node.metadata.deletion_timestamp.is_some()
    {
        return None;
    }
    let id = node.spec.as_ref()?.provider_id.as_deref()?;
    id.starts_with("aws://").then(|| id.rsplit('/').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_the_cloud_knows_are_targets() {
        let node = |labels: Value, id: Value| -> Node {
            serde_json::from_value(
                json!({"metadata": {"name": "n", "labels": labels}, "spec": {"providerID": id}}),
            )
            .expect("a node")
        };
        assert_eq!(target(&node(json!({}), json!("aws:///us-east-1a/i-1"))).as_deref(), Some("i-1"));
        assert_eq!(target(&node(json!({}), Value::Null)), None);
        assert_eq!(
            target(&node(json!({"node-role.kubernetes.io/control-plane": ""}), json!("aws:///a/i-2"))),
            None
        );
    }

    #[test]
    fn a_binding_names_whom_it_wants_admitted() {
        let binding = json!({"metadata": {"name": "b"}, "spec": {"networking": {"ingress": [{
            "from": [{"securityGroup": {"groupID": "sg-1"}}], "ports": [{"protocol": "TCP", "port": 30080}]}]}}});
        let binding: DynamicObject = serde_json::from_value(binding).expect("a binding");
        assert_eq!(admitted(&binding), [("sg-1".to_owned(), 30080)]);
    }
}
