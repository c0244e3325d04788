//! Add-ons: which of a ClusterPlugin's slots there are, when each may start, what of a plan comes next, and
//! how a cluster that is being deleted lets go of them. Everything here is a decision; the host carries it
//! out.

pub mod certificate;
mod changes;
mod conflict;
mod drift;
pub mod efs;
mod facts;
pub mod grant;
mod inventory;
mod kept;
mod load_balancer_users;
mod outline;
mod proof;
mod recreate;
mod rule;
mod slots;
mod status;
mod steps;
pub mod stored;
mod teardown;
mod trouble;
mod uninstall;
pub mod upgrade;
mod volumes;
mod webhooks;

pub use changes::{changes, changes_of_record};
pub use conflict::{Cause, may_take_over};
pub use drift::{
    Change, Compared, Decision, Drift, History, Path, UNTOLD, WRITERS, Writers, compare, drift, without,
};
pub use facts::{
    file_systems_fact, instance_types_fact, ip_pools_fact, machine_subnets_fact, max_pods,
    storage_classes_fact, subnets_fact,
};
pub use inventory::{Inventory, ObjectRef, Previous, merged_rules, objects, plan_hash, prune, rules};
pub use kept::{KEPT_RULES_ANNOTATION, kept_rules, kept_rules_text, rules_of_installed};
pub use load_balancer_users::{
    Exposure, ExposureSeen, load_balanced, target_group_bindings, used_by_ingress_controller,
};
pub use outline::outline;
pub use proof::{Proofs, RECORDS_ANNOTATION, Removal, Standing, digest, judge_removal, removal};
pub use recreate::{Recreate, recreate};
pub use rule::rule;
pub use slots::{Slot, Wanted, wanted};
pub use status::{Progress, status};
pub use steps::{is_looked_at_again, tells_of, waited};
pub use teardown::{Api, LoadBalancers, Teardown, TeardownSeen, awaited, removed_with_cluster, teardown};
pub use trouble::{NODE_PARTS, POD_PARTS, Trouble, on_lost_nodes, tigera_status, trouble, works_but_for};
pub use uninstall::{Leftover, can_leave, in_the_way, leftover, leftovers, slot_of};
pub use volumes::{StorageSeen, VolumeWork, claims_to_delete, used_by_storage, volumes, volumes_that_stay};
pub use webhooks::{SLICE_PARTS, has_ready_endpoint, webhook_services};

/// When an add-on may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The control plane is initialized and its API answers. Cloud provider and networking: nothing becomes
    /// Ready before them.
    Initialized,
    /// At least one control plane machine is Ready. Storage and ingress.
    Ready,
}

/// What is known of the cluster, for the question whether an add-on may start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterState {
    pub exists: bool,
    /// `status.initialization.controlPlaneInitialized` of the Cluster or its control plane.
    pub initialized: bool,
    /// `status.readyReplicas` of the control plane is at least one.
    pub ready: bool,
    /// The Secret `<cluster>-kubeconfig` is there.
    pub kubeconfig: bool,
}

/// Why an add-on of this stage cannot start yet; `None` when it can.
pub fn waits_for(stage: Stage, cluster: &ClusterState) -> Option<&'static str> {
    if !cluster.exists {
        return Some("for the Cluster to exist");
    }
    if !cluster.initialized {
        return Some("for the control plane to be initialized");
    }
    if !cluster.kubeconfig {
        return Some("for the kubeconfig Secret");
    }
    (stage == Stage::Ready && !cluster.ready).then_some("for a control plane machine to be Ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networking_does_not_wait_for_a_ready_control_plane_and_storage_does() {
        let initialized = ClusterState { exists: true, initialized: true, kubeconfig: true, ready: false };
        assert_eq!(waits_for(Stage::Initialized, &initialized), None);
        assert_eq!(waits_for(Stage::Ready, &initialized), Some("for a control plane machine to be Ready"));
        assert_eq!(waits_for(Stage::Ready, &ClusterState { ready: true, ..initialized }), None);
    }

    #[test]
    fn nothing_starts_before_the_api_can_be_reached() {
        assert_eq!(waits_for(Stage::Initialized, &ClusterState::default()), Some("for the Cluster to exist"));
        let exists = ClusterState { exists: true, ..ClusterState::default() };
        assert_eq!(waits_for(Stage::Initialized, &exists), Some("for the control plane to be initialized"));
        let initialized = ClusterState { initialized: true, ..exists };
        assert_eq!(waits_for(Stage::Initialized, &initialized), Some("for the kubeconfig Secret"));
    }
}
