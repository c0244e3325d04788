//! The controllers: each reads what there is, has `plan` decide, lets a leaf act, and says how it stands.
//! This file connects them: which change wakes which object. It never decides what is done.

pub mod addon;
mod cluster;
mod gc;
mod issuer;
mod machine;
mod notes;
mod owner;
pub mod queue;
mod reconcile;
mod refusals;
mod regions;
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
    let (clusters, cluster_wakes) = queue::channel();
    let (machines, machine_wakes) = queue::channel();
    let (templates, template_wakes) = queue::channel();
    let (plugins, plugin_wakes) = queue::channel();
    let changes = context.management.changes();
    let rules = context.rules.changes();
    wake_all::<AWSCluster>(&context, &clusters);
    wake_all::<AWSMachine>(&context, &machines);
    wake_all::<AWSMachineTemplate>(&context, &templates);
    wake_all::<ClusterPlugin>(&context, &plugins);
    wake_all::<Cluster>(&context, &plugins);
    let management = context.management.clone();
    let wakers =
        Triggers { management, clusters: clusters.clone(), machines: machines.clone(), templates, plugins };
    tokio::spawn(wakers.route(changes, rules));

    let cluster = Arc::new(cluster::Clusters::new(context.clone(), clusters));
    let machine = Arc::new(machine::Machines::new(context.clone(), machines));
    let template = Arc::new(template::Templates::new(context.clone()));
    let add_ons = Arc::new(addon::AddOns::new(context)?);
    tokio::join!(
        queue::run(cluster_wakes, stop.clone(), move |name| reconcile::run(cluster.clone(), name)),
        queue::run(machine_wakes, stop.clone(), move |name| reconcile::run(machine.clone(), name)),
        queue::run(template_wakes, stop.clone(), move |name| reconcile::run(template.clone(), name)),
        queue::run(plugin_wakes, stop, move |name| reconcile::run(add_ons.clone(), name)),
    );
    Ok(())
}

fn wake_all<K: Watched>(context: &Context, waker: &Trigger) {
    for object in context.management.list::<K>() {
        waker.wake(object.object_name());
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
                    self.wake_cluster(&cluster);
                    self.wake_plugins(&cluster);
                }
                else => return,
            }
        }
    }

    fn change(&self, change: Change) {
        let Change { kind, name, cluster } = change;
        match kind {
            Kind::AWSCluster => {
                self.clusters.wake(name);
                cluster.iter().for_each(|it| {
                    self.wake_machines(it, |_| true);
                    self.wake_templates(it);
                    self.wake_plugins(it);
                });
            }
            Kind::AWSMachineTemplate => self.templates.wake(name),
            Kind::AWSMachine => {
                self.machines.wake(name);
                cluster.iter().for_each(|it| self.wake_deleting_cluster(it));
            }
            Kind::Cluster => {
                self.wake_cluster(&name);
                self.wake_machines(&name, |_| true);
                self.wake_templates(&name);
                self.wake_plugins(&name);
                self.plugins.wake(name);
            }
            Kind::Machine => self.wake_machine(&name, cluster.as_ref()),
            Kind::KubeadmControlPlane => cluster.iter().for_each(|it| {
                let has_issuer = |it: &AWSCluster| it.spec.service_account_issuer.is_some();
                if self.management.of_cluster::<AWSCluster>(it).iter().any(|it| has_issuer(it)) {
                    self.wake_cluster(it);
                }
                self.wake_machines(it, |it| it.is_deleting());
                self.wake_plugins(it);
            }),
            Kind::ClusterPlugin => {
                self.plugins.wake(name);
                cluster.iter().for_each(|it| {
                    self.wake_cluster(it);
                    self.wake_machines(it, |it| it.is_deleting());
                    self.wake_plugins(it);
                    // A Cluster that it may have left behind.
                    self.plugins.wake(it.clone());
                });
            }
        }
    }

    fn wake_cluster(&self, cluster: &ObjectName) {
        for object in self.management.of_cluster::<AWSCluster>(cluster) {
            self.clusters.wake(object.object_name());
        }
        if let Some(reference) =
            self.management.get::<Cluster>(cluster).and_then(|it| it.spec.infrastructure_ref.clone())
        {
            self.clusters.wake(cluster.sibling(reference.name));
        }
    }

    fn wake_plugins(&self, cluster: &ObjectName) {
        for object in self.management.of_cluster::<ClusterPlugin>(cluster) {
            self.plugins.wake(object.object_name());
        }
    }

    /// Those of which nothing is said yet.
    fn wake_templates(&self, cluster: &ObjectName) {
        for object in
            self.management.of_cluster::<AWSMachineTemplate>(cluster).iter().filter(|it| it.status.is_none())
        {
            self.templates.wake(object.object_name());
        }
    }

    fn wake_deleting_cluster(&self, cluster: &ObjectName) {
        for object in self.management.of_cluster::<AWSCluster>(cluster).iter().filter(|it| it.is_deleting()) {
            self.clusters.wake(object.object_name());
        }
    }

    fn wake_machine(&self, machine: &ObjectName, cluster: Option<&ObjectName>) {
        match self.management.get::<Machine>(machine).and_then(|it| it.spec.infrastructure_ref.clone()) {
            Some(reference) => self.machines.wake(machine.sibling(reference.name)),
            None => cluster.into_iter().for_each(|it| self.wake_machines(it, |_| true)),
        }
    }

    fn wake_machines(
        &self,
        cluster: &ObjectName,
        which: impl Fn(&crate::management::Cached<AWSMachine>) -> bool,
    ) {
        for object in self.management.of_cluster::<AWSMachine>(cluster).iter().filter(|it| which(it)) {
            self.machines.wake(object.object_name());
        }
    }
}
