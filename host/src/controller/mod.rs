//! The controllers: each reads what there is, has a pure crate decide, lets a leaf act, and reports how it
//! stands. This file connects them: which change triggers the reconciliation of which object.

pub mod addon;
pub mod cluster;
mod conditions;
mod events;
mod gc;
mod infrastructure;
mod issuer;
mod machine;
pub mod module;
mod owner;
pub mod queue;
pub mod reconcile;
mod refusals;
mod subscriptions;
mod template;
mod wave;

use std::sync::Arc;

use crds::cluster_api::{Cluster, Machine};
use crds::{AWSCluster, AWSMachine, AWSMachineTemplate, ClusterPlugin, PluginModule};
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
    let (modules, module_requests) = queue::channel();
    let changes = context.management.changes();
    let rules = context.rules.changes();
    enqueue_all::<AWSCluster>(&context, &clusters);
    enqueue_all::<AWSMachine>(&context, &machines);
    enqueue_all::<AWSMachineTemplate>(&context, &templates);
    enqueue_all::<ClusterPlugin>(&context, &plugins);
    enqueue_all::<Cluster>(&context, &plugins);
    enqueue_all::<PluginModule>(&context, &modules);

    let cluster = Arc::new(cluster::Clusters::new(context.clone(), clusters.clone()));
    let machine = Arc::new(machine::Machines::new(context.clone(), machines.clone()));
    let template = Arc::new(template::Templates::new(context.clone()));
    let loaded = addon::plugins::Plugins::of(&context)?;
    let module = Arc::new(module::Modules::new(context.clone(), loaded.clone(), Some(plugins.clone())));
    let add_ons = Arc::new(addon::AddOns::new(context.clone(), loaded));
    let triggers =
        Triggers { management: context.management.clone(), clusters, machines, templates, plugins, modules };
    tokio::spawn(triggers.route(changes, rules));
    tokio::join!(
        queue::run(cluster_requests, stop.clone(), move |name| reconcile::run(cluster.clone(), name)),
        queue::run(machine_requests, stop.clone(), move |name| reconcile::run(machine.clone(), name)),
        queue::run(template_requests, stop.clone(), move |name| reconcile::run(template.clone(), name)),
        queue::run(module_requests, stop.clone(), move |name| reconcile::run(module.clone(), name)),
        queue::run(plugin_requests, stop, move |name| reconcile::run(add_ons.clone(), name)),
    );
    Ok(())
}

fn enqueue_all<K: Watched>(context: &Context, trigger: &Trigger) {
    for object in context.management.list::<K>() {
        trigger.enqueue(object.object_name());
    }
}

/// Enqueues the objects that a change concerns.
struct Triggers {
    management: Management,
    clusters: Trigger,
    machines: Trigger,
    templates: Trigger,
    plugins: Trigger,
    modules: Trigger,
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
        let cluster = cluster.as_ref();
        match kind {
            Kind::AWSCluster => {
                self.clusters.enqueue(name);
                if let Some(cluster) = cluster {
                    self.enqueue_machines(cluster, |_| true);
                    self.enqueue_templates(cluster);
                    self.enqueue_plugins(cluster);
                }
            }
            Kind::AWSMachineTemplate => self.templates.enqueue(name),
            Kind::PluginModule => self.modules.enqueue(name),
            Kind::AWSMachine => {
                self.machines.enqueue(name);
                if let Some(cluster) = cluster {
                    self.enqueue_deleting_cluster(cluster);
                }
            }
            Kind::Cluster => {
                self.enqueue_cluster(&name);
                self.enqueue_machines(&name, |_| true);
                self.enqueue_templates(&name);
                self.enqueue_plugins(&name);
                self.plugins.enqueue(name);
            }
            Kind::Machine => {
                self.enqueue_machine(&name, cluster);
                // The last one of an older version is gone after its control plane said so.
                if self.management.get::<Machine>(&name).is_none() {
                    cluster.into_iter().for_each(|it| self.enqueue_plugins(it));
                }
            }
            Kind::KubeadmControlPlane => {
                if let Some(cluster) = cluster {
                    if self.has_issuer(cluster) {
                        self.enqueue_cluster(cluster);
                    }
                    self.enqueue_machines(cluster, |it| it.is_deleting());
                    self.enqueue_plugins(cluster);
                }
            }
            Kind::ClusterPlugin => {
                self.plugins.enqueue(name);
                if let Some(cluster) = cluster {
                    self.enqueue_cluster(cluster);
                    self.enqueue_machines(cluster, |it| it.is_deleting());
                    self.enqueue_plugins(cluster);
                    // A Cluster that it may have left behind.
                    self.plugins.enqueue(cluster.clone());
                }
            }
        }
    }

    fn has_issuer(&self, cluster: &ObjectName) -> bool {
        let objects = self.management.of_cluster::<AWSCluster>(cluster);
        objects.iter().any(|it| it.spec.service_account_issuer.is_some())
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

    /// Those that have no status yet.
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
