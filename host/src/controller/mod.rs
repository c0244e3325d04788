//! The controllers: each reads what there is, has `plan` decide, lets a leaf act, and says how it stands.
//! This file connects them: which change wakes which object. It never decides what is done.

pub mod addon;
mod cluster;
mod conditions;
mod events;
mod gc;
mod issuer;
mod machine;
mod owner;
pub mod queue;
mod reconcile;
mod refusals;
mod subscriptions;
mod template;
mod wave;

use std::sync::Arc;

use crds::cluster_api::{Cluster, Machine};
use crds::{AWSCluster, AWSMachine, AWSMachineTemplate, ClusterPlugin};
use tokio::sync::{mpsc, watch};

use crate::context::Context;
use crate::management::{Change, Kind, Management, Watched};
use crate::object_name::ObjectName;
use queue::Trigger;

/// Runs all controllers until `stop` is true. Every kind has been read whole before they begin: an empty
/// cache would look like "no machine is left".
///
/// # Errors
/// The plugins that come with this program cannot be loaded.
pub async fn run(context: Context, stop: watch::Receiver<bool>) -> anyhow::Result<()> {
    let (clusters, cluster_requests) = queue::channel();
    let (machines, machine_requests) = queue::channel();
    let (templates, template_requests) = queue::channel();
    let (plugins, plugin_requests) = queue::channel();
    let changes = context.management.changes();
    let rules = context.rules.changes();
    enqueue_all::<AWSCluster>(&context, &clusters);
    enqueue_all::<AWSMachine>(&context, &machines);
    enqueue_all::<AWSMachineTemplate>(&context, &templates);
    enqueue_all::<ClusterPlugin>(&context, &plugins);
    enqueue_all::<Cluster>(&context, &plugins);
    let management = context.management.clone();
    let triggers =
        Triggers { management, clusters: clusters.clone(), machines: machines.clone(), templates, plugins };
    tokio::spawn(triggers.route(changes, rules));

    let cluster = Arc::new(cluster::Clusters::new(context.clone(), clusters));
    let machine = Arc::new(machine::Machines::new(context.clone(), machines));
    let template = Arc::new(template::Templates::new(context.clone()));
    let add_ons = Arc::new(addon::AddOns::new(context)?);
    tokio::join!(
        queue::run(cluster_requests, stop.clone(), move |name| reconcile::run(cluster.clone(), name)),
        queue::run(machine_requests, stop.clone(), move |name| reconcile::run(machine.clone(), name)),
        queue::run(template_requests, stop.clone(), move |name| reconcile::run(template.clone(), name)),
        queue::run(plugin_requests, stop, move |name| reconcile::run(add_ons.clone(), name)),
    );
    Ok(())
}

fn enqueue_all<K: Watched>(context: &Context, trigger: &Trigger) {
    for object in context.management.list::<K>() {
        trigger.enqueue(object.object_name());
    }
}

/// Who is woken by what.
struct Triggers {
    management: Management,
    clusters: Trigger,
    machines: Trigger,
    templates: Trigger,
    plugins: Trigger,
}

impl Triggers {
    async fn route(
        self,
        mut changes: mpsc::UnboundedReceiver<Change>,
        mut rules: mpsc::UnboundedReceiver<ObjectName>,
    ) {
        loop {
            tokio::select! {
                Some(change) = changes.recv() => self.change(change),
                Some(cluster) = rules.recv() => {
                    self.enqueue_cluster(&cluster);
                    self.enqueue_plugins(&cluster);
                }
                else => return,
            }
        }
    }

    fn change(&self, change: Change) {
        let Change { kind, name, cluster } = change;
        match kind {
            Kind::AWSCluster => {
                self.clusters.enqueue(name);
                cluster.iter().for_each(|it| {
                    self.enqueue_machines(it, |_| true);
                    self.enqueue_templates(it);
                    self.enqueue_plugins(it);
                });
            }
            Kind::AWSMachineTemplate => self.templates.enqueue(name),
            Kind::AWSMachine => {
                self.machines.enqueue(name);
                cluster.iter().for_each(|it| self.enqueue_deleting_cluster(it));
            }
            Kind::Cluster => {
                self.enqueue_cluster(&name);
                self.enqueue_machines(&name, |_| true);
                self.enqueue_templates(&name);
                self.enqueue_plugins(&name);
                self.plugins.enqueue(name);
            }
            Kind::Machine => self.enqueue_machine(&name, cluster.as_ref()),
            Kind::KubeadmControlPlane => cluster.iter().for_each(|it| {
                let has_issuer = |it: &AWSCluster| it.spec.service_account_issuer.is_some();
                if self.management.of_cluster::<AWSCluster>(it).iter().any(|it| has_issuer(it)) {
                    self.enqueue_cluster(it);
                }
                self.enqueue_machines(it, |it| it.is_deleting());
                self.enqueue_plugins(it);
            }),
            Kind::ClusterPlugin => {
                self.plugins.enqueue(name);
                cluster.iter().for_each(|it| {
                    self.enqueue_cluster(it);
                    self.enqueue_machines(it, |it| it.is_deleting());
                    self.enqueue_plugins(it);
                    // A Cluster that it may have left behind.
                    self.plugins.enqueue(it.clone());
                });
            }
        }
    }

    fn enqueue_cluster(&self, cluster: &ObjectName) {
        for object in self.management.of_cluster::<AWSCluster>(cluster) {
            self.clusters.enqueue(object.object_name());
        }
        if let Some(reference) =
            self.management.get::<Cluster>(cluster).and_then(|it| it.spec.infrastructure_ref.clone())
        {
            self.clusters.enqueue(cluster.sibling(reference.name));
        }
    }

    fn enqueue_plugins(&self, cluster: &ObjectName) {
        for object in self.management.of_cluster::<ClusterPlugin>(cluster) {
            self.plugins.enqueue(object.object_name());
        }
    }

    /// Those of which nothing is said yet.
    fn enqueue_templates(&self, cluster: &ObjectName) {
        for object in
            self.management.of_cluster::<AWSMachineTemplate>(cluster).iter().filter(|it| it.status.is_none())
        {
            self.templates.enqueue(object.object_name());
        }
    }

    fn enqueue_deleting_cluster(&self, cluster: &ObjectName) {
        for object in self.management.of_cluster::<AWSCluster>(cluster).iter().filter(|it| it.is_deleting()) {
            self.clusters.enqueue(object.object_name());
        }
    }

    fn enqueue_machine(&self, machine: &ObjectName, cluster: Option<&ObjectName>) {
        match self.management.get::<Machine>(machine).and_then(|it| it.spec.infrastructure_ref.clone()) {
            Some(reference) => self.machines.enqueue(machine.sibling(reference.name)),
            None => cluster.into_iter().for_each(|it| self.enqueue_machines(it, |_| true)),
        }
    }

    fn enqueue_machines(
        &self,
        cluster: &ObjectName,
        which: impl Fn(&crate::management::Cached<AWSMachine>) -> bool,
    ) {
        for object in self.management.of_cluster::<AWSMachine>(cluster).iter().filter(|it| which(it)) {
            self.machines.enqueue(object.object_name());
        }
    }
}
