//! When a machine of a cluster that is being deleted is kept: its nodes run the pods that remove load
//! balancers and volumes. Cluster API deletes machines at once and waits for ours, so keeping ours keeps the
//! nodes. Nothing else is ever held: not scaling down, not a rollout, not remediation.

/// What decides whether a machine that is being deleted is kept. The first two are read live before anything
/// is terminated: a cold cache looks like no plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The Cluster has a deletion timestamp.
    pub cluster_deleting: bool,
    /// A ClusterPlugin of the cluster still carries our finalizer.
    pub plugin_finalizer: bool,
    /// The machine belongs to the control plane.
    pub control_plane: bool,
    /// The control plane object has a deletion timestamp, or is gone.
    pub control_plane_deleting: bool,
    /// Somebody asked to delete without removing add-ons.
    pub forced: bool,
}

impl Hold {
    /// Whether it follows from the control plane object, which is read only then: of many kinds it takes a
    /// right that somebody has to give.
    pub fn depends_on_control_plane(&self) -> bool {
        let with = |control_plane_deleting| hold(&Hold { control_plane_deleting, ..*self });
        with(true) != with(false)
    }
}

/// Why nothing of the machine is removed yet, its target registration included; `None` when it may go.
pub fn hold(facts: &Hold) -> Option<String> {
    let going = !facts.control_plane || facts.control_plane_deleting;
    let held = facts.cluster_deleting && facts.plugin_finalizer && going && !facts.forced;
    held.then(|| "kept until the cluster's add-ons are removed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_held_while_its_cluster_goes_with_add_ons_left() {
        for bits in 0u8..32 {
            let it = Hold {
                cluster_deleting: bits & 1 != 0,
                plugin_finalizer: bits & 2 != 0,
                control_plane: bits & 4 != 0,
                control_plane_deleting: bits & 8 != 0,
                forced: bits & 16 != 0,
            };
            // Worker, worker while the control plane goes too, control plane machine that goes with its
            // object.
            let expected = matches!(bits, 0b00011 | 0b01011 | 0b01111);
            assert_eq!(hold(&it).is_some(), expected, "{it:?}");
            // Nothing but a control plane machine whose cluster goes with add-ons left.
            assert_eq!(it.depends_on_control_plane(), bits & 0b10111 == 0b00111, "{it:?}");
        }
    }
}
