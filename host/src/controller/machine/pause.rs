//! An AWSMachine that is paused: nothing is done for it and nothing read, but until it can be moved. What
//! that takes is decided in `infra::pause`.

use std::sync::Arc;

use crds::AWSMachine;
use crds::cluster_api::{Cluster, Machine};
use infra::machine::Input;
use infra::{PersistedState, pause};
use kube::ResourceExt;
use model::{Answers, Interest, Timestamp};

use super::{MachineMemory, Machines};
use crate::controller::conditions::report_paused;
use crate::controller::infrastructure::Infrastructure;
use crate::controller::owner::cluster_of_name;
use crate::controller::subscriptions::Subscription;
use crate::management::{Cached, Error};
use crate::object_name::ObjectName;
use crate::system::now;

impl Machines {
    pub(super) async fn pause(
        &self,
        object: &Arc<Cached<AWSMachine>>,
        machine: Option<Machine>,
        cluster_name: Option<ObjectName>,
        cluster: Option<Cluster>,
        memory: &mut MachineMemory,
    ) -> Result<(), Error> {
        // No call of this process is on its way any more: each reconciliation waits for the calls that it
        // makes.
        let stopped = *memory.paused.get_or_insert_with(now);
        report_paused(&self.context.management, object).await?;
        let name = object.object_name();
        if !pause::blocks_move(&object.metadata) {
            self.unsubscribe(&name);
            return Ok(());
        }
        let cluster_name = cluster_name.unwrap_or_else(|| name.clone());
        let cluster = cluster.unwrap_or_else(|| cluster_of_name(&cluster_name));
        match self.awaited(object, machine, &cluster_name, &cluster, stopped) {
            Some((region, interest)) => {
                self.context.aws.region(&region).interest(&format!("machine/{name}"), interest.clone());
                self.subscriptions.subscribe(&name, Subscription { region, interest, instance: None });
            }
            None => {
                self.unsubscribe(&name);
                if let Some(patch) = pause::unblock_move(&object.metadata) {
                    self.context.management.patch(object, patch).await?;
                }
            }
        }
        Ok(())
    }

    /// What has to be read before the outcome of each attempt is known, and in which region. `None`: no
    /// outcome is open, or nobody says in which region it is.
    fn awaited(
        &self,
        object: &Arc<Cached<AWSMachine>>,
        machine: Option<Machine>,
        cluster_name: &ObjectName,
        cluster: &Cluster,
        stopped: Timestamp,
    ) -> Option<(String, Interest)> {
        let aws_cluster = self.aws_cluster(cluster_name, cluster, object)?;
        let (record, cluster_record) =
            (PersistedState::of_machine(object).ok()?, PersistedState::of_cluster(&aws_cluster).ok()?);
        let machine = machine.unwrap_or_else(|| Machine::new(&object.name_any(), Default::default()));
        let region = self.context.aws.region(&aws_cluster.spec.region);
        let snapshot = region.view().borrow().snapshot.clone().unwrap_or_default();
        let input = Input {
            cluster,
            machine: &machine,
            aws_cluster: &aws_cluster,
            aws_machine: object,
            cluster_record: &cluster_record,
            bootstrap: None,
            image: None,
            answers: &Answers::default(),
            snapshot: &snapshot,
            record: &record,
            hold: None,
            now: now(),
            random: "",
        };
        Some((aws_cluster.spec.region.clone(), pause::of_machine(&input, stopped)?))
    }
}
