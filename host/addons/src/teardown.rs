//! What to do next for the add-ons of a cluster that is being deleted: first what made AWS resources from
//! inside the cluster, then its volumes as far as they are to go, then ingress, storage and the cloud
//! provider, and only then the machines may go. Networking stays to the end and goes with the machines.

use std::time::Duration;

use super::load_balancer_users::listed;
use super::{Exposure, Inventory, ObjectRef, Slot, VolumeWork, volumes_that_stay};
use model::Timestamp;

/// Whether the workload cluster's API can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Api {
    Answers,
    /// There is no kubeconfig Secret: there never was a control plane, or it is gone.
    NoKubeconfig,
    /// Why not.
    Unreachable(String),
}

/// What AWS says of load balancers that the cluster made, by tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadBalancers {
    /// Ids of those that are left.
    Left(Vec<String>),
    /// Somebody would have to act before they can be read, and perhaps nobody will; with what AWS said.
    Denied(String),
    /// AWS could not be asked, and may be later.
    Unknown(String),
}

/// What is known when the question is put. What comes later in the order need not be read while something
/// earlier is left, unless the time is over.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedTeardown {
    /// The Cluster's deletionTimestamp.
    pub began: Timestamp,
    pub now: Timestamp,
    /// `spec.deletion.timeout`.
    pub timeout: Duration,
    /// Annotation `cluster.kurator.dev/force-delete`.
    pub forced: bool,
    /// Whether there ever was a control plane that add-ons could have been installed on.
    pub initialized: bool,
    pub api: Api,
    /// Gateways, Ingresses and Services that are still there, in the order in which they are to be deleted.
    pub load_balanced: Vec<Exposure>,
    /// What binds Pods to target groups.
    pub bindings: Vec<Exposure>,
    pub load_balancers: LoadBalancers,
    pub volumes: VolumeWork,
    /// Add-ons whose removal is still to be carried out, in order.
    pub installed: Vec<String>,
    /// A record that somebody wrote over: what it told of goes with the machines, and nothing waits for it.
    pub unreadable: Option<String>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Teardown {
    /// Ask for the deletion of these; they are gone when their finalizers are.
    Delete(Vec<ObjectRef>),
    /// Carry out what is to be done about volumes.
    DeleteVolumes,
    /// Carry out the removal of this add-on.
    Remove(String),
    /// Wait, and say this.
    Wait(String),
    /// Take the finalizers off; the machines may go. The text says what was skipped and why, if anything was.
    RemoveFinalizer(Option<String>),
}

impl ObservedTeardown {
    /// Whether `spec.deletion.timeout` is over.
    pub fn is_late(&self) -> bool {
        self.now >= self.began + self.timeout.as_secs_f64()
    }

    /// Volumes that the user's policy leaves in AWS, in words.
    pub fn stays(&self) -> Option<String> {
        volumes_that_stay(&self.volumes.stay)
    }
}

/// The add-ons that are removed while their cluster is deleted, in order: what makes AWS resources before
/// what all others need. Networking and what this program does not know go with the machines.
pub fn removed_with_cluster(installed: &[Inventory]) -> Vec<String> {
    let known = installed.iter().filter_map(|it| Some((it.slot()?, it.module.clone())));
    let mut res: Vec<(Slot, String)> = known.filter(|it| it.0 != Slot::Networking).collect();
    res.sort_by(|(one, first), (other, second)| other.cmp(one).then_with(|| first.cmp(second)));
    res.into_iter().map(|it| it.1).collect()
}

/// Decides the next thing to do. Whatever users' automation makes again is looked at first each time.
pub fn teardown(observed: &ObservedTeardown) -> Teardown {
    if observed.forced {
        return Teardown::RemoveFinalizer(Some(
            "annotation cluster.kurator.dev/force-delete: add-ons were not removed".into(),
        ));
    }
    match &observed.api {
        Api::NoKubeconfig => {
            return Teardown::RemoveFinalizer(Some("no kubeconfig Secret: add-ons were not removed".into()));
        }
        Api::Unreachable(_) if !observed.initialized => {
            return Teardown::RemoveFinalizer(Some(
                "the control plane was never initialized: there were no add-ons to remove".into(),
            ));
        }
        Api::Unreachable(why) if observed.is_late() => {
            return Teardown::RemoveFinalizer(Some(format!(
                "the API server did not answer within spec.deletion.timeout ({why}): add-ons were not removed"
            )));
        }
        Api::Unreachable(why) => return Teardown::Wait(format!("for the API server: {why}")),
        Api::Answers => (),
    }
    match next(observed) {
        Teardown::RemoveFinalizer(skipped) => Teardown::RemoveFinalizer(skipped),
        _ if observed.is_late() => Teardown::RemoveFinalizer(Some(format!(
            "spec.deletion.timeout is over while waiting {}",
            awaited(observed)
        ))),
        next => next,
    }
}

fn next(observed: &ObservedTeardown) -> Teardown {
    for exposed in [&observed.load_balanced, &observed.bindings] {
        let open: Vec<ObjectRef> =
            exposed.iter().filter(|it| !it.is_deleting).map(|it| it.object.clone()).collect();
        if !open.is_empty() {
            return Teardown::Delete(open);
        }
        if !exposed.is_empty() {
            return Teardown::Wait(awaited(observed));
        }
    }
    if matches!(&observed.load_balancers, LoadBalancers::Left(ids) if !ids.is_empty()) {
        return Teardown::Wait(awaited(observed));
    }
    if !observed.volumes.stop.is_empty() || !observed.volumes.delete.is_empty() {
        return Teardown::DeleteVolumes;
    }
    match observed.installed.first() {
        _ if !observed.volumes.awaited.is_empty() => Teardown::Wait(awaited(observed)),
        Some(module) => Teardown::Remove(module.clone()),
        None => match &observed.load_balancers {
            LoadBalancers::Unknown(_) => Teardown::Wait(awaited(observed)),
            LoadBalancers::Denied(why) => {
                Teardown::RemoveFinalizer(Some(format!("load balancers of the cluster may be left: {why}")))
            }
            LoadBalancers::Left(_) => Teardown::RemoveFinalizer(observed.unreadable.clone()),
        },
    }
}

/// What is waited for, first things first.
pub fn awaited(observed: &ObservedTeardown) -> String {
    let names =
        |exposed: &[Exposure]| listed(&exposed.iter().map(|it| it.object.to_string()).collect::<Vec<_>>());
    match &observed.load_balancers {
        _ if !observed.load_balanced.is_empty() => {
            format!("for what has load balancers to be gone: {}", names(&observed.load_balanced))
        }
        _ if !observed.bindings.is_empty() => {
            format!("for target groups to be let go: {}", names(&observed.bindings))
        }
        LoadBalancers::Left(ids) if !ids.is_empty() => {
            format!("for load balancers that the cluster made to be gone: {}", listed(ids))
        }
        _ if !observed.volumes.awaited.is_empty() => {
            format!("for volumes to be deleted: {}", listed(&observed.volumes.awaited))
        }
        _ if !observed.installed.is_empty() => {
            format!("for add-ons to be removed: {}", observed.installed.join(", "))
        }
        LoadBalancers::Unknown(why) => {
            format!("to know whether load balancers of the cluster are left: {why}")
        }
        LoadBalancers::Left(_) | LoadBalancers::Denied(_) => "for nothing more".to_owned(),
    }
}

#[cfg(test)]
mod tests;
