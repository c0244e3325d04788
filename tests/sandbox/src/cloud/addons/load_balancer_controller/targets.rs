//! TargetGroupBindings: which instances are registered, and that the nodes' security group admits the load
//! balancers.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::{LoadBalancers, bindings, gone};
use crate::cloud::addons::aws::query::Query;
use crate::cloud::addons::aws::xml::Element;
use crate::cloud::addons::aws::{self, EC2, LOAD_BALANCERS};

/// Keeps a TargetGroupBinding until its targets and rules are gone.
pub const FINALIZER: &str = "elbv2.k8s.aws/resources";
/// Description of the rules that the controller adds to the nodes' group.
const SHARED: &str = "elbv2.k8s.aws/targetGroupBinding=shared";
/// Parameter of a permission that names another group.
const GROUP: &str = "Groups.1.GroupId";

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
            running.iter().map(|instance| instance.text("instanceId").to_owned()).collect();
        let Some(group) = self.node_group(&running).await? else { return Ok(()) };
        for binding in all.items.iter().filter(|binding| binding.metadata.deletion_timestamp.is_none()) {
            for (source, port) in admitted(binding) {
                self.authorize(&group, &port, (GROUP, &source), SHARED).await?;
            }
            self.register(binding, &instances).await?;
            self.observe(binding).await?;
        }
        Ok(())
    }

    async fn register(&self, binding: &DynamicObject, instances: &BTreeSet<String>) -> Result<()> {
        let arn =
            binding.data["spec"]["targetGroupARN"].as_str().context("the binding has no target group")?;
        let query = Query::new("DescribeTargetHealth").with("TargetGroupArn", arn);
        let health = self.aws.list(LOAD_BALANCERS, query, "TargetHealthDescriptions").await?;
        let live = health.iter().filter(|target| target.text("TargetHealth/State") != "draining");
        let found: BTreeSet<String> = live.map(|target| target.text("Target/Id").to_owned()).collect();
        for (action, changed) in [
            ("RegisterTargets", instances.difference(&found)),
            ("DeregisterTargets", found.difference(instances)),
        ] {
            let ids: Vec<&String> = changed.collect();
            if ids.is_empty() {
                continue;
            }
            let query = Query::new(action).with("TargetGroupArn", arn);
            let query = ids.iter().zip(1..).fold(query, |query, (id, number): (_, usize)| {
                query.with(format!("Targets.member.{number}.Id"), id)
            });
            self.aws
                .call(LOAD_BALANCERS, query)
                .await
                .with_context(|| format!("{action} of {}", binding.name_any()))?;
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
    /// lets it go.
    pub async fn release(&self, name: &str, namespace: &str) -> Result<()> {
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
        let others: BTreeSet<(String, String)> = all
            .items
            .iter()
            .filter(|other| other.metadata.deletion_timestamp.is_none())
            .flat_map(admitted)
            .collect();
        if let Some(group) = self.node_group(&self.instances().await?).await? {
            for (source, port) in admitted(&binding).into_iter().filter(|rule| !others.contains(rule)) {
                self.revoke(&group, &port, (GROUP, &source), SHARED).await?;
            }
        }
        let patch = Patch::Merge(json!({"metadata": {"finalizers": []}}));
        gone(api.patch(name, &PatchParams::default(), &patch).await.map(drop))
            .with_context(|| format!("letting {name} go"))
    }

    /// The instances of the nodes that take traffic, as far as they run.
    async fn instances(&self) -> Result<Vec<Element>> {
        let nodes: Api<Node> = Api::all(self.stand_in.client.clone());
        let nodes = nodes.list(&ListParams::default()).await.context("listing nodes")?;
        let ids: Vec<String> = nodes.iter().filter_map(target).collect();
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        // A filter passes over those that are gone.
        let query = Query::new("DescribeInstances")
            .filter("instance-id", &ids)
            .filter("instance-state-name", ["running"]);
        let reservations =
            self.aws.list(EC2, query, "reservationSet").await.context("reading the nodes' instances")?;
        Ok(reservations
            .iter()
            .flat_map(|reservation| reservation.entries("instancesSet").iter().cloned())
            .collect())
    }

    /// The one group of the instances that is tagged as the cluster's; none when there is no instance.
    async fn node_group(&self, instances: &[Element]) -> Result<Option<String>> {
        if instances.is_empty() {
            return Ok(None);
        }
        let tag = format!("kubernetes.io/cluster/{}", self.site.cluster);
        let ids: BTreeSet<&str> = instances
            .iter()
            .flat_map(|instance| instance.entries("groupSet"))
            .map(|group| group.text("groupId"))
            .collect();
        let query = Query::new("DescribeSecurityGroups").list("GroupId", &ids);
        let groups = self
            .aws
            .list(EC2, query, "securityGroupInfo")
            .await
            .context("reading the nodes' security groups")?;
        let tagged: Vec<&str> = groups
            .iter()
            .filter(|group| group.tag(&tag).is_some())
            .map(|group| group.text("groupId"))
            .collect();
        for instance in instances {
            let held = instance
                .entries("groupSet")
                .iter()
                .filter(|group| tagged.contains(&group.text("groupId")))
                .count();
            if held != 1 {
                bail!(
                    "expected exactly one securityGroup tagged with {tag} for instance {}, got {held}",
                    instance.text("instanceId")
                );
            }
        }
        match tagged.as_slice() {
            [group] => Ok(Some((*group).to_owned())),
            several => bail!("expected exactly one securityGroup tagged with {tag}, got: {several:?}"),
        }
    }
}

/// Source group and port of what a binding wants admitted.
fn admitted(binding: &DynamicObject) -> Vec<(String, String)> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut admitted = Vec::new();
    for ingress in list(&binding.data["spec"]["networking"]["ingress"]) {
        for from in list(&ingress["from"]) {
            let Some(group) = from["securityGroup"]["groupID"].as_str() else { continue };
            let ports = list(&ingress["ports"]).into_iter().filter_map(|port| port["port"].as_i64());
            admitted.extend(ports.map(|port| (group.to_owned(), port.to_string())));
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
        assert_eq!(admitted(&binding), [("sg-1".to_owned(), "30080".to_owned())]);
    }
}
