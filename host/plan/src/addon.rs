//! Add-ons: which of a ClusterPlugin's slots there are, when each may start, what of a plan comes next, and how a cluster that is being
//! deleted lets go of them. Everything here is a decision; the host carries it out.

mod conflict;
mod drift;
mod exposure;
mod facts;
mod inventory;
mod kept;
mod outline;
mod proof;
mod recreate;
mod slots;
mod status;
mod steps;
mod teardown;
mod trouble;
mod uninstall;
mod volumes;
mod webhooks;

pub use conflict::*;
pub use drift::*;
pub use exposure::*;
pub use facts::*;
pub use inventory::*;
pub use kept::*;
pub use outline::*;
pub use proof::*;
pub use recreate::*;
pub use slots::*;
pub use status::*;
pub use steps::*;
pub use teardown::*;
pub use trouble::*;
pub use uninstall::*;
pub use volumes::*;
pub use webhooks::*;

/// When an add-on may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The control plane is initialized and its API answers. Cloud provider and networking: nothing becomes Ready before them.
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
