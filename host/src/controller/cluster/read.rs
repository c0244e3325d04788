//! Reads what a decision about an AWSCluster is made of. Nothing is decided here, and nothing but finalizers
//! and the two conditions that report why nothing is done is written.

use std::sync::Arc;

use addons::{STORED_RULES_ANNOTATION, stored_rules};
use crds::cluster_api::{Cluster, Machine};
use crds::{AWSCluster, AWSMachine, ClusterPlugin, names};
use kube::ResourceExt;
use model::AddOnRule;

use super::{ClusterMemory, Clusters};
use crate::context::Context;
use crate::controller::owner::{cluster_of_name, owner};
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;
use crate::rules::{RequestedRules, add_on_rules, requested_rules};

/// Everything that a decision is made of.
pub struct ClusterScope {
    /// The name of the Cluster.
    pub(super) name: ObjectName,
    pub(super) cluster: Cluster,
    pub(super) object: Arc<Cached<AWSCluster>>,
    pub(super) machines: Vec<String>,
    pub(super) requested: Option<RequestedRules>,
    pub(super) rules: Option<Vec<AddOnRule>>,
    pub(super) region: aws::Region,
    pub(super) who: String,
    /// The AWSCluster whose id this one has only copied.
    pub(super) copied_from: Option<String>,
}

impl ClusterScope {
    /// Whether nobody is left in the cluster who would remove what its controllers made.
    pub(super) fn is_swept(&self) -> bool {
        self.object.is_deleting() && self.machines.is_empty()
    }

    /// Whether deletion is to wait for nothing that it does not delete itself.
    pub(super) fn is_forced(&self) -> bool {
        let annotated = [self.object.annotations(), self.cluster.annotations()];
        annotated.iter().any(|it| it.contains_key(names::FORCE_DELETE_ANNOTATION))
    }
}

impl Clusters {
    /// Reads everything, and sees to it that the object cannot vanish before what is made for it. `None`:
    /// nothing is to be done.
    pub(super) async fn read_scope(
        &self,
        object: Arc<Cached<AWSCluster>>,
        memory: &mut ClusterMemory,
    ) -> Result<Option<ClusterScope>, Error> {
        let management = &self.context.management;
        let owner = owner(&object, "Cluster");
        let cluster =
            owner.as_ref().and_then(|name| management.get::<Cluster>(name)).map(|it| Cluster::clone(&it));
        if management.is_paused(&object) {
            self.pause(&object, cluster, memory).await?;
            return Ok(None);
        }
        memory.paused = None;
        let object = if object.is_deleting() {
            if !object.has_finalizer(names::CLUSTER_FINALIZER) {
                return Ok(None);
            }
            object
        } else if cluster.is_none() {
            self.report_not_owned(&object).await?;
            return Ok(None);
        } else {
            management.add_finalizer(&object, names::CLUSTER_FINALIZER).await?
        };
        let name = owner.unwrap_or_else(|| object.object_name());
        // While it is deleted, its Cluster may be gone already: only the name matters then.
        let cluster = cluster.unwrap_or_else(|| cluster_of_name(&name));
        let machines =
            if object.is_deleting() { self.machines_left(&name, memory).await? } else { Vec::new() };
        let requested = requested(&self.context, &name, &object);
        let rules = requested.as_ref().map(add_on_rules);
        let region = self.context.aws.region(&object.spec.region);
        let who = format!("cluster/{}", object.object_name());
        let all = management.list::<AWSCluster>();
        let snapshot = region.view().borrow().snapshot.clone();
        let copied_from =
            infra::cluster::copied_from(&object, all.iter().map(|it| &***it), snapshot.as_deref());
        Ok(Some(ClusterScope { name, cluster, object, machines, requested, rules, region, who, copied_from }))
    }

    /// Names of AWSMachines of the Cluster. Before the answer is "none", the API itself is asked: a cache may
    /// be behind.
    async fn machines_left(
        &self,
        cluster: &ObjectName,
        memory: &mut ClusterMemory,
    ) -> Result<Vec<String>, Error> {
        let management = &self.context.management;
        let belongs = |object: &&Cached<AWSMachine>| {
            let machine = owner(object, "Machine").and_then(|it| management.get::<Machine>(&it));
            let by_machine = machine.is_some_and(|it| it.spec.cluster_name == cluster.name);
            object.namespace().as_deref() == Some(&cluster.namespace)
                && (by_machine || crate::management::Watched::cluster(&***object).as_ref() == Some(cluster))
        };
        let unreadable = management.unreadable::<AWSMachine>().into_iter().map(|(name, _)| name);
        let mut left: Vec<String> =
            unreadable.filter(|it| it.namespace == cluster.namespace).map(|it| it.name).collect();
        let cached = management.list::<AWSMachine>();
        left.extend(cached.iter().map(|it| &**it).filter(belongs).map(|it| it.name_any()));
        if left.is_empty() && !memory.no_machines {
            let live = management.live_list::<AWSMachine>(&cluster.namespace).await?;
            left.extend(live.iter().filter(belongs).map(|it| it.name_any()));
            memory.no_machines = left.is_empty();
        }
        Ok(left)
    }
}

/// What add-ons ask for. A Cluster without any ClusterPlugin asks for what its last one left installed,
/// which is known at once.
pub fn requested(
    context: &Context,
    cluster: &ObjectName,
    object: &Cached<AWSCluster>,
) -> Option<RequestedRules> {
    let requested = context.rules.get(cluster);
    let has_plugins = !context.management.of_cluster::<ClusterPlugin>(cluster).is_empty();
    if requested.is_some() || has_plugins {
        return requested;
    }
    let annotation = object.annotations().get(STORED_RULES_ANNOTATION);
    stored_rules(annotation.map(String::as_str)).map(requested_rules)
}
