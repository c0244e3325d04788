//! An AWSCluster that is paused: nothing is done for it and nothing read, but until it can be moved. What
//! that takes is decided in `infra::pause`.

use std::sync::Arc;

use crds::AWSCluster;
use crds::cluster_api::Cluster;
use infra::cluster::Input;
use infra::{PersistedState, pause};

use super::{ClusterMemory, Clusters};
use crate::controller::conditions::report_paused;
use crate::controller::infrastructure::Infrastructure;
use crate::controller::owner::cluster_of_name;
use crate::controller::owner::owner;
use crate::controller::subscriptions::Subscription;
use crate::management::{Cached, Error};
use crate::system::now;

impl Clusters {
    pub(super) async fn pause(
        &self,
        object: &Arc<Cached<AWSCluster>>,
        cluster: Option<Cluster>,
        memory: &mut ClusterMemory,
    ) -> Result<(), Error> {
        // No call of this process is on its way any more: each reconciliation waits for the calls that it
        // makes.
        let stopped = *memory.paused.get_or_insert_with(now);
        report_paused(&self.context.management, object).await?;
        let name = object.object_name();
        let Some(record) =
            PersistedState::of_cluster(object).ok().filter(|_| pause::blocks_move(&object.metadata))
        else {
            self.unsubscribe(&name);
            return Ok(());
        };
        let region = self.context.aws.region(&object.spec.region);
        let snapshot = region.view().borrow().snapshot.clone().unwrap_or_default();
        let cluster = cluster
            .unwrap_or_else(|| cluster_of_name(&owner(object, "Cluster").unwrap_or_else(|| name.clone())));
        let input = Input {
            cluster: &cluster,
            aws_cluster: object,
            machines: &[],
            rules: None,
            snapshot: &snapshot,
            record: &record,
            now: now(),
            random: "",
        };
        match pause::of_cluster(&input, stopped) {
            Some(interest) => {
                region.interest(&format!("cluster/{name}"), interest.clone());
                self.subscriptions.subscribe(
                    &name,
                    Subscription { region: object.spec.region.clone(), interest, instance: None },
                );
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
}
