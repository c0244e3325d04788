//! The slots of a ClusterPlugin, and from when on an add-on in each may be installed and be uninstalled.

use serde::{Deserialize, Serialize};

/// What an add-on is for. In the order in which users think of them; removal is in the opposite order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slot {
    CloudProvider,
    Networking,
    Storage,
    Ingress,
    /// None of these: a plugin of a third party beside the slots.
    Other,
}

/// When an add-on may be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The control plane is initialized and its API answers. Cloud provider and networking: nothing becomes
    /// Ready before them.
    Initialized,
    /// At least one control plane machine is Ready. Storage and ingress.
    Ready,
}

impl Slot {
    /// When an add-on in this slot may be installed. Whoever asks for one beside the slots says it himself.
    pub fn stage(self) -> Stage {
        match self {
            Slot::CloudProvider | Slot::Networking => Stage::Initialized,
            Slot::Storage | Slot::Ingress | Slot::Other => Stage::Ready,
        }
    }

    /// Where in a ClusterPlugin modules are asked for.
    pub fn path_of_modules(self) -> &'static str {
        match self {
            Slot::CloudProvider => "spec.cloudProvider.module",
            Slot::Networking => "spec.networking.module",
            Slot::Storage => "spec.storage.module",
            Slot::Ingress => "spec.ingress.module",
            Slot::Other => "spec.plugins",
        }
    }

    /// The name of the slot in a ClusterPlugin; of those beside the slots, of all of them.
    pub fn field(self) -> &'static str {
        match self {
            Slot::CloudProvider => "cloudProvider",
            Slot::Networking => "networking",
            Slot::Storage => "storage",
            Slot::Ingress => "ingress",
            Slot::Other => "plugins",
        }
    }
}

/// Whether an add-on in this slot goes before its cluster does.
pub fn can_be_uninstalled(slot: Slot) -> bool {
    matches!(slot, Slot::Storage | Slot::Ingress | Slot::Other)
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
    fn storage_waits_for_a_ready_machine_and_networking_does_not() {
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
