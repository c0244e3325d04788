//! The instance of one machine: what its AWSMachine asks for, as resources, and what can be done about it
//! now. A machine is never changed in place, and an instance that was there once is never made again: Cluster
//! API replaces machines.

mod additions;
mod decide;
mod desired;
mod health;
mod hold;
mod identity;
mod observed_cluster;
mod pause;
mod placement;
mod plan_input;
mod preconditions;
mod user_data;

use std::collections::{BTreeMap, BTreeSet};

use crds::cluster_api::{Cluster, Machine};
use crds::names::CONTROL_PLANE_LABEL;
use crds::{AWSCluster, AWSMachine};

use crate::PersistedState;
use crate::cluster::load_balancer_reads;
use model::{
    Answers, Desired, FoundInstance, Image, ImageQuery, Interest, Invalid, Lookup, Observed, Part, Plan,
    Read, Snapshot, Timestamp,
};

pub use decide::{decide, decide_in};
pub use hold::{Hold, hold};
pub use identity::instance_of;
pub use observed_cluster::ObservedCluster;
pub(crate) use pause::open_outcomes;
pub use user_data::{LARGEST_USER_DATA, PART_SIZE};

/// What a machine is decided from.
pub struct Input<'a> {
    pub cluster: &'a Cluster,
    pub machine: &'a Machine,
    pub aws_cluster: &'a AWSCluster,
    pub aws_machine: &'a AWSMachine,
    /// [`PersistedState::of_cluster`] of the AWSCluster.
    pub cluster_record: &'a PersistedState,
    /// The bootstrap data, once it was asked for.
    pub bootstrap: Option<Bootstrap<'a>>,
    /// The image, once it was asked for.
    pub image: Option<&'a Image>,
    /// Which things the user means by filters, as far as it was asked for.
    pub answers: &'a Answers,
    pub snapshot: &'a Snapshot,
    pub record: &'a PersistedState,
    /// Why nothing of it is removed yet, by [`hold`].
    pub hold: Option<String>,
    pub now: Timestamp,
    /// At least 128 random bits, fresh for every reconciliation.
    pub random: &'a str,
}

/// What a machine boots with, as the Secret of its bootstrap provider says.
#[derive(Clone, Copy)]
pub struct Bootstrap<'a> {
    pub data: &'a [u8],
    /// What is to read it: `cloud-config`, which is meant too where nothing is said, or `ignition`.
    pub format: Option<&'a str>,
}

impl Input<'_> {
    /// What was never read and has to be before anything can be said.
    pub(crate) fn unread(&self) -> BTreeSet<Part> {
        let mut reads =
            vec![Read::Vpcs, Read::Subnets, Read::InternetGateways, Read::SecurityGroups, Read::Instances];
        if is_control_plane(self.machine, self.aws_machine) {
            reads.extend(load_balancer_reads(self.aws_cluster));
        }
        self.snapshot.lacks(reads)
    }

    /// Observes the cluster of the machine.
    pub(crate) fn observe_cluster(&self) -> ObservedCluster {
        ObservedCluster::new(self.cluster, self.aws_cluster, self.cluster_record, self.snapshot, self.random)
    }
}

/// Why nothing can be done yet, which nobody has to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// A condition's reason.
    pub reason: &'static str,
    pub message: String,
}

/// What is to be done for a machine.
#[derive(Clone, Debug, Default)]
pub struct Decision {
    pub plan: Plan,
    /// To be on the object before the plan is carried out.
    pub record: PersistedState,
    pub observed: Observed,
    pub desired: Desired,
    /// The spec cannot be carried out.
    pub invalid: Option<Invalid>,
    pub interest: Interest,
    /// It is being deleted, and nothing of it is left.
    pub finished: bool,
    /// Bootstrap data is needed before more can be said.
    pub needs_bootstrap: bool,
    /// An image is needed before more can be said.
    pub needs_image: Option<ImageQuery>,
    /// Answers are needed before more can be said.
    pub lookups: BTreeSet<Lookup>,
    pub waits: Option<Wait>,
    /// The instance as AWS shows it, terminated ones included.
    pub instance: Option<FoundInstance>,
    /// The instance is gone or going, without this operator's doing: reason and message. The machine has to
    /// be replaced.
    pub failed: Option<(&'static str, String)>,
    /// The object names an instance that is not this machine's: nothing is done with it, and it stays. What
    /// to say of it.
    pub foreign: Option<String>,
}

impl Decision {
    /// Whether AWS has to be asked something before more can be said.
    pub fn asks(&self) -> bool {
        self.needs_image.is_some() || !self.lookups.is_empty()
    }
}

/// Name of an AWSMachine, which names its resources.
pub(crate) fn name(aws_machine: &AWSMachine) -> String {
    aws_machine.metadata.name.clone().unwrap_or_default()
}

/// Whether a machine belongs to the control plane.
pub(crate) fn is_control_plane(machine: &Machine, aws_machine: &AWSMachine) -> bool {
    let labelled = |labels: &Option<BTreeMap<String, String>>| {
        labels.as_ref().is_some_and(|it| it.contains_key(CONTROL_PLANE_LABEL))
    };
    labelled(&machine.metadata.labels) || labelled(&aws_machine.metadata.labels)
}

/// Namespace and name of an AWSMachine.
pub(crate) fn full_name(aws_machine: &AWSMachine) -> String {
    format!("{}/{}", aws_machine.metadata.namespace.as_deref().unwrap_or_default(), name(aws_machine))
}
